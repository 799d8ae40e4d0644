"""Predictions: a recorded day under the present configuration and under a changed one, simulated beside the RM.

Each is a run of the command `yarnling simulate compare`, in a process group of its own with a low priority, so that the
ResourceManager's loop goes on, and the headline is the one that the command prints. One runs at a time, for at most
yarn.yarnling.prediction.timeout. The last ones are kept.

The ResourceManager starts the command by its name, and imports nothing of it: simulations are built on top of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import resource
import signal
import sys
import tempfile
import time
from asyncio.subprocess import Process
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from wire.files.hadoop_xml import to_xml
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings.scheduler import PREFIX
from yarn.settings.yarnling import PREDICTION_NODES, PREDICTION_TIMEOUT, PREDICTION_WORKLOAD

_logger = logging.getLogger(f"yarnling.{__name__}")

COMMAND = (sys.executable, "-m", "yarnling", "simulate", "compare")
KEPT_MAX = 10
SEEDS_MAX = 10
OUTPUT_BYTES_MAX = 8 * 1024 * 1024
LINES_MAX = 20
"""Lines of the command's problem that are kept."""
NICENESS = 10
SIDES = ("before", "after")
LEFT_OUT = ("expectations", "report")
"""Fields of the command's answer that a prediction never has."""


class PredictionRefused(YarnException):
    """A prediction cannot be made now; the message has the remedy."""


class Prediction(Struct):
    """A prediction. `answer`: of a finished one, as the command gives it; `problem`: of a failed one."""

    number: int
    user: str
    started_s: float
    ended_s: float | None = None
    answer: dict[str, Any] | None = None
    problem: str | None = None

    @property
    def state(self) -> str:
        if self.ended_s is None:
            return "RUNNING"
        return "FAILED" if self.answer is None else "FINISHED"

    def plain(self) -> dict[str, Any]:
        """The prediction for a program."""
        seconds = round((self.ended_s or time.monotonic()) - self.started_s, 1)
        about = {"id": self.number, "state": self.state, "user": self.user, "seconds": seconds}
        problem = {} if self.problem is None else {"problem": self.problem}
        return {**about, **(self.answer or {}), **problem}


class Predictions:
    """Runs predictions with the workload and nodes that `conf` names. `close` ends the one that runs."""

    def __init__(self, conf: Configuration) -> None:
        self._workload = PREDICTION_WORKLOAD.maybe_of(conf)
        self._nodes = PREDICTION_NODES.maybe_of(conf)
        self._timeout_s = PREDICTION_TIMEOUT.of(conf) / 1000
        self._kept: OrderedDict[int, Prediction] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        self._number = 0

    def find(self, number: int) -> Prediction | None:
        """Find one of the last predictions; None for another number."""
        return self._kept.get(number)

    def check(self) -> None:
        """Raises PredictionRefused if no prediction can be started now."""
        missing = [
            setting.key
            for setting, value in ((PREDICTION_WORKLOAD, self._workload), (PREDICTION_NODES, self._nodes))
            if not value
        ]
        if missing:
            made = "`yarnling record` and `yarnling workload import` make the files"
            raise PredictionRefused(f"no recorded day is configured (set {' and '.join(missing)}; {made})")
        if self._task is not None and not self._task.done():
            running = self._kept[self._number]
            raise PredictionRefused(
                f"prediction {running.number} of {running.user} is running (wait for it, or DELETE it)"
            )

    def start(self, user: str, before: Configuration, after: Configuration, seeds: int = 1) -> Prediction:
        """Start a prediction, with so many simulations of each side. Raises PredictionRefused."""
        self.check()
        self._number += 1
        made = self._kept[self._number] = Prediction(self._number, user, time.monotonic())
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        # It is this object's: `_run` notes every error, and `close` waits for it.
        self._task = asyncio.get_running_loop().create_task(self._run(made, {"before": before, "after": after}, seeds))
        return made

    async def wait(self, prediction: Prediction, seconds: float) -> None:
        """Wait until the prediction has ended, but at most so long."""
        if prediction.ended_s is None and self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)

    async def stop(self, prediction: Prediction) -> None:
        """End the prediction if it is running."""
        if prediction.ended_s is None:
            await self.close()

    async def close(self) -> None:
        """End the prediction that is running."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, prediction: Prediction, sides: Mapping[str, Configuration], seeds: int) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="yarnling-prediction-") as directory:
                await asyncio.to_thread(_write, Path(directory), sides)
                async with asyncio.timeout(self._timeout_s):
                    prediction.answer = await self._compared(directory, seeds)
        except TimeoutError:
            remedy = f"raise {PREDICTION_TIMEOUT.key}, or predict for a shorter day"
            prediction.problem = f"it took more than {self._timeout_s:g} s ({remedy})"
        except asyncio.CancelledError:
            prediction.problem = "it was stopped"
            raise
        except (OSError, ValueError, YarnException) as error:
            prediction.problem = str(error)
        except Exception:
            _logger.exception("a prediction failed number=%d", prediction.number)
            prediction.problem = "internal error (the ResourceManager's log has it)"
        finally:
            prediction.ended_s = time.monotonic()

    async def _compared(self, directory: str, seeds: int) -> dict[str, Any]:
        """The answer of the command. Raises YarnException with its problem."""
        inputs = ("--workload", str(self._workload), "--nodes", str(self._nodes), "--seeds", str(seeds), "--json")
        answer, said = (Path(directory) / name for name in ("answer", "said"))
        with answer.open("wb") as out, said.open("wb") as err:
            process = await asyncio.create_subprocess_exec(
                *COMMAND,
                *SIDES,
                *inputs,
                cwd=directory,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        try:
            _limit(process.pid, self._timeout_s)
            await process.wait()
        finally:
            await _end(process)
        if process.returncode != 0:
            lines = said.read_text(errors="replace").strip().splitlines() or [f"exit status {process.returncode}"]
            raise YarnException("\n".join(lines[-LINES_MAX:]))
        return {name: value for name, value in json.loads(answer.read_bytes()).items() if name not in LEFT_OUT}


def _write(directory: Path, sides: Mapping[str, Configuration]) -> None:
    """Write the configurations as files, with values as they are written."""
    for name, conf in sides.items():
        (directory / name).mkdir()
        values = {key: entry.value for key in conf if (entry := conf.entry(key)) is not None}
        queues = {key: value for key, value in values.items() if key.startswith(PREFIX)}
        site = {key: value for key, value in values.items() if key not in queues}
        (directory / name / "yarn-site.xml").write_text(to_xml(site))
        (directory / name / "capacity-scheduler.xml").write_text(to_xml(queues))


def _limit(pid: int, seconds: float) -> None:
    """Lower the priority of a process that has just started, and limit its CPU time and the files that it writes.

    Its children inherit that, and it holds also if this process is killed and cannot end them.
    """
    cpu_s = int(seconds) + 1
    with contextlib.suppress(ProcessLookupError):
        os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
        resource.prlimit(pid, resource.RLIMIT_CPU, (cpu_s, cpu_s))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (OUTPUT_BYTES_MAX, OUTPUT_BYTES_MAX))


async def _end(process: Process) -> None:
    """Kill the process and those that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
