"""Several nodes in one process: each has its own address, containers and files."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from nm.daemon import hosting
from nm.shell.node_host import NodeHost
from tests.nm.lone_node import WAIT_S, fake_resource_manager, lone_nodes, node_configuration
from wire import listener
from wire.protocols.container_management import ContainerManagementProtocol
from yarn.containers import ContainerLaunchContext
from yarn.errors import InvalidToken, YarnException
from yarn.states import NodeAction

pytestmark = pytest.mark.cluster

PACK_OF_3 = {"yarn.yarnling.pack": "3", "yarn.nodemanager.hostname": "127.0.0.61"}


async def test_each_node_of_a_pack_has_its_address_its_containers_and_its_directories(tmp_path: Path) -> None:
    async with lone_nodes(tmp_path, PACK_OF_3) as nodes:
        assert [node.node.node_id.host for node in nodes] == ["127.0.0.61", "127.0.0.62", "127.0.0.63"]
        assert len({node.node.node_id.port for node in nodes}) == 1
        assert {request.node_id for request in nodes[0].rm.registrations} == {node.node.node_id for node in nodes}
        for number, node in enumerate(nodes[1:], 1):
            launch = ContainerLaunchContext((f"echo $NM_HOST:$NM_PORT $PWD > {tmp_path}/said-{number}",))
            # Container ids are unique in a cluster; in this test each node counts its own.
            node._numbers = 10 * number
            assert (await node.run(launch)).exit_status == 0
            name, place = (tmp_path / f"said-{number}").read_text().split()
            assert name == str(node.node.node_id)
            assert place.startswith(f"{node.local_dir}/usercache/alice/")
            assert len(list(node.log_dir.glob("application_*/container_*"))) == 1
        assert not nodes[0].local_dir.exists()


async def test_a_token_is_valid_only_for_the_node_that_it_names(tmp_path: Path) -> None:
    """A container token for another node is refused, and so is an NM token for a node in another process."""
    async with lone_nodes(tmp_path, PACK_OF_3) as (first, second, _):
        promise = first.request(ContainerLaunchContext(("true",)), first.container_id())
        with pytest.raises(InvalidToken, match=rf"Expected : {second.node.node_id} Found : {first.node.node_id}"):
            await second.start_all((promise,))
        elsewhere = first.node.node_id._replace(host="127.0.0.99")
        token = first.rm.nm_tokens.create(first.attempt, elsewhere, "alice")
        async with ContainerManagementProtocol(str(first.node.node_id), token=token) as am:
            with pytest.raises(InvalidToken, match="is not valid for any node of this process"):
                await am.get_container_statuses(())


async def test_a_node_that_the_rm_shuts_down_leaves_the_others_running(tmp_path: Path) -> None:
    async with lone_nodes(tmp_path, PACK_OF_3) as nodes:
        rm = nodes[0].rm
        container_ids = {}
        for number, node in enumerate(nodes):
            node._numbers = 10 * number
            container_ids[node.node.node_id] = await node.start(ContainerLaunchContext(("sleep 60",)))
        rm.action = NodeAction.SHUTDOWN
        async with asyncio.timeout(WAIT_S):
            ended = [asyncio.shield(node.node.shell.stopped) for node in nodes]
            await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
            (gone,) = [node for node in nodes if node.node.shell.stopped.done()]
            while gone.node.launcher.real.launched:  # noqa: ASYNC110  processes have no event here
                await asyncio.sleep(0.01)
        with pytest.raises(InvalidToken, match="has not registered yet, or has ended"):
            await gone.status(container_ids[gone.node.node_id])
        for node in nodes:
            if node is not gone:
                status = await node.status(container_ids[node.node.node_id])
                assert status.container_id == container_ids[node.node.node_id]


async def test_a_pack_uses_another_port_if_one_of_its_nodes_cannot_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port is free on the first address but used on another. All nodes get a port that is free on all addresses."""
    bind, asked = listener._bound, []

    def refused_once(host: str, port: int) -> socket.socket:
        asked.append((host, port))
        if len(asked) == 2:
            raise OSError("in use")
        return bind(host, port)

    async with fake_resource_manager(tmp_path) as (_, port):
        monkeypatch.setattr(listener, "_bound", refused_once)
        stopping = asyncio.Event()
        async with NodeHost.start(hosting(node_configuration(tmp_path, port, PACK_OF_3)), {}, stopping) as host:
            assert await host.wait_registered()
            stopping.set()
            assert await host.stopped == ""
    assert len(asked) == 2 + 3
    assert len({port for _, port in asked if port}) == 2


@pytest.mark.parametrize("host", ["127.255.255.254", "nm.example.com", "10.0.0.1"])
async def test_a_pack_without_addresses_for_its_nodes_is_refused(tmp_path: Path, host: str) -> None:
    settings = PACK_OF_3 | {"yarn.nodemanager.hostname": host}
    with pytest.raises(YarnException, match=r"yarn\.yarnling\.pack = 3: .*set yarn\.nodemanager\.hostname"):
        async with NodeHost.start(hosting(node_configuration(tmp_path, 1, settings)), {}, asyncio.Event()):
            pytest.fail("it started")
