"""The parameters of /ws/v1/cluster/apps and /appstatistics (ApplicationsRequestBuilder): read and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from rm.core.applications import RMApp
from rm.core.context import RMContext
from rm.core.reports import applications as reports
from rm.shell.web.applications import DESELECTABLE, AppView, app_element
from wire.web.document import Document, Element, many
from wire.web.errors import bad_request, illegal_argument
from wire.web.records import parse_long
from wire.web.request import WebRequest
from yarn.resource import INT64_MAX
from yarn.states import FinalApplicationStatus, YarnApplicationState

_STATES = ", ".join(state.name for state in YarnApplicationState)
ANY_TYPE = "*"


class AppFilter(Struct, frozen=True):
    """The applications to list: those that match all fields that are not empty. Types and tags are in lower case."""

    states: frozenset[YarnApplicationState]
    final_status: FinalApplicationStatus | None
    user: str | None
    queue: str | None
    limit: int | None
    started_ms: tuple[int, int]
    finished_ms: tuple[int, int]
    types: frozenset[str]
    tags: frozenset[str]
    name: str | None

    def passes(self, app: RMApp) -> bool:
        """True for an application that is to be listed."""
        submission = app.submission
        if self.states and reports.application_state(app) not in self.states:
            return False
        if self.types and submission.type.lower() not in self.types:
            return False
        if self.user and app.user != self.user:
            return False
        if self.queue and self.queue not in (app.queue, app.queue.rpartition(".")[2]):
            return False
        if self.tags and self.tags.isdisjoint(submission.tags):
            return False
        if self.name is not None and submission.name != self.name:
            return False
        return _within(app.submit_ms, self.started_ms) and _within(app.finish_ms, self.finished_ms)


def read_filter(context: RMContext, request: WebRequest, *, lower_case_tags: bool) -> AppFilter:
    """Raises WebException for a value that Hadoop refuses.

    `lower_case_tags`: put tags in lower case (GetApplicationsRequestPBImpl.setApplicationTags).
    """
    queue, limit_text = request.first("queue"), request.first("limit")
    if queue and context.scheduler.queue(queue) is None:
        raise bad_request(f"Unknown queue: {queue}")
    limit = _long(limit_text, "limit") if limit_text else None
    if limit is not None and limit <= 0:
        raise bad_request("limit value must be greater then 0")
    tags = request.words("applicationTags")
    return AppFilter(
        states=_states([*request.words("state"), *request.words("states")]),
        final_status=_final_status(request.first("finalStatus")),
        user=request.first("user") or None,
        queue=queue or None,
        limit=limit,
        started_ms=_range(request, "startedTime", "startedTime", "startTime"),
        finished_ms=_range(request, "finishedTime", "finishTime", "finishTime"),
        types=frozenset(word.lower() for word in request.words("applicationTypes")),
        tags=frozenset(tag.lower() if lower_case_tags else tag for tag in tags),
        name=request.first("name"),
    )


def read_deselected(request: WebRequest) -> frozenset[str]:
    """The parts of an application that are left out. Raises WebException."""
    names = {name.lower(): name for name in DESELECTABLE}
    found: set[str] = set()
    for word in request.words("deSelects"):
        if word.lower() not in names:
            raise bad_request(
                f"Invalid deSelects string {word} specified. It should be one of [{', '.join(DESELECTABLE)}]"
            )
        found.add(names[word.lower()])
    return frozenset(found)


def listed(view: AppView, wanted: AppFilter) -> Iterator[Element]:
    """Yield the applications in the order of submission; others may be added and removed between two of them.

    The limit counts before the final status is compared, as in Hadoop.
    """
    count = 0
    for app in tuple(view.context.apps.values()):
        if wanted.limit is not None and count >= wanted.limit:
            return
        if not wanted.passes(app):
            continue
        count += 1
        if wanted.final_status is None or reports.final_status(app) is wanted.final_status:
            yield app_element(view, app)


def statistics(context: RMContext, request: WebRequest) -> Document:
    """The number of applications in each state (ApplicationStatisticsInfo). Raises WebException."""
    states = _states(request.words("states")) or frozenset(YarnApplicationState)
    types = {word.lower() for word in request.words("applicationTypes")} or {ANY_TYPE}
    if len(types) > 1:
        raise bad_request(f"# of applicationTypes = {len(types)}, we temporarily support at most one applicationType")
    wanted = types.pop()
    counts = dict.fromkeys((state for state in YarnApplicationState if state in states), 0)
    for app in context.apps.values():
        state = reports.application_state(app)
        if state in counts and wanted in (ANY_TYPE, app.submission.type.strip().lower()):
            counts[state] += 1
    items = many(Element({"state": state.name, "type": wanted, "count": count}) for state, count in counts.items())
    return Document("appStatInfo", Element({"statItem": items}))


def _states(words: Iterable[str]) -> frozenset[YarnApplicationState]:
    found: set[YarnApplicationState] = set()
    for word in words:
        try:
            found.add(YarnApplicationState[word.upper()])
        except KeyError:
            raise bad_request(f"Invalid application-state {word} specified. It should be one of [{_STATES}]") from None
    return frozenset(found)


def _final_status(text: str | None) -> FinalApplicationStatus | None:
    if not text:
        return None
    try:
        return FinalApplicationStatus[text]
    except KeyError:
        name = "org.apache.hadoop.yarn.api.records.FinalApplicationStatus"
        raise illegal_argument(f"No enum constant {name}.{text}") from None


def _range(request: WebRequest, parameter: str, of_sign: str, of_order: str) -> tuple[int, int]:
    """The bounds of a time. The names in Hadoop's messages differ from those of the parameters."""
    begin_text, end_text = request.first(f"{parameter}Begin"), request.first(f"{parameter}End")
    begin = _long(begin_text, f"{parameter}Begin") if begin_text else 0
    end = _long(end_text, f"{parameter}End") if end_text else INT64_MAX
    if begin < 0:
        raise bad_request(f"{of_sign}Begin must be greater than 0")
    if end < 0:
        raise bad_request(f"{of_sign}End must be greater than 0")
    if begin > end:
        of_end = "startedTime" if of_order == "startTime" else of_order
        raise bad_request(f"{of_end}End must be greater than {of_order}Begin")
    return begin, end


def _long(text: str, name: str) -> int:
    number = parse_long(text)
    if number is None:
        raise bad_request(f"{name} value must be a number!")
    return number


def _within(moment_ms: int, bounds: tuple[int, int]) -> bool:
    return bounds[0] <= moment_ms <= bounds[1]
