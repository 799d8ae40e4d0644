"""ApplicationFilter: which applications getApplications lists."""

from __future__ import annotations

from protos import yarn_service_protos_pb2 as pb
from wire.codec.applications import APPLICATION_STATES
from wire.codec.fields import members, number, refuse_too_many, text, texts
from yarn.applications import ApplicationFilter, TimeRange
from yarn.java.values import LONG_MAX
from yarn.states import ApplicationsRequestScope

FILTER_ENTRIES_MAX = 1000
"""Types, states, users, queues or tags of one filter, each of which is compared with every application."""
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
        proto.limit if proto.HasField("limit") else None,
        _SCOPES[proto.scope],
        text(proto, "name") if proto.HasField("name") else None,
        _started(proto),
        _finished(proto),
    )


def _started(proto: pb.GetApplicationsRequestProto) -> TimeRange | None:
    if not proto.HasField("start_begin") and not proto.HasField("start_end"):
        return None
    return TimeRange(proto.start_begin, proto.start_end if proto.HasField("start_end") else LONG_MAX)


def _finished(proto: pb.GetApplicationsRequestProto) -> TimeRange | None:
    if not proto.HasField("finish_begin") and not proto.HasField("finish_end"):
        return None
    return TimeRange(proto.finish_begin, proto.finish_end if proto.HasField("finish_end") else LONG_MAX)
