"""Emulated containers on a node: the core, the monitor, and a node that runs both kinds of container."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from nm.core.effects import (
    DeleteContainerFiles,
    FetchResource,
    LaunchContainer,
    SendHeartbeat,
    Signal,
    SignalProcess,
)
from nm.core.emulation import EmulationStage, EmulationTable, Match, Rule
from nm.core.events import ContainerExited, ContainerLaunched, StopContainers
from nm.core.settings import CoreSettings
from tests.nm.lone_node import lone_node
from tests.nm.nodes import Node, container_id, container_token, nm_token
from wire.files.json_records import from_json, to_json
from yarn.containers import ContainerLaunchContext, LocalResource
from yarn.machine import Tick
from yarn.nodes import ResourceUtilization
from yarn.states import ContainerType

SETTINGS = CoreSettings(
    emulation=EmulationTable(
        (Rule("masters", Match(is_master=True)), Rule("maps", Match(command="Map"), (EmulationStage(5),)))
    )
)
FILE = LocalResource("file:/nowhere", 1, 2)
MAP = ContainerLaunchContext(("java Map",), local_resources={"job.jar": FILE})


@pytest.fixture
def node() -> Node:
    return Node(SETTINGS).register()


# The core


def test_an_emulated_container_fetches_nothing_and_is_launched_by_the_name_of_its_rule(node: Node) -> None:
    node.start(1, launch=MAP)
    assert node.of(FetchResource) == []
    launch = node.one(LaunchContainer)
    assert (launch.emulation, launch.resource.memory_mb) == ("maps", 128)


def test_a_container_that_no_rule_emulates_fetches_its_files(node: Node) -> None:
    node.start(1, launch=ContainerLaunchContext(("other",), local_resources={"job.jar": FILE}))
    assert len(node.of(FetchResource)) == 1
    node.start(2, launch=ContainerLaunchContext(("other",)))
    assert node.one(LaunchContainer).emulation == ""


def test_an_am_is_recognised_by_its_token(node: Node) -> None:
    master = replace(container_token(1), container_type=ContainerType.APPLICATION_MASTER)
    node.start(tokens=(master,), launch=ContainerLaunchContext(("java MapMaster",)))
    assert node.one(LaunchContainer).emulation == ""


def test_the_end_of_an_emulated_container_leaves_nothing_to_kill_or_to_delete(node: Node) -> None:
    node.start(1, launch=MAP)
    node.step(ContainerLaunched(container_id(1), 1))
    node.step(ContainerExited(container_id(1), 1, 0))
    (status,) = node.one(SendHeartbeat).request.containers
    assert status.exit_status == 0
    assert node.of(SignalProcess) == node.of(DeleteContainerFiles) == []
    node.after(SETTINGS.sigkill_delay_ms, Tick())
    assert node.of(SignalProcess) == []


def test_an_emulated_container_is_killed_by_a_signal_like_any_other(node: Node) -> None:
    node.start(1, launch=MAP)
    node.step(ContainerLaunched(container_id(1), 1))
    node.step(StopContainers(9, nm_token(), (container_id(1),)))
    assert node.one(SignalProcess).signal is Signal.TERM
    node.step(ContainerExited(container_id(1), 1, 143))
    (status,) = node.one(SendHeartbeat).request.containers
    assert status.exit_status == -105


# A node

RULES = """
rules:
  - {name: greedy, match: {command: greedy}, stages: [{lasts: forever, memory: 64 MB}]}
  - {name: leak, match: {command: leak}, stages: [{lasts: 300ms, memory: 50 MB}, {lasts: forever, memory: 150%}]}
  - {name: busy, match: {command: busy}, stages: [{lasts: forever, memory: 50%, cpu: 2.5}]}
  - {name: quick, match: {command: quick}, stages: [{lasts: 20ms, exit: 7}]}
"""


def emulating(directory: Path) -> dict[str, str]:
    table = directory / "table.yaml"
    table.write_text(RULES)
    return {
        "yarn.yarnling.emulation.table": str(table),
        "yarn.nodemanager.container-monitor.interval-ms": "100",
        "yarn.nodemanager.resource.cpu-vcores": "4",
    }


@pytest.mark.cluster
async def test_a_node_runs_both_kinds_and_emulated_ones_leave_no_file(tmp_path: Path) -> None:
    async with lone_node(tmp_path, emulating(tmp_path)) as node:
        emulated = await node.run(ContainerLaunchContext(("quick",)))
        assert not (node.log_dir / str(emulated.container_id.application_id)).exists()
        assert not (node.local_dir / "usercache").exists()
        real = await node.run(ContainerLaunchContext(("exit 6",)))
        assert (node.logs_of(real.container_id) / "prelaunch.out").exists()
    assert (emulated.exit_status, real.exit_status) == (7, 6)


@pytest.mark.cluster
async def test_an_emulated_container_above_its_memory_dies_with_minus_104_and_the_numbers(tmp_path: Path) -> None:
    async with lone_node(tmp_path, emulating(tmp_path)) as node:
        end = await node.run(ContainerLaunchContext(("java leak -x",)), memory_mb=200)
    assert end.exit_status == -104
    assert re.search(
        r"Container \[pid=\d+,containerID=container_\w+\] is running 104857600B beyond the 'PHYSICAL' memory limit\. "
        r"Current usage: 300 MB of 200 MB physical memory used",
        end.diagnostics,
    ), end.diagnostics
    assert "(emulated) 0 0 314572800 76800 java leak -x" in end.diagnostics
    assert "Container killed on request. Exit code is 143\n" in end.diagnostics


@pytest.mark.cluster
async def test_heartbeats_report_the_usage_of_emulated_containers_until_they_end(tmp_path: Path) -> None:
    def reported(use: ResourceUtilization) -> bool:
        beat = node.rm.heartbeats[-1]
        return beat.containers_utilization == beat.node_utilization == use

    async with lone_node(tmp_path, emulating(tmp_path)) as node:
        container = await node.start(ContainerLaunchContext(("busy",)), memory_mb=200)
        await node.rm.wait_for(
            lambda: any(
                use is not None and use.physical_memory_mb == 100 and use.cpu == pytest.approx(2.5, rel=0.1)
                for use in (beat.containers_utilization for beat in node.rm.heartbeats)
            )
        )
        async with node.application_master() as am:
            await am.stop_containers((container,))
        await node.rm.wait_for(lambda: reported(ResourceUtilization()))
        assert (await node.end_of(container)).exit_status == -105


@pytest.mark.cluster
async def test_a_node_that_stops_ends_its_emulated_containers(tmp_path: Path) -> None:
    async with lone_node(tmp_path, emulating(tmp_path)) as node:
        await node.start(ContainerLaunchContext(("greedy",)))
        parts = node.node.shell.parts
    assert parts.launcher.emulated.containers.running == {}  # type: ignore[union-attr]


def test_an_event_log_contains_the_table_and_the_launches_by_it(node: Node) -> None:
    """With these, the log of a node that emulates containers can be replayed."""
    node.start(1, launch=MAP)
    for record in (SETTINGS, node.one(LaunchContainer)):
        assert from_json(to_json(record)) == record
