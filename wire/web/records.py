"""YARN's records in answers of the web services: resources, times, ids read from paths."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

from wire.web.document import Element, Entries, many
from wire.web.errors import WebException, bad_request
from yarn.errors import InvalidIdException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.resource import INT64_MAX, MEMORY_MB, Resource

BUILT_FROM = "yarnling"
BUILT_ON = "2024-10-09T14:57Z"
"""When that release was built: clients parse the field, and a build of our own has no date."""
RESOURCES_REMEMBERED = 4096
"""Most amounts of a cluster are equal: the sizes of nodes and containers, and zero."""
_LONG = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@lru_cache(maxsize=RESOURCES_REMEMBERED)
def resource_element(resource: Resource, bounds: tuple[Resource, Resource] | None = None) -> Element:
    """A ResourceInfo, with a ResourceInformation for each type.

    `bounds`: the minimum and maximum allocation, which only amounts from the configuration carry in Hadoop.
    """
    least, most = (None, None) if bounds is None else (bounds[0].amounts(), bounds[1].amounts())
    informations = many(
        Element(
            {
                "attributes": Element({}),
                "maximumAllocation": INT64_MAX if most is None else most[name],
                "minimumAllocation": 0 if least is None else least[name],
                "name": name,
                "resourceType": "COUNTABLE",
                "units": "Mi" if name == MEMORY_MB else "",
                "value": amount,
            }
        )
        for name, amount in resource.amounts().items()
    )
    return Element(
        {
            "memory": resource.memory_mb,
            "vCores": resource.vcores,
            "resourceInformations": Element({"resourceInformation": informations}),
        }
    )


def seconds_map(amounts: dict[str, int]) -> Entries:
    """A map of numbers, which JAXB writes as texts."""
    return Entries(tuple((name, str(amount)) for name, amount in amounts.items()))


def elapsed_ms(started_ms: int, finished_ms: int, now_ms: int) -> int:
    """Times.elapsed: the time until the end, or until now; -1 for times that go backwards."""
    if finished_ms > 0 and started_ms > 0:
        return max(finished_ms - started_ms, -1)
    return max(now_ms - started_ms, -1) if started_ms > 0 else 0


def java_date(moment_ms: int, *, with_offset: bool = False) -> str:
    """`Sat Nov 21 00:59:09 UTC 2026` as Date.toString writes it; `with_offset`: `+0000` instead of `UTC`."""
    moment = datetime.fromtimestamp(moment_ms // 1000, UTC)
    day, month = _DAYS[moment.weekday()], _MONTHS[moment.month - 1]
    zone = "+0000" if with_offset else "UTC"
    return f"{day} {month} {moment.day:02d} {moment:%H:%M:%S} {zone} {moment.year}"


def parse_long(text: str) -> int | None:
    """A Java long; None if it is not one."""
    if _LONG.fullmatch(text) is None or not -INT64_MAX - 1 <= int(text) <= INT64_MAX:
        return None
    return int(text)


def versions(role: str, version: str) -> dict[str, str]:
    """The fields of versions in the info of a `resourceManager` or `nodeManager` of this version."""
    build = f"{version} from {BUILT_FROM}"
    return {
        f"{role}Version": version,
        f"{role}BuildVersion": build,
        f"{role}VersionBuiltOn": BUILT_ON,
        "hadoopVersion": version,
        "hadoopBuildVersion": build,
        "hadoopVersionBuiltOn": BUILT_ON,
    }


# Messages about malformed ids in paths repeat Hadoop's: the errors of its parsers, wrapped by its web layer.


def application_id(text: str) -> ApplicationId:
    """Raises WebException."""
    if not text.startswith("application_"):
        raise _bad_id(f"ApplicationId prefix: {text}. The valid ApplicationId should start with prefix application")
    return _parsed(ApplicationId, text, "ApplicationId")


def attempt_id(text: str) -> ApplicationAttemptId:
    """Raises WebException."""
    if not text.startswith("appattempt_"):
        raise _bad_id(f"AppAttemptId prefix: {text}")
    return _parsed(ApplicationAttemptId, text, "AppAttemptId")


def container_id(text: str) -> ContainerId:
    """Raises WebException."""
    if not text.startswith("container_"):
        raise _bad_id(f"ContainerId prefix: {text}")
    return _parsed(ContainerId, text, "ContainerId")


AnyId = TypeVar("AnyId", ApplicationId, ApplicationAttemptId, ContainerId)


def _parsed(kind: type[AnyId], text: str, name: str) -> AnyId:
    try:
        return kind.parse(text)
    except InvalidIdException:
        raise _bad_id(f"{name}: {text}") from None


def _bad_id(message: str) -> WebException:
    return bad_request(f"Invalid {message}", "java.lang.IllegalArgumentException")
