"""Jobs that a client leaves in the staging directory and an AM runs: what the programs' processes have in common."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from am.client.environment import AMEnvironment
from am.client.launching import local_file, python_launch_context
from am.client.staging import read_record, write_record
from am.core.events import Event
from am.programs.core.actions import Action, Finish, Program
from am.programs.master import run_master
from yarn.containers import ContainerLaunchContext
from yarn.errors import InvalidArgumentException


class StagedJob(Protocol):
    """A record; `staging` is the directory to remove once the application has finished."""

    @property
    def staging(self) -> str: ...


Job = TypeVar("Job", bound=StagedJob)


def stage(job: StagedJob, job_file: str, module: str) -> ContainerLaunchContext:
    """Leave the job in its staging directory; the launch context of its master `module`."""
    path = Path(job.staging) / job_file
    write_record(path, job)
    return python_launch_context(module, local_resources={job_file: local_file(path)})


def run_staged_job(job_file: str, kind: type[Job], make: Callable[[Job, AMEnvironment], Program]) -> int:
    """The exit code of a whole AM. Once it has finished for good its staging directory is removed."""
    watched: list[_Watched] = []

    def make_program(environment: AMEnvironment) -> Program:
        job = read_record(Path(job_file))
        if not isinstance(job, kind):
            raise InvalidArgumentException(f"{job_file} holds no {kind.__name__}")
        watched.append(_Watched(make(job, environment), job.staging))
        return watched[0]

    exit_code = run_master(make_program)
    for program in watched:
        if program.is_finished:
            shutil.rmtree(program.staging, ignore_errors=True)
    return exit_code


class _Watched:
    """A program, and whether it has finished: one that only leaves may have a successor."""

    def __init__(self, program: Program, staging: str) -> None:
        self.staging = staging
        self.is_finished = False
        self._program = program

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        actions = self._program.handle(event, now_ms)
        self.is_finished = self.is_finished or _has_finish(actions)
        return actions

    def progress(self) -> float:
        return self._program.progress()


def _has_finish(actions: Iterable[Action]) -> bool:
    return any(isinstance(action, Finish) for action in actions)
