"""Looks at the cluster at regular times: the use of the queues, what applications wait for, and why.

That is once a virtual second at first, and once a minute in runs of more than an hour: so a short run has enough
samples, and a long one not too many.

The explanation of a wait is taken while it lasts, and only for the longest waits: again when the wait has become half
as long again. So an explanation of a long wait is from its second half, and few are made. The waits of each queue and
user are explained apart from that (yarnling.whatif.reasons).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from am.core.requests import RequestKey
from rm.view import Cause, RMView
from yarnling.whatif.reasons import WaitingGroup, WaitingTime
from yarnling.whatif.recording import AM_KEY, Explained, KeyWaits, RecordedApplication, Recording
from yarnling.whatif.result import LongWait, QueueSample

INTERVALS_MS = (1_000, 5_000, 15_000, 60_000)
"""Each is a multiple of the one before it."""
TIMES_MAX = 240
"""After this many samples of a queue with one interval, the next interval is used, and only its samples are kept."""
FINE_SERIES_MAX = 200
"""With more queues than this, samples are a minute apart from the start: more would take longer than the rest."""
SAMPLES_MAX = 500_000
"""With more queues and minutes than this, samples are taken at a multiple of a minute."""
LONGEST_WAITS = 10
EXPLAINED_AGAIN_AFTER = 1.5
"""A wait is explained again when it is so many times as long."""

_AM_LIMITS = frozenset({Cause.AM_QUEUE_LIMIT, Cause.AM_USER_LIMIT})


class _LongWait(NamedTuple):
    """A request that waits, or a wait that is over, of the container at this position."""

    wait_ms: int
    application: RecordedApplication
    key: RequestKey
    position: int


class Sampler:
    """Takes the samples of one run. `labels`: the partitions of its nodes, "" first.

    `_explained` {(application, key): (the position of the request that was explained last, how long it had waited)}.
    `_reasons` {(application, key): the reason of its wait}, of the present sample: one of the longest waits is often
    also the oldest of its group.
    """

    def __init__(self, view: RMView, recording: Recording, labels: Sequence[str], until_ms: int) -> None:
        self.samples: list[QueueSample] = []
        self._view = view
        self.waiting_time = WaitingTime()
        self._recording = recording
        self._labels = labels
        self._explained: dict[tuple[int, RequestKey], tuple[int, int]] = {}
        self._reasons: dict[tuple[int, RequestKey], tuple[str, str] | None] = {}
        series = sum(1 for _ in view.queues(labels))
        *finer, minute_ms = INTERVALS_MS
        longest_ms = minute_ms * (1 + series * (until_ms // minute_ms) // SAMPLES_MAX)
        self._intervals_ms = iter([*finer, longest_ms] if series <= FINE_SERIES_MAX else [longest_ms])
        self.interval_ms = next(self._intervals_ms)

    def sample(self) -> None:
        """Take a sample now."""
        now_ms = self._recording.now_ms
        self.samples += [QueueSample(now_ms, *queue) for queue in self._view.queues(self._labels)]
        self._note_limits()
        self._reasons.clear()
        self._explain(now_ms)
        self._note_reasons()
        if now_ms >= TIMES_MAX * self.interval_ms:
            self._take_fewer()

    def _take_fewer(self) -> None:
        interval_ms = next(self._intervals_ms, None)
        if interval_ms is not None:
            self.interval_ms = interval_ms
            self.samples = [sample for sample in self.samples if sample.time_ms % interval_ms == 0]

    def leaf_queues(self) -> tuple[str, ...]:
        """The paths of the leaves, in the order of the tree."""
        return self._view.leaf_queues()

    def longest_waits(self) -> tuple[LongWait, ...]:
        """The longest waits with their explanations, the longest first; one for each key of an application."""
        longest = heapq.nlargest(LONGEST_WAITS, self._longest_of_keys(), key=_length)
        requested_ms = self._recording.containers.requested_ms
        return tuple(
            LongWait(one.position, one.application.waits[one.key].explanation(requested_ms(one.position), one.wait_ms))
            for one in longest
            if one.wait_ms > 0
        )

    def _note_limits(self) -> None:
        """Add the interval to the waits of applications that wait because of an AM limit or a user limit."""
        for application in self._recording.unended.values():
            if all(waits.waiting is None for waits in application.waits.values()):
                continue
            if application.application_id is None:
                continue
            limit = self._view.limit(application.application_id)
            if limit in _AM_LIMITS:
                application.am_limit_wait_ms += self.interval_ms
            elif limit is Cause.USER_LIMIT:
                application.user_limit_wait_ms += self.interval_ms

    def _explain(self, now_ms: int) -> None:
        """Explain the longest present waits, if they are among the longest of all so far."""
        waiting = (
            one
            for application in self._recording.unended.values()
            for key, waits in application.waits.items()
            if (one := self._oldest(application, key, waits)) is not None
        )
        longest = heapq.nlargest(LONGEST_WAITS, (wait_ms for _, wait_ms in self._explained.values()))
        bar_ms = longest[-1] if len(longest) == LONGEST_WAITS else 0
        for one in heapq.nlargest(LONGEST_WAITS, waiting, key=_length):
            if one.wait_ms > bar_ms and one.wait_ms >= self._explained_again_ms(one):
                self._explained[one.application.position, one.key] = (one.position, one.wait_ms)
                reason = self._reason(one)
                if reason is not None:
                    one.application.waits[one.key].explained.append(Explained(now_ms, *reason))

    def _note_reasons(self) -> None:
        """Add the interval to the waiting time of each group of containers, and explain some of them."""
        oldest: dict[WaitingGroup, _LongWait] = {}
        for application in self._recording.unended.values():
            for key, waits in application.waits.items():
                one = self._oldest(application, key, waits)
                if one is not None and waits.waiting is not None:
                    group = WaitingGroup(application.queue, application.work.user, key == AM_KEY)
                    self.waiting_time.add(group, self.interval_ms * len(waits.waiting))
                    oldest[group] = max(oldest.get(group, one), one, key=_length)
        for group in self.waiting_time.due(oldest):
            reason = self._reason(oldest[group])
            if reason is not None:
                self.waiting_time.explain(group, *reason)

    def _explained_again_ms(self, one: _LongWait) -> float:
        """The wait after which the request is explained again."""
        position, wait_ms = self._explained.get((one.application.position, one.key), (None, 0))
        return EXPLAINED_AGAIN_AFTER * wait_ms if position == one.position else wait_ms + 1

    def _reason(self, one: _LongWait) -> tuple[str, str] | None:
        """The cause and the sentence of the present verdict on the request; None if its attempt is unknown."""
        application_id, now_ms = one.application.application_id, self._recording.began_ms + self._recording.now_ms
        if application_id is None:
            return None
        waiting = one.application.position, one.key
        if waiting not in self._reasons:
            key = None if one.key == AM_KEY else one.key
            self._reasons[waiting] = self._view.reason(application_id, key, now_ms)
        return self._reasons[waiting]

    def _longest_of_keys(self) -> Iterator[_LongWait]:
        """The longest wait of each key of each application, whether it is over or not."""
        for application in self._recording.applications:
            for key, waits in application.waits.items():
                over = (
                    None
                    if waits.longest is None
                    else _LongWait(waits.longest.wait_ms, application, key, waits.longest.position)
                )
                found = [one for one in (over, self._oldest(application, key, waits)) if one is not None]
                if found:
                    yield max(found, key=_length)

    def _oldest(self, application: RecordedApplication, key: RequestKey, waits: KeyWaits) -> _LongWait | None:
        """The oldest request of a key that still waits."""
        if waits.waiting is None:
            return None
        position = waits.waiting[0]
        wait_ms = self._recording.now_ms - self._recording.containers.requested_ms(position)
        return _LongWait(wait_ms, application, key, position)


def _length(wait: _LongWait) -> tuple[int, int]:
    """The sort key of waits: by length, of equal ones the earlier one is larger."""
    return wait.wait_ms, -wait.position
