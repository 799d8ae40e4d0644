"""A fuzz run: rounds of messages, each on its own cluster, and the checks after each round."""

from __future__ import annotations

import asyncio
import getpass
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.cluster.applications import shell
from tests.cluster.rpc_fuzz.applications import Applications
from tests.cluster.rpc_fuzz.caller import BudgetSpent, FuzzCaller, Outcomes
from tests.cluster.rpc_fuzz.harmless import Harmless
from tests.cluster.rpc_fuzz.known import HOSTS, Known
from tests.cluster.rpc_fuzz.logs import check_log
from tests.cluster.rpc_fuzz.nodes import Nodes, Packs
from tests.cluster.rpc_fuzz.operators import QUEUES, Operators
from tests.cluster.rpc_fuzz.strays import Strays
from tests.rm import served_cluster
from wire.cluster_secret import read_client_token, read_cluster_secret
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.tracker import ResourceTracker
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.ids import ApplicationId, NodeId
from yarn.protocols.admin import RefreshNodesRequest, ReplaceLabelsRequest, ResourceOption
from yarn.resource import Resource
from yarn.settings.yarnling import CHECK_INVARIANTS, CLUSTER_SECRET_FILE
from yarn.states import FINAL_APPLICATION_STATES, FinalApplicationStatus, NodeState
from yarnling.cluster import conditions
from yarnling.cluster.client import Client
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

ROUND_MESSAGES = 25_000
"""Messages for one cluster. More would slow its checks down, and a short round is quick to replay."""
NODES = 2
NODE_SIZE = Resource(4096, 16)
APPLICATIONS, PLAYED_NODES, STRAYS = 6, 4, 6
"""The number of concurrent sequences and single messages."""
SETTLE_S = 90.0
"""The time an ordinary job may take after a round: remaining applications have to end or expire first."""
LOOK_S = 0.2
LOST_CALL = re.compile(r": (CANCELLED|UNAVAILABLE)|takes no connection")
SETTINGS = {
    **QUEUES,
    "yarn.resourcemanager.recovery.enabled": "true",
    "yarn.node-labels.enabled": "true",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.cluster.max-application-priority": "10",
    "yarn.resourcemanager.max-completed-applications": "200",
    "yarn.resourcemanager.state-store.max-completed-applications": "200",
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
}


@dataclass
class Figures:
    """The result of a run. `wrong` is empty if all checks held."""

    seed: int
    rounds: int = 0
    seconds: float = 0.0
    outcomes: Outcomes = field(default_factory=Outcomes)
    wrong: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """The figures for JSON output."""
        return {
            "seed": self.seed,
            "rounds": self.rounds,
            "messages": self.outcomes.sent,
            "withheld": self.outcomes.withheld,
            "seconds": round(self.seconds, 1),
            "messages_a_second": round(self.outcomes.sent / max(self.seconds, 0.001)),
            "rpcs": {
                name: {**counts, "slowest_ms": round(self.outcomes.slowest_ms[name])}
                for name, counts in sorted(self.outcomes.by_rpc.items())
            },
            "wrong": self.wrong,
        }


class Sender(Protocol):
    """Sends messages until the budget is spent; raises BudgetSpent then."""

    async def run(self) -> None: ...


Progress = Callable[[int], None]
"""Called with the number of messages sent so far."""


async def fuzz(seed: int, messages: int, directory: Path, progress: Progress = lambda sent: None) -> Figures:
    """Send `messages` messages in rounds and check each of them. Round n of seed s is the first one of seed s + n."""
    figures = Figures(seed)
    started = time.monotonic()
    while figures.outcomes.sent < messages:
        before = figures.outcomes.sent
        one = Round(seed + figures.rounds, min(ROUND_MESSAGES, messages - before), directory)
        await one.run(lambda sent, before=before: progress(before + sent))  # type: ignore[misc]
        figures.rounds += 1
        figures.outcomes.add(one.outcomes)
        figures.wrong += [f"seed {one.seed}: {text}" for text in one.wrong]
    figures.seconds = time.monotonic() - started
    return figures


class Round:
    """A cluster and its messages. Every second one checks the ResourceManager's invariants after each step."""

    def __init__(self, seed: int, messages: int, directory: Path) -> None:
        self.seed = seed
        self.outcomes = Outcomes()
        self.wrong: list[str] = []
        self._messages = messages
        self._directory = directory / f"seed-{seed}"
        self._harmless = Harmless(self._directory)
        self._rng = Random(seed)
        self._known = Known()
        self._checks_invariants = seed % 2 == 1

    async def run(self, progress: Progress) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._harmless.make_files()
        settings = {**SETTINGS, CHECK_INVARIANTS.key: str(self._checks_invariants).lower()}
        cluster = LocalCluster(
            NODES,
            memory_mb=NODE_SIZE.memory_mb,
            vcores=NODE_SIZE.vcores,
            fast=True,
            settings=settings,
            options=ClusterOptions(directory=self._directory / "cluster"),
        )
        async with cluster:
            self._known.real_nodes = tuple(node.id for node in cluster.nodes)
            self._harmless.real_nodes = frozenset(self._known.real_nodes)
            self._known.nodes_list_ended = not self._checks_invariants
            # The ResourceManager is killed half way, so that it has to recover what it stored.
            await self._send(cluster, self._messages // 2, progress)
            if not self.wrong:
                await self._restart_rm(cluster)
                await self._send(cluster, self._messages - self.outcomes.sent, progress)
            if not self.wrong:
                self.wrong += await still_works(cluster) or _dead(cluster)
        self.wrong += self.outcomes.faults
        for log in sorted(cluster.directory.logs.glob("*.log")):
            self.wrong += check_log(log, self._messages)

    async def _send(self, cluster: LocalCluster, messages: int, progress: Progress) -> None:
        """Send this many messages; returns early if a daemon exits."""
        record = self._directory / "messages.log"
        client_token = read_client_token(_with_secret(cluster))
        caller = FuzzCaller(cluster.addresses, self._harmless, messages, record, client_token)
        before = self.outcomes.sent
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            stack.push_async_callback(caller.close)
            senders = [tasks.create_task(_until_spent(one)) for one in self._senders(cluster, caller, stack)]
            while any(not sender.done() for sender in senders) and not _dead(cluster):
                await asyncio.wait(senders, timeout=LOOK_S)
                progress(before + caller.outcomes.sent)
            for sender in senders:
                sender.cancel()
        dead = _dead(cluster)
        if dead:
            # Calls that failed because the ResourceManager was down are not faults.
            caller.outcomes.faults = [text for text in caller.outcomes.faults if not LOST_CALL.search(text)]
        self.outcomes.add(caller.outcomes)
        self.wrong += dead

    def _senders(self, cluster: LocalCluster, caller: FuzzCaller, stack: AsyncExitStack) -> Iterator[Sender]:
        known = self._known
        secret = read_cluster_secret(_with_secret(cluster))
        served = served_cluster.Cluster(cluster.addresses, _with_secret(cluster), stack)
        for _ in range(APPLICATIONS):
            yield Applications(caller, known, self._draw())
        for host in HOSTS[:PLAYED_NODES]:
            yield Nodes(caller, known, self._draw(), served, host)
        for _ in range(STRAYS):
            yield Strays(caller, known, self._draw(), served, secret)
        yield Packs(caller, known, self._draw(), secret)
        yield Operators(caller, known, self._draw(), cluster.directory.conf)

    def _draw(self) -> Random:
        return Random(self._rng.random())

    async def _restart_rm(self, cluster: LocalCluster) -> None:
        Operators(None, self._known, self._rng, cluster.directory.conf).put_back()  # type: ignore[arg-type]
        await cluster.kill_rm()
        try:
            await cluster.restart_rm()
        except YarnException as error:
            self.wrong.append(f"the ResourceManager does not start again: {error}")


async def still_works(cluster: LocalCluster) -> list[str]:
    """Why the cluster cannot run an ordinary job once the fuzzed configuration is restored; empty if it can."""
    try:
        await _put_back(cluster)
        report = await cluster.client.start(shell("true", 2))
    except YarnException as error:
        return [f"an ordinary job is not accepted any more: {error!r}"]
    try:
        async with asyncio.timeout(SETTLE_S):
            report = await cluster.client.wait(report.application_id)
    except TimeoutError:
        return [f"an ordinary job does not run: {await _state_of(cluster, report.application_id)}"]
    if report.final_status is not FinalApplicationStatus.SUCCEEDED:
        return [f"an ordinary job ended as {report.final_status.name}: {report.diagnostics}"]
    return []


async def _state_of(cluster: LocalCluster, application_id: ApplicationId) -> str:
    """Everything that shows why an application waits."""
    client = cluster.client
    parts = await client.explain(application_id), await client.nodes(), await client.queue("root")
    return " ".join(repr(part) for part in parts)


async def _put_back(cluster: LocalCluster) -> None:
    """Kill all applications, remove fake nodes, and restore queues, labels and sizes."""
    client, real = cluster.client, tuple(node.id for node in cluster.nodes)
    Operators(None, Known(), Random(0), cluster.directory.conf).put_back()  # type: ignore[arg-type]
    token, address = read_client_token(_with_secret(cluster)), cluster.addresses[served_cluster.ADMIN]
    async with ResourceManagerAdministrationProtocol(address, user=getpass.getuser(), token=token) as operator:
        await operator.refresh_queues()
        await operator.refresh_nodes(RefreshNodesRequest())
        for report in await client.applications():
            if report.state not in FINAL_APPLICATION_STATES:
                with suppress(YarnException):
                    await cluster.client_of(report.user).kill(report.application_id)
        served = served_cluster.Cluster(cluster.addresses, _with_secret(cluster), AsyncExitStack())
        for node in await client.nodes():
            if node.node_id not in real and node.state is not NodeState.SHUTDOWN:
                await _send_away(served, node.node_id)
        await _wait_back(client, real)
        await operator.replace_labels_on_nodes(ReplaceLabelsRequest(tuple((node, ()) for node in real)))
        await operator.update_node_resource(tuple((node, ResourceOption(NODE_SIZE)) for node in real))


async def _wait_back(client: Client, real: tuple[NodeId, ...]) -> None:
    """A fake node may have used the name of a real one, which has to register again."""

    async def are_back() -> bool:
        running = await client.nodes(frozenset({NodeState.RUNNING}))
        return {node.node_id for node in running} == set(real)

    await conditions.until(are_back, SETTLE_S)


async def _send_away(served: served_cluster.Cluster, node_id: NodeId) -> None:
    token = served.node_tokens.create(node_id)
    async with ResourceTracker(served.addresses[served_cluster.TRACKER], token=token) as proxy:
        with suppress(YarnException):
            await proxy.unregister_node_manager(node_id)


def _with_secret(cluster: LocalCluster) -> Configuration:
    return Configuration.of({CLUSTER_SECRET_FILE.key: str(cluster.directory.secret_file)})


def _dead(cluster: LocalCluster) -> list[str]:
    daemons = [cluster.rm, *(node.daemon for node in cluster.nodes)]
    return [f"{one.name} exited with status {one.exit_status}" for one in daemons if one.exit_status is not None]


async def _until_spent(sender: Sender) -> None:
    with suppress(BudgetSpent):
        await sender.run()
