"""Each key of Hadoop's ResourceManager is read, or warned of, or known not to change a decision."""

import re

from rm.scheduler.config import unsupported as of_the_scheduler
from wire.files.hadoop_xml import hadoop_keys
from yarn.settings.registry import setting_of
from yarn.settings.unsupported import FEATURES

BELOW = ("yarn.resourcemanager.", "yarn.scheduler.", "yarn.resource")

NO_DECISION = {
    r"yarn\.resourcemanager\..*(address|hostname)\.<rm-id>": "an address",
    r"yarn\.resourcemanager\.(bind-host|principal|keytab|webapp\.https\.address)": "an address or a Kerberos name",
    r"yarn\.resourcemanager\.(scheduler\.|admin\.|resource-tracker\.)?client\.thread-count": "threads of a server",
    r"yarn\.resourcemanager\.webapp\..*": "access to the web pages",
    r"yarn\.resourcemanager\.proxy\..*": "the proxy of web pages",
    r"yarn\.resourcemanager\.display\.per-user-apps": "which applications a web page shows",
    r"yarn\.resourcemanager\.application-https\.policy": "encryption of an AM's web page",
    r"yarn\.resourcemanager\.(delegation|delayed\.delegation|proxy-user).*": "delegation tokens, which are not issued",
    r"yarn\.resourcemanager\.(ha\..*|epoch.*)": "failover; ha.enabled is warned of; epochs number ids",
    r"yarn\.resourcemanager\.configuration\..*": "where the files of the configuration are",
    r"yarn\.resourcemanager\.(zk-|fs\.state-store|leveldb-state-store).*": "state stores; store.class is warned of",
    r"yarn\.resourcemanager\.nodestore-rootdir\..*": "retries of the store of labels",
    r"yarn\.scheduler\.configuration\..*": "stores of queues; store.class is warned of",
    r"yarn\.resourcemanager\.(placement-constraints|reservation-system)\..*": "parts of a feature that is warned of",
    r"yarn\.resourcemanager\.resource-profiles\.source-file": "a part of a feature that is warned of",
    r"yarn\.resourcemanager\.(opportunistic|nm-container-queuing).*": "opportunistic containers, which are warned of",
    r"yarn\.resourcemanager\.node-labels\.provider.*": "labels by a provider; configuration-type is warned of",
    r"yarn\.resourcemanager\.nodemanagers\.heartbeat-interval-(min|max)-ms": "used with scaling, which is warned of",
    r"yarn\.resourcemanager\.nodemanagers\.heartbeat-interval-\w+-factor": "used with scaling, which is warned of",
    r"yarn\.resourcemanager\.submission-preprocessor\.file-.*": "used with the preprocessor, which is warned of",
    r"yarn\.resourcemanager\.(system-metrics-publisher|history-writer|metrics|activities-manager)\..*": "reports",
    r"yarn\.resourcemanager\.max-log-aggregation-diagnostics-in-memory": "length of a report",
    r"yarn\.resourcemanager\.container\.liveness-monitor\.interval-ms": "read by no class of Hadoop 3.4.1",
    r"yarn\.resourcemanager\.enable-tracking-for-unregistered-nodes": "which hosts are reported as LOST (3.5.0)",
    r"yarn\.resourcemanager\.node-ip-cache\.expiry-interval-secs": "a cache of addresses",
    r"yarn\.scheduler\.capacity\.<queue>\..*reservation.*": "reservations; reservation-system.enable is warned of",
    r"yarn\.scheduler\.capacity\.<queue>\.(average|instantaneous-max)-capacity": "sharing policy of reservations",
    r"yarn\.scheduler\.capacity\.(<queue>\.)?multi-node-sorting.*": "used with multi-node placement, warned of",
    r"yarn\.scheduler\.capacity\.application\.fail-fast": "stops the RM at a recovery without the application's queue",
    r"yarn\.scheduler\.capacity\.queue\.auto\.refresh.*": "interval of a policy that is warned of",
    r"yarn\.scheduler\.capacity\.schedule-asynchronously(\.maximum-pending-backlogs)?": "a prefix; commits never wait",
    r"yarn\.scheduler\.capacity\.user-metrics\.enable": "metrics",
    r"yarn\.scheduler\.capacity\.workflow-priority-mappings-override\.enable": "used with mappings, warned of",
}
"""{pattern of keys: why no decision of the scheduler depends on them}."""


def test_every_key_is_read_or_warned_of_or_changes_no_decision() -> None:
    features = {*FEATURES, *of_the_scheduler.FEATURES}
    keys = [key for key in hadoop_keys() if key.startswith(BELOW)]
    undecided = [key for key in keys if not _is_read(key) and key not in features]
    assert [key for key in undecided if not _reasons(key)] == []


def test_every_reason_is_needed() -> None:
    keys = [key for key in hadoop_keys() if key.startswith(BELOW) and not _is_read(key)]
    assert {reason for key in keys for reason in _reasons(key)} == set(NO_DECISION)


def _is_read(key: str) -> bool:
    return setting_of(key.replace("<queue>", "root.a").replace("<property>", "capacity")) is not None


def _reasons(key: str) -> list[str]:
    return [pattern for pattern in NO_DECISION if re.fullmatch(pattern, key)]
