"""Which of the scheduler's policies run beside placing (Hadoop's SchedulingMonitorManager)."""

from __future__ import annotations

from rm.scheduler.config.reading import Reader

MONITORS_ENABLED = "yarn.resourcemanager.scheduler.monitor.enable"
POLICIES = "yarn.resourcemanager.scheduler.monitor.policies"
IDLE_QUEUE_POLICY = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AutoCreatedQueueDeletionPolicy"
QUEUE_MANAGEMENT_POLICY = (
    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.QueueManagementDynamicEditPolicy"
)
PREEMPTION_POLICY = (
    "org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy"
)
"""The one that runs unless others are named (yarn-default.xml)."""


def runs(reader: Reader, policy: str) -> bool:
    """True if the policy runs."""
    return policy in _named(reader) and reader.flag(MONITORS_ENABLED, False)


def note_unknown_policies(reader: Reader) -> None:
    """A fault for each policy that is asked for and not here."""
    if not reader.flag(MONITORS_ENABLED, False):
        return
    for policy in _named(reader):
        if policy not in (IDLE_QUEUE_POLICY, QUEUE_MANAGEMENT_POLICY, PREEMPTION_POLICY):
            remedy = f"name {PREEMPTION_POLICY}, {IDLE_QUEUE_POLICY}, {QUEUE_MANAGEMENT_POLICY}, or nothing"
            reader.fault(POLICIES, f"the policy {policy} is not supported", remedy)


def _named(reader: Reader) -> tuple[str, ...]:
    return reader.words(POLICIES) if reader.text(POLICIES) else (PREEMPTION_POLICY,)
