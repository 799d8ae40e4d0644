"""Hadoop's configuration files: what is read, what is noted and what is refused, with file and line."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.files import hadoop_xml
from wire.files.hadoop_xml import hadoop_keys, load_configuration, parse, read_configuration, read_file, to_xml
from yarn.configuration import ConfigurationException
from yarn.faults import Fault, Severity
from yarn.settings import resourcemanager
from yarn.settings.report import HadoopKeys


def xml(*properties: str) -> bytes:
    """A file with one property in each line, the first in line 3."""
    lines = ['<?xml version="1.0"?>', "<configuration>", *properties, "</configuration>"]
    return "\n".join(lines).encode()


def prop(name: str, value: str, more: str = "") -> str:
    return f"<property><name>{name}</name><value>{value}</value>{more}</property>"


def faults_of(content: bytes) -> tuple[Fault, ...]:
    with pytest.raises(ConfigurationException) as refusal:
        parse(content, "yarn-site.xml")
    return refusal.value.faults


def test_properties_know_their_file_and_line() -> None:
    conf = parse(xml(prop("a", "1"), prop("b", "2", "<final>true</final><description>why</description>")), "x.xml")
    assert (conf.get("a"), str(conf.origin("a"))) == ("1", "x.xml:3")
    assert (conf.get("b"), str(conf.origin("b"))) == ("2", "x.xml:4")
    entry = conf.entry("b")
    assert entry is not None
    assert entry.final
    assert conf.notes == ()


def test_names_are_trimmed_and_values_are_not() -> None:
    """A queue's ACL of one blank means no user: trimming would change its meaning."""
    conf = parse(xml("<property>\n<name> a\n</name><value> </value></property>"), "x.xml")
    assert conf.get("a") == " "


def test_the_short_form_and_markup_in_values() -> None:
    conf = parse(xml('<property name="a" value="1" final="true"/>', prop("b", "&lt;<![CDATA[<x>]]>&#65;")), "x.xml")
    assert conf.get("a") == "1"
    assert conf.get("b") == "<<x>A"


def test_the_last_of_two_values_holds_and_is_noted() -> None:
    conf = parse(xml(prop("a", "1"), prop("a", "2")), "x.xml")
    assert conf.get("a") == "2"
    (note,) = conf.notes
    assert str(note) == "x.xml:4: a: set again: '2' of line 4 is used, '1' is ignored (remove one of the two)"


def test_a_final_value_is_not_overridden_by_a_later_one() -> None:
    conf = parse(xml(prop("a", "1", "<final>true</final>"), prop("a", "2")), "x.xml")
    assert conf.get("a") == "1"
    assert len(conf.notes) == 1


def test_properties_that_set_nothing_are_warned_of() -> None:
    conf = parse(xml("<property><name>a</name><value/></property>", "<property><value>1</value></property>"), "x")
    assert len(conf) == 0
    assert [(note.origin.line, note.severity) for note in conf.notes] == [
        (3, Severity.WARNING),
        (4, Severity.WARNING),
    ]


def test_an_empty_value_is_only_noted_if_a_default_applies_instead() -> None:
    """Hadoop's own capacity-scheduler.xml has empty mappings, which mean what they say."""
    keys = ("queue-mappings", "workflow-priority-mappings", "root.a.maximum-capacity")
    conf = parse(xml(*(prop(f"yarn.scheduler.capacity.{key}", "") for key in keys)), "capacity-scheduler.xml")
    (note,) = conf.notes
    assert note.key == "yarn.scheduler.capacity.root.a.maximum-capacity"
    assert note.problem == "has no value, so the default applies: 100"


def test_an_element_that_is_not_understood_is_noted() -> None:
    conf = parse(xml("<propety><name>a</name></propety>", prop("b", "1")), "x.xml")
    assert conf.get("b") == "1"
    (note,) = conf.notes
    assert str(note) == "x.xml:3: <propety> is not understood (remove it)"


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"", 1, "malformed XML: no element found"),
        (b"<configuration>\n<property>\n</configuration>", 3, "malformed XML: mismatched tag"),
        (b"<configuration>\n&nbsp;</configuration>", 2, "malformed XML: undefined entity"),
        (b"<properties>\n</properties>", 1, "begins with <properties>"),
        (b"<configuration>\n\xff</configuration>", 2, "malformed XML: not well-formed (invalid token)"),
        (b'<?xml version="1.0" encoding="klingon"?><configuration/>', 1, "unknown encoding"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]>\n<configuration/>', 1, "has a DOCTYPE or entities"),
        (b'<!DOCTYPE x SYSTEM "file:///etc/passwd">\n<configuration/>', 1, "has a DOCTYPE or entities"),
        (xml('<xi:include xmlns:xi="x" href="y"/>'), 3, "<xi:include> is not supported"),
        (b"<configuration>" + b"<a>" * 20 + b"</a>" * 20 + b"</configuration>", 1, "more than 16 nested"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line(content: bytes, line: int, problem: str) -> None:
    fault = faults_of(content)[0]
    assert (fault.origin.source, fault.origin.line) == ("yarn-site.xml", line)
    assert problem in fault.problem
    assert fault.remedy


def test_entities_do_not_multiply() -> None:
    levels = [f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10)]
    bomb = f'<!DOCTYPE b [<!ENTITY l0 "x">{"".join(levels)}]><configuration>&l9;</configuration>'
    (fault,) = faults_of(bomb.encode())
    assert "has a DOCTYPE" in fault.problem


def test_a_file_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop_xml, "FILE_BYTES_MAX", 100)
    path = tmp_path / "yarn-site.xml"
    path.write_bytes(xml(prop("a", "x" * 100)))
    with pytest.raises(ConfigurationException, match=r"yarn-site\.xml: larger than 100 bytes \(split it\)"):
        read_file(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationException, match=r"No such file or directory \(give a readable file\)"):
        read_file(tmp_path / "nothing.xml")
    with pytest.raises(ConfigurationException, match="Is a directory"):
        read_file(tmp_path)


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationException, match=r"No such .*\(name a directory with yarn-site.xml or capacity-scheduler.xml\)"
    ):
        read_configuration(tmp_path / "nowhere")


def test_a_directory_is_read_in_hadoops_order(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_bytes(xml(prop("a", "core"), prop("b", "core")))
    (tmp_path / "yarn-site.xml").write_bytes(xml(prop("b", "yarn"), prop("c", "yarn")))
    (tmp_path / "capacity-scheduler.xml").write_bytes(xml(prop("c", "capacity")))
    conf = read_configuration(tmp_path, {"d": "mine"})
    assert [conf.get(key) for key in "abcd"] == ["core", "yarn", "capacity", "mine"]
    assert str(conf.origin("c")) == "capacity-scheduler.xml:3"
    assert str(conf.origin("d")) == "override"


def test_a_directory_without_any_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationException, match=r"contains none of core-site\.xml, yarn-site\.xml"):
        read_configuration(tmp_path)


def test_the_faults_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "yarn-site.xml").write_text("<configuration>")
    (tmp_path / "capacity-scheduler.xml").write_text("nothing")
    with pytest.raises(ConfigurationException) as refusal:
        read_configuration(tmp_path)
    assert [fault.origin.source for fault in refusal.value.faults] == ["yarn-site.xml", "capacity-scheduler.xml"]


def test_without_a_queue_tree_there_is_one_queue() -> None:
    conf = read_configuration()
    assert conf.get_strings("yarn.scheduler.capacity.root.queues") == ("default",)
    assert str(conf.origin("yarn.scheduler.capacity.root.queues")) == "built-in"


def test_a_queue_tree_of_ones_own_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "capacity-scheduler.xml"
    path.write_bytes(xml(prop("yarn.scheduler.capacity.root.queues", "a")))
    conf = read_configuration([path])
    assert conf.keys("yarn.scheduler.capacity.root.") == ("yarn.scheduler.capacity.root.queues",)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env.DIR}/x", "/data/x"),
        ("${env.NONE}", "${env.NONE}"),
        ("${env.NONE-d}", "d"),
        ("${env.NONE:-d}", "d"),
        ("${env.EMPTY-d}", ""),
        ("${env.EMPTY:-d}", "d"),
        ("${env.DIR}${b}", "/data2"),
        ("${env.NONE} ${env.DIR}", "${env.NONE} /data"),
        ("${env.}", "${env.}"),
    ],
)
def test_the_environment_is_replaced(text: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "yarn-site.xml"
    path.write_bytes(xml(prop("a", text), prop("b", "2")))
    conf = read_configuration([path], environ={"DIR": "/data", "EMPTY": ""})
    assert conf.get("a") == value


def test_loading_checks_and_sets_the_pace() -> None:
    conf = load_configuration(None, {"yarn.yarnling.time-factor": "0.05"})
    assert resourcemanager.NM_HEARTBEAT_INTERVAL.of(conf) == 50
    with pytest.raises(ConfigurationException) as refusal:
        load_configuration(
            None, {"yarn.scheduler.minimum-allocation-mb": "x", "yarn.resourcemanager.am.max-attempts": "0"}
        )
    assert len(refusal.value.faults) == 2


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"))


@given(st.dictionaries(TEXT.map(str.strip).filter(bool), TEXT.filter(bool), max_size=5))
def test_a_written_file_reads_as_the_same_values(values: dict[str, str]) -> None:
    conf = parse(to_xml(values).encode(), "x.xml")
    assert {key: entry.value for key in conf if (entry := conf.entry(key))} == values


def test_characters_that_xml_cannot_represent_are_refused() -> None:
    with pytest.raises(ValueError, match="contains a character that XML cannot"):
        to_xml({"a": "\x00"})


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    refusals: list[ConfigurationException] = []
    try:
        parse(content, "x.xml")
    except ConfigurationException as refusal:
        refusals.append(refusal)
    assert all(refusal.faults for refusal in refusals)


def test_hadoops_keys_include_plain_ones_and_patterns() -> None:
    keys = HadoopKeys(hadoop_keys())
    assert "yarn.web-proxy.address" in keys
    assert "yarn.nodemanager.aux-services.spark_shuffle.class" in keys
    assert "yarn.resourcemanager.address.rm1" in keys
    assert "yarn.no-such-key" not in keys


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "yarn-site.xml"
    path.write_bytes(xml())
    path.chmod(0)
    with pytest.raises(ConfigurationException, match="Permission denied"):
        read_file(path)
