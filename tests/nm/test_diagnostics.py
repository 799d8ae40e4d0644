"""Time stamps and texts in diagnostics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from nm.core.diagnostics import failed_exit, launch_exception, time_stamp
from nm.core.events import ContainerExited, ErrorLogs
from tests.nm.nodes import container_id


@given(st.integers(min_value=-62_135_596_800_000, max_value=253_402_300_799_999))
def test_a_time_stamp_has_the_calendar_date(wall_ms: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=wall_ms)
    expected = f"[{moment.year:04d}-{moment:%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}]"
    assert time_stamp(wall_ms) == expected


@given(st.integers(0, 4_102_444_800_000), st.integers(-14 * 60, 14 * 60))
def test_a_time_stamp_is_in_the_nodes_time_zone(wall_ms: int, offset_minutes: int) -> None:
    zone = timezone(timedelta(minutes=offset_minutes))
    moment = datetime.fromtimestamp(wall_ms // 1000, zone)
    assert time_stamp(wall_ms, offset_minutes * 60_000) == f"[{moment:%Y-%m-%d %H:%M:%S}.{wall_ms % 1000:03d}]"


def test_the_wrappers_output_is_in_the_diagnostics() -> None:
    exited = ContainerExited(container_id(1), 1, 139, "line 2: 9 Segmentation fault\n", "out\n")
    assert launch_exception(container_id(1), exited) == (
        f"Exception from container-launch.\nContainer id: {container_id(1)}\nExit code: 139\n"
        "Exception message: line 2: 9 Segmentation fault\n\nShell output: out\n\n"
    )


def test_without_a_prelaunch_err_only_the_stderr_is_quoted() -> None:
    """The log directory was on a disk that failed, or the container deleted the file."""
    text = failed_exit(1, ErrorLogs(None, ("stderr",), "stderr", "boom\n"), 100)
    assert text == "Container exited with a non-zero exit code 1. Last 100 bytes of stderr :\nboom\n\n"
