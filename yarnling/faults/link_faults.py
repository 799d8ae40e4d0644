"""Which links a fault injection concerns, and what is wrong with them meanwhile. Pure.

The names of the links are those of yarnling.cluster.network.
"""

from __future__ import annotations

from collections.abc import Mapping

from yarnling.cluster.network import NetworkFault
from yarnling.faults.schedule import FaultInjection

LINKS: Mapping[str, tuple[str, ...]] = {
    "partition-node": ("tracker", "scheduler", "node"),
    "partition-nm-from-rm": ("tracker",),
    "partition-masters-from-rm": ("scheduler",),
    "partition-nm-from-masters": ("node",),
    "partition-clients": (),
    "slow-node": ("tracker", "scheduler", "node"),
}
"""{fault: the links of each node that it concerns}; `partition-clients` is about the only link without a node."""


def link_names(injection: FaultInjection) -> tuple[str, ...]:
    """The links that the injection concerns."""
    links = LINKS[injection.kind.name]
    return tuple(f"{link}-{number}" for number in injection.nodes for link in links) if links else ("clients",)


def network_fault(injection: FaultInjection) -> NetworkFault:
    """The kind of fault: a partition lets nothing pass, in both directions or in one; or they are slow."""
    if injection.kind.name == "slow-node":
        options = {name: value for name, value in injection.options.items() if isinstance(value, float)}
        return NetworkFault(
            delay_s=options.get("delay", 0.0),
            loss=options.get("loss", 0.0),
            rate=options.get("kilobytes", 0.0) * 1024,
            breaks=options.get("breaks", 0.0),
        )
    lost, how = injection.options.get("lost", "both"), injection.options.get("how", "silent")
    return NetworkFault(
        requests=lost != "replies" and how != "reset",
        replies=lost != "requests" and how != "reset",
        forgets=how == "lost",
        reset=how == "reset",
    )
