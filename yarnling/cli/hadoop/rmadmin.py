"""`yarnling rmadmin`: administration (Hadoop's RMAdminCLI). Prints nothing on success; errors go to standard error."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from msgspec import Struct

from yarn.errors import (
    InvalidArgumentException,
    InvalidIdException,
    YarnException,
    YARNFeatureNotEnabledException,
)
from yarn.ids import NodeId
from yarn.java.values import parse_int
from yarn.nodes import NodeLabel
from yarn.protocols.admin import RefreshNodesRequest, ReplaceLabelsRequest, ResourceOption
from yarn.protocols.client import NodesToLabels
from yarn.resource import INT32_MAX, MEMORY_MB, VCORES, Resource
from yarn.states import DecommissionType
from yarnling.cli.hadoop import ha_commands
from yarnling.cli.hadoop.verb import OURS, REFUSED, Given, MissingArgument, Option, parse, user_of
from yarnling.cli.shared.connection import connect
from yarnling.cli.shared.output import print_json
from yarnling.cluster.client import Client
from yarnling.cluster.resource_managers import ids_in
from yarnling.cluster.state import DEFAULT_NAME, NoCluster, find_cluster
from yarnling.report.escapes import shown

POLL_S = 1.0
"""The seconds between two polls of a client that waits for decommissioning. Each poll counts as one second."""
GRACE_S = 5
"""The seconds that a client waits longer than the timeout, because the ResourceManager itself enforces the timeout."""
NO_TIMEOUT = -1
USAGE_ALONE = ""
"""The message of an error for which only the usage is printed."""

NO_MAPPING = "No node-to-labels mappings are specified"
NO_LABEL = "No cluster node-labels are specified"
BAD_RESOURCES = (
    "Resource Types parameter specified for updateNodeResource is wrong. It should be comma-delimited key value pairs. "
    "For example, memory-mb=1024Mi,vcores=1,resource1=3Gi,resource2=2"
)
_BAD_LABEL = (
    "Input format for adding node-labels is not correct, it should be "
    "labelName1[(exclusive=true/false)],LabelName2[] .."
)

WHOLE_HOST_PORT = 0
_LABEL = re.compile(r"([^()]+)(?:\(\s*(?:exclusive\s*=\s*(true|false))?\s*\))?", re.IGNORECASE)
_AMOUNT = re.compile(r"([0-9]+)([A-Za-z]*)", re.ASCII)
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}


class AdminCall(Struct, frozen=True):
    """An invocation: the options of the command, and a client. `facts` are the result for --json."""

    given: Given
    client: Client
    facts: dict[str, object]

    def say(self, text: str) -> None:
        if "json" not in self.given:
            sys.stdout.write(shown(text) + "\n")
            sys.stdout.flush()


REFRESH_NODES_OPTIONS = (
    Option("g", "", "[SECONDS]", short="graceful", optional=True),
    Option("client", ""),
    Option("server", ""),
)

Run = Callable[[AdminCall], Awaitable[None]]


class _Command(Struct, frozen=True):
    """The command `-NAME ARGUMENTS`.

    `missing` is the error message for a missing argument. If `strict`, surplus words make the command print its usage.
    """

    name: str
    arguments: str
    run: Run
    options: tuple[Option, ...] = ()
    missing: str = ""
    strict: bool = False


def execute(arguments: Sequence[str]) -> int:
    """Run the command. Returns the exit status."""
    ours, words = _split_ours(arguments)
    if not words:
        return _usage("help" in ours)
    name = words[0].lstrip("-")
    if name in ha_commands.USAGE:
        return _run_ha(name, words[1:], ours)
    command = _COMMANDS.get(name)
    if command is None:
        sys.stderr.write(f"{name}: Unknown command\n")
        return _usage(False)
    if command.strict and len(words) > 1:
        # Hadoop prints the usage here and exits with 0.
        _usage_of(command)
        return 0
    try:
        given = parse(
            (Option(name, "", command.arguments, many=True) if command.missing else Option(name, ""), *command.options),
            words,
        )
    except MissingArgument:
        sys.stderr.write(f"{command.missing}\n")
        return _usage_of(command)
    except YarnException as error:
        sys.stderr.write(f"{name}: {shown(error.message)}\n")
        return REFUSED
    return asyncio.run(_carry_out(command, Given({**given.values, **ours.values}, given.rest)))


def _run_ha(name: str, words: Sequence[str], ours: Given) -> int:
    """Run a command for several ResourceManagers, which is refused if there is only one."""
    with suppress(NoCluster):
        state = find_cluster(ours.one("name", os.environ.get("YARNLING_NAME", DEFAULT_NAME)))
        if ids_in(state.addresses):
            commands = ha_commands.HACommands.of(state, user_of(ours), as_json="json" in ours)
            return asyncio.run(commands.run(name, words))
    sys.stdout.write(f"Cannot run -{name} when ResourceManager HA is not enabled\n")
    return REFUSED


async def _carry_out(command: _Command, given: Given) -> int:
    try:
        _, client = connect(given.one("name", os.environ.get("YARNLING_NAME", DEFAULT_NAME)), user_of(given))
    except YarnException as error:
        sys.stderr.write(f"{command.name}: {shown(error.message)}\n")
        return REFUSED
    async with client:
        call = AdminCall(given, client, {"command": command.name})
        try:
            await command.run(call)
        except InvalidArgumentException as error:
            sys.stderr.write(_error(command, error.message))
            return _usage_of(command)
        except YarnException as error:
            sys.stderr.write(f"{command.name}: {shown(error.message)}\n")
            return REFUSED
    if "json" in given:
        print_json(call.facts)
    return 0


def _error(command: _Command, text: str) -> str:
    """The line for an error. Some of Hadoop's messages name the command, some do not, and one is empty."""
    if text in (USAGE_ALONE, BAD_RESOURCES):
        return f"{text}\n".lstrip("\n")
    return f"{command.name}: {shown(text)}\n"


def _split_ours(arguments: Sequence[str]) -> tuple[Given, list[str]]:
    """Separate yarnling's own options from the remaining words."""
    flags = {flag: option for option in OURS for flag in option.flags}
    ours: list[str] = []
    words: list[str] = []
    remaining = list(arguments)
    while remaining:
        word = remaining.pop(0)
        option = flags.get(word)
        if option is None:
            words.append(word)
            continue
        ours.append(word)
        if option.argument and remaining:
            ours.append(remaining.pop(0))
    return parse((), ours), words


def _usage(requested: bool) -> int:
    out = sys.stdout if requested else sys.stderr
    lines = [f"   -{command.name} {command.arguments}".rstrip() for command in _COMMANDS.values()]
    ours = [f"   -{option.name} {option.argument}".rstrip() for option in OURS]
    out.write("\n".join(["Usage: yarnling rmadmin", *lines, *ours]) + "\n")
    return 0 if requested else REFUSED


def _usage_of(command: _Command) -> int:
    sys.stderr.write(
        f"Usage: yarnling rmadmin [-{command.name}{' ' + command.arguments if command.arguments else ''}]\n"
    )
    return REFUSED


async def refresh_nodes(call: AdminCall) -> None:
    given = call.given
    if "g" not in given:
        await call.client.admin.refresh_nodes(RefreshNodesRequest())
        return
    timeout_s = _timeout_s(given.values["g"])
    if "client" not in given and "server" not in given:
        raise InvalidArgumentException(USAGE_ALONE)
    await call.client.admin.refresh_nodes(RefreshNodesRequest(DecommissionType.GRACEFUL, timeout_s))
    if "client" in given:
        await _wait_for_decommissioning(call, timeout_s)


def _timeout_s(words: list[str]) -> int:
    """The timeout in seconds. Without a number there is no timeout, as in Hadoop's client."""
    if not words:
        return NO_TIMEOUT
    try:
        timeout_s = parse_int(words[0])
    except ValueError:
        timeout_s = NO_TIMEOUT - 1
    if timeout_s < NO_TIMEOUT:
        raise InvalidArgumentException(f"Invalid timeout specified : {words[0]}")
    return timeout_s


async def _wait_for_decommissioning(call: AdminCall, timeout_s: int) -> None:
    waited_s = 0
    while timeout_s == NO_TIMEOUT or waited_s < timeout_s + GRACE_S:
        await asyncio.sleep(POLL_S)
        leaving = await call.client.admin.check_for_decommissioning_nodes()
        if not leaving:
            call.say(f"Graceful decommissioning completed in {waited_s} seconds.")
            call.facts.update(completed=True, seconds=waited_s)
            return
        call.say(f"Nodes '{','.join(map(str, leaving))}' are still decommissioning.")
        waited_s += 1
    call.say(
        f"Graceful decommissioning not completed in {timeout_s} seconds, issuing forceful decommissioning command."
    )
    await call.client.admin.refresh_nodes(RefreshNodesRequest(DecommissionType.FORCEFUL))
    call.facts.update(completed=False, seconds=waited_s)


async def _get_groups(call: AdminCall) -> None:
    for user in call.given.rest or (user_of(call.given),):
        groups = await call.client.admin.get_groups_for_user(user)
        call.say(" ".join((f"{user} :", *groups)))
        call.facts[user] = groups


async def _add_labels(call: AdminCall) -> None:
    labels = labels_of(",".join(call.given.values["addToClusterNodeLabels"]))
    await call.client.admin.add_to_cluster_node_labels(labels)


async def _remove_labels(call: AdminCall) -> None:
    names = names_of(",".join(call.given.values["removeFromClusterNodeLabels"]))
    await call.client.admin.remove_from_cluster_node_labels(names)


async def _replace_labels(call: AdminCall) -> None:
    labels = mappings_of(" ".join(call.given.values["replaceLabelsOnNode"]))
    request = ReplaceLabelsRequest(labels, "failOnUnknownNodes" in call.given)
    await call.client.admin.replace_labels_on_nodes(request)


async def _update_resource(call: AdminCall) -> None:
    node, *words = call.given.values["updateNodeResource"]
    node_id = node_of(node)
    is_pair = len(words) > 1 and "=" not in words[0]
    size, rest = (words[:2], words[2:]) if is_pair else (words[:1], words[1:])
    resource = size_of(size)
    if len(rest) > 1:
        raise InvalidArgumentException("Number of parameters specified for updateNodeResource is wrong.")
    try:
        timeout_ms = parse_int(rest[0]) if rest else -1
    except ValueError:
        raise InvalidArgumentException(f'For input string: "{rest[0]}"') from None
    await call.client.admin.update_node_resource(((node_id, ResourceOption(resource, timeout_ms)),))


async def _refuse_nodes_resources(call: AdminCall) -> None:
    raise YARNFeatureNotEnabledException("node resources are not read from a file (use -updateNodeResource)")


def _plain(name: str, method: Callable[[Client], Awaitable[None]]) -> _Command:
    """A command without arguments."""

    async def run(call: AdminCall) -> None:
        await method(call.client)

    return _Command(name, "", run, strict=True)


_COMMANDS = {
    command.name: command
    for command in (
        _plain("refreshQueues", lambda client: client.admin.refresh_queues()),
        _Command(
            "refreshNodes",
            "[-g|-graceful [timeout in seconds] -client|server]",
            refresh_nodes,
            REFRESH_NODES_OPTIONS,
        ),
        _Command("refreshNodesResources", "", _refuse_nodes_resources, strict=True),
        _plain(
            "refreshSuperUserGroupsConfiguration",
            lambda client: client.admin.refresh_super_user_groups_configuration(),
        ),
        _plain("refreshUserToGroupsMappings", lambda client: client.admin.refresh_user_to_groups_mappings()),
        _plain("refreshAdminAcls", lambda client: client.admin.refresh_admin_acls()),
        _plain("refreshServiceAcl", lambda client: client.admin.refresh_service_acls()),
        _Command("getGroups", "[user ...]", _get_groups),
        _Command(
            "addToClusterNodeLabels",
            '<"label1(exclusive=true),label2(exclusive=false),label3">',
            _add_labels,
            missing=NO_LABEL,
        ),
        _Command("removeFromClusterNodeLabels", "<label1,label2,label3>", _remove_labels, missing=NO_LABEL),
        _Command(
            "replaceLabelsOnNode",
            '<"node1[:port]=label1 node2[:port]=label2"> [-failOnUnknownNodes]',
            _replace_labels,
            (Option("failOnUnknownNodes", ""),),
            missing=NO_MAPPING,
        ),
        _plain("refreshClusterMaxPriority", lambda client: client.admin.refresh_cluster_max_priority()),
        _Command(
            "updateNodeResource",
            "[NodeID] [MemSize] [vCores] ([OvercommitTimeout]) or [NodeID] [resourcetypes] ([OvercommitTimeout])",
            _update_resource,
            missing=BAD_RESOURCES,
        ),
    )
}


def labels_of(text: str) -> tuple[NodeLabel, ...]:
    """Parse `gpu(exclusive=true),fast(exclusive=false),plain`; labels are exclusive by default."""
    labels = []
    for word in text.split(","):
        if not word.strip():
            continue
        match = _LABEL.fullmatch(word.strip())
        if match is None:
            raise InvalidArgumentException(_BAD_LABEL)
        labels.append(NodeLabel(match[1].strip(), (match[2] or "true").lower() == "true"))
    if not labels:
        raise InvalidArgumentException(NO_LABEL)
    return tuple(labels)


def names_of(text: str) -> tuple[str, ...]:
    """Parse `gpu,fast`."""
    names = tuple(dict.fromkeys(word for part in text.split(",") if (word := part.strip())))
    if not names:
        raise InvalidArgumentException(NO_LABEL)
    return names


def mappings_of(text: str) -> NodesToLabels:
    """Parse `n1:45454=gpu n2= n3,fast`.

    A node without a port means the whole host. A node without labels loses its labels.
    """
    found: dict[NodeId, tuple[str, ...]] = {}
    for word in text.split():
        if word.startswith("#"):
            continue
        name, equals, rest = word.partition("=")
        if not equals:
            name, _, rest = word.partition(",")
        labels = tuple(dict.fromkeys(label for part in rest.split(",") if (label := part.strip())))
        if not name:
            raise InvalidArgumentException("node name cannot be empty")
        if len(labels) > 1:
            raise InvalidArgumentException(
                f"{len(labels)} labels specified on host={name}, please note that we do not support specifying "
                "multiple labels on a single host for now."
            )
        found[_node_or_host(name)] = labels
    if not found:
        raise InvalidArgumentException(NO_MAPPING)
    return tuple(found.items())


def size_of(words: list[str]) -> Resource:
    """Parse `2048 4` (MB and vcores), or `memory-mb=2Gi,vcores=4,yarn.io/gpu=1`."""
    if len(words) == 2 and all(word.isascii() and word.isdigit() for word in words):
        memory_mb, vcores = (min(int(word), INT32_MAX) for word in words)
        return Resource(memory_mb, vcores)
    amounts = dict(_amount(part) for part in words[0].split(",")) if len(words) == 1 else {}
    if MEMORY_MB not in amounts or VCORES not in amounts:
        raise InvalidArgumentException(BAD_RESOURCES)
    memory_mb, vcores = amounts.pop(MEMORY_MB), amounts.pop(VCORES)
    return Resource(memory_mb, vcores, tuple(amounts.items()))


def node_of(text: str) -> NodeId:
    """Parse a node id; the error message is Hadoop's."""
    try:
        return NodeId.parse(text)
    except InvalidIdException:
        raise InvalidArgumentException(f"Invalid NodeId [{text}]. Expected host:port") from None


def _amount(text: str) -> tuple[str, int]:
    """(resource type, amount). Memory is in MiB, also if it has no unit; other resources are counted."""
    name, _, value = (part.strip() for part in text.partition("="))
    match = _AMOUNT.fullmatch(value)
    if not name or match is None or match[2] not in {**_UNITS, **_BINARY_UNITS}:
        raise InvalidArgumentException(BAD_RESOURCES)
    factor = {**_UNITS, **_BINARY_UNITS}[match[2]]
    if name == MEMORY_MB:
        return name, int(match[1]) if not match[2] else int(match[1]) * factor // _BINARY_UNITS["Mi"]
    return name, int(match[1]) * factor


def _node_or_host(name: str) -> NodeId:
    return node_of(name) if ":" in name else NodeId(name, WHOLE_HOST_PORT)
