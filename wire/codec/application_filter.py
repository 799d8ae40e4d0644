"""ApplicationFilter: which applications getApplications lists."""

from __future__ import annotations

from wire.codec.applications import APPLICATION_STATES
from wire.codec.fields import members, number, optional_int, optional_text, refuse_too_many, texts
from wire.generated import yarn_service_protos_pb2 as pb
from yarn.applications import ApplicationFilter, TimeRange
from yarn.java.values import LONG_MAX
from yarn.states import ApplicationsRequestScope

FILTER_ENTRIES_MAX = 1000
"""The maximum of types, states, users, queues or tags in one filter; each is compared with every application."""
_SCOPES = members(ApplicationsRequestScope)


def write_filter(wanted: ApplicationFilter, out: pb.GetApplicationsRequestProto) -> None:
    out.application_types.extend(sorted(wanted.types))
    out.application_states.extend(sorted(number(state) for state in wanted.states))
    out.users.extend(sorted(wanted.users))
    out.queues.extend(sorted(wanted.queues))
    out.applicationTags.extend(sorted(wanted.tags))
    if wanted.limit is not None:
        out.limit = wanted.limit
    if wanted.scope is not ApplicationsRequestScope.ALL:
        out.scope = number(wanted.scope)
    if wanted.name is not None:
        out.name = wanted.name
    if wanted.started is not None:
        out.start_begin, out.start_end = wanted.started.begin_ms, wanted.started.end_ms
    if wanted.finished is not None:
        out.finish_begin, out.finish_end = wanted.finished.begin_ms, wanted.finished.end_ms


def read_filter(proto: pb.GetApplicationsRequestProto) -> ApplicationFilter:
    for field in ("application_types", "application_states", "users", "queues", "applicationTags"):
        refuse_too_many(proto, field, FILTER_ENTRIES_MAX)
    return ApplicationFilter(
        frozenset(texts(proto, "application_types")),
        frozenset(APPLICATION_STATES[state] for state in proto.application_states),
        frozenset(texts(proto, "users")),
        frozenset(texts(proto, "queues")),
        frozenset(texts(proto, "applicationTags")),
        optional_int(proto, "limit"),
        _SCOPES[proto.scope],
        optional_text(proto, "name"),
        _time_range(proto, "start_begin", "start_end"),
        _time_range(proto, "finish_begin", "finish_end"),
    )


def _time_range(proto: pb.GetApplicationsRequestProto, begin: str, end: str) -> TimeRange | None:
    begin_ms, end_ms = optional_int(proto, begin), optional_int(proto, end)
    if begin_ms is None and end_ms is None:
        return None
    return TimeRange(begin_ms or 0, LONG_MAX if end_ms is None else end_ms)
