"""Polls a ResourceManager at an interval and writes what is new: under ten requests a poll, however many applications.

A poll, step by step (`_poll`):

1. `info`: which ResourceManager answers, and whether it has restarted.
2. `metrics` and `nodes`.
3. The applications that have not ended, and those that ended since the last poll.
4. Every fourth poll `scheduler`, every fortieth `/conf`: these are large, and change seldom.
5. The containers of two running applications, in turn, those that have not been looked at for longest first.

If the first request fails, the poll is over; a later one is left out alone. The next poll catches up with what ended
meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from yarnling.recorder.day_files import DayFiles
from yarnling.recorder.observation import ClusterObserver, applications_of
from yarnling.recorder.rest_client import RestClient, Unanswered
from yarnling.workload.recording_lines import VERSION, AppsSeen, PollFailed, RecordingBegan, SeenLine

CLUSTER = "/ws/v1/cluster"
LIVE = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
ENDED = "FINISHED,FAILED,KILLED"
LEFT_OUT = ("resourceRequests,timeouts", "resourceRequests", "")
"""Values of `deSelects`, of which the first is used that this release accepts. Requests are most of an answer; their
sum is in `resourceInfo`."""
BAD_REQUEST = 400
SCHEDULER_POLLS = 4
CONF_POLLS = 40
SAMPLES = 2
OVERLAP_MS = 60_000
"""Applications that ended up to so long before the last poll are asked for again: its clock may be another one."""
PROBLEM_MAX = 300

_CONTAINER = re.compile(r"container_(?:e\d{1,6}_)?(\d{1,20}_\d{1,20})_(\d{1,9})_\d")
_Part: TypeAlias = Callable[[int], Awaitable[Iterable[SeenLine]]]


class RecorderFigures(Struct):
    """Counts of a recording so far. `problem`: of the last poll that failed; "" if the last one did not."""

    polls: int = 0
    failed: int = 0
    applications: int = 0
    ended: int = 0
    restarts: int = 0
    requests_most: int = 0
    problem: str = ""


class ClusterRecorder:
    """Records one cluster. `now_ms`: the clock, ms since 1970. `since_ms`: when an earlier recorder polled last."""

    def __init__(
        self,
        client: RestClient,
        files: DayFiles,
        now_ms: Callable[[], int],
        *,
        every_ms: int,
        since_ms: int | None = None,
    ) -> None:
        self._client = client
        self._files = files
        self._now_ms = now_ms
        self._every_ms = every_ms
        self._asked_ms = since_ms
        self._left_out = 0
        self._polls_of_file = 0
        self._attempts: dict[str, str] = {}
        self._sampled: dict[str, int] = {}
        self.observer = ClusterObserver()
        self.figures = RecorderFigures()

    async def run(
        self, lasts_ms: int | None, sleep: Callable[[float], Awaitable[None]], seen: Callable[[], None]
    ) -> None:
        """Poll for a time, at least once, or forever. `seen` is called after each poll.

        Raises YarnException or DiskFull if nothing can be written.
        """
        next_ms = self._now_ms()
        until_ms = None if lasts_ms is None else next_ms + lasts_ms
        while until_ms is None or next_ms <= until_ms:
            await self.poll()
            seen()
            now_ms = self._now_ms()
            missed = max(now_ms - next_ms, 0) // self._every_ms
            next_ms += self._every_ms * (missed + 1)
            if until_ms is None or next_ms <= until_ms:
                await sleep((next_ms - now_ms) / 1000)

    async def poll(self) -> None:
        """Ask for everything once, and write what is new."""
        at_ms, asked = self._now_ms(), self._client.requests
        lines: list[SeenLine] = []
        if self._files.begins_file(at_ms):
            self.observer.forget()
            self._polls_of_file = 0
            lines.append(RecordingBegan(at_ms, VERSION, self._every_ms))
        lines += await self._answers(at_ms)
        lines += self.observer.see_missing(at_ms)
        if lines:
            self._files.write(lines, at_ms)
        self.figures.polls += 1
        self.figures.requests_most = max(self.figures.requests_most, self._client.requests - asked)

    async def _answers(self, at_ms: int) -> list[SeenLine]:
        """The lines of one poll."""
        try:
            lines = list(await self._manager(at_ms))
        except Unanswered as error:
            self._client.ask_the_next()
            return [self._failure(at_ms, error)]
        self.figures.problem = ""
        parts = [self._metrics, self._nodes, self._live, self._ended]
        if self._polls_of_file % SCHEDULER_POLLS == 0:
            parts.append(self._scheduler)
        if self._polls_of_file % CONF_POLLS == 0:
            parts.append(self._configuration)
        for part in parts:
            lines += await self._part(part, at_ms)
        for name in self._next_samples():
            lines += await self._part(lambda at_ms, name=name: self._containers(at_ms, name), at_ms)  # type: ignore[misc]
        self._polls_of_file += 1
        return lines

    async def _part(self, part: _Part, at_ms: int) -> list[SeenLine]:
        try:
            return list(await part(at_ms))
        except Unanswered as error:
            return [self._failure(at_ms, error)]

    def _failure(self, at_ms: int, error: Unanswered) -> SeenLine:
        self.figures.failed += 1
        self.figures.problem = error.message[:PROBLEM_MAX]
        return PollFailed(at_ms, self.figures.problem)

    async def _manager(self, at_ms: int) -> Iterable[SeenLine]:
        """The ResourceManager that answers. After a restart its configuration is asked for."""
        answer = await self._client.get(f"{CLUSTER}/info")
        info = answer.get("clusterInfo")
        if isinstance(info, dict) and info.get("haState") == "STANDBY" and self._client.has_others:
            raise Unanswered(f"{self._client.address} is the standby ResourceManager")
        lines = list(self.observer.see_info(at_ms, answer))
        if lines and self._polls_of_file:
            self.figures.restarts += 1
            self._polls_of_file = 0
        return lines

    async def _metrics(self, at_ms: int) -> Iterable[SeenLine]:
        return self.observer.see_metrics(at_ms, await self._client.get(f"{CLUSTER}/metrics"))

    async def _nodes(self, at_ms: int) -> Iterable[SeenLine]:
        return self.observer.see_nodes(at_ms, await self._client.get(f"{CLUSTER}/nodes"))

    async def _scheduler(self, at_ms: int) -> Iterable[SeenLine]:
        return self.observer.see_scheduler(at_ms, await self._client.get(f"{CLUSTER}/scheduler"))

    async def _configuration(self, at_ms: int) -> Iterable[SeenLine]:
        return self.observer.see_configuration(at_ms, await self._client.get("/conf"))

    async def _live(self, at_ms: int) -> Iterable[SeenLine]:
        """The applications that have not ended."""
        entries = await self._applications({"states": LIVE})
        before = set(self.observer.apps)
        lines = list(self.observer.see_applications(at_ms, entries, all_live=True))
        self.figures.applications += len(set(self.observer.apps) - before)
        self._attempts = dict(_attempts(entries))
        return lines

    async def _ended(self, at_ms: int) -> Iterable[SeenLine]:
        """The applications that ended since this was asked last."""
        since_ms = (at_ms if self._asked_ms is None else self._asked_ms) - OVERLAP_MS
        entries = await self._applications({"states": ENDED, "finishedTimeBegin": max(since_ms, 1)})
        lines = list(self.observer.see_applications(at_ms, entries, all_live=False))
        self._asked_ms = at_ms
        self.observer.forget_ended(at_ms - 2 * OVERLAP_MS)
        self.figures.ended += sum(len(line.apps) for line in lines if isinstance(line, AppsSeen))
        return lines

    async def _applications(self, parameters: Mapping[str, str | int]) -> list[Any]:
        """The entries of an answer, without their requests if this release can leave them out."""
        while True:
            left_out = LEFT_OUT[self._left_out]
            given = {**parameters, **({"deSelects": left_out} if left_out else {})}
            try:
                return applications_of(await self._client.get(f"{CLUSTER}/apps", given))
            except Unanswered as error:
                if error.status != BAD_REQUEST or self._left_out + 1 == len(LEFT_OUT):
                    raise
                self._left_out += 1

    def _next_samples(self) -> list[str]:
        """Running applications with more than an AM whose containers were not listed for longest, the larger first."""
        apps = self.observer.apps
        running = [name for name in self._attempts if apps.get(name, {}).get("runningContainers", 0) > 1]
        self._sampled = {name: self._sampled[name] for name in running if name in self._sampled}
        running.sort(key=lambda name: (self._sampled.get(name, 0), -apps[name].get("allocatedMB", 0), name))
        return running[:SAMPLES]

    async def _containers(self, at_ms: int, name: str) -> Iterable[SeenLine]:
        self._sampled[name] = at_ms
        attempt = self._attempts[name]
        answer = await self._client.get(f"{CLUSTER}/apps/{name}/appattempts/{attempt}/containers")
        return self.observer.see_containers(at_ms, name, int(attempt.rpartition("_")[2]), answer)


def _attempts(entries: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """(application id, attempt id) of the entries whose AM has a container: its log's address names it."""
    for entry in entries:
        logs = entry.get("amContainerLogs") if isinstance(entry, dict) else None
        if isinstance(logs, str) and (found := _CONTAINER.search(logs)):
            yield f"application_{found[1]}", f"appattempt_{found[1]}_{int(found[2]):06}"
