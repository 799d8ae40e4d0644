"""The needs of Hadoop's own clients (Spark, Flink, MapReduce, the `yarn` command) besides the cluster's RPC ports.

They find the cluster through HADOOP_CONF_DIR, where they read core-site.xml and mapred-site.xml beside yarn-site.xml.
Their ApplicationMasters find Hadoop's jars through class paths, and the `java` that runs them through JAVA_HOME. All
this is done for a cluster with yarn.yarnling.hadoop-rpc.enabled, however the key was set (`up --hadoop`,
`LocalCluster(hadoop=True)`, a file).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from rm.shell.configuration_report import MAPREDUCE_PREFIXES
from wire.files.hadoop_xml import read_file
from yarn.configuration import Configuration
from yarn.errors import InvalidArgumentException
from yarn.settings import yarnling
from yarnling.cluster.configuration import REMOTE_LOG_KEYS
from yarnling.cluster.directory import CLIENT_FILES, CORE_SITE, LOG4J, MAPRED_SITE, ClusterDirectory

YARN_CLASS_PATH = "yarn.application.classpath"
MAPREDUCE_CLASS_PATH = "mapreduce.application.classpath"

FILE_SYSTEM = "viewfs://yarnling/"
"""The cluster's file system: Hadoop's clients find its folder in a mount table, which has no other link.

With `linkMergeSlash`, which promises the same, Hadoop lists files under wrong paths, so MapReduce finds no input:
InodeTree gives the name of the table as the resolved path.
"""
_DEFAULT_FS = "fs.defaultFS"
_MOUNT_TABLE = "fs.viewfs.mounttable.yarnling.linkFallback"
_STAGING_DIR = "yarn.app.mapreduce.am.staging-dir"
_HADOOP_HOME = "HADOOP_HOME"
_PARTS_OF_HADOOP = ("HADOOP_COMMON_HOME", "HADOOP_HDFS_HOME", "HADOOP_YARN_HOME")
_MAPREDUCE_JARS = "$HADOOP_HOME/share/hadoop/mapreduce/*,$HADOOP_HOME/share/hadoop/mapreduce/lib/*"
_SERVICE_CLIENT = "yarn.application.admin.client.class.yarn-service"
_WITHOUT_API_SERVER = "org.apache.hadoop.yarn.service.client.ServiceClient"
"""The client of YARN services that needs no API server; Hadoop's default calls one in the ResourceManager."""
_LOG4J = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""

_ABSENT_IN_SITE = {
    "yarn.resourcemanager.ha.enabled": "false",
    "yarn.client.failover-no-ha-proxy-provider": None,
    "yarn.federation.enabled": "false",
    "yarn.http.policy": "HTTP_ONLY",
    "yarn.log.server.url": None,
    "yarn.log.server.web-service.url": None,
    "yarn.nodemanager.amrmproxy.enabled": "false",
    "yarn.sharedcache.enabled": "false",
    "yarn.timeline-service.enabled": "false",
    "yarn.timeline-service.generic-application-history.enabled": "false",
    "yarn.web-proxy.address": None,
}
_ABSENT_IN_CORE = {
    "hadoop.rpc.protection": "authentication",
    "hadoop.rpc.socket.factory.class.default": None,
    "hadoop.security.authentication": "simple",
    "hadoop.socks.server": None,
}
_OTHER_FILE_SYSTEMS = {_DEFAULT_FS: FILE_SYSTEM, "fs.default.name": None}
"""The second key is the older name of the first (Configuration)."""
_ABSENT_REGISTRY = {
    "hadoop.registry.client.auth": None,
    "hadoop.registry.secure": "false",
    "hadoop.registry.zk.quorum": None,
}
_ABSENT_IN_MAPRED = {
    "mapreduce.job.sharedcache.mode": "disabled",
    "mapreduce.jobhistory.address": "",
    "mapreduce.jobhistory.webapp.address": None,
}
"""{key: value for clients, None = left out} of keys that make a client look for what the cluster does not have: another
ResourceManager (ConfiguredRMFailoverProxyProvider asks each rm-id, also one without an address, for ever), a timeline
service (YarnClientImpl), a history server, a proxy, TLS, Kerberos; or write where it should not: the registry of
services (ServiceScheduler), the file system of production."""

Files = Mapping[str, Mapping[str, str]]
"""{file name: {key: value}}."""


def are_served(conf: Configuration) -> bool:
    """True if a cluster with this configuration answers Hadoop's own clients."""
    return yarnling.HADOOP_RPC_ENABLED.of(conf)


def settings_for(hadoop: bool, class_path: str | None) -> dict[str, str]:
    """{key: value} for the options `hadoop` and `hadoop_classpath`. Raises InvalidArgumentException."""
    if not hadoop:
        if class_path is not None:
            raise InvalidArgumentException(f"hadoop_classpath = {class_path!r}: only with hadoop=True")
        return {}
    settings = {yarnling.HADOOP_RPC_ENABLED.key: "true"}
    if class_path is not None:
        jars = absolute_class_path(class_path)
        settings[YARN_CLASS_PATH] = ",".join(["$HADOOP_CONF_DIR", *jars])
        settings[MAPREDUCE_CLASS_PATH] = ",".join(jars)
    return settings


def absolute_class_path(text: str) -> list[str]:
    """The entries of a Java class path, separated by colons, each absolute.

    Raises InvalidArgumentException for an entry that does not exist or has no jars. An entry with a variable
    (`$HADOOP_HOME/lib/*`) is not changed: it is replaced in the container.
    """
    entries = [entry.strip() for entry in text.split(":") if entry.strip()]
    if not entries:
        raise InvalidArgumentException(f"class path {text!r}: has no entries (name the jars, for example 'DIR/*')")
    return [entry if "$" in entry else _absolute_entry(entry) for entry in entries]


def _absolute_entry(entry: str) -> str:
    path = Path(entry).expanduser().absolute()
    directory = path.parent
    if path.name == "*":
        if not any(directory.glob("*.[jJ][aA][rR]")):
            raise InvalidArgumentException(
                f"class path entry {entry!r}: {directory} has no jars (name their directory)"
            )
    elif "*" in path.name:
        raise InvalidArgumentException(f"class path entry {entry!r}: Java reads `*` only alone (write '{directory}/*')")
    elif not path.exists():
        raise InvalidArgumentException(f"class path entry {entry!r}: {path} does not exist (name a jar, or 'DIR/*')")
    if "," in str(path):
        raise InvalidArgumentException(
            f"class path entry {entry!r}: Hadoop cannot read a path with a comma (rename it)"
        )
    return str(path)


def files_of_user(conf: Path | None) -> dict[str, dict[str, str]]:
    """The settings in the user's core-site.xml and mapred-site.xml. `conf` is their directory, or one file.

    Raises ConfigurationException for a file that cannot be read.
    """
    found: dict[str, dict[str, str]] = {}
    for name in CLIENT_FILES:
        path = conf / name if conf is not None and conf.is_dir() else conf
        if path is not None and path.name == name and path.exists():
            values = read_file(path)
            found[name] = {key: entry.value for key in values if (entry := values.entry(key)) is not None}
    return found


def log4j_properties(conf: Path | None) -> str:
    """The user's log4j.properties if `conf` is a directory that has one, otherwise one that logs to standard error."""
    path = conf / LOG4J if conf is not None else None
    return path.read_text(errors="surrogateescape") if path is not None and path.is_file() else _LOG4J


def site_of_clients(values: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of yarn-site.xml, without what this cluster does not have; the cluster's own settings (-D) stay.

    Keys of core-site.xml are in it, too, and Hadoop reads it later.
    """
    site = {_SERVICE_CLIENT: _WITHOUT_API_SERVER, **values}
    absent = _ABSENT_IN_SITE | _ABSENT_REGISTRY | _OTHER_FILE_SYSTEMS
    site = _without_absent(_without_absent(site, settings, absent), {}, _ABSENT_IN_CORE)
    # A path alone would be one of the clients' default file system.
    return site | {key: f"file:{site[key]}" for key in REMOTE_LOG_KEYS if site.get(key, "").startswith("/")}


def _without_absent(
    values: Mapping[str, str], settings: Mapping[str, str], absent: Mapping[str, str | None]
) -> dict[str, str]:
    kept = {key: absent.get(key, value) if key not in settings else value for key, value in values.items()}
    return {key: value for key, value in kept.items() if value is not None}


def files(
    of_user: Files, settings: Mapping[str, str], directory: ClusterDirectory, environ: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """The content of core-site.xml and mapred-site.xml: the cluster's defaults, the user's files, the settings.

    Each overrides those before it, key by key, except that the user's files cannot name what the cluster does not have.
    `environ`: the environment of the NodeManagers.
    """
    core = {**_core_defaults(directory), **of_user.get(CORE_SITE, {})}
    core |= {key: settings[key] for key in core if key in settings}
    core = _without_absent(_without_absent(core, settings, _ABSENT_REGISTRY | _OTHER_FILE_SYSTEMS), {}, _ABSENT_IN_CORE)
    of_mapreduce = {key: value for key, value in settings.items() if key.startswith(MAPREDUCE_PREFIXES)}
    staging = {} if core[_DEFAULT_FS] == FILE_SYSTEM else {_STAGING_DIR: str(directory.staging)}
    mapred = {**_mapred_defaults(environ), **staging, **of_user.get(MAPRED_SITE, {}), **of_mapreduce}
    return {CORE_SITE: core, MAPRED_SITE: _without_absent(mapred, settings, _ABSENT_IN_MAPRED)}


def _core_defaults(directory: ClusterDirectory) -> dict[str, str]:
    return {
        _DEFAULT_FS: FILE_SYSTEM,
        _MOUNT_TABLE: directory.files.as_uri(),
        "hadoop.security.authentication": "simple",
    }


def _mapred_defaults(environ: Mapping[str, str]) -> dict[str, str]:
    values = {
        "mapreduce.framework.name": "yarn",
        # With an address (Hadoop's default has one) a client asks the history server when a job has ended, and there is
        # none. Without one it believes the ResourceManager's report (ClientServiceDelegate).
        "mapreduce.jobhistory.address": "",
    }
    if environ.get(_HADOOP_HOME):
        # Hadoop's default uses HADOOP_MAPRED_HOME, which NodeManagers do not pass on to containers.
        values[MAPREDUCE_CLASS_PATH] = _MAPREDUCE_JARS
    return values


def client_environment(conf_dir: Path) -> dict[str, str]:
    """{variable: value} by which Hadoop's own clients find the cluster."""
    return {"HADOOP_CONF_DIR": str(conf_dir), "YARN_CONF_DIR": str(conf_dir)}


def node_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """{variable: value} that NodeManagers pass on to containers, as far as `environ` lacks them.

    The homes of Hadoop's parts are in HADOOP_HOME unless they are set (hadoop-functions.sh).
    """
    found: dict[str, str] = {}
    if not environ.get("JAVA_HOME") and (home := java_home(environ)) is not None:
        found["JAVA_HOME"] = home
    if hadoop_home := environ.get(_HADOOP_HOME):
        found |= {name: hadoop_home for name in _PARTS_OF_HADOOP if not environ.get(name)}
    return found


def java_home(environ: Mapping[str, str]) -> str | None:
    """The home of the `java` in PATH, which usually is a symbolic link to it; None if there is none."""
    java = shutil.which("java", path=environ.get("PATH", os.defpath))
    if java is None:
        return None
    home = Path(java).resolve().parent.parent
    # Not so for a version manager's script that starts the real one.
    return str(home) if (home / "bin" / "java").exists() else None


def java_notice(environ: Mapping[str, str]) -> str:
    """A line for the user about the Java of containers; "" if JAVA_HOME names one."""
    home = environ.get("JAVA_HOME")
    if home:
        if os.access(os.path.join(home, "bin", "java"), os.X_OK):
            return ""
        return f"JAVA_HOME = {home} has no bin/java: programs in Java will not start in containers (correct it)"
    found = java_home(environ)
    if found is None:
        return "No Java was found: programs in Java will not start in containers (install one, or set JAVA_HOME)"
    return f"JAVA_HOME is not set: containers get JAVA_HOME={found}, where the java in PATH is"
