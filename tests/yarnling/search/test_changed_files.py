"""The files of the changed configuration: only values change, and a diff shows it."""

from __future__ import annotations

from pathlib import Path

from yarnling.search.changed_files import with_values, write_changed

BEFORE = """<?xml version="1.0"?>
<configuration>
  <!-- etl needs it at night: <property><name>a.b</name><value>1</value></property> -->
  <property>
    <name> a.b </name>  <!-- in percent -->
    <value>60</value>
    <description>a.b &amp; co</description>
  </property>
  <property><value>x</value><name>c</name></property>
</configuration>
"""


def test_only_the_value_of_the_key_changes() -> None:
    assert with_values(BEFORE, {"a.b": "45"}) == BEFORE.replace("<value>60</value>", "<value>45</value>")
    assert with_values(BEFORE, {"c": "y < z"}) == BEFORE.replace("<value>x</value>", "<value>y &lt; z</value>")


def test_a_new_key_is_added_at_the_end() -> None:
    added = "  <property>\n    <name>new</name>\n    <value>1</value>\n  </property>\n</configuration>"
    assert with_values(BEFORE, {"new": "1"}) == BEFORE.replace("</configuration>", added)


def test_the_directory_has_all_files_and_the_diff_what_differs(tmp_path: Path) -> None:
    before, out = tmp_path / "before", tmp_path / "out"
    before.mkdir()
    key = "yarn.scheduler.capacity.root.etl.capacity"
    text = f"<configuration>\n  <property><name>{key}</name><value>60</value></property>\n</configuration>\n"
    (before / "capacity-scheduler.xml").write_text(text)
    (before / "core-site.xml").write_text("<configuration></configuration>")
    diff, by_hand = write_changed(before, {key: "45", "yarn.resourcemanager.scheduler.monitor.enable": "true"}, out)
    assert by_hand == []
    assert sorted(path.name for path in out.iterdir()) == ["capacity-scheduler.xml", "core-site.xml", "yarn-site.xml"]
    assert (out / "capacity-scheduler.xml").read_text() == text.replace("60", "45")
    assert diff.splitlines()[:7] == [
        f"--- {before}/yarn-site.xml",
        f"+++ {out}/yarn-site.xml",
        "@@ -1,2 +1,6 @@",
        " <configuration>",
        "+  <property>",
        "+    <name>yarn.resourcemanager.scheduler.monitor.enable</name>",
        "+    <value>true</value>",
    ]
    assert "-  <property><name>" + key in diff


def test_a_value_that_cannot_be_changed_is_named(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    text = "<configuration><property value='60' name='yarn.x'/></configuration>"
    (tmp_path / "before" / "yarn-site.xml").write_text(text)
    assert write_changed(tmp_path / "before", {"yarn.x": "1"}, tmp_path / "out")[1] in ([], ["yarn.x"])
