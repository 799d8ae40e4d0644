"""Checks whether an AM may start, update, stop or query a container, in Hadoop's order (ContainerManagerImpl).

The shell has already checked the signatures of the tokens, because only the shell has the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter

from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier, NMTokenIdentifier
from yarn.errors import InvalidAuxServiceException, InvalidContainerException, YarnException
from yarn.ids import ContainerId

LINK_NAME_BYTES_MAX = 1024
"""The size limit of a link name. A path has at most 4096 bytes, and the work directory uses some of them."""
LINK_PART_BYTES_MAX = 255
"""The size limit of one part of a link name, which file systems impose."""
ENVIRONMENT_STRING_BYTES_MAX = 128 * 1024
"""The size limit of `NAME=value` including the final NUL, which Linux imposes (MAX_ARG_STRLEN)."""
_FAULTS_NAMED_MAX = 20
_SHOWN_CHARS_MAX = 80

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$-]{0,127}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_CHANGING = "increase container resource", "increasing resource of"


class StartedContainers:
    """Containers whose token was used and has not expired. A token may start its container only once.

    Containers that an earlier NM started in the same directories are remembered as long as this NM runs. Only if
    `keeps_expired` does `take_expired` return something.
    """

    def __init__(self, *, keeps_expired: bool = False) -> None:
        self._expiry_ms: dict[ContainerId, int] = {}
        self._expired: list[ContainerId] = []
        self._keeps_expired = keeps_expired
        self._started_before: frozenset[ContainerId] = frozenset()

    def note_started_before(self, container_ids: tuple[ContainerId, ...]) -> None:
        self._started_before = frozenset(container_ids)

    def add(self, token: ContainerTokenIdentifier) -> None:
        self._expiry_ms[token.container_id] = token.expiry_ms

    def recover(self, used_tokens: Iterable[tuple[ContainerId, int]]) -> None:
        """Add tokens that an earlier NM has stored: (container, expiry)."""
        self._expiry_ms.update(sorted(used_tokens, key=itemgetter(1)))

    def take_expired(self) -> tuple[ContainerId, ...]:
        """The containers that were forgotten since the last call, because their tokens have expired."""
        expired, self._expired = tuple(self._expired), []
        return expired

    def has(self, container_id: ContainerId, now_ms: int) -> bool:
        # Tokens arrive nearly in the order of their expiry, so it is enough to look at the oldest one.
        while self._expiry_ms:
            oldest = next(iter(self._expiry_ms))
            if self._expiry_ms[oldest] >= now_ms:
                break
            del self._expiry_ms[oldest]
            if self._keeps_expired:
                self._expired.append(oldest)
        return container_id in self._expiry_ms or container_id in self._started_before


def check_start(
    caller: NMTokenIdentifier,
    token: ContainerTokenIdentifier,
    *,
    started: StartedContainers | None,
    rm_identifier: int,
    now_ms: int,
) -> None:
    """Raise Hadoop's error if the caller may not start this container; if `started` is None, if it
    may not update it.
    """
    container_id = token.container_id
    reason = ""
    what, doing = ("start container", "starting") if started is not None else _CHANGING
    if caller.attempt_id.application_id != container_id.application_id:
        reason = (
            f"\nNMToken for application attempt : {caller.attempt_id} was used for {doing} container with "
            f"container token issued for application attempt : {container_id.attempt_id}"
        )
    elif started is not None and started.has(container_id, now_ms):
        reason = f"\n Attempt to relaunch the same container with id {container_id}."
    elif token.expiry_ms < now_ms:
        reason = (
            f"\nThis token is expired. current time is {now_ms} found {token.expiry_ms}"
            "\nNote: System times on machines may be out of sync. Check system time and time zones."
        )
    if reason:
        raise YarnException(f"Unauthorized request to {what}." + reason)
    if token.rm_identifier != rm_identifier:
        raise InvalidContainerException(f"\nContainer {container_id} rejected as it is allocated by a previous RM")


def check_user(user: str) -> None:
    """Raise an error for a user name that the RM would refuse.

    The name becomes a directory name, and commands may refer to it.
    """
    if _USER.fullmatch(user) is None:
        raise YarnException(
            f"invalid user name {_shown(user)}: use letters, digits and _ . @ $ - (at most 128), "
            "starting with a letter, a digit or _"
        )


def check_launch_context(launch: ContainerLaunchContext, auxiliary_services: dict[str, bytes]) -> None:
    """Raise an error if the context names an unknown auxiliary service, or has values that no container can have."""
    for name in launch.service_data:
        if name not in auxiliary_services:
            raise InvalidAuxServiceException(f"The auxService:{name[:_SHOWN_CHARS_MAX]} does not exist")
    for link, resource in launch.local_resources.items():
        if not resource.url:
            raise YarnException(f"Null resource URL for local resource {link[:_SHOWN_CHARS_MAX]} : {resource}")
    faults = [
        *(f"command {number} has a NUL character" for number, text in enumerate(launch.commands, 1) if "\0" in text),
        *_variable_faults(launch.environment),
        *_link_faults(tuple(launch.local_resources)),
        *(
            f"the URL of resource {_shown(link)} has a NUL character"
            for link, resource in launch.local_resources.items()
            if "\0" in resource.url
        ),
    ]
    if faults:
        more = len(faults) - _FAULTS_NAMED_MAX
        text = "; ".join(faults[:_FAULTS_NAMED_MAX]) + (f"; and {more} more" if more > 0 else "")
        raise YarnException(f"Invalid container launch context: {text}")


def link_parts(link: str) -> tuple[str, ...]:
    """The parts of a link name. `./a//b/` and `a/b` name the same place in the work directory."""
    return tuple(part for part in link.split("/") if part not in ("", "."))


def _variable_faults(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if _VARIABLE.fullmatch(name) is None:
            yield f"invalid variable name {_shown(name)}: use letters, digits and _, not starting with a digit"
        elif "\0" in value:
            yield f"the value of variable {_shown(name)} has a NUL character"
        elif (size := len(name) + len(value.encode()) + 2) > ENVIRONMENT_STRING_BYTES_MAX:
            yield (
                f"variable {_shown(name)} has {size} bytes, a name with its value may have at most "
                f"{ENVIRONMENT_STRING_BYTES_MAX} bytes"
            )


def _link_faults(links: tuple[str, ...]) -> list[str]:
    """The reasons why links cannot be created in the work directory; empty if all can."""
    problems = {link: _link_problem(link) for link in links}
    faults = [f"invalid link name {_shown(link)}: {problem}" for link, problem in problems.items() if problem]
    above: str = ""
    above_parts: tuple[str, ...] = ("",)
    # In this order, a name is directly followed by the names below it.
    for link in sorted((link for link, problem in problems.items() if not problem), key=link_parts):
        parts = link_parts(link)
        if parts[: len(above_parts)] == above_parts:
            # The upper link may point to a directory that other containers use, so nothing may be created inside it.
            faults.append(f"link {_shown(link)} is in the same place or below link {_shown(above)}: rename one")
        else:
            above, above_parts = link, parts
    return faults


def _link_problem(link: str) -> str:
    parts = link_parts(link)
    if _CONTROL.search(link):
        return "it has a control character"
    if link.startswith("/"):
        return "it is absolute (give a name below the work directory)"
    if ".." in parts:
        return "it has a `..` part (give a name below the work directory)"
    if not parts:
        return "it does not name a file"
    if (size := len(link.encode())) > LINK_NAME_BYTES_MAX:
        return f"it has {size} bytes, a link name may have at most {LINK_NAME_BYTES_MAX} bytes"
    if (size := max(len(part.encode()) for part in parts)) > LINK_PART_BYTES_MAX:
        return f"it has a part of {size} bytes, a part may have at most {LINK_PART_BYTES_MAX} bytes"
    return ""


def _shown(text: str) -> str:
    """A value as shown in a message, shortened if it is long."""
    return repr(text) if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]!r}..."


def check_owner(caller: NMTokenIdentifier, container_id: ContainerId, *, stop: bool) -> None:
    """Raise an error if the container does not belong to the caller's application."""
    if caller.attempt_id.application_id == container_id.application_id:
        return
    what = "stop" if stop else "get status for"
    raise YarnException(f"{caller.attempt_id} attempted to {what} non-application container : {container_id}")
