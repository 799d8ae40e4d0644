"""A cluster's provisions for Hadoop's own clients: the files they read, class paths, and the Java of containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from wire.files.hadoop_xml import read_file, to_xml
from yarn.configuration import Configuration
from yarn.errors import InvalidArgumentException
from yarn.faults import ConfigurationException
from yarn.settings import logs, yarnling
from yarnling.cluster.configuration import compose, composed, unknown_keys
from yarnling.cluster.directory import ClusterDirectory
from yarnling.cluster.hadoop_clients import (
    absolute_class_path,
    are_served,
    files,
    files_of_user,
    java_home,
    java_notice,
    log4j_properties,
    node_environment,
    settings_for,
    site_of_clients,
)
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.running_cluster import RunningCluster

ON = {yarnling.HADOOP_RPC_ENABLED.key: "true"}

MOUNT_TABLE = "fs.viewfs.mounttable.yarnling.linkFallback"


@pytest.fixture
def directory(tmp_path: Path) -> ClusterDirectory:
    made = ClusterDirectory(tmp_path / "cluster", temporary=False)
    made.conf.mkdir(parents=True)
    return made


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    """A directory with a jar."""
    made = tmp_path / "jars"
    made.mkdir()
    (made / "hadoop-client.jar").touch()
    return made


def java_in(home: Path) -> Path:
    """A program `java` in the directory bin of `home`."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    return java


# Settings


def test_the_option_is_a_setting_which_a_setting_of_the_user_overrides() -> None:
    assert settings_for(False, None) == {}
    assert settings_for(True, None) == ON
    assert not are_served(composed(None, {}, {}))
    assert are_served(composed(None, settings_for(True, None), {}))


def test_the_class_path_is_that_of_yarn_and_of_mapreduce(jars: Path) -> None:
    """Hadoop separates entries by commas; the AM of MapReduce reads both keys."""
    settings = settings_for(True, f"{jars}/*:$HADOOP_HOME/more/*")
    assert settings["yarn.application.classpath"] == f"$HADOOP_CONF_DIR,{jars}/*,$HADOOP_HOME/more/*"
    assert settings["mapreduce.application.classpath"] == f"{jars}/*,$HADOOP_HOME/more/*"


def test_keys_of_mapreduce_are_passed_on_without_a_warning(jars: Path) -> None:
    """`--hadoop-classpath` sets one, and was answered with: is not a known key, and has no effect."""
    own = {"yarn.app.mapreduce.am.resource.mb": "512", "yarn.service.am-resource.memory": "512"}
    assert compose(None, {**settings_for(True, f"{jars}/*"), **own}).report.warnings == ()
    assert len(compose(None, own).report.warnings) == 2, "without --hadoop they have no effect"
    assert unknown_keys({"mapreduce.application.classpath": "/x/*", **own}) == (), "LocalCluster refused the first"


def test_a_relative_class_path_is_made_absolute(jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(jars.parent)
    assert absolute_class_path("jars/* : jars/hadoop-client.jar:jars") == [
        f"{jars}/*",
        f"{jars}/hadoop-client.jar",
        str(jars),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no entries"),
        ("{jars}/none/*", r"class path entry '.*none/\*': .*none has no jars \(name their directory\)"),
        ("{jars}/*.jar", r"Java reads `\*` only alone \(write '.*jars/\*'\)"),
        ("{jars}/gone.jar", "gone.jar does not exist"),
        ("{jars}/a,b", "Hadoop cannot read a path with a comma"),
    ],
)
def test_a_class_path_without_jars_is_refused(jars: Path, text: str, message: str) -> None:
    (jars / "a,b").mkdir()
    with pytest.raises(InvalidArgumentException, match=message):
        absolute_class_path(text.format(jars=jars))


def test_a_class_path_is_refused_without_hadoop() -> None:
    with pytest.raises(InvalidArgumentException, match="hadoop_classpath = 'x': only with hadoop=True"):
        LocalCluster(options=ClusterOptions(hadoop_classpath="x"))


# Files


def test_the_files_have_what_a_single_machine_needs(directory: ClusterDirectory) -> None:
    assert files({}, {}, directory, {}) == {
        "core-site.xml": {
            "fs.defaultFS": "viewfs://yarnling/",
            MOUNT_TABLE: f"file://{directory.path}/files",
            "hadoop.security.authentication": "simple",
        },
        "mapred-site.xml": {"mapreduce.framework.name": "yarn", "mapreduce.jobhistory.address": ""},
    }


def test_the_laptops_files_can_be_the_default_file_system(directory: ClusterDirectory) -> None:
    """Then MapReduce needs a staging directory of its own: Hadoop's default would be the laptop's /tmp."""
    written = files({}, {"fs.defaultFS": "file:///"}, directory, {})
    assert written["core-site.xml"]["fs.defaultFS"] == "file:///"
    assert written["mapred-site.xml"]["yarn.app.mapreduce.am.staging-dir"] == str(directory.staging)


def test_the_file_system_has_the_directories_of_hdfs(directory: ClusterDirectory) -> None:
    for _ in range(2):
        directory.make_files("ann")
    modes = {path.relative_to(directory.files): path.stat().st_mode & 0o7777 for path in directory.files.rglob("*")}
    assert modes == {Path("tmp"): 0o1777, Path("user"): 0o755, Path("user/ann"): 0o755}


def test_clients_find_aggregated_logs_whatever_their_file_system_is() -> None:
    key = "yarn.nodemanager.remote-app-log-dir"
    assert site_of_clients({key: "/c/remote logs"}, {})[key] == "file:/c/remote logs"
    assert site_of_clients({key: "file:///mine"}, {})[key] == "file:///mine"


def test_the_users_files_and_settings_win_key_by_key(directory: ClusterDirectory, tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text(to_xml({MOUNT_TABLE: "file:///mine", "io.file.buffer.size": "1"}))
    (tmp_path / "mapred-site.xml").write_text(to_xml({"mapreduce.framework.name": "local", "mapreduce.job.maps": "1"}))
    settings = {"mapreduce.job.maps": "7", "io.file.buffer.size": "7", "yarn.nodemanager.vmem-pmem-ratio": "7"}
    written = files(files_of_user(tmp_path), settings, directory, {})
    assert written["core-site.xml"] == {
        "fs.defaultFS": "viewfs://yarnling/",
        MOUNT_TABLE: "file:///mine",
        "hadoop.security.authentication": "simple",
        "io.file.buffer.size": "7",
    }
    assert written["mapred-site.xml"] == {
        "mapreduce.framework.name": "local",
        "mapreduce.jobhistory.address": "",
        "mapreduce.job.maps": "7",
    }


SERVICES = {"yarn.application.admin.client.class.yarn-service": "org.apache.hadoop.yarn.service.client.ServiceClient"}


def test_what_the_cluster_does_not_have_is_switched_off_for_clients() -> None:
    """With HA, ConfiguredRMFailoverProxyProvider asks the address of each rm-id for ever."""
    running = {"yarn.resourcemanager.address": "127.0.0.1:4711", "yarn.resourcemanager.ha.rm-ids": "rm1,rm2"}
    production = {
        "yarn.resourcemanager.ha.enabled": "true",
        "yarn.timeline-service.enabled": "true",
        "yarn.federation.enabled": "true",
        "yarn.http.policy": "HTTPS_ONLY",
        "hadoop.security.authentication": "kerberos",
        "yarn.log.server.url": "https://history.example.org/logs",
        "yarn.web-proxy.address": "proxy.example.org:9046",
    }
    assert site_of_clients({**running, **production}, {}) == {
        **running,
        **SERVICES,
        "yarn.resourcemanager.ha.enabled": "false",
        "yarn.timeline-service.enabled": "false",
        "yarn.federation.enabled": "false",
        "yarn.http.policy": "HTTP_ONLY",
        "hadoop.security.authentication": "simple",
    }
    own = {"yarn.timeline-service.enabled": "true"}
    assert site_of_clients({**running, **own}, own) == {**running, **SERVICES, **own}, "the user says so with -D"


def test_services_do_not_register_in_the_registry_of_production(directory: ClusterDirectory) -> None:
    """A service's AM (ServiceScheduler) would write its records into that ZooKeeper, and `-destroy` delete there."""
    registry = {
        "hadoop.registry.zk.quorum": "zk1.example.org:2181",
        "hadoop.registry.secure": "true",
        "hadoop.registry.client.auth": "kerberos",
        "hadoop.registry.zk.retry.times": "3",
    }
    own = {"hadoop.registry.secure": "false", "hadoop.registry.zk.retry.times": "3"}
    core = files({"core-site.xml": registry}, {}, directory, {})["core-site.xml"]
    assert {key: value for key, value in core.items() if key.startswith("hadoop.registry")} == own
    assert site_of_clients(registry, {}) == {**SERVICES, **own}
    mine = {"hadoop.registry.zk.quorum": "localhost:4711"}
    assert site_of_clients(mine, mine) == {**SERVICES, **mine}, "the user says so with -D"
    assert files({"core-site.xml": registry}, mine, directory, {})["core-site.xml"].items() >= mine.items()


@pytest.mark.parametrize("key", ["fs.defaultFS", "fs.default.name"])
def test_clients_do_not_write_into_the_file_system_of_production(directory: ClusterDirectory, key: str) -> None:
    production = {key: "hdfs://nn.example.org:8020"}
    written = files({"core-site.xml": production}, {}, directory, {})
    assert written["core-site.xml"] == files({}, {}, directory, {})["core-site.xml"]
    assert "hdfs://nn.example.org:8020" not in site_of_clients(production, {}).values()
    mine = {"fs.defaultFS": "hdfs://localhost:4711"}
    assert files({"core-site.xml": production}, mine, directory, {})["core-site.xml"].items() >= mine.items()
    assert site_of_clients(mine, mine).items() >= mine.items(), "the user says so with -D"


def test_the_files_say_how_the_cluster_is_reached(directory: ClusterDirectory) -> None:
    core = {
        "hadoop.security.authentication": "kerberos",
        "hadoop.rpc.protection": "privacy",
        "hadoop.socks.server": "s:1",
    }
    mapred = {"mapreduce.jobhistory.address": "history.example.org:10020"}
    written = files({"core-site.xml": core, "mapred-site.xml": mapred}, {}, directory, {})
    assert written["core-site.xml"] == {
        "fs.defaultFS": "viewfs://yarnling/",
        MOUNT_TABLE: f"file://{directory.path}/files",
        "hadoop.security.authentication": "simple",
        "hadoop.rpc.protection": "authentication",
    }
    assert written["mapred-site.xml"]["mapreduce.jobhistory.address"] == ""


def test_one_file_of_the_user_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text(to_xml({"a": "1"}))
    assert files_of_user(None) == {}
    assert files_of_user(tmp_path / "core-site.xml") == {"core-site.xml": {"a": "1"}}
    assert files_of_user(tmp_path / "yarn-site.xml") == {}


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mapred-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigurationException, match=r"mapred-site\.xml"):
        files_of_user(tmp_path)


def test_the_jars_of_mapreduce_are_below_hadoop_home(directory: ClusterDirectory) -> None:
    """Containers have HADOOP_HOME, but not HADOOP_MAPRED_HOME, which Hadoop's default names."""
    key = "mapreduce.application.classpath"
    written = files({}, {}, directory, {"HADOOP_HOME": "/opt/hadoop"})["mapred-site.xml"]
    assert written[key] == "$HADOOP_HOME/share/hadoop/mapreduce/*,$HADOOP_HOME/share/hadoop/mapreduce/lib/*"
    assert files({}, {key: "/x"}, directory, {"HADOOP_HOME": "/opt"})["mapred-site.xml"][key] == "/x"


def test_an_empty_address_of_the_history_server_is_written_so_that_hadoop_reads_it(
    directory: ClusterDirectory,
) -> None:
    """`<value></value>` would leave Hadoop's default, an address that nothing listens on (Configuration.Parser)."""
    directory.write_configuration({}, files({}, {}, directory, {}))
    written = read_file(directory.conf / "mapred-site.xml")
    assert written.get("mapreduce.jobhistory.address") == ""
    assert (
        '<property value=""><name>mapreduce.jobhistory.address</name>'
        in (directory.conf / "mapred-site.xml").read_text()
    )


def test_files_of_an_earlier_cluster_are_deleted(directory: ClusterDirectory) -> None:
    directory.write_configuration({}, files({}, {}, directory, {}))
    assert (directory.conf / "core-site.xml").exists()
    directory.write_configuration({})
    assert sorted(path.name for path in directory.conf.iterdir()) == ["capacity-scheduler.xml", "yarn-site.xml"]


def test_clients_log_to_standard_error_unless_the_user_has_another_log4j(directory: ClusterDirectory) -> None:
    """Without the file Hadoop's clients print "No appenders could be found", and nothing of a job's progress."""
    conf = directory.path / "mine"
    conf.mkdir()
    text = log4j_properties(conf)
    assert text == log4j_properties(None)
    assert "log4j.rootLogger=INFO,console\n" in text
    directory.write_configuration({}, files({}, {}, directory, {}), text)
    assert (directory.conf / "log4j.properties").read_text() == text
    (conf / "log4j.properties").write_text("log4j.rootLogger=OFF\n")
    assert log4j_properties(conf) == "log4j.rootLogger=OFF\n"


def test_logs_are_aggregated_unless_the_user_says_otherwise() -> None:
    """`yarn logs` reads aggregated logs."""
    key = logs.AGGREGATION_ENABLED
    assert [key.of(composed(None, conf, {})) for conf in ({}, ON, {**ON, key.key: "false"})] == [False, True, False]


# Java


def test_java_is_found_through_the_links_in_path(tmp_path: Path) -> None:
    real = java_in(tmp_path / "jdk-17")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "java").symlink_to(real)
    environ = {"PATH": str(bin_)}
    assert java_home(environ) == str(tmp_path / "jdk-17")
    assert node_environment(environ) == {"JAVA_HOME": str(tmp_path / "jdk-17")}
    assert java_notice(environ) == (
        f"JAVA_HOME is not set: containers get JAVA_HOME={tmp_path}/jdk-17, where the java in PATH is"
    )


def test_a_script_that_starts_java_is_not_its_home(tmp_path: Path) -> None:
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "java").write_text("#!/bin/sh\n")
    (shims / "java").chmod(0o755)
    assert java_home({"PATH": str(shims)}) is None


def test_java_home_is_kept_if_it_is_set(tmp_path: Path) -> None:
    home = str(java_in(tmp_path / "jdk-8").parent.parent)
    java_in(tmp_path / "jdk-17")
    environ = {"JAVA_HOME": home, "PATH": str(tmp_path / "jdk-17" / "bin")}
    assert node_environment(environ) == {}
    assert java_notice(environ) == ""


@pytest.mark.parametrize(
    ("environ", "notice"),
    [
        ({"PATH": "/nowhere"}, "No Java was found: programs in Java will not start in containers"),
        ({"JAVA_HOME": "/nowhere"}, "JAVA_HOME = /nowhere has no bin/java: programs in Java will not start"),
    ],
)
def test_missing_java_is_reported_and_nothing_is_set(environ: dict[str, str], notice: str) -> None:
    assert java_notice(environ).startswith(notice)
    assert node_environment(environ) == {}


def test_the_homes_of_hadoops_parts_are_hadoop_home_unless_they_are_set() -> None:
    """As hadoop-functions.sh: Hadoop's default of yarn.application.classpath names these."""
    environ = {"HADOOP_HOME": "/opt/hadoop", "HADOOP_YARN_HOME": "/opt/yarn", "JAVA_HOME": "/opt/java"}
    assert node_environment(environ) == {"HADOOP_COMMON_HOME": "/opt/hadoop", "HADOOP_HDFS_HOME": "/opt/hadoop"}


def test_a_cluster_without_hadoop_has_no_environment_for_it() -> None:
    class Daemons:
        configuration = Configuration()

    with pytest.raises(InvalidArgumentException, match="start it with hadoop=True"):
        _ = RunningCluster(Daemons()).hadoop_environment  # type: ignore[arg-type]
