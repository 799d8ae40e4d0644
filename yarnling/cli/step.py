"""`yarnling simulate step`: opens a run in the terminal or in a browser, or prints its steps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import to_builtins
from rich.progress import Progress
from rich.text import Text

from yarn.errors import InvalidArgumentException, YarnException
from yarnling.cli.options.simulate import StepOptions
from yarnling.cli.shared.arguments import check_output_file, reading_arguments
from yarnling.cli.shared.output import notices, print_json, terminal
from yarnling.cli.timeline import PAGES, write
from yarnling.cluster.silent_logs import without_logs
from yarnling.report.listing import PIPE_WIDTH
from yarnling.stepping.changes import ClusterChange
from yarnling.stepping.controls import Controls, go_to
from yarnling.stepping.panes import step_text
from yarnling.stepping.player import Made
from yarnling.stepping.session import STEPS_MAX, Session
from yarnling.stepping.sources import Source, find_source


def run(options: StepOptions) -> int:
    """Open the run. Raises YarnException for a source, a change or a position that is not valid."""
    if options.out is not None:
        _write(options, options.out)
        return 0
    with without_logs():
        with reading_arguments():
            controls = Controls(_source(options), tuple(_changes(options.change)))
            try:
                _go_to(controls, options)
            except YarnException:
                controls.close()
                raise
        try:
            return _show(controls, options)
        finally:
            controls.close()


def _show(controls: Controls, options: StepOptions) -> int:
    if options.prints or options.as_json:
        _print(controls.session, as_json=options.as_json)
        return 0
    if options.web:
        from yarnling.stepping.web.server import serve

        serve(controls, options.port, terminal().print)
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise YarnException("stepping needs a terminal: use --print for a pipe, or --web for a browser")
    try:
        from yarnling.stepping.terminal import StepApp
    except ModuleNotFoundError as error:
        raise YarnException(
            f"the terminal interface needs {error.name}: pip install 'yarnling[tui]' (or use --web)"
        ) from None
    StepApp(controls).run()
    return 0


def _write(options: StepOptions, path: Path) -> None:
    """Write the run as a page. Raises YarnException if an option contradicts, or the page would be too large."""
    from yarnling.stepping.web.exported import exported_page

    check_output_file(path, *PAGES)
    if options.web or options.prints or options.as_json:
        raise InvalidArgumentException(f"-o {path} writes a page: leave out --web, --print and --json")
    with without_logs(), _progress() as progress:
        with reading_arguments():
            source, changes = _source(options), tuple(_changes(options.change))
        page = exported_page(source, changes, lambda session: _go_in(session, options.at), progress)
    write(path, page)


def _go_in(session: Session, at: str) -> None:
    """Go where a page opens: to a step, to a time, or to the first decision."""
    with reading_arguments():
        if at:
            go_to(session, at)
        else:
            session.go_to_opening()


@contextmanager
def _progress() -> Iterator[Callable[[float], None]]:
    """Show a bar for the share that is done."""
    console = notices()
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("runs", total=1)
        yield lambda share: progress.update(task, completed=share)


def _source(options: StepOptions) -> Source:
    if options.workload is None:
        if options.nodes is not None or options.conf is not None or options.define:
            raise InvalidArgumentException("--nodes, --conf and --define belong to --workload: name its file, too")
        return find_source(options.which, options.seed, options.release)
    if options.which:
        raise InvalidArgumentException(f"give either {options.which} or --workload, not both")
    if options.nodes is None:
        raise InvalidArgumentException("--workload needs --nodes: the file with the machines of the cluster")
    from yarnling.stepping.workload_source import read_workload_source

    return read_workload_source(
        options.workload, options.nodes, options.conf, options.define, options.seed, options.release
    )


def _changes(texts: Iterable[str]) -> Iterator[Made]:
    """The changes of `--change`, each after a later step than the one before."""
    last = -1
    for text in texts:
        position, colon, change = text.partition(":")
        if not (colon and position.isascii() and position.isdecimal() and int(position[:9]) <= STEPS_MAX):
            raise InvalidArgumentException(f"--change {text[:60]!r} is not STEP:CHANGE, as in '135: kill n2'")
        if int(position) <= last:
            raise InvalidArgumentException(f"--change {text[:60]!r} must come after step {last}, as those before it")
        last = int(position)
        yield Made(last, ClusterChange.parse(change))


def _go_to(controls: Controls, options: StepOptions) -> None:
    """Go to a step, or with the letter s to a time; without either, a run that is shown opens at its first decision."""
    if not (options.prints or options.as_json):
        controls.do("opening")
    if options.at:
        go_to(controls.session, options.at)


def _print(session: Session, *, as_json: bool) -> None:
    """Print all steps up to the position, or up to the end of the run from its start."""
    if not session.position:
        session.go_to(STEPS_MAX)
    steps = session.steps[: session.position]
    if as_json:
        print_json([to_builtins(step) for step in steps])
        return
    console = terminal()
    for step in steps:
        text = step_text(step, PIPE_WIDTH, with_fields=False)
        console.print(Text.assemble((f"{step.number:>5}  ", "dim"), text), soft_wrap=True)
