"""Features of Hadoop's scheduler that this one lacks: warnings that say how decisions differ, refusals if strict."""

from __future__ import annotations

from collections.abc import Mapping

from rm.scheduler.config.monitors import PREEMPTION_POLICY, unsupported_policies
from rm.scheduler.config.reader import Reader
from yarn.faults import Concern
from yarn.settings import scheduler
from yarn.settings.scheduler import PREFIX
from yarn.settings.unsupported import NO_EFFECT, Feature, check_features

_MONITORS = "org.apache.hadoop.yarn.server.resourcemanager."
_POLICY_EFFECTS = {
    f"{_MONITORS}scheduler.capacity.QueueConfigurationAutoRefreshPolicy": (
        "a changed capacity-scheduler.xml is applied by `rmadmin -refreshQueues` only"
    ),
    f"{_MONITORS}monitor.invariants.MetricsInvariantChecker": NO_EFFECT,
    f"{_MONITORS}monitor.invariants.ReservationInvariantsChecker": NO_EFFECT,
}
"""{policy that does not run here: what that means}."""
_POLICY_EFFECT = "whatever it would preempt, move or change stays as it is"

FEATURES: Mapping[str, Feature] = {
    feature.key: feature
    for feature in (
        Feature(
            PREFIX + "multi-node-placement-enabled",
            "placement over several nodes is not supported",
            "each node is offered by itself, and no sorting policy chooses among nodes: containers may be placed on "
            "other nodes than in Hadoop; limits of queues and users are the same",
        ),
        Feature(
            PREFIX + "workflow-priority-mappings",
            "priorities of workflows are not supported",
            "applications of these workflows keep the priority with which they are submitted",
            "remove it, and submit the applications with the priority",
            frozenset({""}),
        ),
        Feature(
            PREFIX + "skip-allocate-on-nodes-with-reserved-containers",
            "has no effect: it is a part of placement over several nodes, which is not supported",
            "a node with a reservation serves only the reservation, as in Hadoop without placement over several nodes",
        ),
    )
}
"""{key: the feature of the whole scheduler that it requests}."""


def check_unsupported(reader: Reader) -> None:
    """Add a fault for each feature of the whole scheduler that is requested but not supported."""
    reader.faults.extend(check_features(reader.configuration, FEATURES))
    for policy in unsupported_policies(reader):
        effect = _POLICY_EFFECTS.get(policy, _POLICY_EFFECT)
        remedy = f"remove it from the list; {PREEMPTION_POLICY} is supported"
        concern = Concern.OPERATION if policy in _POLICY_EFFECTS else Concern.PLACEMENT
        problem = f"the policy {policy} does not run"
        reader.unsupported(scheduler.MONITOR_POLICIES.key, problem, effect, remedy, concern=concern)
