"""The configuration of a local cluster: the user's files, what the cluster sets itself, and the user's settings.

Each of these overrides the ones before it. The cluster sets only what must differ here: places (addresses,
directories), and a few defaults for a machine that is not in a data centre.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from rm.shell.configuration_report import KEYS_OF_CLIENTS, configuration_report
from wire.files.hadoop_xml import hadoop_keys, read_configuration
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import FAULTS_COUNTED, ConfigurationException, Fault, refuse_if_faulty
from yarn.settings import logs, nodemanager, resourcemanager, yarnling
from yarn.settings.folding import folded, general_key
from yarn.settings.kinds import AddressSetting
from yarn.settings.registry import setting_of
from yarn.settings.report import ConfigurationReport, HadoopKeys, KeyUnknown, describe
from yarnling.cluster.directory import QUEUE_STORE, REMOTE_LOGS, STATE_STORE, ClusterDirectory, NodePlace
from yarnling.cluster.resource_managers import ids_of, with_single

ORIGIN = "LocalCluster"
"""The origin of values that the cluster chooses itself."""
ANY_PORT = "127.0.0.1:0"
READY_MADE = ("default", "all")
"""The tables of emulated containers that come with yarnling (nm.emulation)."""
TABLE_MAPPING = "org.apache.hadoop.net.TableMapping"

RM_ADDRESSES = (
    resourcemanager.ADDRESS.key,
    resourcemanager.SCHEDULER_ADDRESS.key,
    resourcemanager.RESOURCE_TRACKER_ADDRESS.key,
    resourcemanager.ADMIN_ADDRESS.key,
)

REMOTE_LOG_KEYS = (logs.REMOTE_APP_LOG_DIR.key, logs.TFILE_REMOTE_APP_LOG_DIR.key)
PLACES = (
    *RM_ADDRESSES,
    resourcemanager.WEBAPP_ADDRESS.key,
    nodemanager.ADDRESS.key,
    nodemanager.WEBAPP_ADDRESS.key,
    nodemanager.LOCAL_DIRS.key,
    nodemanager.LOG_DIRS.key,
    *REMOTE_LOG_KEYS,
    resourcemanager.CONFIGURATION_FS_PATH.key,
)
"""Keys whose values in files belong to other machines: only this cluster's `settings` can set them."""

# Used unless the user's files or settings have the key.
DEFAULTS = {
    # The disk of a laptop is often more than 90 % full, and then every node would be unhealthy.
    nodemanager.MAX_DISK_UTILIZATION_PERCENTAGE.key: "100.0",
    # On a full disk containers would fail without a message, because there is no room for their logs.
    nodemanager.MIN_FREE_SPACE_PER_DISK_MB.key: "16",
    # Because of the stacks of gRPC's threads and allocator arenas an AM reserves half a GB and touches 45 MB.
    # Distributions of Hadoop disable this check too.
    nodemanager.VMEM_CHECK_ENABLED.key: "false",
    # Hadoop's default is none, but every Hadoop that runs map-reduce has it, and so does our own map-reduce.
    nodemanager.AUX_SERVICES.key: nodemanager.MAPREDUCE_SHUFFLE,
    # Relative to the cluster's directory.
    yarnling.STATE_STORE_FILE.key: STATE_STORE,
}

DEFAULTS_FOR_HADOOP = {
    # `yarn logs` reads only what is aggregated: it asks each node itself for other logs, through its web server.
    logs.AGGREGATION_ENABLED.key: "true",
}
"""Used in addition by a cluster that answers Hadoop's own clients."""


def definitions(texts: Iterable[str], option: str = "-D", form: str = "KEY=VALUE") -> dict[str, str]:
    """{key: value} of KEY=VALUE texts. Raises YarnException, which names the option and the form that its help has, for
    other texts.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise YarnException(f"{option} {text}: must be {form}")
        found[key.strip()] = value.strip()
    return found


def unknown_keys(settings: Mapping[str, str]) -> tuple[KeyUnknown, ...]:
    """The keys that neither yarnling nor Hadoop knows."""
    strangers = {
        key: value for key, value in settings.items() if setting_of(key) is None and not key.startswith(KEYS_OF_CLIENTS)
    }
    return (
        describe(Configuration().overridden(strangers, ORIGIN), HadoopKeys(hadoop_keys())).unknown if strangers else ()
    )


class ClusterConfiguration(Struct, frozen=True):
    """The configuration of a cluster without its places, composed once, with everything that is said about it.

    `settings` {key: value} are the user's, and `own` those that the cluster's options request; both override files.
    `given`: what the user wrote, in files and settings; `conf`: all of it, with the defaults of a local cluster.
    `report`: every key with its state and origin, and all faults.
    """

    conf_dir: Path | None
    settings: Mapping[str, str]
    own: Mapping[str, str]
    given: Configuration
    conf: Configuration
    report: ConfigurationReport

    @property
    def overrides(self) -> dict[str, str]:
        """{key: value} of everything that overrides files."""
        return {**self.own, **self.settings}

    def accepted(self) -> ClusterConfiguration:
        """The configuration itself. Raises ConfigurationException with every fault if it is refused."""
        refuse_if_faulty(self.report.faults)
        return self

    def notices(self) -> list[str]:
        """Lines on how many of the user's keys are read, and which are unknown or suspicious; none without keys."""
        if self.conf_dir is None and not self.settings:
            return []
        unknown = [key for key in self.report.unknown if key.key in self.given]
        read, ignored = (sum(key.key in self.given for key in keys) for keys in (self.report.read, self.report.ignored))
        counts = f"{read} keys read, {ignored} ignored, {len(unknown)} unknown"
        where = "" if self.conf_dir is None else f" (yarnling config --conf {self.conf_dir} lists them)"
        lines = [f"Configuration: {counts}{where}"]
        if own := self.replaced():
            lines.append(f"Set by the cluster itself (override with -D): {', '.join(own)}")
        lines += unknown_kinds(unknown)
        listed = {key.key for key in unknown}
        warnings = [str(kind) for kind in folded(fault for fault in self.report.faults if fault.key not in listed)]
        lines += [f"warning: {warning}" for warning in warnings]
        if len(warnings) > FAULTS_COUNTED:
            lines.append(f"{len(warnings)} kinds of warnings, {counts}")
        return lines

    def replaced(self) -> list[str]:
        """The keys of the user's files that the cluster overrides, for example `KEY (yarn-site.xml:3)`."""
        entries = [(key, self.given.entry(key)) for key in PLACES if key not in self.settings]
        return [f"{key} ({entry.origin})" for key, entry in entries if entry is not None]


def unknown_kinds(unknown: Iterable[KeyUnknown]) -> Iterator[str]:
    """A line for each kind of unknown key, with its first key and their number: a key of many queues is one kind."""
    kinds: dict[str, list[KeyUnknown]] = {}
    for key in unknown:
        kinds.setdefault(general_key(key.key), []).append(key)
    for first, *others in kinds.values():
        nearest = f", perhaps {first.nearest}" if first.nearest else ""
        more = f" (and {len(others)} more of this kind)" if others else ""
        yield f"unknown: {first.origin}: {first.key} = {first.value!r}{nearest}{more}"


def compose(
    conf_dir: Path | None, settings: Mapping[str, str], own: Mapping[str, str] = MappingProxyType({})
) -> ClusterConfiguration:
    """The configuration in a directory under `settings`. Raises ConfigurationException for files that cannot be read.

    `own` {key: value} is what the cluster's options request, for example the memory of nodes; it overrides files.
    """
    given = read_configuration(conf_dir, settings)
    conf = given.overridden({key: value for key, value in own.items() if key not in settings}, ORIGIN)
    defaults = {**DEFAULTS, **DEFAULTS_FOR_HADOOP} if yarnling.HADOOP_RPC_ENABLED.of(conf) else DEFAULTS
    conf = conf.overridden({key: value for key, value in defaults.items() if key not in conf}, ORIGIN)
    report = configuration_report(conf, _emulation_faults(conf))
    # The cluster has its own place for logs. That in a file must not be checked: it may be in HDFS.
    elsewhere = frozenset(REMOTE_LOG_KEYS).difference(settings)
    report = report.with_faults(fault for fault in report.faults if fault.key not in elsewhere)
    conf = with_remote_logs(conf, settings, Path("/"))
    return ClusterConfiguration(conf_dir, settings, own, given, conf, report)


def composed(conf_dir: Path | None, settings: Mapping[str, str], own: Mapping[str, str]) -> Configuration:
    """The values alone of a configuration; see `compose`. Raises ConfigurationException with all its faults."""
    return compose(conf_dir, settings, own).accepted().conf


def emulation_setting(emulated: bool | Path | str) -> dict[str, str]:
    """{key: value} for the option `emulated`: True is the table `default`, a path another one."""
    if emulated is False:
        return {}
    return {yarnling.EMULATION_TABLE.key: READY_MADE[0] if emulated is True else str(emulated)}


def _emulation_faults(conf: Configuration) -> tuple[Fault, ...]:
    """The faults of the table of emulated containers, if one is configured."""
    if yarnling.EMULATION_TABLE.maybe_of(conf) is None:
        return ()
    from nm.emulation.table_file import read_emulation

    try:
        read_emulation(conf)
    except ConfigurationException as refusal:
        return refusal.faults
    return ()


def with_remote_logs(conf: Configuration, settings: Mapping[str, str], directory: Path) -> Configuration:
    """`conf` with a remote log directory in the cluster's directory, unless the settings name one."""
    if any(key in settings for key in REMOTE_LOG_KEYS):
        return conf
    keys = [key for key in REMOTE_LOG_KEYS if key in conf or key == logs.REMOTE_APP_LOG_DIR.key]
    return conf.overridden(dict.fromkeys(keys, str(directory / REMOTE_LOGS)), ORIGIN)


def with_queue_store(conf: Configuration, settings: Mapping[str, str], directory: Path) -> Configuration:
    """`conf` with the store fs of queues in the cluster's directory, unless the settings name a place.

    A place in a file belongs to another machine, or is in HDFS.
    """
    key = resourcemanager.CONFIGURATION_FS_PATH.key
    if key in settings or resourcemanager.CONFIGURATION_STORE_CLASS.of(conf) != "fs":
        return conf
    return conf.overridden({key: str(directory / QUEUE_STORE)}, ORIGIN)


def node_sizes(memory_mb: int | None, vcores: int | None) -> dict[str, str]:
    """{key: value} for the sizes that are not None; the others have Hadoop's defaults."""
    asked = {nodemanager.RESOURCE_MEMORY_MB.key: memory_mb, nodemanager.RESOURCE_CPU_VCORES.key: vcores}
    return {key: str(value) for key, value in asked.items() if value is not None}


def first_addresses(settings: Mapping[str, str]) -> dict[str, str]:
    """{key: host:port} where the RM is to listen; a free port unless the settings name one."""
    return {key: settings.get(key, ANY_PORT) for key in RM_ADDRESSES}


def web_address(settings: Mapping[str, str], first_port: int) -> str:
    """host:port where the RM's web services are to be: the next free port from `first_port` on, 0 for any free one.

    An address in the settings is taken as it is.
    """
    return settings.get(resourcemanager.WEBAPP_ADDRESS.key, f"127.0.0.1:{first_port}")


def file_values(
    conf: Configuration, addresses: Mapping[str, str], directory: ClusterDirectory, *, racks: bool, name: str = ""
) -> dict[str, str]:
    """{key: value} for the cluster's own files: values as the user wrote them, and the places of this cluster.

    `name`: the cluster's, which its pages show unless the user's files name it.
    """
    values = {key: entry.value for key in conf if (entry := conf.entry(key)) is not None}
    values = values if ids_of(conf) else with_single(values)
    values |= addresses
    values[yarnling.CLUSTER_SECRET_FILE.key] = str(directory.secret_file)
    values[yarnling.STATE_STORE_FILE.key] = str(directory.path / values[yarnling.STATE_STORE_FILE.key])
    values.setdefault(yarnling.WATCH_DIR.key, str(directory.watch))
    values.setdefault(resourcemanager.NODES_EXCLUDE_PATH.key, str(directory.excluded_hosts))
    if name:
        values.setdefault(resourcemanager.CLUSTER_ID.key, name)
    # Daemons may have another working directory.
    for setting in (yarnling.EMULATION_TABLE, yarnling.PREDICTION_WORKLOAD, yarnling.PREDICTION_NODES):
        name = values.get(setting.key, "").strip()
        if name and name not in READY_MADE:
            values[setting.key] = str(Path(name).absolute())
    if racks:
        values[yarnling.NODE_SWITCH_MAPPING.key] = TABLE_MAPPING
        values[yarnling.TOPOLOGY_TABLE_FILE.key] = str(directory.topology_table)
    return values


def node_overrides(places: Sequence[NodePlace], settings: Mapping[str, str]) -> dict[str, str]:
    """{key: value} for one NodeManager process: host of its first node, port from the settings, directories.

    Each process, and in a pack each node, gets its own subdirectory of the directories in the settings.
    """
    first = places[0]
    return {
        nodemanager.HOSTNAME.key: first.host,
        nodemanager.ADDRESS.key: f"{first.host}:{_port(nodemanager.ADDRESS, settings)}",
        nodemanager.WEBAPP_ADDRESS.key: f"{first.host}:{_port(nodemanager.WEBAPP_ADDRESS, settings)}",
        nodemanager.LOCAL_DIRS.key: ",".join(map(str, _process_dirs(first, local_dirs(first, settings)))),
        nodemanager.LOG_DIRS.key: ",".join(map(str, _process_dirs(first, log_dirs(first, settings)))),
        yarnling.PACK.key: str(len(places)),
    }


def _port(setting: AddressSetting, settings: Mapping[str, str]) -> int:
    """The port in the settings; 0 if they name none."""
    return setting.parse(settings[setting.key])[1] if setting.key in settings else 0


def local_dirs(place: NodePlace, settings: Mapping[str, str]) -> list[Path]:
    """The node's local directories."""
    return _node_dirs(place, settings.get(nodemanager.LOCAL_DIRS.key)) or [place.local_dir]


def log_dirs(place: NodePlace, settings: Mapping[str, str]) -> list[Path]:
    """The node's directories for the logs of containers."""
    return _node_dirs(place, settings.get(nodemanager.LOG_DIRS.key)) or [place.log_dir]


def _node_dirs(place: NodePlace, setting: str | None) -> list[Path]:
    parts = [part.strip() for part in (setting or "").split(",")]
    dirs = [Path(part) / place.process for part in parts if part]
    return [path / place.host for path in dirs] if place.is_packed else dirs


def _process_dirs(place: NodePlace, dirs: Iterable[Path]) -> list[Path]:
    """The directories of the node's process; those of a packed node are below them, named after its host."""
    return [path.parent for path in dirs] if place.is_packed else list(dirs)
