"""The ten mistakes of lab 3, each one key of the configuration, as operators really make them."""

from __future__ import annotations

import random
from collections.abc import Mapping

from msgspec import Struct

from yarn.settings import nodemanager, scheduler
from yarn.settings.scheduler import ROOT, queue_key
from yarnling.labs.mistake.cluster import LabCluster, LabNames, lab_cluster


class PlantedMistake(Struct, frozen=True):
    """A mistake. `queue`: whose key it is, as a field of LabNames; "" for a key of the whole cluster.

    `value`: the wrong one, in which `{}` stands for names; None: the key is missing. `shows`: the kind of complaint
    that it causes. `signs`: what evidence of it says, as a regular expression. `hint`: where to look, without the key.
    """

    name: str
    queue: str
    key: str
    value: str | None
    shows: str
    signs: str
    hint: str

    def whole_key(self, names: LabNames) -> str:
        """The key as files have it."""
        return queue_key(f"{ROOT}.{getattr(names, self.queue)}", self.key) if self.queue else self.key

    def planted(self, cluster: LabCluster) -> dict[str, str]:
        """The settings of the cluster with this mistake."""
        key = self.whole_key(cluster.names)
        settings = {name: value for name, value in cluster.settings.items() if name != key}
        if self.value is not None:
            settings[key] = self.value.format(names=cluster.names)
        return settings


PLANTED = (
    PlantedMistake(
        "am-percent",
        "reports",
        "maximum-am-resource-percent",
        "0.04",
        "late report",
        r"AM_QUEUE_LIMIT|limit for AMs|AM limit|AM resource|am-resource-percent|ACCEPTED",
        "In which state are the reports that wait, and what have they not got yet?",
    ),
    PlantedMistake(
        "user-limit-factor",
        "reports",
        "user-limit-factor",
        "1",
        "late survey",
        r"USER_LIMIT|user limit|user-limit",
        "How many users does the queue of the survey have at that time, and what may one of them use?",
    ),
    PlantedMistake(
        "maximum-capacity",
        "production",
        "maximum-capacity",
        "45",
        "late backfill",
        r"QUEUE_MAXIMUM|at its maximum|maximum[ -]capacity|max[ -]?capacity",
        "The backfill has the cluster to itself. How much of it does its queue use, and how much may it?",
    ),
    PlantedMistake(
        "label",
        "science",
        "default-node-label-expression",
        None,
        "no GPU",
        r"\bgpu\b|label",
        "On which nodes did the training run? What would have to send it elsewhere, since its user names no label?",
    ),
    PlantedMistake(
        "minimum-allocation",
        "",
        scheduler.MINIMUM_ALLOCATION_MB.key,
        "2048",
        "larger containers",
        r"2048|2 ?GB|rounded|round(s|ing)? up",
        "Compare the memory that a task requests with that of its container.",
    ),
    PlantedMistake(
        "calculator",
        "",
        scheduler.RESOURCE_CALCULATOR.key,
        scheduler.RESOURCE_CALCULATOR.choices[0],
        "too many vcores",
        r"v?cores?\b|DefaultResourceCalculator",
        "Compare the vcores that the tasks of a node requested with those of their containers, and with its own.",
    ),
    PlantedMistake(
        "preemption",
        "reports",
        "disable_preemption",
        "true",
        "late nightly",
        r"preempt|guarantee",
        "Who holds what the nightly job is guaranteed, and why is it not taken back?",
    ),
    PlantedMistake(
        "node-memory",
        "",
        nodemanager.RESOURCE_MEMORY_MB.key,
        "6144",
        "unused machines",
        r"6144|6 ?GB|memory",
        "Compare the memory of a machine with that of its node.",
    ),
    PlantedMistake(
        "mapping",
        "",
        scheduler.QUEUE_MAPPINGS_OVERRIDE.key,
        "true",
        "other queue",
        r"\bdefault\b|mapping",
        "In which queue does each application run, and who decided that?",
    ),
    PlantedMistake(
        "acl",
        "production",
        "acl_submit_applications",
        "{names.nightly}, {names.backfill}",
        "refused",
        r"refused|cannot submit|access|ACL|permission",
        "What did the ResourceManager answer to the user who was refused? Read the list of users letter by letter.",
    ),
)
"""Ten consecutive seeds from 1, 11, 21... on have ten different ones."""


class LabCase(Struct, frozen=True):
    """The cluster of a seed, with its mistake. `settings` {key: value}: the faulty configuration."""

    cluster: LabCluster
    mistake: PlantedMistake
    settings: Mapping[str, str]

    @property
    def key(self) -> str:
        """The whole key that is wrong."""
        return self.mistake.whole_key(self.cluster.names)


def lab_case(seed: int) -> LabCase:
    """The cluster of a seed, from 1 on, and the mistake that the seed draws."""
    order = list(PLANTED)
    round_number, position = divmod(seed - 1, len(order))
    random.Random(f"lab mistakes {round_number}").shuffle(order)
    cluster, mistake = lab_cluster(seed), order[position]
    return LabCase(cluster, mistake, mistake.planted(cluster))
