"""The NodeManager's beans for /jmx and /metrics: NodeManagerMetrics and the process's own."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator

from nm.core.application import NMApplicationState
from nm.core.container import NMContainerState
from nm.shell.web.node import ServedNode
from wire.web.jmx import Bean
from wire.web.process_beans import process_beans
from yarn.machine import StateChanged
from yarn.nodes import ResourceUtilization

ROLE = "NodeManager"
_MB_PER_GB = 1024
_ENDS = {
    NMContainerState.EXITED_WITH_SUCCESS.name: "ContainersCompleted",
    NMContainerState.EXITED_WITH_FAILURE.name: "ContainersFailed",
    NMContainerState.CONTAINER_CLEANEDUP_AFTER_KILL.name: "ContainersKilled",
}
_UNKNOWN = ResourceUtilization()


class NodeManagerBeans:
    """The JMX beans of a node, read from it on request; counts the starts and ends of its containers."""

    def __init__(self, view: ServedNode) -> None:
        self._view = view
        self._counts: Counter[str] = Counter()

    def state_changed(self, change: StateChanged) -> None:
        """Count a container that started or has ended."""
        if change.kind != "NMContainer":
            return
        if change.target == NMContainerState.RUNNING.name:
            self._counts["ContainersLaunched"] += 1
        elif change.target == NMContainerState.DONE.name and change.source in _ENDS:
            self._counts[_ENDS[change.source]] += 1

    def __call__(self) -> Iterator[Bean]:
        """All beans."""
        yield Bean(f"Hadoop:service={ROLE},name=NodeManagerMetrics", "NodeManagerMetrics", self._attributes())
        yield from process_beans(ROLE)

    def _attributes(self) -> dict[str, str | int | float]:
        core, total = self._view.core, self._view.facts.resource
        states = Counter(container.machine.state for container in core.containers.values())
        live = [container.token.resource for container in core.containers.values() if not container.is_done]
        used_mb, used_vcores = sum(one.memory_mb for one in live), sum(one.vcores for one in live)
        running = [app for app in core.applications.values() if app.machine.state is NMApplicationState.RUNNING]
        containers = core.status.containers_utilization or _UNKNOWN
        whole = core.status.node_utilization or _UNKNOWN
        return {
            "tag.Context": "yarn",
            "tag.Hostname": platform.node(),
            "ContainersLaunched": self._counts["ContainersLaunched"],
            "ContainersCompleted": self._counts["ContainersCompleted"],
            "ContainersFailed": self._counts["ContainersFailed"],
            "ContainersKilled": self._counts["ContainersKilled"],
            "ContainersIniting": states[NMContainerState.LOCALIZING],
            "ContainersRunning": states[NMContainerState.RUNNING],
            "ApplicationsRunning": len(running),
            # Hadoop rounds allocated memory up and free memory down.
            "AllocatedGB": -(-used_mb // _MB_PER_GB),
            "AllocatedContainers": len(live),
            "AvailableGB": (total.memory_mb - used_mb) // _MB_PER_GB,
            "AllocatedVCores": used_vcores,
            "AvailableVCores": total.vcores - used_vcores,
            "ContainerUsedMemGB": containers.physical_memory_mb // _MB_PER_GB,
            "ContainerUsedVMemGB": containers.virtual_memory_mb // _MB_PER_GB,
            "ContainerCpuUtilization": float(containers.cpu),
            "NodeUsedMemGB": whole.physical_memory_mb // _MB_PER_GB,
            "NodeUsedVMemGB": whole.virtual_memory_mb // _MB_PER_GB,
            "NodeCpuUtilization": float(whole.cpu),
        }
