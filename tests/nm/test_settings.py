"""The resources that a node offers, configured or detected.

golden/node_resources.json has what Hadoop 3.4.1's NodeManager offers, by RecordResources.java: `heap_mb` is its heap.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from nm.core.settings import Hardware, node_resource, physical_resource
from nm.shell.host_environment import hardware
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException
from yarn.resource import Resource

MACHINE = Hardware(memory_mb=16_000, cores=4, threads=8)
RESOURCE = "yarn.nodemanager.resource."
DETECT = {RESOURCE + "detect-hardware-capabilities": "true"}
RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "node_resources.json").read_text())


def offered(settings: dict[str, str], machine: Hardware = MACHINE) -> Resource:
    return node_resource(Configuration.of(settings), machine)


@pytest.mark.case("H1")
@pytest.mark.parametrize(
    ("settings", "resource"),
    [
        ({}, Resource(8192, 8)),
        ({RESOURCE + "memory-mb": "4096", RESOURCE + "cpu-vcores": "2"}, Resource(4096, 2)),
        (DETECT, Resource(12_800, 4)),
        (DETECT | {RESOURCE + "memory-mb": "4096"}, Resource(4096, 4)),
        (DETECT | {RESOURCE + "system-reserved-memory-mb": "1000"}, Resource(15_000, 4)),
        (DETECT | {RESOURCE + "count-logical-processors-as-cores": "true"}, Resource(12_800, 8)),
        (DETECT | {RESOURCE + "percentage-physical-cpu-limit": "40"}, Resource(12_800, 2)),
        (DETECT | {RESOURCE + "percentage-physical-cpu-limit": "10"}, Resource(12_800, 1)),
        (DETECT | {RESOURCE + "pcores-vcores-multiplier": "2.5"}, Resource(12_800, 10)),
    ],
)
def test_a_node_offers_what_is_configured_or_detected(settings: dict[str, str], resource: Resource) -> None:
    assert offered(settings) == resource


@pytest.mark.case("H1")
@pytest.mark.parametrize("node", RECORDED["nodes"], ids=lambda node: " ".join(node["settings"].values()) or "defaults")
def test_hadoops_node_manager_offers_the_same(node: dict[str, Any]) -> None:
    """By default 8192 MB and 8 vcores, whatever the machine has. Of detected memory Hadoop keeps twice its heap."""
    reserved = RESOURCE + "system-reserved-memory-mb" in node["settings"]
    machine = MACHINE if reserved else replace(MACHINE, memory_mb=MACHINE.memory_mb - 2 * RECORDED["heap_mb"])
    assert offered(node["settings"], machine) == Resource(node["memory_mb"], node["vcores"])


def test_a_reservation_of_all_memory_is_refused() -> None:
    with pytest.raises(ConfigurationException, match=r"system-reserved-memory-mb = '16000': leaves no memory of the"):
        offered(DETECT | {RESOURCE + "system-reserved-memory-mb": "16000"})


@pytest.mark.case("H1")
def test_the_machine_is_read_through_psutil() -> None:
    machine = hardware()
    assert machine.memory_mb == psutil.virtual_memory().total >> 20
    assert 1 <= machine.cores <= machine.threads == psutil.cpu_count()
    assert physical_resource(machine) == Resource(machine.memory_mb, machine.threads)
