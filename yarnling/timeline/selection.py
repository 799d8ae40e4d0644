"""A part of a timeline: some hosts, kinds of messages, an application, a span of time."""

from __future__ import annotations

from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from yarn.errors import InvalidArgumentException
from yarn.suggestions import did_you_mean
from yarnling.run.records import Call, Lifeline, RecordedRun, Role


class Selection(Struct, frozen=True):
    """The part of a timeline to show.

    `hosts`, `rpcs`: patterns such as nm-*; without any, all. `application`: its id, or the end of it.
    `from_ms`, `until_ms`: since the start of the run.
    """

    hosts: tuple[str, ...] = ()
    rpcs: tuple[str, ...] = ()
    application: str = ""
    from_ms: int = 0
    until_ms: int | None = None

    def of(self, timeline: RecordedRun) -> RecordedRun:
        """The selected part. Raises InvalidArgumentException if a name is not in the timeline, or nothing is left."""
        hosts = self._hosts(timeline)
        self._check_span(timeline)
        self._check_rpcs(timeline)
        application = self.application_in(timeline)
        start_ms = timeline.from_ms + self.from_ms
        until_ms = timeline.until_ms if self.until_ms is None else timeline.from_ms + self.until_ms
        rm = {one.name for one in timeline.lifelines if one.role is Role.RM}
        calls = tuple(one for one in timeline.calls if start_ms <= one.sent_ms <= until_ms)
        part = replace(
            timeline,
            lifelines=tuple(one for one in timeline.lifelines if one.name in hosts),
            calls=tuple(one for one in calls if self._has(one, hosts, application)),
            changes=tuple(
                one
                for one in timeline.changes
                if start_ms <= one.at_ms <= until_ms and one.host in hosts and application in ("", one.application)
            ),
            decisions=tuple(
                one
                for one in timeline.decisions
                if start_ms <= one.at_ms <= until_ms and rm & hosts and application in ("", one.application)
            ),
            faults=tuple(
                one for one in timeline.faults if one.from_ms <= until_ms and (one.until_ms or until_ms) >= start_ms
            ),
        )
        if self == Selection():
            return part
        if not (part.calls or part.changes or part.decisions):
            raise InvalidArgumentException("nothing in the run matches (give fewer options, or a longer span)")
        return replace(part, lifelines=_active(part))

    def _check_span(self, timeline: RecordedRun) -> None:
        length_ms = timeline.until_ms - timeline.from_ms
        if self.until_ms is not None and self.from_ms > self.until_ms:
            raise InvalidArgumentException(
                f"--from {self.from_ms / 1000:g} is after --to {self.until_ms / 1000:g} (swap the two)"
            )
        if self.from_ms > length_ms:
            raise InvalidArgumentException(
                f"--from {self.from_ms / 1000:g} is after the end of the run ({length_ms / 1000:g} s; begin earlier)"
            )

    def _check_rpcs(self, timeline: RecordedRun) -> None:
        known = sorted({one.rpc for one in timeline.calls})
        for pattern in self.rpcs:
            if not any(_matches(rpc, pattern) for rpc in known):
                raise InvalidArgumentException(
                    f"no call is named {pattern!r}: {did_you_mean(pattern, known)}there are {_listed(known)}"
                )

    def _has(self, message: Call, hosts: set[str], application: str) -> bool:
        if message.source not in hosts or message.target not in hosts:
            return False
        if self.rpcs and not any(_matches(message.rpc, pattern) for pattern in self.rpcs):
            return False
        return not application or application in message.applications

    def _hosts(self, timeline: RecordedRun) -> set[str]:
        names = {one.name: one for one in timeline.lifelines}
        if not self.hosts:
            return set(names)
        found: set[str] = set()
        for pattern in self.hosts:
            matching = {name for name, one in names.items() if _matches(name, pattern) or _matches(one.title, pattern)}
            if not matching:
                nearest = did_you_mean(pattern, names)
                raise InvalidArgumentException(
                    f"no host is called {pattern!r}: {nearest}there are {_listed(sorted(names))}"
                )
            found |= matching
        return found

    def application_in(self, timeline: RecordedRun) -> str:
        """The id of the chosen application, "" for all. Raises InvalidArgumentException if there is not exactly one."""
        if not self.application:
            return ""
        known = {application for one in timeline.calls for application in one.applications}
        known |= {one.application for one in timeline.changes if one.application}
        matching = sorted(one for one in known if one == self.application or one.endswith(f"_{self.application}"))
        if len(matching) != 1:
            what = "no application is" if not matching else "several applications are"
            raise InvalidArgumentException(f"{what} called {self.application!r}: there are {_listed(sorted(known))}")
        return matching[0]


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name.lower(), pattern.lower())


def _active(part: RecordedRun) -> tuple[Lifeline, ...]:
    """The lifelines with any event, and the ResourceManager's."""
    active = {name for one in part.calls for name in (one.source, one.target)}
    active |= {one.host for one in part.changes}
    return tuple(one for one in part.lifelines if one.name in active or one.role is Role.RM)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:10])
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown or "none"
