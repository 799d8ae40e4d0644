"""Call sequences of applications: submit, register, allocate, start containers, finish, also in the wrong order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random

from msgspec import structs

from tests.cluster.rpc_fuzz.caller import ODD_USERS, USERS, FuzzCaller, forged
from tests.cluster.rpc_fuzz.known import LABELS, NUMBERS, QUEUES, SIZES, TEXTS, Known
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.inspection import InspectionProtocol
from wire.protocols.master import ApplicationMasterProtocol
from yarn.applications import ApplicationFilter, ApplicationReport, ApplicationSubmissionContext
from yarn.containers import Container, ContainerLaunchContext, ResourceRequest, Token, UpdateContainerRequest
from yarn.errors import (
    ApplicationAttemptNotFoundException,
    ApplicationMasterNotRegisteredException,
    YarnException,
)
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.protocols.client import (
    GetNewApplicationResponse,
    KillApplicationRequest,
    MoveApplicationRequest,
    QueueInfoRequest,
    UpdatePriorityRequest,
    UpdateTimeoutsRequest,
)
from yarn.protocols.container_management import SignalContainerRequest, StartContainerRequest
from yarn.protocols.inspection import ExplainContainerRequest, ExplainRequest
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    RegisterApplicationMasterRequest,
)
from yarn.resource import INT32_MAX, Resource
from yarn.states import ContainerUpdateType, FinalApplicationStatus, SignalContainerCommand

DAMAGE = 0.05
"""The probability that a message of a sequence is damaged: with more, sequences would end too early."""
STEPS_MAX = 60
TOKEN_LOOKS_MAX = 20
"""The number of times that the report of an unmanaged application is read to get its token."""
ASKS_MAX = 300
"""The number of resource requests in a large call."""
HELD_MAX = 20
REFUSALS_MAX = 3
"""The number of calls after the end of an application."""
TIMES = (
    "2999-12-31T00:00:00.000+0000",
    "1970-01-01T00:00:00.000+0000",
    "",
    "soon",
    "9999999-01-01T00:00:00.000+0000",
    None,
)


@dataclass
class Life:
    """An application whose AM is the fuzzer."""

    app: ApplicationId
    user: str
    token: Token
    response_id: int = 0
    held: list[Container] = field(default_factory=list)
    nm_tokens: dict[NodeId, Token] = field(default_factory=dict)
    changed: list[Token] = field(default_factory=list)
    """Container tokens of changed containers, for `updateContainer`."""
    sent: list[AllocateRequest] = field(default_factory=list)
    refusals: int = 0
    """The number of calls that were refused because its application is over."""


@dataclass
class Applications:
    """A user who submits applications and acts as their AM, one after another, until cancelled."""

    caller: FuzzCaller
    known: Known
    rng: Random

    async def run(self) -> None:
        while True:
            life = await self._begin()
            if self.rng.random() < 0.9:
                await self._register(life)
            for _ in range(self.rng.randint(1, STEPS_MAX)):
                if life.refusals > REFUSALS_MAX:
                    break
                step = self.rng.choices(*_WEIGHTED)[0]
                await step(self, life)

    async def _begin(self) -> Life:
        """Run an application whose AM was started on a fake node, or a new unmanaged one."""
        rng = self.rng
        while True:
            if self.known.master_tokens and rng.random() < 0.3 and self.known.apps:
                return Life(rng.choice(self.known.apps), rng.choice(USERS), rng.choice(self.known.master_tokens))
            user = rng.choice(USERS)
            new = await self.caller.ask(rng, ApplicationClientProtocol.get_new_application, None, user=user)
            if not isinstance(new, GetNewApplicationResponse):
                continue
            context = self._context(new.application_id)
            answer = await self.caller.ask(
                rng, ApplicationClientProtocol.submit_application, context, user=user, damage=DAMAGE
            )
            if isinstance(answer, YarnException):
                continue
            self.known.keep(rng, self.known.apps, new.application_id)
            if rng.random() < 0.1:
                # The same id again, as it was or with another content.
                again = rng.choice((context, self._context(new.application_id)))
                await self.caller.ask(rng, ApplicationClientProtocol.submit_application, again, user=rng.choice(USERS))
            token = await self._token_of(new.application_id, user) if context.unmanaged_am else None
            if token is not None:
                self.known.keep(rng, self.known.master_tokens, token)
                return Life(new.application_id, user, token)

    def _context(self, app: ApplicationId) -> ApplicationSubmissionContext:
        rng = self.rng
        return ApplicationSubmissionContext(
            app,
            self.caller.harmless.launch_context(rng) if rng.random() < 0.7 else ContainerLaunchContext(),
            rng.choice((Resource(128, 1), Resource(512, 1), rng.choice(SIZES))),
            rng.choice(("fuzz", rng.choice(TEXTS))),
            rng.choice(("default", "a", "b1", rng.choice(QUEUES))),
            priority=rng.choice((None, 0, 5, rng.choice(NUMBERS))),
            unmanaged_am=rng.random() < 0.8,
            max_app_attempts=rng.choice((0, 1, 2, rng.choice(NUMBERS))),
            keep_containers_across_attempts=rng.random() < 0.3,
            attempt_failures_validity_interval_ms=rng.choice((-1, 1, 1000, rng.choice(NUMBERS))),
            tags=frozenset(rng.sample(("x", "Y", *TEXTS), rng.choice((0, 0, 1, 3)))),
            node_label_expression=rng.choice((None, None, "", rng.choice(LABELS))),
            am_requests=self._asks(rng.randint(1, 3)) if rng.random() < 0.1 else (),
            lifetime_s=rng.choice((None, None, 1, 100, rng.choice(NUMBERS))),
        )

    async def _token_of(self, app: ApplicationId, user: str) -> Token | None:
        for _ in range(TOKEN_LOOKS_MAX):
            report = await self.caller.ask(self.rng, ApplicationClientProtocol.get_application_report, app, user=user)
            if isinstance(report, ApplicationReport) and report.am_rm_token is not None:
                return report.am_rm_token
            await asyncio.sleep(0.01)
        return None

    # To the ResourceManager as an AM

    async def _register(self, life: Life) -> None:
        rng = self.rng
        request = RegisterApplicationMasterRequest(
            rng.choice(("127.0.0.1", rng.choice(TEXTS))), rng.choice((-1, 0, 80, *NUMBERS)), rng.choice(("", *TEXTS))
        )
        await self.caller.ask(
            rng, ApplicationMasterProtocol.register_application_master, request, token=life.token, damage=DAMAGE
        )

    async def _allocate(self, life: Life) -> None:
        """Allocate with the right response id."""
        request = self._allocate_request(life, life.response_id)
        life.sent = [*life.sent[-5:], request]
        reply = await self.caller.ask(
            self.rng, ApplicationMasterProtocol.allocate, request, token=life.token, damage=DAMAGE
        )
        self._take(life, reply)

    async def _allocate_wrongly(self, life: Life) -> None:
        """Allocate with another response id: the one before gets the same answer again, any other is refused."""
        off = self.rng.choice((-1, -2, 1, 5, INT32_MAX - life.response_id, -INT32_MAX - 1))
        number = max(-INT32_MAX - 1, min(INT32_MAX, life.response_id + off))
        await self.caller.ask(
            self.rng, ApplicationMasterProtocol.allocate, self._allocate_request(life, number), token=life.token
        )

    async def _allocate_again(self, life: Life) -> None:
        if life.sent:
            request = self.rng.choice(life.sent)
            await self.caller.ask(self.rng, ApplicationMasterProtocol.allocate, request, token=life.token)

    async def _allocate_at_once(self, life: Life) -> None:
        """Several concurrent calls of one AM."""
        requests = [self._allocate_request(life, life.response_id) for _ in range(self.rng.randint(2, 4))]
        calls = (
            self.caller.ask(self.rng, ApplicationMasterProtocol.allocate, one, token=life.token) for one in requests
        )
        for reply in await asyncio.gather(*calls):
            self._take(life, reply)

    async def _allocate_forged(self, life: Life) -> None:
        other = self.known.token(self.rng)
        token = self.rng.choice((forged(self.rng, life.token), other, None))
        rpc = self.rng.choice(ApplicationMasterProtocol.rpcs)
        record = self.known.request(self.rng, rpc.path, self.caller.harmless)
        await self.caller.ask(self.rng, rpc, record, token=token)

    async def _finish(self, life: Life) -> None:
        rng = self.rng
        status = rng.choice(list(FinalApplicationStatus))
        request = FinishApplicationMasterRequest(status, rng.choice(("", *TEXTS)), rng.choice(("", *TEXTS)))
        for _ in range(rng.choice((1, 1, 2))):
            await self.caller.ask(
                rng, ApplicationMasterProtocol.finish_application_master, request, token=life.token, damage=DAMAGE
            )

    def _allocate_request(self, life: Life, response_id: int) -> AllocateRequest:
        rng = self.rng
        held = [container.id for container in life.held]
        strange = [*self.known.containers[:3], ContainerId(ApplicationAttemptId(life.app, 9), 1)]
        releasable = held + (strange if rng.random() < 0.1 else [])
        names = [*(node.host for node in (*self.known.nodes, *self.known.real_nodes)), "/default-rack", "", "nowhere"]
        if rng.random() < 0.05:
            names += ["*", "x" * 300]
        count = rng.choice((0, 0, 1, 2, 5, rng.choice((5, 5, 5, ASKS_MAX))))
        return AllocateRequest(
            response_id,
            rng.choice((0.0, 0.5, 1.0, -1.0, float("nan"), float("inf"))),
            self._asks(count),
            tuple(rng.sample(releasable, min(rng.choice((0, 0, 1, 2)), len(releasable)))),
            tuple(rng.choice(names) for _ in range(rng.choice((0, 0, 0, 1, 3)))),
            tuple(rng.choice(names) for _ in range(rng.choice((0, 0, 0, 1, 3)))),
            self._updates(life),
            rng.choice(("", "", *TEXTS)),
        )

    def _asks(self, count: int) -> tuple[ResourceRequest, ...]:
        """Resource requests, mostly ones that can be satisfied."""
        rng = self.rng
        hosts = [node.host for node in self.known.nodes] or ["nowhere"]
        asks = []
        for _ in range(count):
            is_odd = rng.random() < 0.06
            ask = ResourceRequest(
                rng.choice((1, 2, 5, rng.randint(0, 1000))),
                rng.choice(("*", "*", "*", rng.choice(hosts), "/default-rack")),
                rng.choice((Resource(128, 1), Resource(256, 1))),
                rng.choice((1, 1, 2, 3, 0)),
                relax_locality=rng.random() < 0.8,
                label=rng.choices((None, "", "gpu"), (20, 5, 1))[0],
                allocation_request_id=rng.choice((-1, -1, -1, 0, 7)),
            )
            asks.append(self.known.at_home(rng, ask, self.caller.harmless) if is_odd else ask)
        return tuple(asks)

    def _updates(self, life: Life) -> tuple[UpdateContainerRequest, ...]:
        rng = self.rng
        if not life.held or rng.random() < 0.7:
            return ()
        return tuple(
            UpdateContainerRequest(
                rng.choice((one.id, one.id, one.id, rng.choice(self.known.containers or [one.id]))),
                rng.choice((one.version, one.version, one.version, one.version + 1, -1, INT32_MAX)),
                rng.choice(list(ContainerUpdateType)),
                rng.choice((Resource(512, 1), Resource(1, 1), one.resource, *SIZES, None)),
            )
            for one in (rng.choice(life.held) for _ in range(rng.choice((1, 1, 2))))
        )

    def _take(self, life: Life, reply: object) -> None:
        if isinstance(reply, (ApplicationAttemptNotFoundException, ApplicationMasterNotRegisteredException)):
            life.refusals += 1
        if not isinstance(reply, AllocateResponse):
            return
        life.response_id = reply.response_id
        life.held = [*life.held, *reply.allocated][-HELD_MAX:]
        life.token = reply.am_rm_token or life.token
        for container in reply.allocated:
            self.known.keep(self.rng, self.known.containers, container.id)
            if container.token is not None:
                self.known.keep(self.rng, self.known.container_tokens, container.token)
        for one in reply.nm_tokens:
            if one.token is not None:
                life.nm_tokens[one.node_id] = one.token
                self.known.keep(self.rng, self.known.nm_tokens, (one.node_id, one.token))
        for change in reply.updated_containers:
            if change.container.token is not None:
                life.changed.append(change.container.token)

    # To NodeManagers as an AM

    async def _start(self, life: Life) -> None:
        """Start containers once or twice, with their own tokens, used ones, those of others, or forged ones."""
        rng = self.rng
        held = [one for one in life.held if one.node_id in self.known.real_nodes and one.token is not None]
        if not held:
            return
        first = rng.choice(held)
        tokens = [one.token for one in held if one.node_id == first.node_id and one.token is not None][:3]
        if rng.random() < 0.2:
            tokens.append(rng.choice((forged(rng, tokens[0]), tokens[0], self.known.token(rng) or tokens[0])))
        starts = tuple(StartContainerRequest(self.caller.harmless.launch_context(rng), token) for token in tokens)
        await self._ask_node(life, first.node_id, ContainerManagementProtocol.start_containers, starts)

    async def _look_or_stop(self, life: Life) -> None:
        rng = self.rng
        ids = [one.id for one in life.held] + self.known.containers[:2]
        if ids and (life.nm_tokens or rng.random() < 0.1):
            rpc = rng.choice(
                (ContainerManagementProtocol.get_container_statuses, ContainerManagementProtocol.stop_containers)
            )
            chosen = tuple(rng.choice(ids) for _ in range(rng.randint(0, 3)))
            await self._ask_node(life, self._node_of(life), rpc, chosen)

    async def _signal(self, life: Life) -> None:
        ids = [one.id for one in life.held] + self.known.containers[:2]
        if ids and (life.nm_tokens or self.rng.random() < 0.1):
            request = SignalContainerRequest(self.rng.choice(ids), self.rng.choice(list(SignalContainerCommand)))
            await self._ask_node(life, self._node_of(life), ContainerManagementProtocol.signal_to_container, request)
            await self.caller.ask(self.rng, ApplicationClientProtocol.signal_to_container, request, user=life.user)

    async def _update(self, life: Life) -> None:
        tokens = [*life.changed, *(one.token for one in life.held if one.token is not None)]
        if tokens and (life.nm_tokens or self.rng.random() < 0.1):
            chosen = tuple(self.rng.choice(tokens) for _ in range(self.rng.choice((1, 1, 2))))
            await self._ask_node(life, self._node_of(life), ContainerManagementProtocol.update_container, chosen)

    def _node_of(self, life: Life) -> NodeId:
        those = [node for node in life.nm_tokens if node in self.known.real_nodes]
        return self.rng.choice(those or self.known.real_nodes)

    async def _ask_node(self, life: Life, node: NodeId, rpc: object, record: object) -> None:
        rng = self.rng
        token = life.nm_tokens.get(node)
        if rng.random() < 0.15:
            others = [other for _, other in self.known.nm_tokens] or [life.token]
            token = rng.choice((rng.choice(others), None if token is None else forged(rng, token), life.token, None))
        await self.caller.ask(rng, rpc, record, token=token, node=node, damage=DAMAGE)  # type: ignore[arg-type]

    # To the ResourceManager as a client

    async def _look(self, life: Life) -> None:
        rng, user = self.rng, self.rng.choice((life.user, life.user, *ODD_USERS))
        attempt_id = ApplicationAttemptId(life.app, rng.choice((1, 1, 2, 0)))
        container_id = ContainerId(attempt_id, rng.choice((1, 2, 1 << 40 | 1)))
        rpc, record = rng.choice(
            (
                (ApplicationClientProtocol.get_application_report, life.app),
                (ApplicationClientProtocol.get_application_attempts, life.app),
                (ApplicationClientProtocol.get_application_attempt_report, attempt_id),
                (ApplicationClientProtocol.get_containers, attempt_id),
                (ApplicationClientProtocol.get_container_report, container_id),
                (InspectionProtocol.explain_container, ExplainContainerRequest(container_id)),
                (ApplicationClientProtocol.get_applications, ApplicationFilter(limit=rng.choice((None, 10, 0, -1)))),
                (InspectionProtocol.explain, ExplainRequest(life.app, rng.choice((False, True)))),
                (ApplicationClientProtocol.get_cluster_nodes, frozenset()),
                (InspectionProtocol.get_node_groups, None),
                (ApplicationClientProtocol.get_queue_info, QueueInfoRequest(rng.choice(QUEUES), True, True, True)),
                (ApplicationClientProtocol.get_cluster_metrics, None),
            )
        )
        await self.caller.ask(rng, rpc, record, user=user, damage=DAMAGE)

    async def _change(self, life: Life) -> None:
        rng = self.rng
        rpc, record = rng.choice(
            (
                (
                    ApplicationClientProtocol.move_application_across_queues,
                    MoveApplicationRequest(life.app, rng.choice(QUEUES)),
                ),
                (
                    ApplicationClientProtocol.update_application_priority,
                    UpdatePriorityRequest(life.app, rng.choice(NUMBERS)),
                ),
                (
                    ApplicationClientProtocol.update_application_timeouts,
                    UpdateTimeoutsRequest(life.app, rng.choice(TIMES)),
                ),
            )
        )
        await self.caller.ask(rng, rpc, record, user=life.user, damage=DAMAGE)

    async def _end(self, life: Life) -> None:
        """Kill the application, or fail its attempt, while its AM goes on."""
        rng = self.rng
        if rng.random() < 0.5:
            attempt_id = ApplicationAttemptId(life.app, rng.choice((1, 1, 2)))
            await self.caller.ask(rng, ApplicationClientProtocol.fail_application_attempt, attempt_id, user=life.user)
            return
        request = KillApplicationRequest(life.app, rng.choice(("", *TEXTS)))
        await self.caller.ask(
            rng, ApplicationClientProtocol.force_kill_application, request, user=rng.choice((life.user, *USERS))
        )

    async def _replay(self, life: Life) -> None:
        await self.caller.replay(self.rng)

    async def _other_life(self, life: Life) -> None:
        """Use the response id of another AM: two AMs of one attempt."""
        if self.known.master_tokens:
            life.token = self.rng.choice(self.known.master_tokens)

    async def _copy_token(self, life: Life) -> None:
        life.token = structs.replace(life.token, service=self.rng.choice(TEXTS))


_STEPS = (
    (Applications._register, 2),
    (Applications._allocate, 40),
    (Applications._allocate_wrongly, 5),
    (Applications._allocate_again, 4),
    (Applications._allocate_at_once, 2),
    (Applications._allocate_forged, 3),
    (Applications._finish, 1),
    (Applications._start, 12),
    (Applications._look_or_stop, 8),
    (Applications._signal, 3),
    (Applications._update, 4),
    (Applications._look, 8),
    (Applications._change, 4),
    (Applications._end, 1),
    (Applications._replay, 4),
    (Applications._other_life, 0.3),
    (Applications._copy_token, 0.3),
)
_WEIGHTED = [step for step, _ in _STEPS], [weight for _, weight in _STEPS]
