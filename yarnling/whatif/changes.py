"""Differences between the two sides of a comparison: keys of the configuration, machines, workload, seed. Pure."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.settings.registry import RELEASED
from yarn.settings.release import RELEASE, ReleasedBoolSetting
from yarnling.report.wording import counted
from yarnling.whatif.result import WhatIfResult

NOT_SET = "not set"
ALL_EQUAL = "Both sides are equal: the same configuration, machines, workload and seed, and so the same outcome."


class ChangedInput(Struct, frozen=True):
    """A key, or something else, that differs, with its value before and after."""

    what: str
    before: str
    after: str


def changes_of(before: WhatIfResult, after: WhatIfResult) -> tuple[ChangedInput, ...]:
    """The keys with another value, in the order of the alphabet, then what else differs of what was simulated."""
    keys = sorted({*before.settings, *after.settings} - {RELEASE.key}) if before.settings and after.settings else ()
    found = [ChangedInput(key, before.settings.get(key, NOT_SET), after.settings.get(key, NOT_SET)) for key in keys]
    found += [
        ChangedInput("release of Hadoop", before.release, after.release),
        *_other_defaults(before, after),
        ChangedInput("nodes", machines(before), machines(after)),
        ChangedInput("workload", before.workload, after.workload),
        *_other_queues(before, after),
        ChangedInput("seed", str(before.seed), str(after.seed)),
    ]
    return tuple(each for each in found if each.before != each.after)


def about_changes(before: WhatIfResult, after: WhatIfResult) -> str:
    """A note about the changes, for example that there are none; "" if there is nothing to say."""
    if not (before.settings and after.settings):
        return "An earlier version wrote a result without its configuration, so the keys are not known: simulate again."
    changes = changes_of(before, after)
    if not changes:
        return ALL_EQUAL
    if [each.what for each in changes] == ["seed"]:
        return "Only the seed differs, so every difference is chance."
    return ""


def machines(result: WhatIfResult) -> str:
    """The nodes of a side with their memory and vcores together."""
    memory = f"{result.cluster.memory_mb // 1024:,} GB, {result.cluster.vcores:,} vcores"
    numbers = [each.nodes for each in result.node_counts]
    some = f"{min(numbers)} to {max(numbers)} of " if len(numbers) > 1 else ""
    return f"{some}{counted(result.nodes, 'node')} ({memory})"


def _other_defaults(before: WhatIfResult, after: WhatIfResult) -> list[ChangedInput]:
    """The keys that neither side sets and whose default is that of its release."""
    return [
        ChangedInput(f"default of {setting.key}", *(_default_of(setting, side.release) for side in (before, after)))
        for setting in RELEASED
        if setting.key not in before.settings and setting.key not in after.settings
    ]


def _default_of(setting: ReleasedBoolSetting, release: str) -> str:
    return setting.default_in(Configuration.of({RELEASE.key: release})) or NOT_SET


def _other_queues(before: WhatIfResult, after: WhatIfResult) -> list[ChangedInput]:
    """The queues of applications that ran in another queue, because of a mapping of queues or of the configuration."""
    if before.workload != after.workload:
        return []
    pairs = zip(before.applications, after.applications, strict=False)
    moved = Counter((one.queue, other.queue) for one, other in pairs if one.queue != other.queue)
    return [ChangedInput(f"queue of {counted(number, 'application')}", *pair) for pair, number in moved.most_common()]
