"""Call sequences of an operator: changes of queues, labels, node sizes and host lists while applications run."""

from __future__ import annotations

import asyncio
import getpass
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.cluster.rpc_fuzz.applications import DAMAGE
from tests.cluster.rpc_fuzz.caller import ODD_USERS, FuzzCaller
from tests.cluster.rpc_fuzz.known import HOSTS, LABELS, SIZES, TEXTS, Known
from wire.files.hadoop_xml import to_xml
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.admin import RefreshNodesRequest, ReplaceLabelsRequest, ResourceOption
from yarn.resource import INT32_MAX, Resource
from yarn.states import DecommissionType

PREFIX = "yarn.scheduler.capacity."
QUEUES = {
    f"{PREFIX}root.queues": "default,a,b",
    f"{PREFIX}root.default.capacity": "40",
    f"{PREFIX}root.a.capacity": "30",
    f"{PREFIX}root.b.capacity": "30",
    f"{PREFIX}root.b.queues": "b1,b2",
    f"{PREFIX}root.b.b1.capacity": "50",
    f"{PREFIX}root.b.b2.capacity": "50",
    f"{PREFIX}root.default.maximum-capacity": "100",
    f"{PREFIX}root.a.maximum-capacity": "100",
    f"{PREFIX}root.b.maximum-capacity": "100",
    f"{PREFIX}root.default.user-limit-factor": "10",
    f"{PREFIX}root.a.user-limit-factor": "2",
    f"{PREFIX}root.b.b1.user-limit-factor": "10",
    f"{PREFIX}maximum-am-resource-percent": "0.9",
    f"{PREFIX}root.accessible-node-labels": "*",
    f"{PREFIX}root.accessible-node-labels.gpu.capacity": "100",
    f"{PREFIX}root.default.accessible-node-labels.gpu.capacity": "40",
    f"{PREFIX}root.a.accessible-node-labels.gpu.capacity": "50",
    f"{PREFIX}root.b.accessible-node-labels.gpu.capacity": "10",
    f"{PREFIX}root.b.b1.accessible-node-labels.gpu.capacity": "100",
    f"{PREFIX}root.b.b2.accessible-node-labels.gpu.capacity": "0",
}
"""The initial queues of a fuzzed cluster, which the operator restores."""
CHANGES: tuple[dict[str, str], ...] = (
    {},
    {},
    {f"{PREFIX}root.a.capacity": "20", f"{PREFIX}root.b.capacity": "40"},
    {f"{PREFIX}root.a.maximum-capacity": "30"},
    {f"{PREFIX}root.a.state": "STOPPED"},
    {f"{PREFIX}root.b.b1.maximum-applications": "1"},
    {f"{PREFIX}root.default.user-limit-factor": "0.1"},
    {f"{PREFIX}maximum-am-resource-percent": "0.01"},
    {f"{PREFIX}root.a.ordering-policy": "fair"},
    {f"{PREFIX}root.a.max-parallel-apps": "1"},
    {f"{PREFIX}root.b.b2.state": "STOPPED"},
    # Refused unless the queue is stopped.
    {f"{PREFIX}root.b.queues": "b1", f"{PREFIX}root.b.b1.capacity": "100"},
    # Those from here on are always refused.
    {f"{PREFIX}root.a.capacity": "90"},
    {f"{PREFIX}root.a.capacity": "-1"},
    {f"{PREFIX}root.queues": "default,a"},
    {f"{PREFIX}root.queues": ""},
    {f"{PREFIX}root.a.capacity": "x\u2028"},
)


@dataclass
class Operators:
    """An operator, until cancelled. `conf` is the ResourceManager's configuration directory."""

    caller: FuzzCaller
    known: Known
    rng: Random
    conf: Path

    async def run(self) -> None:
        while True:
            step = self.rng.choices(*_WEIGHTED)[0]
            await step(self)
            await asyncio.sleep(self.rng.choice((0, 0.01, 0.05)))

    def put_back(self) -> None:
        """Restore the initial queues and host lists."""
        self._write_queues({})
        (self.conf / "excluded-hosts").write_text("")

    async def _refresh_queues(self) -> None:
        rng = self.rng
        change: dict[str, str] = {}
        for one in rng.sample(CHANGES, rng.choice((1, 1, 2))):
            change |= one
        self._write_queues(change)
        await self._ask(ResourceManagerAdministrationProtocol.refresh_queues, None)

    async def _refresh_nodes(self) -> None:
        """Exclude only hosts of fake nodes: a real NodeManager that is shut down exits."""
        rng = self.rng
        hosts = rng.sample(HOSTS, rng.choice((0, 0, 1, 3)))
        (self.conf / "excluded-hosts").write_text("".join(f"{host}\n" for host in hosts))
        kind = rng.choice(list(DecommissionType))
        await self._ask(
            ResourceManagerAdministrationProtocol.refresh_nodes,
            RefreshNodesRequest(kind, rng.choice((None, 0, 1, -1, INT32_MAX))),
        )
        await self._ask(ResourceManagerAdministrationProtocol.check_for_decommissioning_nodes, None)

    async def _labels(self) -> None:
        rng = self.rng
        names = ("gpu", "ssd", rng.choice(LABELS), rng.choice(TEXTS))
        if rng.random() < 0.5:
            labels = tuple(NodeLabel(rng.choice(names), rng.random() < 0.7) for _ in range(rng.choice((1, 1, 2))))
            await self._ask(ResourceManagerAdministrationProtocol.add_to_cluster_node_labels, labels)
        else:
            await self._ask(ResourceManagerAdministrationProtocol.remove_from_cluster_node_labels, (rng.choice(names),))

    async def _replace_labels(self) -> None:
        rng = self.rng
        nodes = (*self.known.nodes, *self.known.real_nodes, NodeId(rng.choice(HOSTS), 0), NodeId("127.0.0.2", 0))
        request = tuple(
            (rng.choice(nodes), tuple(rng.choice(("gpu", "ssd", "", *LABELS)) for _ in range(rng.choice((0, 1, 1, 2)))))
            for _ in range(rng.choice((0, 1, 2)))
        )
        await self._ask(
            ResourceManagerAdministrationProtocol.replace_labels_on_nodes,
            ReplaceLabelsRequest(request, rng.random() < 0.5),
        )

    async def _resize(self) -> None:
        rng = self.rng
        nodes = (*self.known.nodes, *self.known.real_nodes, NodeId(rng.choice(HOSTS), 1))
        sizes = tuple(
            (rng.choice(nodes), ResourceOption(rng.choice((Resource(4096, 16), Resource(4096, 16), *SIZES))))
            for _ in range(rng.choice((1, 1, 3)))
        )
        await self._ask(ResourceManagerAdministrationProtocol.update_node_resource, sizes)

    async def _other(self) -> None:
        rng = self.rng
        rpc = rng.choice(ResourceManagerAdministrationProtocol.rpcs)
        record = self.known.request(rng, rpc.path, self.caller.harmless)
        await self._ask(rpc, record)

    async def _ask(self, rpc: object, record: object) -> None:
        rng = self.rng
        user = getpass.getuser() if rng.random() < 0.9 else rng.choice(("ann", *ODD_USERS))
        await self.caller.ask(rng, rpc, record, user=user, damage=DAMAGE)  # type: ignore[arg-type]

    def _write_queues(self, change: dict[str, str]) -> None:
        path = self.conf / "capacity-scheduler.xml"
        beside = path.with_name(".fuzz.new")
        beside.write_text(to_xml({**QUEUES, **change}))
        beside.replace(path)


_STEPS = (
    (Operators._refresh_queues, 3),
    (Operators._refresh_nodes, 3),
    (Operators._labels, 3),
    (Operators._replace_labels, 4),
    (Operators._resize, 4),
    (Operators._other, 4),
)
_WEIGHTED = [step for step, _ in _STEPS], [weight for _, weight in _STEPS]
