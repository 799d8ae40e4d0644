"""The ResourceManager's REST API: which path has which answer. Reads go to the core's context, changes to the services
that answer RPCs."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from functools import partial

from rm.core.applications import RMApp
from rm.core.context import RMContext
from rm.core.reports import applications as reports
from rm.core.reports.queues import ROOT
from rm.core.resource_manager import ResourceManagerCore
from rm.shell.web import activities, applications, attempts, cluster, filters, labels, nodes, queues
from rm.shell.web.applications import LIFETIME, AppView
from rm.shell.web.counters import AppCounters
from rm.shell.web.paths import APP, ATTEMPT, BASE, asker_of, node_or_host
from wire.web.application import Answer, BulkyAnswer, Handler, ListAnswer, WebRoute
from wire.web.document import Document
from wire.web.errors import bad_request
from wire.web.request import WebRequest
from yarn.configuration import Configuration
from yarn.settings import resourcemanager


class ReadService:
    """Answers the REST calls that only read. `clock`: the core's; `counters`: of applications since the start.

    `elector`: the connection to other ResourceManagers, in words.
    """

    def __init__(
        self,
        core: ResourceManagerCore,
        conf: Configuration,
        clock: Callable[[], int],
        counters: AppCounters,
        elector: str = cluster.NO_ELECTOR,
    ) -> None:
        self._core = core
        self._elector = elector
        self._counters = counters
        self._clock = clock
        self._store_class = resourcemanager.STORE_CLASS.of(conf)
        self._lower_case_tags = resourcemanager.FORCE_LOWER_CASE_TAGS.of(conf)

    def rows(self) -> Iterator[WebRoute]:
        """The routes."""
        for path in (BASE, f"{BASE}/info"):
            yield self._get(path, lambda _: cluster.cluster_info(self._context, self._store_class, self._elector))
        yield self._get(f"{BASE}/userinfo", lambda request: cluster.user_info(getpass.getuser(), request.user))
        yield self._get(f"{BASE}/metrics", lambda _: cluster.metrics(self._context, self._counters.below(ROOT)))
        yield WebRoute("GET", f"{BASE}/scheduler", self._scheduler)
        yield self._get(f"{BASE}/scheduler-overview", lambda _: cluster.scheduler_overview(self._context))
        yield WebRoute("GET", f"{BASE}/nodes", self._nodes)
        yield self._get(f"{BASE}/nodes/{{nodeId}}", lambda request: nodes.node(self._context, request.path["nodeId"]))
        yield WebRoute("GET", f"{BASE}/apps", self._apps)
        yield self._get(f"{BASE}/appstatistics", lambda request: filters.statistics(self._context, request))
        yield self._get(APP, self._app)
        yield from self._app_rows()
        yield from self._label_rows()
        yield from self._activity_rows()
        yield from _refused_rows()

    def _activity_rows(self) -> Iterator[WebRoute]:
        base = f"{BASE}/scheduler"
        for path, document in {
            f"{base}/activities": activities.activities,
            f"{base}/bulk-activities": activities.bulk_activities,
            f"{base}/app-activities/{{appid}}": activities.app_activities,
        }.items():
            yield self._get(path, partial(self._activities, document))

    def _activities(self, document: Callable[[RMContext, WebRequest, int], Document], request: WebRequest) -> Document:
        return document(self._context, request, self._clock())

    def _label_rows(self) -> Iterator[WebRoute]:
        yield self._get(f"{BASE}/get-node-labels", lambda _: labels.cluster_labels(self._context))
        yield self._get(f"{BASE}/get-rm-node-labels", lambda _: labels.rm_labels(self._context))
        yield self._get(f"{BASE}/get-node-to-labels", lambda _: labels.nodes_to_labels(self._context))
        yield self._get(
            f"{BASE}/label-mappings", lambda request: labels.labels_to_nodes(self._context, request.words("labels"))
        )
        yield self._get(
            f"{BASE}/nodes/{{nodeId}}/get-labels",
            lambda request: labels.node_labels(self._context, node_or_host(request.path["nodeId"])),
        )
        yield self._get(f"{BASE}/queues/{{queue}}/access", self._queue_access)

    def _queue_access(self, request: WebRequest) -> Document:
        acl = request.first("queue-acl-type") or "SUBMIT_APPLICATIONS"
        return labels.queue_access(self._context, asker_of(request), request.path["queue"], request.first("user"), acl)

    def _app_rows(self) -> Iterator[WebRoute]:
        yield self._get(f"{APP}/appattempts", self._attempts)
        yield self._get(ATTEMPT, self._attempt)
        yield self._get(f"{ATTEMPT}/containers", self._containers)
        yield self._get(f"{ATTEMPT}/containers/{{containerid}}", self._container)
        yield self._get(f"{APP}/state", self._state)
        yield self._get(f"{APP}/queue", lambda request: applications.queue_document(self._find(request).queue))
        yield self._get(f"{APP}/priority", lambda request: applications.priority_document(self._find(request).priority))
        yield self._get(f"{APP}/timeouts", self._timeouts)
        yield self._get(f"{APP}/timeouts/{{type}}", self._timeout)

    @property
    def _context(self) -> RMContext:
        return self._core.context

    def _get(self, path: str, document: Callable[[WebRequest], Document]) -> WebRoute:
        async def handle(request: WebRequest) -> Answer:
            return Answer(document(request))

        handler: Handler = handle
        return WebRoute("GET", path, handler)

    def _find(self, request: WebRequest) -> RMApp:
        return applications.find_app(self._context, request.path["appid"])

    async def _scheduler(self, request: WebRequest) -> BulkyAnswer:
        return BulkyAnswer(queues.scheduler_document(self._context))

    async def _nodes(self, request: WebRequest) -> ListAnswer:
        states = nodes.wanted_states(request.first("states"))
        return ListAnswer("nodes", "node", nodes.nodes(self._context, states))

    async def _apps(self, request: WebRequest) -> ListAnswer:
        wanted = filters.read_filter(self._context, request, lower_case_tags=self._lower_case_tags)
        return ListAnswer("apps", "app", filters.listed(self._view(request), wanted))

    def _app(self, request: WebRequest) -> Document:
        return applications.app_document(self._view(request), self._find(request))

    def _view(self, request: WebRequest) -> AppView:
        return AppView(self._context, asker_of(request), self._clock(), filters.read_deselected(request))

    def _attempts(self, request: WebRequest) -> Document:
        return attempts.attempts(self._context, self._find(request), asker_of(request))

    def _attempt(self, request: WebRequest) -> Document:
        path = request.path
        return attempts.attempt(self._context, path["appid"], path["appattemptid"], asker_of(request))

    def _containers(self, request: WebRequest) -> Document:
        path, asker = request.path, asker_of(request)
        return attempts.containers(self._context, path["appid"], path["appattemptid"], asker, self._clock())

    def _container(self, request: WebRequest) -> Document:
        path, asker = request.path, asker_of(request)
        return attempts.container(
            self._context, path["appid"], path["appattemptid"], path["containerid"], asker, self._clock()
        )

    def _state(self, request: WebRequest) -> Document:
        return applications.state_document(reports.application_state(self._find(request)))

    def _timeouts(self, request: WebRequest) -> Document:
        return Document("timeouts", applications.timeouts_element(self._find(request), self._clock()))

    def _timeout(self, request: WebRequest) -> Document:
        app, kind = self._find(request), request.path["type"]
        if kind.upper() != LIFETIME:
            raise bad_request(f"Invalid application-state {kind} specified. It should be one of [{LIFETIME}]")
        return Document("timeout", applications.timeout_element(app, self._clock()))


def _refused_rows() -> Iterator[WebRoute]:
    """Paths that Hadoop refuses without reservations."""
    yield WebRoute("GET", f"{BASE}/reservation/list", _no_reservations)


async def _no_reservations(request: WebRequest) -> Answer:
    raise bad_request("Reservation is not enabled. Please enable & try again")
