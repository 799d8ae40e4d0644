"""A ResourceManager served over gRPC is restarted with the same store: tokens, keys, applications."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from rm.core.effects import StoreEffect
from rm.daemon import ResourceManager
from rm.shell.sqlite_store import SQLiteStateStore
from tests.rm.served_cluster import configuration, serving, submit, until
from yarn.configuration import Configuration
from yarn.errors import ApplicationMasterNotRegisteredException, YarnException
from yarn.faults import ConfigurationException
from yarn.protocols.master import AllocateRequest, RegisterApplicationMasterRequest
from yarn.settings import check_settings
from yarn.settings.resourcemanager import RECOVERY_ENABLED, STORE_CLASS
from yarn.settings.yarnling import STATE_STORE_FILE
from yarn.states import YarnApplicationState

SLOW_S_MAX = 30.0


def stored(directory: Path) -> Configuration:
    values = {RECOVERY_ENABLED.key: "true", STATE_STORE_FILE.key: str(directory / "state.sqlite")}
    return configuration(directory).overridden(values, "test")


async def test_an_application_is_on_disk_when_its_submission_is_acknowledged(tmp_path: Path) -> None:
    conf = stored(tmp_path)
    async with serving(conf) as cluster:
        app = await submit(await cluster.client())
        assert cluster.rm.core.context.apps[app].state.name == "ACCEPTED"
    async with serving(conf) as cluster:
        report = await (await cluster.client()).get_application_report(app)
        assert (report.state, report.user) == (YarnApplicationState.ACCEPTED, "ann")


async def test_a_slow_store_delays_submissions_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F33: no reply is sent before its change is on disk, and no other reply waits for the disk."""
    is_written = threading.Event()
    write = SQLiteStateStore.write

    def slowly(store: SQLiteStateStore, effects: Iterable[StoreEffect]) -> None:
        assert is_written.wait(SLOW_S_MAX)
        write(store, effects)

    monkeypatch.setattr(SQLiteStateStore, "write", slowly)
    async with serving(stored(tmp_path)) as cluster:
        node, client = await cluster.node(), await cluster.client()
        async with asyncio.TaskGroup() as tasks:
            submitted = tasks.create_task(submit(client))
            apps = cluster.rm.core.context.apps
            await until(lambda: len(apps) == 1)
            (app,) = apps
            for _ in range(5):
                await node.beat()
                assert (await client.get_application_report(app)).state is YarnApplicationState.NEW_SAVING
            assert not submitted.done()
            is_written.set()
        assert submitted.result() == app
        await until(lambda: apps[app].state.name == "ACCEPTED")


async def test_an_am_continues_with_its_token_after_a_restart(tmp_path: Path) -> None:
    conf = stored(tmp_path)
    async with serving(conf) as cluster:
        node, client = await cluster.node(), await cluster.client()
        await submit(client)
        await node.beat()
        await until(lambda: len(node.started) == 1)
        token = node.amrm_token()
        first_keys = node.registration
        am = await cluster.am(token)
        await am.register_application_master(RegisterApplicationMasterRequest("here"))
    async with serving(conf) as cluster:
        am = await cluster.am(token)
        with pytest.raises(ApplicationMasterNotRegisteredException):
            await am.allocate(AllocateRequest(0))
        await am.register_application_master(RegisterApplicationMasterRequest("here"))
        assert (await am.allocate(AllocateRequest(0))).am_rm_token is None
        again = (await cluster.node("127.0.0.3")).registration
        assert (again.nm_token_key, again.container_token_key) == (
            first_keys.nm_token_key,
            first_keys.container_token_key,
        )
        assert again.rm_identifier > first_keys.rm_identifier


async def test_the_next_master_key_is_recovered_too(tmp_path: Path) -> None:
    conf = stored(tmp_path)
    async with serving(conf) as cluster:
        keys = cluster.rm.keys
        keys.nodes.keys.roll()
        await keys.keep(cluster.rm.keys._keep)
        both = keys.nodes.keys.accepted()
    async with serving(conf) as cluster:
        assert cluster.rm.keys.nodes.keys.accepted() == both


async def test_each_restart_increases_the_epoch(tmp_path: Path) -> None:
    for epoch in range(3):
        async with serving(stored(tmp_path)) as cluster:
            assert cluster.rm.core.scheduler.context.epoch == epoch


async def test_a_second_resource_manager_on_the_same_store_is_refused(tmp_path: Path) -> None:
    async with serving(stored(tmp_path)):
        with pytest.raises(YarnException, match="another ResourceManager uses it"):
            async with serving(stored(tmp_path)):
                raise AssertionError("it runs")


# Configuration


def faults(**values: str) -> list[str]:
    conf = Configuration.of({RECOVERY_ENABLED.key: "true", STATE_STORE_FILE.key: "/f", **values})
    return [f"{fault.key}: {fault.problem}" for fault in check_settings(conf)]


@pytest.mark.parametrize(
    "name", ["SQLiteRMStateStore", "org.apache.hadoop.x.FileSystemRMStateStore", "LeveldbRMStateStore"]
)
def test_hadoops_local_stores_select_ours(name: str) -> None:
    assert faults(**{STORE_CLASS.key: name}) == []


@pytest.mark.parametrize("name", ["NullRMStateStore", "org.apache.hadoop.x.MemoryRMStateStore"])
def test_other_stores_are_refused_by_name(name: str) -> None:
    (fault,) = faults(**{STORE_CLASS.key: name})
    assert fault.startswith(f"{STORE_CLASS.key}: is not a supported state store")
    off = {RECOVERY_ENABLED.key: "false", STORE_CLASS.key: name}
    assert faults(**off) == []


def test_hadoops_store_in_zookeeper_needs_an_address_and_no_file() -> None:
    values = {STORE_CLASS.key: "org.apache.hadoop.x.ZKRMStateStore", STATE_STORE_FILE.key: ""}
    assert faults(**values) == [f"hadoop.zk.address: is not set, although {RECOVERY_ENABLED.key} is true"]
    for key in ("hadoop.zk.address", "yarn.resourcemanager.zk-address"):
        assert faults(**values, **{key: "localhost:2181,127.0.0.1:2182/yarn"}) == []
    (fault,) = faults(**{**values, STATE_STORE_FILE.key: "/f"}, **{"hadoop.zk.address": "localhost:1,zk1:2181"})
    assert "= localhost:1,zk1:2181 is not on this machine, and is left alone" in fault


def test_recovery_without_a_store_file_is_refused(tmp_path: Path) -> None:
    (fault,) = faults(**{STATE_STORE_FILE.key: ""})
    assert fault == f"{STATE_STORE_FILE.key}: is not set, although {RECOVERY_ENABLED.key} is true"
    conf = configuration(tmp_path).overridden({RECOVERY_ENABLED.key: "true"}, "test")
    with pytest.raises(ConfigurationException):
        ResourceManager(conf)


async def test_recovery_restores_the_garbage_collectors_settings(tmp_path: Path) -> None:
    assert gc.isenabled()
    async with serving(stored(tmp_path)):
        assert gc.isenabled()
    gc.disable()
    try:
        async with serving(stored(tmp_path)):
            assert not gc.isenabled()
    finally:
        gc.enable()
