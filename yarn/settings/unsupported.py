"""Features of Hadoop that yarnling lacks: a warning that says what this means for the result, or a refusal if strict.

A configuration of a production cluster loads as it is. Each key that requests such a feature gets one fault. Its
`effect` says whether decisions differ, and how, so that a reader can judge a result obtained with the configuration.
With yarn.yarnling.strict the same fault is an error. The features of queues are in rm.scheduler.config.unsupported.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.faults import Concern, ConfigurationException, Fault, Severity
from yarn.settings import logs, nodemanager, resourcemanager, scheduler, yarnling
from yarn.settings.zookeeper import ZK_ADDRESS, ZK_STORE, is_local

NO_EFFECT = "no decision of the scheduler depends on it"
"""The effect of a feature that only concerns operation."""


class Feature(Struct, frozen=True):
    """A feature that a key requests. `unless`: the values, in lower case, that do not request it.

    `problem` says what yarnling does not do, `effect` what that means for the result.
    """

    key: str
    problem: str
    effect: str
    remedy: str = "set it to false, or remove it"
    unless: frozenset[str] = frozenset({"", "false"})
    concern: Concern = Concern.PLACEMENT

    def is_requested(self, conf: Configuration) -> bool:
        return text_of(conf, self.key).lower() not in self.unless


def unsupported(
    conf: Configuration,
    key: str,
    problem: str,
    effect: str,
    remedy: str,
    *,
    value: str | None = None,
    concern: Concern = Concern.PLACEMENT,
) -> Fault:
    """The fault of a feature that is requested but not supported: an error if the configuration is strict."""
    severity = Severity.ERROR if yarnling.STRICT.of(conf) else Severity.WARNING
    shown = conf.get(key) if value is None else value
    if effect == NO_EFFECT:
        concern = Concern.OPERATION
    return Fault(key, shown, conf.origin(key), problem, remedy, severity, effect, concern)


def check_features(conf: Configuration, features: Mapping[str, Feature]) -> list[Fault]:
    """A fault for each of these features that the configuration requests."""
    requested = (feature for key, feature in features.items() if key in conf and feature.is_requested(conf))
    return [
        unsupported(conf, each.key, each.problem, each.effect, each.remedy, concern=each.concern) for each in requested
    ]


def check_unsupported(conf: Configuration) -> list[Fault]:
    """A fault for each feature outside the tree of queues that is requested but not supported."""
    return [
        *check_features(conf, FEATURES),
        *_check_failover(conf),
        *_check_store(conf),
        *_check_auxiliary_services(conf),
        *_check_log_format(conf),
        *_check_protection(conf),
    ]


def text_of(conf: Configuration, key: str) -> str:
    """The trimmed value; empty if it is not set or a variable in it cannot be replaced, which is a fault of its own."""
    try:
        return (conf.get(key) or "").strip()
    except ConfigurationException:
        return ""


def _by_key(*features: Feature) -> dict[str, Feature]:
    return {feature.key: feature for feature in features}


FEATURES: Mapping[str, Feature] = _by_key(
    Feature("yarn.timeline-service.enabled", "has no effect: there is no timeline service", NO_EFFECT),
    Feature(
        "yarn.resourcemanager.reservation-system.enable",
        "there is no reservation system",
        "no reservation is accepted, and a reservable queue gives everything to its default leaf",
    ),
    Feature(
        "yarn.resourcemanager.placement-constraints.handler",
        "placement constraints are not supported",
        "scheduling requests with constraints are refused; ordinary resource requests are served as in Hadoop",
        "write disabled, or remove it",
        frozenset({"", "disabled"}),
        concern=Concern.ADMISSION,
    ),
    Feature(
        scheduler.OPPORTUNISTIC_CONTAINERS.key,
        "opportunistic containers are not allocated",
        "requests for them are refused; running containers are demoted and promoted as in Hadoop",
        concern=Concern.ADMISSION,
    ),
    Feature(
        "yarn.resourcemanager.resource-profiles.enabled",
        "resource profiles are not supported",
        "requests need amounts: the name of a profile in a request is ignored",
        concern=Concern.ADMISSION,
    ),
    Feature(
        "yarn.federation.enabled",
        "federation is not supported",
        "only the applications of this subcluster exist, and all of its queues are its own",
    ),
    Feature(
        "yarn.authorization-provider",
        "only the access lists of the configuration decide who may do what",
        "users whom another provider (such as Ranger) rejects may submit, and users whom only that provider admits "
        "are refused if yarn.acl.enable is true",
        "write org.apache.hadoop.yarn.security.ConfiguredYarnAuthorizer, or remove it",
        frozenset({"", "org.apache.hadoop.yarn.security.configuredyarnauthorizer"}),
        concern=Concern.ADMISSION,
    ),
    Feature(
        resourcemanager.CONFIGURATION_STORE_CLASS.key,
        "this store is not supported: queues are read from capacity-scheduler.xml only",
        "changes that were made through YARN's REST API, or by a queue manager that uses it, are missing unless they "
        "were exported into the file",
        "export the present configuration (GET /ws/v1/cluster/scheduler-conf), and write file, memory or fs",
        frozenset({"", "file", "memory", "fs"}),
    ),
    Feature(
        scheduler.NODE_LABELS_CONFIGURATION_TYPE.key,
        "only an administrator can assign labels to nodes",
        "labels that NodeManagers or a script would report are missing: such nodes are in the default partition",
        "set it to centralized, and assign the labels with `rmadmin -replaceLabelsOnNode`",
        frozenset({"", "centralized"}),
    ),
    Feature(
        "yarn.resourcemanager.submission-preprocessor.enabled",
        "submissions are not changed by a preprocessor",
        "applications keep the queue, label and tags of their submission, whatever the preprocessor's file says",
        "set it to false, and submit the applications as the file would change them",
    ),
    Feature(
        "yarn.scheduler.app-placement-allocator.class",
        "only LocalityAppPlacementAllocator is supported",
        "nodes are chosen for each request by locality, in the way that Hadoop does by default",
        "remove it",
        frozenset(
            {"", "org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.localityappplacementallocator"}
        ),
    ),
    Feature(
        "yarn.resourcemanager.application-master-service.processors",
        "further processors of AMs' calls do not run",
        "requests of AMs reach the scheduler unchanged, and none is refused by a processor",
        "remove it",
        frozenset({""}),
        concern=Concern.ADMISSION,
    ),
    Feature(
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-scaling-enable",
        "the heartbeat interval does not follow the load of nodes",
        "busy and idle nodes heartbeat, and are offered to applications, equally often",
    ),
    Feature(
        "yarn.resourcemanager.resource-tracker.nm.ip-hostname-check",
        "names of NodeManagers are not resolved",
        "nodes are admitted that Hadoop refuses because their address has no host name",
        concern=Concern.ADMISSION,
    ),
    Feature(
        "yarn.resourcemanager.enable-node-untracked-without-include-path",
        "nodes are untracked only with a list of included hosts",
        "without that list, an excluded node becomes DECOMMISSIONED and is shown until a restart",
        concern=Concern.OPERATION,
    ),
    Feature(
        "yarn.resourcemanager.node-removal-untracked.timeout-ms",
        "nodes that have left are never removed from the lists of nodes",
        NO_EFFECT,
        "remove it",
        frozenset({"", "60000", "60s"}),
    ),
    Feature(
        "yarn.resourcemanager.node-removal-untracked.node-selective-states-to-remove",
        "nodes that have left are never removed from the lists of nodes",
        NO_EFFECT,
        "remove it",
        frozenset({""}),
    ),
    Feature(
        "yarn.resourcemanager.fail-fast",
        "has no effect: the ResourceManager does not stop for an application that cannot be recovered",
        "an application whose queue is gone fails at the recovery, and the others run on",
        concern=Concern.OPERATION,
        unless=frozenset({"", "false", "${yarn.fail-fast}"}),
    ),
    Feature(
        logs.COMPRESSION_TYPE.key,
        "aggregated logs are not compressed",
        NO_EFFECT,
        "write none, or remove it",
        frozenset({"", "none"}),
    ),
)
"""{key: the feature that it requests}, except for those that need more than their own value."""


def _check_failover(conf: Configuration) -> list[Fault]:
    """A fault for several ResourceManagers where there is one: a configuration alone does not start the others."""
    key = "yarn.resourcemanager.ha.enabled"
    if text_of(conf, key).lower() in ("", "false") or text_of(conf, yarnling.RESOURCE_MANAGERS.key) not in ("", "1"):
        return []
    return [
        unsupported(
            conf,
            key,
            "has no effect: there is one ResourceManager, without failover",
            "scheduling is that of the active ResourceManager",
            "start several with `yarnling up --rms 2`",
            concern=Concern.OPERATION,
        )
    ]


def _check_store(conf: Configuration) -> list[Fault]:
    """A fault for a state store other than yarnling's own, which replace Hadoop's on local disks and in ZooKeeper."""
    store = resourcemanager.STORE_CLASS
    name = text_of(conf, store.key).rpartition(".")[2]
    own = ("", resourcemanager.SQLITE_STORE, "FileSystemRMStateStore", "LeveldbRMStateStore")
    address = ZK_ADDRESS.maybe_of(conf) or ""
    is_here = name == ZK_STORE and is_local(address)
    if text_of(conf, resourcemanager.RECOVERY_ENABLED.key).lower() != "true" or name in own or is_here:
        return []
    problem = "is not a supported state store: yarnling has its own, in a single file or in ZooKeeper"
    if name == ZK_STORE:
        if not address:
            return []
        problem = f"is not used: {ZK_ADDRESS.key} = {address} is not on this machine, and is left alone"
    effect = f"a restart recovers what this cluster wrote to its file; {NO_EFFECT}"
    remedy = f"write {resourcemanager.SQLITE_STORE} or {ZK_STORE} with a ZooKeeper on this machine, or remove it"
    return [unsupported(conf, store.key, problem, effect, remedy, concern=Concern.OPERATION)]


def _check_auxiliary_services(conf: Configuration) -> list[Fault]:
    """A fault for each auxiliary service that is not supported."""
    key = nodemanager.AUX_SERVICES.key
    problem = f"is not a supported auxiliary service: yarnling has {nodemanager.MAPREDUCE_SHUFFLE}"
    effect = "containers that use the service are refused when they start; emulated containers use none"
    return [
        unsupported(conf, key, problem, effect, _service_remedy(name), value=name, concern=Concern.OPERATION)
        for name in nodemanager.AUX_SERVICES.parse(text_of(conf, key))
        if name != nodemanager.MAPREDUCE_SHUFFLE
    ]


def _service_remedy(name: str) -> str:
    if "spark" not in name:
        return "remove it from the list"
    return "remove it from the list; Spark needs none with spark.dynamicAllocation.shuffleTracking.enabled=true"


def _check_log_format(conf: Configuration) -> list[Fault]:
    """A fault for aggregated logs in another format than TFile."""
    formats = logs.FILE_FORMATS
    written = formats.parse(text_of(conf, formats.key))
    if not written or written[0] == logs.TFILE or text_of(conf, logs.AGGREGATION_ENABLED.key).lower() != "true":
        return []
    problem = f"yarnling writes {logs.TFILE} only, the format of Hadoop's default"
    return [unsupported(conf, formats.key, problem, NO_EFFECT, f"write {logs.TFILE} first")]


def _check_protection(conf: Configuration) -> list[Fault]:
    """A fault for RPCs that must be signed or encrypted: Java clients would find no common protection layer."""
    key, plain = "hadoop.rpc.protection", "authentication"
    accepted = [word.strip().lower() for word in text_of(conf, key).split(",") if word.strip()]
    if not accepted or plain in accepted:
        return []
    problem = "Hadoop's RPC is neither signed nor encrypted here"
    effect = f"the files for Hadoop's clients say {plain}, and a client with files of its own cannot connect"
    return [unsupported(conf, key, problem, effect, f"write {plain}, or remove it", concern=Concern.OPERATION)]
