"""A daemon as a program: its options, its ready line, its exit status."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from wire.daemon_process import EXIT_REFUSED, main
from yarn.configuration import Configuration
from yarn.errors import YarnException

KEY = "yarn.resourcemanager.address"


def serving(answer: int | YarnException, seen: list[Configuration]) -> Callable[..., object]:
    async def serve(
        conf: Configuration, ready: Callable[[dict[str, object]], None], *, reload: Callable[[], Configuration]
    ) -> int:
        seen.extend((conf, reload()))
        if isinstance(answer, YarnException):
            raise answer
        ready({"role": "probe"})
        return answer

    return serve


def run(tmp_path: Path, answer: int | YarnException, *options: str) -> tuple[int, list[Configuration]]:
    site = tmp_path / "yarn-site.xml"
    site.write_text(f"<configuration><property><name>{KEY}</name><value>127.0.0.1:1</value></property></configuration>")
    seen: list[Configuration] = []
    with pytest.raises(SystemExit) as ended:
        main("probe", serving(answer, seen), ["--conf", str(tmp_path), *options])  # type: ignore[arg-type]
    assert isinstance(ended.value.code, int)
    return ended.value.code, seen


def test_the_ready_line_is_written_to_the_given_descriptor(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    status, _ = run(tmp_path, 7, "--ready-fd", str(write_end))
    os.close(write_end)
    with open(read_end, encoding="utf-8") as lines:
        assert json.loads(lines.readline()) == {"role": "probe"}
    assert status == 7


def test_definitions_override_files_also_after_a_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    _, (first, again) = run(tmp_path, 0, "-D", f"{KEY}=127.0.0.1:2", "-D", "a=b=c")
    assert [conf.get(KEY) for conf in (first, again)] == ["127.0.0.1:2"] * 2
    assert first.get("a") == "b=c"


def test_a_refusal_is_written_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _ = run(tmp_path, YarnException("no such thing (make one)"))
    assert status == EXIT_REFUSED
    assert capsys.readouterr().err == "probe: no such thing (make one)\n"


@pytest.mark.parametrize("options", [["-D", "nonsense"], ["-D", "=x"], ["--ready-fd", "x"], ["--log-level", "LOUD"]])
def test_options_that_cannot_be_read_are_refused(
    tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, seen = run(tmp_path, 0, *options)
    assert (status, seen) == (2, [])
    assert options[1] in capsys.readouterr().err
