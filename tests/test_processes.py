"""Processes that tests start end with them."""

from __future__ import annotations

import pytest

from nm.launcher.processes import stat_of
from tests.processes import running, running_in_loop


def test_a_process_ends_with_a_block_that_fails() -> None:
    with pytest.raises(ZeroDivisionError), running("sleep", "600") as process:
        raise ZeroDivisionError
    assert process.returncode == -9


async def test_so_it_does_in_a_loop_with_what_it_started_in_its_group() -> None:
    script = "sleep 600 & echo $!; wait"
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with running_in_loop("sh", "-c", script, stdout=-1, start_new_session=True) as process:
            assert process.stdout is not None
            child = int(await process.stdout.readline())
            assert stat_of(child) is not None
            raise ZeroDivisionError
    assert process.returncode == -9
    found = stat_of(child)
    assert found is None or found.session != process.pid or found.parent != process.pid
