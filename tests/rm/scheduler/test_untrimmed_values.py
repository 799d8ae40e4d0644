"""Values that Hadoop does not trim: a file that stops its ResourceManager is refused, and the reason is named."""

import pytest

from rm.core.administration import ConfiguredQueues
from rm.core.placement_rules.mapping import MappingPlacement
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from tests.rm.builders import RM
from tests.rm.scheduler.cluster import check_scheduler
from tests.rm.test_queue_access import submit
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException, Severity
from yarn.states import QueueState

PREFIX = "yarn.scheduler.capacity."
TREE = {PREFIX + "root.queues": "a,b", PREFIX + "root.a.capacity": "50", PREFIX + "root.b.capacity": "50"}
AMOUNTS = {PREFIX + "root.a.capacity": "[memory=8192,vcores=8]", PREFIX + "root.b.capacity": "[memory=8192,vcores=8]"}
WEIGHTS = {PREFIX + "root.a.capacity": "1w", PREFIX + "root.b.capacity": "1w"}


def around(text: str) -> str:
    """The value as in a pretty-printed file."""
    return f"\n      {text}\n    "


@pytest.mark.parametrize(
    ("name", "value", "tree"),
    [
        ("root.a.state", "RUNNING", {}),
        ("root.a.state", "stopped", {}),
        ("root.a.max-parallel-apps", "1", {}),
        ("root.max-parallel-apps", "2", {}),
        ("user.ann.max-parallel-apps", "3", {}),
        ("root.a.capacity", "[memory=8192,vcores=8]", AMOUNTS),
        ("root.a.maximum-capacity", "[memory=8192,vcores=8]", AMOUNTS),
        ("root.a.capacity", "1w", WEIGHTS),
    ],
)
def test_a_line_break_is_refused_where_hadoop_does_not_trim(name: str, value: str, tree: dict[str, str]) -> None:
    assert check_scheduler(Configuration.of({**TREE, **tree, PREFIX + name: value})) == []
    faults = check_scheduler(Configuration.of({**TREE, **tree, PREFIX + name: around(value)}))
    (fault,) = (fault for fault in faults if fault.key == PREFIX + name)
    assert fault.severity is Severity.ERROR
    assert "Hadoop does not trim this value" in fault.problem


@pytest.mark.parametrize("text", [around("legacy"), "json "])
def test_the_format_of_mapping_rules_is_not_trimmed(text: str) -> None:
    conf = Configuration.of({**TREE, PREFIX + "mapping-rule-format": text})
    with pytest.raises(ConfigurationException, match=r"Illegal queue mapping format .*Hadoop does not trim this value"):
        MappingPlacement(conf, ConfiguredQueues({}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("root.a.capacity", "50"),
        ("root.a.maximum-capacity", "100"),
        ("max-parallel-apps", "5"),
        ("user.max-parallel-apps", "5"),
        ("root.a.user-limit-factor", "2"),
        ("root.a.minimum-user-limit-percent", "50"),
        ("root.a.maximum-applications", "10"),
        ("root.a.ordering-policy", "fair"),
        ("root.a.maximum-allocation-mb", "2048"),
    ],
)
def test_a_line_break_is_accepted_where_hadoop_trims(name: str, value: str) -> None:
    assert check_scheduler(Configuration.of({**TREE, PREFIX + name: around(value)})) == []


def test_one_line_break_may_follow_amounts() -> None:
    """`$` in Java's pattern matches before a line break at the end."""
    values = {**TREE, **AMOUNTS, PREFIX + "root.a.capacity": "[memory=8192,vcores=8]\n"}
    queue = CapacitySchedulerConfiguration.read(Configuration.of(values)).queues["root.a"]
    assert queue.capacities[""].minimum.memory_mb == 8192


def test_amounts_before_a_blank_count_as_not_configured_and_are_warned_of() -> None:
    """Hadoop takes `[...] ` for a vector, which legacy queue mode does not use: the queue has nothing."""
    values = {**TREE, **AMOUNTS, PREFIX + "root.a.capacity": "[memory=8192,vcores=8] "}
    settings = CapacitySchedulerConfiguration.read(Configuration.of(values))
    assert settings.queues["root.a"].capacities[""].minimum.is_none()
    assert any("counts as not configured (Hadoop does not trim" in fault.problem for fault in settings.warnings)


@pytest.mark.parametrize("text", ["0x10", "1_0", "2147483648", ""])
def test_a_limit_that_hadoop_reads_as_a_plain_decimal(text: str) -> None:
    """Integer.valueOf, unlike Configuration.getInt, accepts no hexadecimal number."""
    (fault,) = check_scheduler(Configuration.of({**TREE, PREFIX + "root.a.max-parallel-apps": text}))
    assert fault.severity is Severity.ERROR


ON_DEMAND = {
    PREFIX + "root.queues": "default,users",
    PREFIX + "root.default.capacity": "1w",
    PREFIX + "root.users.capacity": "1w",
    PREFIX + "root.users.auto-queue-creation-v2.enabled": "true",
}


@pytest.mark.parametrize("name", ["root.users.ann ", " root.users.ann", "\troot.users.ann\n"])
def test_blanks_are_not_in_the_name_of_a_created_queue_and_fail_the_application(name: str) -> None:
    """Hadoop creates root.users.ann, again for each submission, and does not find it for the application's attempts."""
    rm = RM(ON_DEMAND)
    for _ in range(2):
        app = rm.core.context.apps[submit(rm, "ann", queue=name)]
        assert app.state.name == "FAILED"
        assert "Could not find queue for application" in "".join(app.diagnostics)
        created = rm.core.scheduler.queue("root.users.ann")
        assert created is not None
        assert created.state is QueueState.RUNNING
    assert rm.core.context.apps[submit(rm, "ann", queue="root.users.ann")].state.name != "FAILED"


@pytest.mark.parametrize("name", ["root.users. ", "root.users .ann", "root.users. ann"])
def test_blanks_within_a_path_name_no_queue(name: str) -> None:
    rm = RM(ON_DEMAND)
    app = rm.core.context.apps[submit(rm, "ann", queue=name)]
    assert app.state.name == "FAILED"
    assert "to unknown queue" in "".join(app.diagnostics)
