"""Settings: defaults, bounds, contradictions, the pace, and the report of what becomes of every key."""

import pytest

from yarn.configuration import Configuration, ConfigurationException, Entry
from yarn.faults import Fault, Origin, Severity
from yarn.settings import (
    BY_KEY,
    FAST_TIME_FACTOR,
    check_settings,
    defaults,
    nodemanager,
    resourcemanager,
    scaled,
    scheduler,
    setting_of,
    with_further,
)
from yarn.settings.kinds import TimeSetting
from yarn.settings.report import HadoopKeys, describe

NOTHING = Configuration().with_defaults(defaults() | {"user.name": "ann"})


def conf_of(**values: str) -> Configuration:
    """A configuration; double underscores stand for dots and single ones for dashes."""
    texts = {key.replace("__", ".").replace("_", "-"): value for key, value in values.items()}
    return Configuration.of(texts, "yarn-site.xml").with_defaults(defaults())


@pytest.mark.parametrize("key", BY_KEY)
def test_every_default_can_be_read_and_is_within_its_own_bounds(key: str) -> None:
    assert BY_KEY[key].faults(NOTHING) == []


def test_the_defaults_do_not_contradict_one_another() -> None:
    assert check_settings(NOTHING) == []


@pytest.mark.parametrize("key", BY_KEY)
def test_every_setting_has_a_meaning_of_one_line(key: str) -> None:
    meaning = BY_KEY[key].meaning
    assert meaning
    assert "\n" not in meaning
    assert len(meaning) <= 100


def test_values_and_defaults_are_typed() -> None:
    conf = conf_of(yarn__nodemanager__local_dirs=" /a , /b,", yarn__resourcemanager__address="rm:0")
    assert nodemanager.LOCAL_DIRS.of(conf) == ("/a", "/b")
    assert nodemanager.VMEM_PMEM_RATIO.of(conf) == 2.0999999046325684
    assert resourcemanager.ADDRESS.of(conf) == ("rm", 0)
    assert resourcemanager.NM_HEARTBEAT_INTERVAL.of(conf) == 1000
    assert resourcemanager.NM_TOKEN_ROLLING_INTERVAL.of(conf) == 86_400_000
    assert nodemanager.PMEM_CHECK_ENABLED.of(conf) is True


def test_a_default_may_refer_to_another_key() -> None:
    assert nodemanager.LOCAL_DIRS.of(NOTHING) == ("/tmp/hadoop-ann/nm-local-dir",)
    conf = NOTHING.overridden({"yarn.resourcemanager.hostname": "rm1"})
    assert resourcemanager.SCHEDULER_ADDRESS.of(conf) == ("rm1", 8030)


@pytest.mark.parametrize("key", BY_KEY)
def test_defaults_refer_to_no_more_than_the_users_name(key: str) -> None:
    """A configuration without `with_defaults` gives the same values."""
    by_hand = Configuration.of({"user.name": "ann"})
    assert BY_KEY[key].maybe_of(by_hand) == BY_KEY[key].maybe_of(NOTHING)


def test_an_unset_setting_falls_back_to_another() -> None:
    conf = conf_of(yarn__resourcemanager__am__max_attempts="5")
    assert resourcemanager.AM_GLOBAL_MAX_ATTEMPTS.of(conf) == 5
    conf = conf_of(yarn__resourcemanager__am__global__max_attempts="3")
    assert resourcemanager.AM_GLOBAL_MAX_ATTEMPTS.of(conf) == 3


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("yarn.scheduler.minimum-allocation-mb", "0", "below the minimum, 1 MB"),
        ("yarn.scheduler.minimum-allocation-mb", "1g", "not a whole number"),
        ("yarn.nm.liveness-monitor.expiry-interval-ms", "soon", "not a duration"),
        ("yarn.nm.liveness-monitor.expiry-interval-ms", "-1", "below the minimum, 1 ms"),
        ("yarn.nodemanager.resource.percentage-physical-cpu-limit", "101", "above the maximum, 100 %"),
        ("yarn.nodemanager.resource.memory-mb", "-2", "below the minimum, 1 MB"),
        ("yarn.nodemanager.local-dirs", " , ", "is empty"),
        ("yarn.nodemanager.vmem-pmem-ratio", "NaN", "below the minimum, 1.0"),
        ("yarn.resourcemanager.address", "8032", "is not of the form host:port"),
        ("yarn.resourcemanager.address", "rm:80320", "port 80320 is outside 0..65535"),
        ("yarn.resourcemanager.scheduler.class", "Fair", "is not supported"),
    ],
)
def test_a_bad_value_is_a_fault_with_bound_and_remedy(key: str, value: str, problem: str) -> None:
    conf = Configuration.of({key: value}, "yarn-site.xml").with_defaults(defaults())
    (fault,) = [fault for fault in check_settings(conf) if fault.severity is Severity.ERROR]
    assert (fault.key, fault.value, str(fault.origin)) == (key, value, "yarn-site.xml")
    assert problem in fault.problem
    assert fault.remedy.startswith("write ")
    with pytest.raises(ConfigurationException):
        BY_KEY[key].of(conf)


@pytest.mark.parametrize(
    "key",
    [
        "yarn.nodemanager.resource-type.yarn.io/gpu",
        "yarn.resource-types.yarn.io/gpu.minimum-allocation",
        "yarn.resource-types.yarn.io/gpu.maximum-allocation",
        "yarn.scheduler.capacity.user.ann.max-parallel-apps",
    ],
)
def test_settings_with_a_name_in_their_key_are_checked(key: str) -> None:
    assert check_settings(Configuration.of({key: "3"})) == []
    (fault,) = check_settings(Configuration.of({key: "many"}))
    assert (fault.key, fault.value, fault.severity) == (key, "many", Severity.ERROR)


def test_special_values_may_be_out_of_bounds() -> None:
    conf = conf_of(yarn__nodemanager__resource__memory_mb="-1", yarn__resourcemanager__connect__max_wait__ms="-1")
    assert nodemanager.RESOURCE_MEMORY_MB.of(conf) == -1
    assert check_settings(conf) == []


@pytest.mark.parametrize("protection", ["privacy", "integrity, privacy"])
def test_rpc_that_must_be_protected_is_a_warning_and_refused_by_strict(protection: str) -> None:
    """SaslRpcClient: "No common protection layer between client and server"."""
    conf = Configuration.of({"hadoop.rpc.protection": protection}, "core-site.xml")
    (warning,) = check_settings(conf)
    assert warning.severity is Severity.WARNING
    assert "neither signed nor encrypted" in warning.problem
    (error,) = check_settings(conf.overridden({"yarn.yarnling.strict": "true"}))
    assert error.severity is Severity.ERROR
    assert check_settings(Configuration.of({"hadoop.rpc.protection": "privacy,authentication"})) == []


def test_all_faults_are_reported_at_once() -> None:
    conf = conf_of(
        yarn__scheduler__minimum_allocation_mb="x",
        yarn__scheduler__minimum_allocation_vcores="8",
        yarn__scheduler__maximum_allocation_vcores="2",
        yarn__resourcemanager__am__max_attempts="0",
    )
    assert {fault.key for fault in check_settings(conf)} == {
        "yarn.scheduler.minimum-allocation-mb",
        "yarn.scheduler.minimum-allocation-vcores",
        "yarn.resourcemanager.am.max-attempts",
    }


def test_a_minimum_above_the_maximum_is_refused() -> None:
    """CapacitySchedulerConfigValidator.validateMemoryAllocation: max should be no smaller than min."""
    (fault,) = check_settings(conf_of(yarn__scheduler__maximum_allocation_mb="512"))
    assert str(fault) == (
        "yarn-site.xml: yarn.scheduler.maximum-allocation-mb = '512': below yarn.scheduler.minimum-allocation-mb"
        " = 1024 (make the maximum at least the minimum)"
    )


def test_an_expiry_below_the_heartbeat_is_refused() -> None:
    """ResourceManager.validateConfigs: expiry interval should be no less than heartbeat interval."""
    (fault,) = check_settings(conf_of(yarn__nm__liveness_monitor__expiry_interval_ms="999"))
    assert fault.severity is Severity.ERROR


def test_an_expiry_of_less_than_three_heartbeats_is_a_warning() -> None:
    (fault,) = check_settings(conf_of(yarn__nm__liveness_monitor__expiry_interval_ms="2s"))
    assert fault.severity is Severity.WARNING
    assert "a late heartbeat is enough to lose the node" in fault.problem


def test_values_out_of_bounds_that_hadoop_accepts_are_accepted_with_a_warning() -> None:
    conf = conf_of(
        yarn__scheduler__capacity__maximum_am_resource_percent="100", yarn__nodemanager__pmem_check_enabled="yes"
    )
    assert {fault.severity for fault in check_settings(conf)} == {Severity.WARNING}
    assert scheduler.MAXIMUM_AM_RESOURCE_PERCENT.of(conf) == 100.0
    assert nodemanager.PMEM_CHECK_ENABLED.of(conf) is True


@pytest.mark.parametrize("value", ["NONE", "EqualToRM", "3", "3.4.1", "3.4.1-SNAPSHOT", "3.1.1.7.1.9.0-387"])
def test_a_minimum_version_is_a_version_or_one_of_two_words(value: str) -> None:
    assert check_settings(conf_of(yarn__resourcemanager__nodemanager__minimum__version=value)) == []


@pytest.mark.parametrize("value", ["", "none", "EqualToNM", "v3.4.1", "3.4.1 or later", "latest"])
def test_a_malformed_minimum_version_is_refused(value: str) -> None:
    """Hadoop accepts any text, but a word is below every release: the check would do nothing."""
    (fault,) = check_settings(conf_of(yarn__resourcemanager__nodemanager__minimum__version=value))
    assert (fault.severity, fault.problem) == (Severity.ERROR, "is not a version")
    assert fault.remedy == "write NONE, EqualToRM or a version that starts with a digit, such as 3.4.1"


def test_an_enabled_feature_that_is_not_supported_is_a_warning() -> None:
    conf = conf_of(yarn__timeline_service__enabled="true", yarn__resourcemanager__recovery__enabled="false")
    (fault,) = check_settings(conf)
    assert str(fault) == (
        "yarn-site.xml: yarn.timeline-service.enabled = 'true': has no effect: there is no timeline service; "
        "no decision of the scheduler depends on it (set it to false, or remove it)"
    )
    assert fault.severity is Severity.WARNING


def test_a_key_is_reported_as_faulty_once() -> None:
    conf = conf_of(yarn__scheduler__minimum_allocation_mb="x")
    known = check_settings(conf)
    other = Fault("yarn.x", "1", conf.origin("yarn.x"), "is unusual", "change it")
    assert with_further(known, [*known, other]) == [*known, other]


def test_a_variable_that_refers_to_an_unset_key_is_a_warning() -> None:
    (fault,) = check_settings(conf_of(yarn__nodemanager__log_dirs="${hadoop.log.dir}/x"))
    assert fault.problem == "${hadoop.log.dir} refers to a key that is not set"


def test_the_time_factor_scales_every_paced_interval() -> None:
    conf = scaled(conf_of(yarn__nm__liveness_monitor__expiry_interval_ms="20s"), FAST_TIME_FACTOR)
    assert resourcemanager.NM_EXPIRY_INTERVAL.of(conf) == 1000
    assert resourcemanager.NM_HEARTBEAT_INTERVAL.of(conf) == 50
    assert resourcemanager.AM_EXPIRY_INTERVAL.of(conf) == 45_000
    assert str(conf.origin("yarn.nm.liveness-monitor.expiry-interval-ms")) == "yarn-site.xml x 0.05"
    assert str(conf.origin("yarn.am.liveness-monitor.expiry-interval-ms")) == "default x 0.05"


def test_the_time_factor_does_not_scale_durations_that_depend_on_the_machine() -> None:
    conf = scaled(NOTHING, 0.001)
    assert resourcemanager.CONNECT_MAX_WAIT.of(conf) == 900_000
    assert nodemanager.PROCESS_KILL_WAIT.of(conf) == 5000
    assert nodemanager.SLEEP_DELAY_BEFORE_SIGKILL.of(conf) == 100
    assert resourcemanager.NM_HEARTBEAT_INTERVAL.of(conf) == 10


def test_scaling_twice_changes_nothing() -> None:
    once = scaled(NOTHING.overridden({"yarn.yarnling.time-factor": "0.05"}))
    assert scaled(once) == once
    assert resourcemanager.NM_HEARTBEAT_INTERVAL.of(once) == 50


def test_scaled_defaults_have_no_faults() -> None:
    assert check_settings(scaled(NOTHING, FAST_TIME_FACTOR)) == []


def test_no_default_is_below_the_least_value_of_scaling() -> None:
    """Scaling never goes below `least_ms`."""
    for setting in BY_KEY.values():
        if isinstance(setting, TimeSetting) and setting.paced and setting.default is not None:
            assert setting.of(NOTHING) >= setting.least_ms


def test_keys_of_queues_are_known_at_any_depth() -> None:
    for path in ("root", "root.a", "root.a.b-c.d_e"):
        setting = setting_of(f"yarn.scheduler.capacity.{path}.maximum-capacity")
        assert setting is not None
        assert setting.key == "maximum-capacity"
    assert setting_of("yarn.scheduler.capacity.a.maximum-capacity") is None
    assert setting_of("yarn.scheduler.capacity.root.a.maximum-capactiy") is None


def test_the_report_sorts_every_key() -> None:
    conf = Configuration(
        {
            "yarn.nodemanager.pmem-check-enabled": Entry("true", Origin("yarn-site.xml", 3)),
            "yarn.web-proxy.address": Entry("x:1", Origin("yarn-site.xml", 5)),
            "yarn.nodemanager.vmem-pmem-ration": Entry("3", Origin("yarn-site.xml", 7)),
            "yarn.scheduler.capacity.root.a.maximum-capactiy": Entry("3", Origin("capacity-scheduler.xml", 2)),
            "com.example.mine": Entry("3", Origin("yarn-site.xml", 9)),
        }
    )
    report = describe(conf, HadoopKeys(["yarn.web-proxy.address", "yarn.scheduler.capacity.<queue>.reservable"]))
    assert [(key.key, str(key.origin)) for key in report.read] == [
        ("yarn.nodemanager.pmem-check-enabled", "yarn-site.xml:3")
    ]
    assert [key.key for key in report.ignored] == ["yarn.web-proxy.address"]
    assert [(key.key, key.nearest) for key in report.unknown] == [
        ("yarn.nodemanager.vmem-pmem-ration", "yarn.nodemanager.vmem-pmem-ratio"),
        (
            "yarn.scheduler.capacity.root.a.maximum-capactiy",
            "yarn.scheduler.capacity.root.a.maximum-capacity",
        ),
        ("com.example.mine", None),
    ]
    assert {key.key for key in report.defaulted} == BY_KEY.keys() - {"yarn.nodemanager.pmem-check-enabled"}
    assert report.faults == ()


def test_a_cluster_open_to_local_users_is_a_warning() -> None:
    (fault,) = check_settings(conf_of(yarn__yarnling__open_to_local_users="true"))
    assert fault.severity is Severity.WARNING
    assert fault.problem == "every user of this machine may run commands as the user who starts the cluster"
    assert check_settings(conf_of(yarn__yarnling__open_to_local_users="false")) == []


def test_the_report_lists_errors_before_warnings() -> None:
    conf = conf_of(yarn__nodemanager__pmem_check_enabled="yes", yarn__resourcemanager__am__max_attempts="0")
    report = describe(conf, HadoopKeys([]))
    assert [fault.severity for fault in report.faults] == [Severity.ERROR, Severity.WARNING]


def test_a_pattern_of_hadoop_keys_matches_any_name() -> None:
    keys = HadoopKeys(["yarn.scheduler.capacity.<queue>.accessible-node-labels.<label>.capacity"])
    assert "yarn.scheduler.capacity.root.a.b.accessible-node-labels.gpu.capacity" in keys
    assert "yarn.scheduler.capacity.root.a.accessible-node-labels" not in keys


def test_unknown_auxiliary_services_are_reported_all_at_once_with_effect_and_remedy() -> None:
    conf = Configuration.of({"yarn.nodemanager.aux-services": "mapreduce_shuffle, spark_shuffle,timeline_collector"})
    faults = {fault.value: fault for fault in check_settings(conf)}
    assert faults.keys() == {"spark_shuffle", "timeline_collector"}
    assert "spark.dynamicAllocation.shuffleTracking.enabled=true" in faults["spark_shuffle"].remedy
    assert faults["timeline_collector"].remedy == "remove it from the list"
    assert all(fault.severity is Severity.WARNING for fault in faults.values())
    assert "refused when they start" in faults["spark_shuffle"].effect


@pytest.mark.parametrize("value", ["", "mapreduce_shuffle", " mapreduce_shuffle , "])
def test_no_auxiliary_service_and_the_one_there_is_are_accepted(value: str) -> None:
    assert check_settings(Configuration.of({"yarn.nodemanager.aux-services": value})) == []


def test_faults_of_log_aggregation_are_reported_only_if_it_is_on() -> None:
    values = {
        "yarn.log-aggregation.file-formats": "IFile,TFile",
        "yarn.nodemanager.remote-app-log-dir": "hdfs://nn/logs",
        "yarn.nodemanager.remote-app-log-dir-suffix": "a/b",
    }
    assert check_settings(Configuration.of(values)) == []
    faults = check_settings(Configuration.of({**values, "yarn.log-aggregation-enable": "true"}))
    assert sorted(fault.key for fault in faults) == sorted(values)
    assert check_settings(Configuration.of({"yarn.log-aggregation-enable": "true"})) == []


def test_compression_of_aggregated_logs_is_a_warning() -> None:
    (fault,) = check_settings(Configuration.of({"yarn.nodemanager.log-aggregation.compression-type": "gz"}))
    assert (fault.problem, fault.severity) == ("aggregated logs are not compressed", Severity.WARNING)


UNSUPPORTED = {
    "yarn.resourcemanager.ha.enabled": "true",
    "yarn.resourcemanager.reservation-system.enable": "true",
    "yarn.resourcemanager.placement-constraints.handler": "scheduler",
    "yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
    "yarn.resourcemanager.resource-profiles.enabled": "true",
    "yarn.federation.enabled": "true",
    "yarn.authorization-provider": "org.apache.ranger.authorization.yarn.authorizer.RangerYarnAuthorizer",
    "yarn.scheduler.configuration.store.class": "zk",
    "yarn.node-labels.configuration-type": "distributed",
}


@pytest.mark.parametrize("key", UNSUPPORTED)
def test_what_yarnling_does_not_do_is_a_warning_with_its_effect(key: str) -> None:
    (fault,) = check_settings(Configuration.of({key: UNSUPPORTED[key]}))
    assert (fault.key, fault.value, fault.severity) == (key, UNSUPPORTED[key], Severity.WARNING)
    assert fault.effect
    assert fault.remedy


@pytest.mark.parametrize("key", UNSUPPORTED)
def test_a_strict_configuration_refuses_what_yarnling_does_not_do(key: str) -> None:
    (fault,) = check_settings(Configuration.of({key: UNSUPPORTED[key], "yarn.yarnling.strict": "true"}))
    assert (fault.key, fault.severity) == (key, Severity.ERROR)


@pytest.mark.parametrize("store", ["NullRMStateStore", "LeveldbRMStateStore"])
def test_another_state_store_matters_only_with_recovery(store: str) -> None:
    values = {"yarn.resourcemanager.store.class": f"x.{store}", "yarn.yarnling.state-store-file": "/s"}
    assert check_settings(Configuration.of(values)) == []
    faults = check_settings(Configuration.of({**values, "yarn.resourcemanager.recovery.enabled": "true"}))
    assert [fault.key for fault in faults] == ["yarn.resourcemanager.store.class"] * (store == "NullRMStateStore")
