"""The client of map-reduce: options like those of Hadoop streaming, splits, and the context to submit.

submission = parse(["-input", "books/*.txt", "-output", "counts", "-mapper", "python3 wc.py map",
                    "-reducer", "python3 wc.py reduce", "-files", "wc.py", "-numReduceTasks", "2"])
"""

from __future__ import annotations

import argparse
import glob
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from am.client.launching import local_file, make_staging_directory, python_launch_context
from am.client.submission import (
    ApplicationOptions,
    OptionFaults,
    OptionParser,
    add_application_options,
    build_context,
    read_application_options,
)
from am.programs.mapreduce import wordcount
from am.programs.mapreduce.core.job import (
    DEFAULT_SPLIT_BYTES,
    DEFAULT_TASK_RESOURCE,
    REDUCES_MAX,
    MapReduceJob,
    splits_of,
)
from am.programs.mapreduce.job_files import JobFiles
from yarn.applications import ApplicationSubmissionContext
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationId
from yarn.resource import Resource

PROG = "mapreduce"
APPLICATION_TYPE = "MAPREDUCE"
HIDDEN = ("_", ".")
"""Files whose names start so are not input (FileInputFormat's hidden files): output can be used as input."""


class MapReduceSubmission(Struct, frozen=True):
    """A map-reduce job over `inputs` {file: size in bytes} into the new directory `output`. Commands as in the job."""

    inputs: dict[Path, int]
    output: Path
    map_command: str
    reduce_command: str
    options: ApplicationOptions
    reduces: int = 1
    files: dict[str, Path] = field(default_factory=dict)
    map_resource: Resource = DEFAULT_TASK_RESOURCE
    reduce_resource: Resource = DEFAULT_TASK_RESOURCE
    split_bytes: int = DEFAULT_SPLIT_BYTES

    @property
    def vcores(self) -> int:
        return max(size.vcores for size in (self.map_resource, self.reduce_resource, self.options.am_resource))

    def check_sizes(self, maximum: Resource) -> list[str]:
        """Return no warnings: if a task is too large, the AM fails the job with Hadoop's message (JobImpl)."""
        return []

    def build(self, application_id: ApplicationId, staging_root: Path) -> ApplicationSubmissionContext:
        """The context to submit (am.client.submission). Raises InvalidArgumentException if the output exists."""
        check_output(self.output)
        job = MapReduceJob(
            name=self.options.name,
            splits=splits_of(((str(path.resolve()), size) for path, size in self.inputs.items()), self.split_bytes),
            output=str(self.output.resolve()),
            map_command=self.map_command,
            reduce_command=self.reduce_command,
            reduces=self.reduces,
            map_resource=self.map_resource,
            reduce_resource=self.reduce_resource,
            files={link: local_file(path) for link, path in self.files.items()},
        )
        staging = make_staging_directory(staging_root, application_id)
        JobFiles(staging).write_job(job)
        am_container = python_launch_context("am.programs.mapreduce.application_master", ("--staging", str(staging)))
        return build_context(application_id, self.options, am_container, APPLICATION_TYPE)


def status_file(application_id: ApplicationId, staging_root: Path) -> Path:
    """The file in which the job's AM reports its state (am.programs.mapreduce.application_master)."""
    return JobFiles(staging_root / str(application_id)).status


def check_output(output: Path) -> None:
    if output.exists():
        raise InvalidArgumentException(f"Output directory {output} already exists (choose a new one)")


def find_inputs(patterns: Iterable[str]) -> dict[Path, int]:
    """{file: size in bytes} of files, of all files below directories, and of glob patterns, sorted within each.

    Raises InvalidArgumentException with every pattern that matches nothing.
    """
    found: dict[Path, int] = {}
    missing: list[str] = []
    for pattern in patterns:
        paths = [Path(pattern)] if Path(pattern).exists() else [Path(name) for name in sorted(glob.glob(pattern))]
        if not paths:
            missing.append(f"Input path does not exist: {pattern}")
        missing += [f"Input path is not a file or directory: {path}" for path in paths if not _can_be_read(path)]
        for path in paths:
            found |= {file: file.stat().st_size for file in _files_below(path)}
    if missing:
        raise InvalidArgumentException("\n".join(missing))
    return found


def _can_be_read(path: Path) -> bool:
    return path.is_file() or path.is_dir()


def _files_below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for entry in sorted(path.iterdir()):
        if not entry.name.startswith(HIDDEN) and _can_be_read(entry):
            yield from _files_below(entry)


def word_count(
    inputs: dict[Path, int],
    output: Path,
    *,
    options: ApplicationOptions,
    reduces: int = 1,
    split_bytes: int = DEFAULT_SPLIT_BYTES,
) -> MapReduceSubmission:
    """A word count over `inputs`. The word count script is shipped, and run by this Python interpreter."""
    script = Path(wordcount.__file__)
    python = shlex.quote(sys.executable)
    return MapReduceSubmission(
        inputs=inputs,
        output=output,
        map_command=f"{python} {script.name} map",
        reduce_command=f"{python} {script.name} reduce",
        options=options,
        reduces=reduces,
        files={script.name: script},
        split_bytes=split_bytes,
    )


def make_parser() -> OptionParser:
    parser = OptionParser(PROG, "Run a map command over files, and a reduce command over its output.")
    add_application_options(parser, name=PROG, master_memory_mb=256)
    parser.option("input", "file, directory or pattern; may be given several times", action="append", default=[])
    parser.option("output", "directory for the output; must not exist yet", type=Path, required=True)
    parser.option("mapper", "shell command: input lines to lines `key<TAB>value`", default="")
    parser.option("reducer", "shell command: sorted lines `key<TAB>value` to output lines", default="")
    parser.option("wordcount", "count words, instead of -mapper and -reducer", action="store_true")
    parser.option(
        "numReduceTasks", "number of reduces; 0: the output of the maps is the output of the job", type=int, default=1
    )
    parser.option("files", "files to ship to the tasks, separated by commas", default="")
    parser.option("map_memory", "MB of memory for each map", type=int, default=DEFAULT_TASK_RESOURCE.memory_mb)
    parser.option("reduce_memory", "MB of memory for each reduce", type=int, default=DEFAULT_TASK_RESOURCE.memory_mb)
    parser.refuse(
        {"combiner": "there is no combine step; combine in the mapper", "inputformat": "input is read as lines"}
    )
    return parser


def parse(arguments: Sequence[str]) -> MapReduceSubmission:
    """The submission that the options describe. Raises InvalidArgumentException with all faults."""
    options = make_parser().parse_args(arguments)
    faults = OptionFaults(PROG)
    application = read_application_options(options, faults)
    faults.check(bool(options.input), "no input: give -input")
    faults.check(options.wordcount or bool(options.mapper), "no map command: give -mapper")
    needs_reducer = options.numReduceTasks > 0 and not options.wordcount
    faults.check(not needs_reducer or bool(options.reducer), "no reduce command: give -reducer or -numReduceTasks 0")
    faults.check(0 <= options.numReduceTasks <= REDUCES_MAX, f"-numReduceTasks must be 0..{REDUCES_MAX}")
    faults.check_positive(options, "map_memory", "reduce_memory")
    _collect(lambda: check_output(options.output), faults)
    inputs: dict[Path, int] = {}
    _collect(lambda: inputs.update(find_inputs(options.input)), faults)
    files = {path.name: path for path in map(Path, filter(None, options.files.split(",")))}
    for path in files.values():
        faults.check(path.is_file(), f"-files {path}: not a file that can be shipped")
    faults.raise_if_any()
    return _submission(options, application, inputs, files)


def _collect(check: Callable[[], object], faults: OptionFaults) -> None:
    try:
        check()
    except InvalidArgumentException as error:
        faults.check(False, error.message)


def _submission(
    options: argparse.Namespace, application: ApplicationOptions, inputs: dict[Path, int], files: dict[str, Path]
) -> MapReduceSubmission:
    map_command, reduce_command = options.mapper, options.reducer
    if options.wordcount:
        counting = word_count(inputs, options.output, options=application)
        map_command, reduce_command, files = counting.map_command, counting.reduce_command, counting.files | files
    return MapReduceSubmission(
        inputs=inputs,
        output=options.output,
        map_command=map_command,
        reduce_command=reduce_command,
        options=application,
        reduces=options.numReduceTasks,
        files=files,
        map_resource=Resource(options.map_memory, 1),
        reduce_resource=Resource(options.reduce_memory, 1),
    )
