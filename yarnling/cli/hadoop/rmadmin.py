"""`yarnling rmadmin`: what operators do (Hadoop's RMAdminCLI). Silent if it succeeds; all complaints on stderr."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from yarn.errors import InvalidArgumentException, YarnException, YARNFeatureNotEnabledException
from yarn.java.values import parse_int
from yarn.protocols.admin import RefreshNodesRequest, ReplaceLabelsRequest
from yarn.states import DecommissionType
from yarnling.cli import json_form
from yarnling.cli.connection import connect
from yarnling.cli.hadoop import rmadmin_arguments as arguments_of
from yarnling.cli.hadoop.options import OURS, Given, MissingArgument, Option, parse
from yarnling.cli.hadoop.verb import REFUSED, user_of
from yarnling.cli.terminal import shown
from yarnling.cluster.client import Client
from yarnling.cluster.state import DEFAULT_NAME

POLL_S = 1.0
"""How often a client that waits for nodes to go looks, and what it calls a second."""
GRACE_S = 5
"""The ResourceManager ends the waiting itself; a client gives it so much longer."""
FOR_EVER = -1
USAGE_ALONE = ""
"""What is wrong is left to the usage to tell."""

_HA = (
    "transitionToActive",
    "transitionToStandby",
    "getServiceState",
    "getAllServiceState",
    "checkHealth",
)


class Order(Struct, frozen=True):
    """One invocation: the command's own options, and the way to the ResourceManager."""

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

Run = Callable[[Order], Awaitable[None]]


class _Command(Struct, frozen=True):
    """`-NAME ARGUMENTS`; `missing` is told if the argument is not there. `strict`: anything more shows the usage."""

    name: str
    arguments: str
    run: Run
    options: tuple[Option, ...] = ()
    missing: str = ""
    strict: bool = False


def execute(arguments: Sequence[str]) -> int:
    """The exit status."""
    ours, words = _ours_apart(arguments)
    if not words:
        return _usage("help" in ours)
    name = words[0].lstrip("-")
    if name in _HA:
        sys.stdout.write(f"Cannot run -{name} when ResourceManager HA is not enabled\n")
        return REFUSED
    command = _COMMANDS.get(name)
    if command is None:
        sys.stderr.write(f"{name}: Unknown command\n")
        return _usage(False)
    if command.strict and len(words) > 1:
        # Hadoop shows the usage and calls it a success.
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


async def _carry_out(command: _Command, given: Given) -> int:
    try:
        _, client = connect(given.one("name", os.environ.get("YARNLING_NAME", DEFAULT_NAME)), user_of(given))
    except YarnException as error:
        sys.stderr.write(f"{command.name}: {shown(error.message)}\n")
        return REFUSED
    async with client:
        order = Order(given, client, {"command": command.name})
        try:
            await command.run(order)
        except InvalidArgumentException as error:
            sys.stderr.write(_complaint(command, error.message))
            return _usage_of(command)
        except YarnException as error:
            sys.stderr.write(f"{command.name}: {shown(error.message)}\n")
            return REFUSED
    if "json" in given:
        sys.stdout.write(json_form.text(order.facts) + "\n")
    return 0


def _complaint(command: _Command, text: str) -> str:
    """Some of Hadoop's complaints name the command, some do not, and one says nothing."""
    if text in (USAGE_ALONE, arguments_of.BAD_RESOURCES):
        return f"{text}\n".lstrip("\n")
    return f"{command.name}: {shown(text)}\n"


def _ours_apart(arguments: Sequence[str]) -> tuple[Given, list[str]]:
    """Our own options, and the words that are not theirs."""
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


def _usage(asked_for: bool) -> int:
    out = sys.stdout if asked_for else sys.stderr
    lines = [f"   -{command.name} {command.arguments}".rstrip() for command in _COMMANDS.values()]
    ours = [f"   -{option.name} {option.argument}".rstrip() for option in OURS]
    out.write("\n".join(["Usage: yarnling rmadmin", *lines, *ours]) + "\n")
    return 0 if asked_for else REFUSED


def _usage_of(command: _Command) -> int:
    sys.stderr.write(
        f"Usage: yarnling rmadmin [-{command.name}{' ' + command.arguments if command.arguments else ''}]\n"
    )
    return REFUSED


async def refresh_nodes(order: Order) -> None:
    given = order.given
    if "g" not in given:
        await order.client.admin.refresh_nodes(RefreshNodesRequest())
        return
    timeout_s = _timeout_s(given.values["g"])
    if "client" not in given and "server" not in given:
        raise InvalidArgumentException(USAGE_ALONE)
    await order.client.admin.refresh_nodes(RefreshNodesRequest(DecommissionType.GRACEFUL, timeout_s))
    if "client" in given:
        await _wait_until_gone(order, timeout_s)


def _timeout_s(words: list[str]) -> int:
    """None is for ever, as Hadoop's client has it."""
    if not words:
        return FOR_EVER
    try:
        timeout_s = parse_int(words[0])
    except ValueError:
        timeout_s = FOR_EVER - 1
    if timeout_s < FOR_EVER:
        raise InvalidArgumentException(f"Invalid timeout specified : {words[0]}")
    return timeout_s


async def _wait_until_gone(order: Order, timeout_s: int) -> None:
    waited_s = 0
    while timeout_s == FOR_EVER or waited_s < timeout_s + GRACE_S:
        await asyncio.sleep(POLL_S)
        leaving = await order.client.admin.check_for_decommissioning_nodes()
        if not leaving:
            order.say(f"Graceful decommissioning completed in {waited_s} seconds.")
            order.facts.update(completed=True, seconds=waited_s)
            return
        order.say(f"Nodes '{','.join(map(str, leaving))}' are still decommissioning.")
        waited_s += 1
    order.say(
        f"Graceful decommissioning not completed in {timeout_s} seconds, issuing forceful decommissioning command."
    )
    await order.client.admin.refresh_nodes(RefreshNodesRequest(DecommissionType.FORCEFUL))
    order.facts.update(completed=False, seconds=waited_s)


async def _get_groups(order: Order) -> None:
    for user in order.given.rest or (user_of(order.given),):
        groups = await order.client.admin.get_groups_for_user(user)
        order.say(" ".join((f"{user} :", *groups)))
        order.facts[user] = groups


async def _add_labels(order: Order) -> None:
    labels = arguments_of.labels_of(",".join(order.given.values["addToClusterNodeLabels"]))
    await order.client.admin.add_to_cluster_node_labels(labels)


async def _remove_labels(order: Order) -> None:
    names = arguments_of.names_of(",".join(order.given.values["removeFromClusterNodeLabels"]))
    await order.client.admin.remove_from_cluster_node_labels(names)


async def _replace_labels(order: Order) -> None:
    labels = arguments_of.mappings_of(" ".join(order.given.values["replaceLabelsOnNode"]))
    request = ReplaceLabelsRequest(labels, "failOnUnknownNodes" in order.given)
    await order.client.admin.replace_labels_on_nodes(request)


async def _update_resource(order: Order) -> None:
    node, *words = order.given.values["updateNodeResource"]
    node_id = arguments_of.node_of(node)
    is_pair = len(words) > 1 and "=" not in words[0]
    size, rest = (words[:2], words[2:]) if is_pair else (words[:1], words[1:])
    resource = arguments_of.size_of(size)
    if rest and rest != ["-1"]:
        raise YARNFeatureNotEnabledException(
            f"an overcommit timeout ({' '.join(rest)}) is not there: containers that no longer fit run to their end "
            "(leave it out)"
        )
    await order.client.admin.update_node_resource(((node_id, resource),))


async def _refuse_nodes_resources(order: Order) -> None:
    raise YARNFeatureNotEnabledException("sizes of nodes come from no file here (see -updateNodeResource)")


def _plain(name: str, call: Callable[[Client], Awaitable[None]]) -> _Command:
    """A command that takes nothing."""

    async def run(order: Order) -> None:
        await call(order.client)

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
            missing=arguments_of.NO_LABEL,
        ),
        _Command(
            "removeFromClusterNodeLabels", "<label1,label2,label3>", _remove_labels, missing=arguments_of.NO_LABEL
        ),
        _Command(
            "replaceLabelsOnNode",
            '<"node1[:port]=label1 node2[:port]=label2"> [-failOnUnknownNodes]',
            _replace_labels,
            (Option("failOnUnknownNodes", ""),),
            missing=arguments_of.NO_MAPPING,
        ),
        _plain("refreshClusterMaxPriority", lambda client: client.admin.refresh_cluster_max_priority()),
        _Command(
            "updateNodeResource",
            "[NodeID] [MemSize] [vCores] or [NodeID] [resourcetypes]",
            _update_resource,
            missing=arguments_of.BAD_RESOURCES,
        ),
    )
}
