"""The releases of Hadoop that yarnling follows, and the rules in which they differ.

A release is a value with one switch for each difference. The scheduler reads the switch where the rule stands and never
compares versions, so the place of a rule says which releases have it. docs/design/releases.md has the source of each
difference; a new release is a row in RELEASES, a new difference is a switch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from yarn.configuration import Configuration
from yarn.java.versions import HADOOP_VERSION
from yarn.settings.kinds import BoolSetting, Setting

BASES: Final = "EMR 7.13 and Cloudera 7.3.3 are based on 3.4.2, Dataproc 3.0 on 3.5.0"
"""The releases on which distributions are based. Their own changes are not known here."""


class HadoopRelease(Struct, frozen=True, kw_only=True):
    """A release of Hadoop: its version, and a switch for each rule that it does not share with 3.4.1.

    `compares_any_amounts`: queues that are used alike are ordered by their configured amounts if one of them has
    amounts, not only if both have (YARN-11745).

    `schedules_asynchronously`: the default of asynchronous scheduling (YARN-7327).

    `checks_requests_first`: whether the queue has headroom for a request is checked before the node's partition is
    (YARN-11798).

    `keeps_vectors_without_memory`: a capacity in brackets counts without an amount of memory, too (YARN-11646).

    `knows_amounts_by_notation`: a queue is configured in amounts if its capacity is written so, even if all amounts are
    zero (YARN-11641).

    `passes_over_childless_parents`: a round of preemption ignores a managed parent without leaves, instead of failing
    (YARN-11801).

    `creates_queues_before_storing`: an application that is submitted to a missing queue gets it before the application
    is stored, so that the queue's lifetime limits count for the first one, too (YARN-11708).

    `corrects_requests`: the RM can subtract containers that an AM has not fetched yet from the AM's requests, if
    yarn.resourcemanager.scheduler.autocorrect.container.allocation is set (YARN-11702).

    `tells_user_limit`: the diagnostics of an AM whose user is at the limit have the limit and the usage (YARN-11699).
    """

    version: str
    compares_any_amounts: bool = False
    schedules_asynchronously: bool = False
    checks_requests_first: bool = False
    keeps_vectors_without_memory: bool = False
    knows_amounts_by_notation: bool = False
    passes_over_childless_parents: bool = False
    creates_queues_before_storing: bool = False
    corrects_requests: bool = False
    tells_user_limit: bool = False


_3_4_1: Final = HadoopRelease(version=HADOOP_VERSION)
_3_4_2: Final = replace(_3_4_1, version="3.4.2", compares_any_amounts=True)
_3_4_3: Final = replace(_3_4_2, version="3.4.3")
_3_5_0: Final = replace(
    _3_4_3,
    version="3.5.0",
    schedules_asynchronously=True,
    checks_requests_first=True,
    keeps_vectors_without_memory=True,
    knows_amounts_by_notation=True,
    passes_over_childless_parents=True,
    creates_queues_before_storing=True,
    corrects_requests=True,
    tells_user_limit=True,
)

RELEASES: Final = {release.version: release for release in (_3_4_1, _3_4_2, _3_4_3, _3_5_0)}
"""{version: release}, the oldest first."""


def known_releases() -> str:
    """The versions in RELEASES, for a sentence: `3.4.1, 3.4.2, 3.4.3 or 3.5.0`."""
    *first, last = RELEASES
    return f"{', '.join(first)} or {last}"


@dataclass(frozen=True)
class ReleaseSetting(Setting[HadoopRelease]):
    """A release out of RELEASES, by its version."""

    kind = "release"

    @property
    def remedy(self) -> str:
        return f"write {known_releases()} ({BASES})"

    def parse(self, text: str) -> HadoopRelease:
        release = RELEASES.get(text.strip())
        if release is None:
            raise ValueError("is not a release whose rules are known")
        return release


RELEASE = ReleaseSetting(
    "yarn.yarnling.release", HADOOP_VERSION, "the release of Hadoop whose rules the cluster follows"
)


@dataclass(frozen=True)
class ReleasedBoolSetting(BoolSetting):
    """true or false; `switch`, a field of HadoopRelease, is the default."""

    switch: str = field(default="", kw_only=True)

    def default_in(self, conf: Configuration) -> str | None:
        release = RELEASES.get((conf.get(RELEASE.key) or "").strip(), _3_4_1)
        return "true" if getattr(release, self.switch) else "false"
