"""mapreduce_shuffle as part of a node: what containers get, when the service learns of a job and forgets it."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pytest

from nm.core.effects import InitAuxiliaryService, StopAuxiliaryServices
from nm.core.events import ContainerExited, ContainerLaunched
from nm.core.settings import CoreSettings
from tests.nm.lone_node import LoneNode, lone_node, lone_nodes
from tests.nm.nodes import APP, Node, container_id
from tests.nm.shuffle.reduce import exchange, split, target
from wire.event_log import FORMAT, read_event_log
from wire.files.shuffle import INDEX, OUTPUT, IndexRecord, index_bytes, job_id, port_bytes, service_data, url_hash
from yarn.containers import ContainerLaunchContext, ServiceData
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId

SECRET = b"shuffle secret"
SERVICE = "mapreduce_shuffle"
ON = {"yarn.nodemanager.aux-services": SERVICE}
SETTINGS = CoreSettings(auxiliary_services=((SERVICE, port_bytes(13562)),))


def with_data(*commands: str, application_id: ApplicationId = APP) -> ContainerLaunchContext:
    data = ServiceData(service_data(application_id, SECRET))
    return ContainerLaunchContext(commands or ("true",), service_data={SERVICE: data})


# The core


def test_each_container_passes_its_service_data_on() -> None:
    node = Node(SETTINGS).register()
    node.start(1, 2, launch=with_data())
    initialised = InitAuxiliaryService(SERVICE, APP, "alice", service_data(APP, SECRET))
    assert node.of(InitAuxiliaryService) == [initialised] * 2


def test_a_container_without_service_data_passes_nothing_on() -> None:
    node = Node(SETTINGS).register()
    node.start(1)
    assert node.of(InitAuxiliaryService) == []


def test_the_services_forget_an_application_at_its_end_not_at_that_of_its_containers() -> None:
    node = Node(SETTINGS).register()
    node.start(1, launch=with_data())
    node.step(ContainerLaunched(container_id(1), 1))
    node.step(ContainerExited(container_id(1), 1, 0))
    assert node.of(StopAuxiliaryServices) == []
    node.answer(applications_to_clean_up=(APP,))
    assert node.one(StopAuxiliaryServices) == StopAuxiliaryServices(APP)


def test_a_node_without_services_stops_none() -> None:
    node = Node().register()
    node.start(1)
    node.step(ContainerLaunched(container_id(1), 1))
    node.step(ContainerExited(container_id(1), 1, 0))
    node.answer(applications_to_clean_up=(APP,))
    assert node.of(StopAuxiliaryServices) == []


# The process

MAP = f"""
directory="$LOCAL_DIRS/output/attempt_%(app)s_m_000000_0"
mkdir -p "$directory"
echo -n "$NM_AUX_SERVICE_{SERVICE}" > "$LOCAL_DIRS/variable"
{sys.executable} -c "import sys,base64; sys.stdout.buffer.write(base64.b64decode('%(index)s'))" > "$directory/{INDEX}"
echo -n words > "$directory/{OUTPUT}"
"""


async def finish_application(nodes: list[LoneNode]) -> None:
    """Report the end of the application to each node; an answer's orders are for one node."""
    rm = nodes[0].rm
    while any(node.node.core.applications for node in nodes):
        rm.orders = {"applications_to_clean_up": (nodes[0].attempt.application_id,)}
        await rm.wait_for(lambda: not rm.orders)


@pytest.mark.cluster
@pytest.mark.parametrize("pack", ["1", "2"])
async def test_what_a_container_wrote_is_fetched_from_its_node_until_the_application_ends(
    tmp_path: Path, pack: str
) -> None:
    log = tmp_path / "events"
    log.mkdir()
    settings = {**ON, "yarn.yarnling.pack": pack, "yarn.yarnling.event-log": str(log)}
    async with lone_nodes(tmp_path, settings) as nodes:
        for count, node in enumerate(nodes, 1):
            app = node.attempt.application_id
            index = base64.b64encode(index_bytes([IndexRecord(0, 5, 5)])).decode()
            attempt = f"{app.cluster_timestamp}_{app.id:04d}"
            script = tmp_path / "map.sh"
            script.write_text(MAP % {"app": attempt, "index": index})
            launch = with_data(f"bash {script}", application_id=app)
            number = ContainerId(node.attempt, count)
            response = await node.start_all((node.request(launch, number),))
            assert (await node.end_of(number)).exit_status == 0
            port = int.from_bytes(response.services_metadata[SERVICE], "big")
            variable = node.local_dir / "usercache" / "alice" / "appcache" / str(app) / "variable"
            assert base64.b64decode(variable.read_text()) == response.services_metadata[SERVICE]
            path = target((f"attempt_{attempt}_m_000000_0",), job=job_id(app))
            request = (
                f"GET {path} HTTP/1.1\r\nHost: x\r\nname: mapreduce\r\nversion: 1.0.0\r\n"
                f"UrlHash: {url_hash(SECRET, port, path)}\r\n\r\n"
            ).encode()
            host = node.node.node_id.host
            status, _, body = split(await exchange(port, request, host))
            assert (status, body[-5:]) == (200, b"words")
        await finish_application(nodes)
        for node in nodes:
            port = int.from_bytes(node.node.settings.auxiliary_services[0][1], "big")
            assert split(await exchange(port, request, node.node.node_id.host))[0] == 404
    for file in log.iterdir():
        assert base64.b64encode(SECRET) not in file.read_bytes()
        start, steps = read_event_log(file)
        assert any(isinstance(effect, InitAuxiliaryService) for step in steps for effect in step.effects)
        assert start.settings.auxiliary_services[0][0] == SERVICE
        assert json.loads(file.read_text().splitlines()[0])["run"] == FORMAT


async def test_the_listener_ends_with_the_node(tmp_path: Path) -> None:
    async with lone_node(tmp_path, ON) as node:
        port = int.from_bytes(node.node.settings.auxiliary_services[0][1], "big")
        assert split(await exchange(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))[0] == 400
    with pytest.raises(ConnectionRefusedError):
        await exchange(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")


async def test_a_node_whose_port_is_in_use_does_not_start(tmp_path: Path) -> None:
    async with lone_node(tmp_path, ON) as node:
        port = str(int.from_bytes(node.node.settings.auxiliary_services[0][1], "big"))
        (tmp_path / "second").mkdir()
        with pytest.raises(YarnException, match=r"cannot listen on mapreduce\.shuffle\.port"):
            async with lone_node(tmp_path / "second", {**ON, "mapreduce.shuffle.port": port}):
                pass
