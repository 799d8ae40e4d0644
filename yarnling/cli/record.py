"""`yarnling record`: records what a ResourceManager reports, until Ctrl-C or for a time."""

from __future__ import annotations

import asyncio
import ssl
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from rich.text import Text

from yarn.errors import YarnException
from yarn.times import duration
from yarnling.cli.options.record import RecordOptions
from yarnling.cli.shared.arguments import ArgumentFaults, check_output_directory
from yarnling.cli.shared.output import ProgressLines, notices, print_indented, print_json, terminal
from yarnling.cli.simulate_workload import parse_duration
from yarnling.recorder.day_files import DayFiles, last_poll_ms
from yarnling.recorder.recorder import ClusterRecorder
from yarnling.recorder.rest_client import Access, RestClient
from yarnling.report.escapes import in_line, shown
from yarnling.report.wording import counted

EVERY_MS_MIN = 1000
HEADER_MAX = 16_384


def run(options: RecordOptions) -> None:
    """Record, and print a summary at the end."""
    faults = ArgumentFaults()
    faults.of(lambda: check_output_directory(options.out))
    every_ms = faults.of(lambda: _interval(options.every))
    lasts_ms = faults.of(lambda: parse_duration(options.lasts, "--for") if options.lasts else None)
    access = faults.of(lambda: _access(options))
    faults.refuse()
    assert access is not None
    assert every_ms is not None
    now_ms = _now_ms()
    files = DayFiles(options.out)
    try:
        client = RestClient(access)
        recorder = ClusterRecorder(
            client, files, _now_ms, every_ms=every_ms, since_ms=last_poll_ms(options.out, now_ms)
        )
        with suppress(KeyboardInterrupt):
            asyncio.run(_record(client, recorder, lasts_ms, files))
    finally:
        files.close()
    _summarise(options, recorder, client, files, _now_ms() - now_ms)


async def _record(client: RestClient, recorder: ClusterRecorder, lasts_ms: int | None, files: DayFiles) -> None:
    console = notices()
    lines = ProgressLines(console)

    def text() -> str:
        return _progress(recorder, client, files)

    def seen() -> None:
        if console.is_terminal:
            console.print(Text(in_line(text())), end="\r")
        else:
            lines.show(text)

    async with client:
        await recorder.run(lasts_ms, asyncio.sleep, seen)


def _progress(recorder: ClusterRecorder, client: RestClient, files: DayFiles) -> str:
    figures, observer = recorder.figures, recorder.observer
    problem = f"; last problem: {figures.problem}" if figures.problem else ""
    return (
        f"{counted(figures.polls, 'poll')} of {client.address}, {counted(len(observer.apps), 'application')} now, "
        f"{figures.ended} ended, {counted(len(observer.nodes), 'node')}, {files.written / 1e6:.1f} MB{problem}"
    )


def _summarise(
    options: RecordOptions, recorder: ClusterRecorder, client: RestClient, files: DayFiles, lasted_ms: int
) -> None:
    figures, observer = recorder.figures, recorder.observer
    if options.as_json:
        print_json(
            {
                "lasted_ms": lasted_ms,
                "figures": figures,
                "requests": client.requests,
                "received_bytes": client.received,
                "written_bytes": files.written,
                "missing": observer.missing,
            }
        )
        return
    console = terminal()
    console.print(
        f"{shown(str(options.out))}: {counted(figures.polls, 'poll')} in {duration(lasted_ms)}, "
        f"at most {figures.requests_most} requests each, {client.received / 1e6:.1f} MB read, "
        f"{files.written / 1e6:.2f} MB written",
        soft_wrap=True,
    )
    for line in _findings(recorder):
        print_indented(console, Text(f"  {in_line(line)}"))
    command = f"yarnling workload calibrate {options.out} -o day.jsonl --nodes-out nodes.json --conf-out now"
    console.print(Text(shown(f"To simulate it: {command}")), soft_wrap=True)


def _findings(recorder: ClusterRecorder) -> list[str]:
    figures, observer = recorder.figures, recorder.observer
    found = [
        f"{counted(figures.applications, 'application')} began or ran, {figures.ended} ended; "
        f"{counted(len(observer.nodes), 'node')} at the end"
    ]
    if observer.changed_queues:
        found.append(f"the configuration of the queues changed: {counted(observer.changed_queues, 'time')}")
    if figures.restarts:
        found.append(f"the ResourceManager restarted or failed over: {counted(figures.restarts, 'time')}")
    if figures.failed:
        found.append(
            f"{counted(figures.failed, 'request')} failed: {figures.problem or 'all later ones were answered'}"
        )
    if observer.missing:
        found.append(f"this release does not report {', '.join(observer.missing)}")
    return found


def _interval(text: str) -> int:
    every_ms = parse_duration(text, "--every")
    if every_ms < EVERY_MS_MIN:
        raise YarnException(f"--every {text}: is less than {EVERY_MS_MIN} ms (a ResourceManager has other work)")
    return every_ms


def _access(options: RecordOptions) -> Access:
    """The way to the ResourceManager. Raises YarnException."""
    for address in options.addresses:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.query:
            raise YarnException(f"{address}: is not the address of a ResourceManager (write http://rm:8088)")
        if parts.username or parts.password:
            raise YarnException("an address contains a user or password (give a header with --authorization-file)")
    if options.ca_file is not None:
        try:
            ssl.create_default_context(cafile=str(options.ca_file))
        except OSError as error:
            raise YarnException(f"--ca-file {options.ca_file}: {error.strerror or error}") from None
    return Access(
        addresses=tuple(options.addresses),
        authorization=_header(options.authorization_file),
        proxy=options.proxy,
        ca_file=options.ca_file,
        user=options.user,
    )


def _header(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise YarnException(f"--authorization-file {path}: cannot be read: {error}") from None
    if not text or len(text) > HEADER_MAX or not text.isprintable():
        raise YarnException(f"--authorization-file {path}: must have one line, for example Bearer abc")
    return text


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
