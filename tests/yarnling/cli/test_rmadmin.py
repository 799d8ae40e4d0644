"""The arguments of rmadmin's options; tests/cluster compares whole invocations with recordings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from yarn.errors import InvalidArgumentException
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.admin import NodeResources, RefreshNodesRequest, ResourceOption
from yarn.resource import Resource
from yarn.states import DecommissionType
from yarnling.cli.hadoop import rmadmin
from yarnling.cli.hadoop.rmadmin import BAD_RESOURCES, execute, labels_of, mappings_of, names_of, size_of
from yarnling.cli.hadoop.verb import Option, parse
from yarnling.cluster.client import Client


def test_labels_are_exclusive_by_default() -> None:
    text = "gpu(exclusive=true), fast(exclusive=FALSE),plain,empty()"
    assert labels_of(text) == (
        NodeLabel("gpu"),
        NodeLabel("fast", exclusive=False),
        NodeLabel("plain"),
        NodeLabel("empty"),
    )


@pytest.mark.parametrize("text", ["gpu(exclusive=maybe)", "gpu(", "gpu)x(", "(exclusive=true)"])
def test_malformed_labels_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentException, match="Input format for adding node-labels is not correct"):
        labels_of(text)


@pytest.mark.parametrize("text", ["", " , "])
def test_an_empty_list_of_labels_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentException, match="No cluster node-labels are specified"):
        labels_of(text)
    with pytest.raises(InvalidArgumentException, match="No cluster node-labels are specified"):
        names_of(text)


def test_nodes_are_separated_by_spaces_and_hosts_have_no_port() -> None:
    assert mappings_of("n1:45454=gpu n2=fast n3= n4,gpu n5\n#n6=gpu") == (
        (NodeId("n1", 45454), ("gpu",)),
        (NodeId("n2", 0), ("fast",)),
        (NodeId("n3", 0), ()),
        (NodeId("n4", 0), ("gpu",)),
        (NodeId("n5", 0), ()),
    )


def test_a_node_has_at_most_one_label() -> None:
    with pytest.raises(InvalidArgumentException, match=r"^2 labels specified on host=n1, please note"):
        mappings_of("n1=gpu,fast")
    with pytest.raises(InvalidArgumentException, match="node name cannot be empty"):
        mappings_of("=gpu")
    with pytest.raises(InvalidArgumentException, match="No node-to-labels mappings are specified"):
        mappings_of("#n1=gpu")


@pytest.mark.parametrize(
    ("words", "size"),
    [
        (["2048", "4"], Resource(2048, 4)),
        (["memory-mb=1800Mi,vcores=4"], Resource(1800, 4)),
        (["memory-mb=2Gi,vcores=4,yarn.io/gpu=1k"], Resource(2048, 4, (("yarn.io/gpu", 1000),))),
        (["memory-mb=512, vcores=1"], Resource(512, 1)),
    ],
)
def test_sizes(words: list[str], size: Resource) -> None:
    assert size_of(words) == size


@pytest.mark.parametrize(
    "words",
    [[], ["1900"], ["x", "4"], ["-5", "4"], ["memory-mb=1Gi"], ["memory-mb=1Xi,vcores=1"], ["memory-mb,vcores"]],
)
def test_malformed_sizes_are_refused_with_an_example(words: list[str]) -> None:
    with pytest.raises(InvalidArgumentException) as caught:
        size_of(words)
    assert caught.value.message == BAD_RESOURCES


async def resized(*words: str) -> NodeResources:
    """The request that `-updateNodeResource WORDS` sends."""
    sent: list[NodeResources] = []

    async def update_node_resource(request: NodeResources) -> None:
        sent.append(request)

    admin = SimpleNamespace(update_node_resource=update_node_resource)
    given = parse((Option("updateNodeResource", "", "NODE SIZE", many=True),), ["-updateNodeResource", *words])
    await rmadmin._update_resource(rmadmin.AdminCall(given, cast(Client, SimpleNamespace(admin=admin)), {}))
    return sent[0]


@pytest.mark.parametrize("size", [("2048", "4"), ("memory-mb=2Gi,vcores=4",)])
@pytest.mark.parametrize(("words", "timeout_ms"), [((), -1), (("0",), 0), (("100",), 100)])
async def test_a_new_size_has_a_timeout(size: tuple[str, ...], words: tuple[str, ...], timeout_ms: int) -> None:
    assert await resized("n1:1", *size, *words) == ((NodeId("n1", 1), ResourceOption(Resource(2048, 4), timeout_ms)),)


@pytest.mark.parametrize(
    ("words", "message"), [(("soon",), 'For input string: "soon"'), (("1", "2"), "Number of parameters .* is wrong")]
)
async def test_a_malformed_timeout_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidArgumentException, match=message):
        await resized("n1:1", "2048", "4", *words)


def test_ha_commands_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["-getServiceState", "rm1"]) == 255
    assert capsys.readouterr().out == "Cannot run -getServiceState when ResourceManager HA is not enabled\n"


def test_help_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["-help"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Usage: yarnling rmadmin\n   -refreshQueues\n")
    assert captured.err == ""
    assert execute([]) == 255
    assert capsys.readouterr().out == ""


def test_extra_words_after_a_refresh_print_its_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit status is 0, as in Hadoop, and nothing is refreshed."""
    assert execute(["-refreshQueues", "extra"]) == 0
    assert capsys.readouterr().err == "Usage: yarnling rmadmin [-refreshQueues]\n"


class Admin:
    """A ResourceManager whose nodes are still decommissioning for this many polls."""

    def __init__(self, polls: int) -> None:
        self.polls = polls
        self.refreshes: list[RefreshNodesRequest] = []

    async def refresh_nodes(self, request: RefreshNodesRequest) -> None:
        self.refreshes.append(request)

    async def check_for_decommissioning_nodes(self) -> tuple[NodeId, ...]:
        self.polls -= 1
        return (NodeId("n1", 1), NodeId("n2", 1)) if self.polls >= 0 else ()


async def waited(monkeypatch: pytest.MonkeyPatch, polls: int, timeout_s: int) -> tuple[Admin, dict[str, object]]:
    monkeypatch.setattr(rmadmin, "POLL_S", 0)
    admin = Admin(polls)
    facts: dict[str, object] = {}
    given = parse(rmadmin.REFRESH_NODES_OPTIONS, ["-g", str(timeout_s), "-client"])
    await rmadmin.refresh_nodes(rmadmin.AdminCall(given, cast(Client, SimpleNamespace(admin=admin)), facts))
    return admin, facts


async def test_a_client_waits_until_the_nodes_are_decommissioned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    admin, facts = await waited(monkeypatch, polls=2, timeout_s=8)
    assert admin.refreshes == [RefreshNodesRequest(DecommissionType.GRACEFUL, 8)]
    assert facts == {"completed": True, "seconds": 2}
    still = "Nodes 'n1:1,n2:1' are still decommissioning.\n"
    assert capsys.readouterr().out == still * 2 + "Graceful decommissioning completed in 2 seconds.\n"


async def test_after_the_timeout_a_client_decommissions_forcefully(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """This happens five seconds after the timeout, because the ResourceManager itself enforces the timeout."""
    admin, facts = await waited(monkeypatch, polls=100, timeout_s=3)
    assert [request.type for request in admin.refreshes] == [DecommissionType.GRACEFUL, DecommissionType.FORCEFUL]
    assert facts == {"completed": False, "seconds": 8}
    assert capsys.readouterr().out.splitlines()[-1] == (
        "Graceful decommissioning not completed in 3 seconds, issuing forceful decommissioning command."
    )
