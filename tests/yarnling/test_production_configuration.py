"""A configuration of a production cluster loads as it is: what yarnling does not do is a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rm.builders import RM, resource_request
from tests.yarnling import production_configuration as production
from yarn.faults import ConfigurationException
from yarn.settings.resourcemanager import RECOVERY_ENABLED
from yarn.settings.yarnling import STRICT
from yarnling.cli.config import print_key_notices, report
from yarnling.cluster.configuration import ClusterConfiguration, compose
from yarnling.cluster.local_cluster import LocalCluster

PREFIX = production.SCHEDULER
LIMIT = "minimum-user-limit-percent</name>\n    <value>-5"
NOT_DONE = {
    "yarn.resourcemanager.ha.enabled",
    "yarn.resourcemanager.store.class",
    "yarn.resourcemanager.scheduler.monitor.policies",
    "yarn.resourcemanager.opportunistic-container-allocation.enabled",
    "yarn.resourcemanager.placement-constraints.handler",
    "yarn.scheduler.configuration.store.class",
    "yarn.authorization-provider",
    "yarn.timeline-service.enabled",
    "yarn.log-aggregation.file-formats",
    "yarn.nodemanager.aux-services",
    "yarn.scheduler.capacity.multi-node-placement-enabled",
    "yarn.scheduler.capacity.workflow-priority-mappings",
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    production.write(tmp_path)
    return tmp_path


def loaded(directory: Path, **settings: str) -> ClusterConfiguration:
    return compose(directory, settings).accepted()


def test_a_configuration_with_578_queues_loads_with_one_warning_for_each_rule(directory: Path) -> None:
    warnings = loaded(directory).report.warnings
    assert {sentence.split(" = ")[0].split(": ")[1] for sentence in warnings} == NOT_DONE
    assert len(warnings) == len(NOT_DONE)


def test_a_misspelled_key_is_a_warning_and_refused_by_strict(directory: Path) -> None:
    """Else a wrong key in a change looks like a change without effect."""
    key, right = f"{PREFIX}root.user-limit-facter", f"{PREFIX}root.user-limit-factor"
    said = f"{key} = '2': is not a known key, and has no effect (write {right}, or remove it)"
    [*_, last] = loaded(directory, **{key: "2", "my.own": "x"}).report.warnings
    assert last.endswith(said)
    with pytest.raises(ConfigurationException) as refusal:
        compose(None, {key: "2", STRICT.key: "true"}).accepted()
    assert said in refusal.value.message


def test_a_misspelled_prefix_is_a_warning() -> None:
    key = f"{PREFIX}root.default.capacity".replace("capacity.", "capcity.", 1)
    [sentence] = compose(None, {key: "70"}).report.warnings
    assert f"(write {PREFIX}root.default.capacity, or remove it)" in sentence


def test_warnings_about_placement_come_first_and_harmless_ones_last(directory: Path) -> None:
    keys = [sentence.split(" = ")[0].split(": ")[1] for sentence in loaded(directory).report.warnings]
    placement = ("configuration.store.class", "multi-node-placement-enabled", "workflow-priority-mappings")
    assert [key.partition("scheduler.")[2].removeprefix("capacity.") for key in keys[:3]] == list(placement)
    assert {key.rpartition(".")[2] for key in keys[3:6]} == {"handler", "enabled", "authorization-provider"}
    assert "yarn.timeline-service.enabled" in keys[6:]


def test_a_strict_configuration_is_refused_with_all_of_them(directory: Path) -> None:
    with pytest.raises(ConfigurationException) as refusal:
        loaded(directory, **{STRICT.key: "true"})
    assert {fault.key for fault in refusal.value.faults} == NOT_DONE


@pytest.mark.slow
def test_it_runs_an_application_in_a_queue_and_one_in_a_queue_created_on_demand(directory: Path) -> None:
    conf = loaded(directory, **{RECOVERY_ENABLED.key: "false"}).conf
    rm = RM({key: entry.value for key in conf if (entry := conf.entry(key)) is not None}, user="yarn")
    assert len(rm.core.scheduler.queues) == production.QUEUES + 2
    rm.node("n1", 65536, 16)
    for user, queue in (("etl", "default"), ("ann", "root.users.ann")):
        app = rm.submit(user, queue=queue)
        for _ in range(20):
            rm.beat("n1")
            rm.wait(20)
        rm.launch(app)
        rm.register(app)
        rm.allocate(app, [resource_request(3)])
        rm.wait(20)
        rm.beat("n1")
        assert len(rm.allocate(app).allocated) == 3, queue
    paths = {application.queue for application in rm.core.context.apps.values()}
    assert paths == {"root.d1.q1", "root.users.ann"}


@pytest.mark.slow
def test_a_report_and_a_start_fold_what_578_queues_have_in_common(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = directory / "capacity-scheduler.xml"
    limits = file.read_text().replace("minimum-user-limit-percent</name>\n    <value>25", LIMIT)
    file.write_text(limits.replace(".default-application-priority", ".default-aplication-priority"))
    report(directory, [], None, every=False, as_json=False)
    printed = capsys.readouterr()
    leaves = production.DEPARTMENTS * production.LEAVES
    assert printed.out.count("default-aplication-priority=1\tunknown\t") == leaves
    first, line = [line for line in printed.err.splitlines() if "is not a percentage" in line]
    assert first == line, "before and after a long list"
    assert line.endswith(f"(and {leaves - 1} more of this kind)")
    print_key_notices(loaded(directory))
    notices = capsys.readouterr().err.splitlines()
    (unknown,) = [line for line in notices if line.startswith("unknown: ") and "aplication" in line]
    nearest = f"{PREFIX}root.d1.q1.default-application-priority"
    assert unknown.endswith(f"perhaps {nearest} (and {leaves - 1} more of this kind)")
    assert sum(line.startswith("warning: ") for line in notices) == len(NOT_DONE) + 1


def test_a_cluster_has_the_warnings(directory: Path) -> None:
    cluster = LocalCluster(1, conf=directory)
    assert cluster.warnings == loaded(directory).report.warnings
    assert all(" (" in sentence for sentence in cluster.warnings)
