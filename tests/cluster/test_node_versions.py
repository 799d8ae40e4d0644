"""A NodeManager of a version that the ResourceManager does not allow: both as real processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.nm.test_daemon import daemon, ready_line
from tests.rm.served_cluster import TRACKER, configuration
from tests.rm.test_process import running, write_files
from yarn.java.versions import HADOOP_VERSION

pytestmark = pytest.mark.cluster

MINIMUM = "yarn.resourcemanager.nodemanager.minimum.version"
RM_MINIMUM = "yarn.nodemanager.resourcemanager.minimum.version"


def port_for_nodes(addresses: dict[str, str]) -> int:
    return int(addresses[TRACKER].rpartition(":")[2])


@pytest.mark.parametrize(
    ("of_rm", "of_node", "problem"),
    [
        (
            "3.10",
            "NONE",
            "Received SHUTDOWN signal from Resourcemanager, Registration of NodeManager failed, Message from "
            f"ResourceManager: Disallowed NodeManager Version {HADOOP_VERSION}, is less than the minimum version 3.10 "
            "sending SHUTDOWN signal to NodeManager.",
        ),
        (
            "EqualToRM",
            "3.10",
            "Shutting down the Node Manager on RM version error, The Resource Manager's version "
            f"({HADOOP_VERSION}) is less than the minimum allowed version 3.10",
        ),
    ],
)
async def test_a_node_and_an_rm_of_which_one_is_too_old_for_the_other(
    tmp_path: Path, of_rm: str, of_node: str, problem: str
) -> None:
    """The NodeManager ends with the reason and status 2; one that may register then does."""
    write_files(tmp_path, configuration(tmp_path))
    async with running(tmp_path, "-D", f"{MINIMUM}={of_rm}") as rm:
        port = port_for_nodes(rm.addresses)
        async with daemon(tmp_path, port, "-D", f"{RM_MINIMUM}={of_node}") as process, asyncio.timeout(60):
            out, err = await process.communicate()
        assert (process.returncode, out) == (2, b"")
        assert problem in err.decode()
        assert b"Traceback" not in err


async def test_a_node_of_the_rms_version_registers(tmp_path: Path) -> None:
    write_files(tmp_path, configuration(tmp_path))
    async with (
        running(tmp_path, "-D", f"{MINIMUM}=EqualToRM") as rm,
        daemon(tmp_path, port_for_nodes(rm.addresses), "-D", f"{RM_MINIMUM}=EqualToNM") as process,
    ):
        assert (await ready_line(process))["registered"] is True
