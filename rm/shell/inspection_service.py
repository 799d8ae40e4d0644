"""InspectionProtocol's service: explanations, over gRPC and over HTTP, and how much time their trials may take; also a
summary of the nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from rm.core import node_reports
from rm.core.events import Asker
from rm.core.explain.application import explanation
from rm.core.explain.container import container_explanation
from rm.core.history.cluster_history import ClusterHistory
from rm.core.resource_manager import ResourceManagerCore
from rm.shell.services import reader_of
from wire.bulky_replies import in_parts
from wire.caller import Caller
from wire.protocols.inspection import InspectionProtocol
from wire.rpc import handles
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.nodes import NodeGroup, node_groups
from yarn.protocols.inspection import (
    ContainerExplanation,
    ExplainContainerRequest,
    ExplainPastRequest,
    ExplainRequest,
    Explanation,
    PastExplanation,
)
from yarn.settings.yarnling import WEB_ENABLED

TRIAL_SHARE = 0.2
"""The share of the ResourceManager's time that trials may take, because nothing else is served during a trial."""
TRIAL_BURST_S = 2.0
"""The time trials may take at once, after a time without any."""


class TrialTime:
    """The budget of time for trials: at most a share of all time, with a burst. Times are in seconds."""

    def __init__(self, now_s: float) -> None:
        self._left_s = TRIAL_BURST_S
        self._at_s = now_s

    def wait_s(self, now_s: float) -> float:
        """The time to wait before the next trial; 0 if there may be one now."""
        self._left_s = min(TRIAL_BURST_S, self._left_s + (now_s - self._at_s) * TRIAL_SHARE)
        self._at_s = now_s
        return max(0.0, -self._left_s / TRIAL_SHARE)

    def spend(self, seconds: float) -> None:
        """Charge the time of a trial to the budget; one trial may overdraw it, and the next ones wait."""
        self._left_s -= seconds


class InspectionService:
    """Explains why applications wait, and what happened to containers; summarises the nodes.

    `clock`: the core's; `timer`: in seconds, it never goes back. `history` is set if somebody samples it.
    """

    def __init__(
        self, core: ResourceManagerCore, clock: Callable[[], int], timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._core = core
        self._clock = clock
        self._timer = timer
        self._trial_time = TrialTime(timer())
        self.history: ClusterHistory | None = None

    @handles(InspectionProtocol.explain)
    async def explain(self, caller: Caller[None], request: ExplainRequest) -> Explanation:
        return self.explained(request.application_id, reader_of(caller), what_if=request.what_if)

    @handles(InspectionProtocol.explain_container)
    async def explain_container(self, caller: Caller[None], request: ExplainContainerRequest) -> ContainerExplanation:
        return self.container_explained(request.container_id, reader_of(caller))

    @handles(InspectionProtocol.explain_past)
    async def explain_past(self, caller: Caller[None], request: ExplainPastRequest) -> PastExplanation:
        return self.past_explained(request.application_id, reader_of(caller))

    @handles(InspectionProtocol.get_node_groups)
    async def get_node_groups(self, caller: Caller[None], request: None) -> tuple[NodeGroup, ...]:
        return node_groups(await in_parts(node_reports.node_reports(self._core.context, frozenset())))

    def container_explained(self, container_id: ContainerId, asker: Asker) -> ContainerExplanation:
        """Explain why the container is on its node. Raises like `container_explanation`."""
        return container_explanation(self._core.context, container_id, self._clock(), asker)

    def past_explained(self, application_id: ApplicationId, asker: Asker) -> PastExplanation:
        """Explain why the application waited since the history began.

        Raises ApplicationNotFoundException, or YarnException for an asker who may not view the application, or if no
        history is kept.
        """
        context, history = self._core.context, self.history
        app = context.find_app(application_id)
        context.application_acls.check_view(asker, app, f"application {application_id}")
        if history is None or history.since_ms is None:
            raise YarnException(
                f"no history is kept, because this cluster has no web services ({WEB_ENABLED.key} is not true)"
            )
        return PastExplanation(
            application_id, app.user, app.queue, self._clock(), history.since_ms, history.verdicts_of(application_id)
        )

    def explained(self, application_id: ApplicationId, asker: Asker, *, what_if: bool) -> Explanation:
        """The explanation; `what_if`: with changes that would help, unless trials have taken too much time lately.

        Raises ApplicationNotFoundException, or YarnException for an asker who may not view the application.
        """
        started_s = self._timer()
        wait_s = self._trial_time.wait_s(started_s) if what_if else 0.0
        found = explanation(self._core.context, application_id, self._clock(), asker, what_if=what_if and wait_s == 0.0)
        if wait_s > 0:
            return _without_trials(found, wait_s)
        if what_if:
            self._trial_time.spend(self._timer() - started_s)
        return found


def _without_trials(found: Explanation, wait_s: float) -> Explanation:
    note = (
        f"changes were not tried: trials take at most {TRIAL_SHARE:.0%} of the ResourceManager's time; "
        f"ask again in {wait_s:.1f} s"
    )
    return replace(found, verdicts=tuple(replace(one, notes=(*one.notes, note)) for one in found.verdicts))
