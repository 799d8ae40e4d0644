"""resource-types.xml and node-resources.xml: a GPU comes from the files to the scheduler and to containers."""

from pathlib import Path

import pytest

from nm.core.settings import Hardware, node_resource
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from wire.files.hadoop_xml import hadoop_keys, read_configuration, to_xml
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException, Severity
from yarn.resource import Resource
from yarn.settings import check_settings
from yarn.settings.report import HadoopKeys, describe

GPU = "yarn.io/gpu"
AMOUNT = f"yarn.nodemanager.resource-type.{GPU}"
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
HARDWARE = Hardware(memory_mb=16384, cores=8, threads=8)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    files = {
        "yarn-site.xml": {"yarn.nodemanager.resource.memory-mb": "4096", AMOUNT: "9"},
        "capacity-scheduler.xml": {
            "yarn.scheduler.capacity.resource-calculator": DOMINANT,
            "yarn.scheduler.capacity.root.queues": "default",
            "yarn.scheduler.capacity.root.default.capacity": "100",
        },
        "resource-types.xml": {"yarn.resource-types": GPU, f"yarn.resource-types.{GPU}.maximum-allocation": "2"},
        "node-resources.xml": {AMOUNT: "4"},
    }
    for name, values in files.items():
        (tmp_path / name).write_text(to_xml(values))
    return tmp_path


def test_a_gpu_comes_from_the_files_to_the_scheduler_and_the_node(directory: Path) -> None:
    conf = read_configuration(directory)
    settings = CapacitySchedulerConfiguration.read(conf)
    assert settings.maximum_allocation.extra == ((GPU, 2),)
    assert node_resource(conf, HARDWARE) == Resource(4096, 8, ((GPU, 4),))


def test_the_files_are_listed_by_config(directory: Path) -> None:
    report = describe(read_configuration(directory), HadoopKeys(hadoop_keys()))
    read = {one.key: one.origin.source for one in report.read}
    assert (read["yarn.resource-types"], read[AMOUNT]) == ("resource-types.xml", "node-resources.xml")
    assert (report.ignored, report.unknown) == ((), ())


@pytest.mark.parametrize(("name", "amount"), [(GPU, "four"), (GPU, "4G"), (GPU, "-1"), ("memory-mb", "1")])
def test_a_faulty_amount_is_refused_by_its_key(name: str, amount: str) -> None:
    key = f"yarn.nodemanager.resource-type.{name}"
    conf = Configuration.of({key: amount})
    with pytest.raises(ConfigurationException, match=key):
        node_resource(conf, HARDWARE)
    (fault,) = check_settings(conf)
    assert (fault.key, fault.value, fault.severity) == (key, amount, Severity.ERROR)


def test_dynamic_resources_are_warned_of(directory: Path) -> None:
    (directory / "dynamic-resources.xml").write_text(to_xml({"yarn.resource.dynamic.node_id": "n1:1"}))
    (note,) = read_configuration(directory).notes
    assert note.origin.source == "dynamic-resources.xml"
