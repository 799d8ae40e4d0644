"""The stores of the scheduler's configuration, and changes that fail half-way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from rm.scheduler.config.mutation import MutationRefused, QueueConfigInfo, SchedConfUpdateInfo, Values
from rm.shell.configuration_stores import FSSchedulerConfigurationStore, store_of
from rm.shell.mutable_configuration import MutableConfiguration
from wire.files.hadoop_xml import FILE_BYTES_MAX
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarn.settings.resourcemanager import CONFIGURATION_FS_PATH, CONFIGURATION_STORE_CLASS

CAPACITY = "yarn.scheduler.capacity.root.a.capacity"
QUEUES = {"yarn.scheduler.capacity.root.queues": "a", CAPACITY: "100"}
CHANGE = SchedConfUpdateInfo(updated=(QueueConfigInfo("root.a", {"capacity": "50"}),))


def conf_of(tmp_path: Path, kind: str = "fs") -> Configuration:
    return Configuration.of({CONFIGURATION_STORE_CLASS.key: kind, CONFIGURATION_FS_PATH.key: str(tmp_path), **QUEUES})


def opened(tmp_path: Path) -> MutableConfiguration:
    mutable = MutableConfiguration.open(conf_of(tmp_path))
    assert mutable is not None
    return mutable


def refreshed(seen: list[str], fails: int = 0) -> Callable[[Values], Awaitable[None]]:
    """Applies values by noting the capacity; the first `fails` are refused."""

    async def refresh(values: Values) -> None:
        if len(seen) < fails:
            seen.append("refused")
            raise ConfigurationException("no")
        seen.append(values[CAPACITY])

    return refresh


async def test_a_change_survives_a_restart(tmp_path: Path) -> None:
    await opened(tmp_path).change(CHANGE, refreshed([]))
    again = opened(tmp_path)
    assert again.values[CAPACITY] == "50"
    assert await again.version() == 2


async def test_a_refused_change_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    mutable = opened(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ConfigurationException):
        await mutable.change(CHANGE, refreshed([], fails=1))
    assert mutable.values[CAPACITY] == "100"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


async def test_a_change_that_was_never_confirmed_is_ignored(tmp_path: Path) -> None:
    """As after a kill between the write ahead and the refresh."""
    store = FSSchedulerConfigurationStore(tmp_path, 3)
    store.open(QUEUES)
    store.log({**QUEUES, CAPACITY: "1"})
    assert opened(tmp_path).values[CAPACITY] == "100"


async def test_a_change_that_cannot_be_confirmed_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutable, seen = opened(tmp_path), list[str]()

    def full(store: FSSchedulerConfigurationStore) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FSSchedulerConfigurationStore, "confirm", full)
    with pytest.raises(YarnException, match="No space left"):
        await mutable.change(CHANGE, refreshed(seen))
    assert seen == ["50", "100"]
    assert mutable.values[CAPACITY] == "100"


async def test_a_format_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    mutable = opened(tmp_path)
    await mutable.change(CHANGE, refreshed([]))
    with pytest.raises(ConfigurationException):
        await mutable.format(lambda: QUEUES, refreshed([], fails=1))
    assert opened(tmp_path).values[CAPACITY] == mutable.values[CAPACITY] == "50"


def test_files_beyond_the_limit_are_removed_at_the_next_change(tmp_path: Path) -> None:
    store = FSSchedulerConfigurationStore(tmp_path, 2, clock=lambda: 1_700_000_000_000)
    store.open(QUEUES)
    for capacity in range(10):
        store.log({**QUEUES, CAPACITY: str(capacity)})
        store.confirm()
    kept = {f"capacity-scheduler.xml.17000000000{number:02}" for number in (8, 9, 10)}
    assert {path.name for path in tmp_path.iterdir()} == {"ConfigVersion", *kept}
    assert store.open({})[CAPACITY] == "9"
    assert store.version == 11


def test_a_file_that_hadoop_wrote_is_read(tmp_path: Path) -> None:
    (tmp_path / "capacity-scheduler.xml.1795222023200").write_text(
        '<?xml version="1.0" encoding="UTF-8" standalone="no"?><configuration>\n<property><name>'
        f"{CAPACITY}</name><value>70</value><final>false</final><source>programmatically</source></property>\n"
        "</configuration>"
    )
    (tmp_path / "ConfigVersion").write_bytes((7).to_bytes(8, "big"))
    store = FSSchedulerConfigurationStore(tmp_path, 2)
    assert store.open(QUEUES) == {CAPACITY: "70"}
    assert store.version == 7


@pytest.mark.parametrize("path", ["", "hdfs://nn:8020/conf", "file://elsewhere/x"])
def test_a_store_elsewhere_is_refused(path: str) -> None:
    conf = Configuration.of({CONFIGURATION_STORE_CLASS.key: "fs", CONFIGURATION_FS_PATH.key: path})
    with pytest.raises(ConfigurationException, match="must be a local directory"):
        store_of(conf)


def test_a_directory_that_cannot_be_used_is_refused_with_its_key(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationException, match=CONFIGURATION_FS_PATH.key):
        MutableConfiguration.open(conf_of(tmp_path / "file"))


@pytest.mark.parametrize("kind", ["memory", "fs"])
@pytest.mark.parametrize("value", ["\0", "x" * FILE_BYTES_MAX])
def test_values_that_no_file_can_have_are_refused(tmp_path: Path, kind: str, value: str) -> None:
    store = store_of(conf_of(tmp_path, kind))
    assert store is not None
    store.open(QUEUES)
    with pytest.raises(MutationRefused):
        store.log({**QUEUES, CAPACITY: value})
