"""The files of included and excluded hosts, as HostsFileReader reads them."""

from pathlib import Path

import pytest

from rm.shell.configuration_files import read_hosts
from yarn.errors import YarnException
from yarn.settings.resourcemanager import NODES_EXCLUDE_PATH


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_hosts_stand_on_lines_with_blanks_and_comments(tmp_path: Path) -> None:
    path = written(tmp_path / "hosts", "n1 n2\n\n  # all of these\nn3 # the third\n")
    assert read_hosts(NODES_EXCLUDE_PATH, path) == (("n1", None), ("n2", None), ("n3", None))


def test_xml_gives_hosts_their_times(tmp_path: Path) -> None:
    text = "<hosts><host><name>n1, n2</name><timeout>60</timeout></host><host><name>n3</name></host></hosts>"
    path = written(tmp_path / "hosts.xml", f'<?xml version="1.0"?>{text}')
    assert read_hosts(NODES_EXCLUDE_PATH, path) == (("n1", 60), ("n2", 60), ("n3", None))


def test_without_a_path_the_list_is_empty() -> None:
    assert read_hosts(NODES_EXCLUDE_PATH, "") == ()


def test_a_file_that_cannot_be_read_is_named_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(YarnException, match=r"exclude-path = .*/none: No such file"):
        read_hosts(NODES_EXCLUDE_PATH, str(tmp_path / "none"))
    broken = written(tmp_path / "broken.xml", "<hosts>")
    with pytest.raises(YarnException, match=r"broken.xml: malformed or unsupported XML"):
        read_hosts(NODES_EXCLUDE_PATH, broken)
    entities = written(tmp_path / "entities.xml", '<!DOCTYPE a [<!ENTITY b "c">]><hosts>&b;</hosts>')
    with pytest.raises(YarnException, match=r"entities.xml: malformed or unsupported XML"):
        read_hosts(NODES_EXCLUDE_PATH, entities)
    late = written(tmp_path / "late.xml", "<hosts><host><name>n1</name><timeout>soon</timeout></host></hosts>")
    with pytest.raises(YarnException, match="timeout 'soon' is not a number of seconds"):
        read_hosts(NODES_EXCLUDE_PATH, late)
