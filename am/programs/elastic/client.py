"""The client of elastic applications: parses options into a submission.

submission = parse(["-shell_command", "work.sh $ELASTIC_TASK", "-stages", "40,2,40", "-idle_timeout", "10000"])
"""

from __future__ import annotations

from collections.abc import Sequence

from am.client.submission import OptionFaults, OptionParser
from am.programs.elastic.core import ElasticPlan
from am.programs.shell_work import ShellSubmission, make_work_parser, read_options

PROG = "elastic"
DEFAULT_WORKER_MEMORY_MB = 128
"""The default memory of a worker: a Python process of 30 MB, and what its tasks need."""
TASKS_MAX = 999_999
"""The largest task number that fits the file names of the spool."""


class ElasticSubmission(ShellSubmission[ElasticPlan], frozen=True):
    """A submission of an elastic application: a command that runs once for each task."""

    APPLICATION_TYPE = "ELASTIC"
    AM_MODULE = "am.programs.elastic.application_master"


def make_parser() -> OptionParser:
    parser = make_work_parser(PROG, "Run tasks on as many workers as the work needs (as Spark does).", name=PROG)
    parser.set_defaults(container_memory=DEFAULT_WORKER_MEMORY_MB)
    parser.option("stages", "the number of tasks of each stage, separated by commas", default="10")
    parser.option("tasks_per_worker", "number of tasks that a worker runs at once", type=int, default=1)
    parser.option("min_workers", "number of workers that are kept even without tasks", type=int, default=0)
    parser.option("max_workers", "maximum number of workers", type=int, default=1000)
    parser.option("backlog_timeout", "ms that tasks must wait before workers are added", type=int, default=1_000)
    parser.option(
        "sustained_timeout", "ms until more workers are added, twice as many each time", type=int, default=1_000
    )
    parser.option("idle_timeout", "ms after which a worker without a task is released", type=int, default=60_000)
    return parser


def parse(arguments: Sequence[str]) -> ElasticSubmission:
    """Parse the options into a submission. Raises InvalidArgumentException with all faults."""
    options, faults, application, work = read_options(make_parser(), arguments)
    stages = _read_stages(options.stages, faults)
    faults.check_positive(options, "tasks_per_worker", "max_workers")
    faults.check_not_negative(options, "min_workers", "backlog_timeout", "sustained_timeout", "idle_timeout")
    fits = options.min_workers <= options.max_workers
    faults.check(fits, f"-min_workers {options.min_workers}: must not be above -max_workers {options.max_workers}")
    faults.raise_if_any()
    plan = ElasticPlan(
        stages=stages,
        capability=work.capability,
        priority=work.priority,
        label=work.label,
        tasks_per_worker=options.tasks_per_worker,
        workers_min=options.min_workers,
        workers_max=options.max_workers,
        backlog_ms=options.backlog_timeout,
        sustained_ms=options.sustained_timeout,
        idle_ms=options.idle_timeout,
    )
    return ElasticSubmission(work, plan, application)


def _read_stages(text: str, faults: OptionFaults) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    right = all(part.isdecimal() and int(part) > 0 for part in parts) and sum(map(int, parts)) <= TASKS_MAX
    faults.check(right, f"-stages {text}: must be numbers above 0, separated by commas, {TASKS_MAX} tasks at most")
    return tuple(map(int, parts)) if right else ()
