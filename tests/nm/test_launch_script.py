"""The text of the scripts, and the environment that they set up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nm.launch_script import (
    DebugFiles,
    Directories,
    Environment,
    NodeEnvironment,
    environment,
    expand,
    launch_script,
    references,
    session_script,
)
from nm.launcher.files import read_pid
from tests.nm.nodes import NODE, container_id

DIRECTORIES = Directories(
    "/l/usercache/alice/appcache/a/c",
    "/g/a/c",
    ("/l/usercache/alice/appcache/a",),
    ("/l/usercache/alice/",),
    ("/g/a/c",),
)


def node(admin_env: str = "", **variables: str) -> NodeEnvironment:
    return NodeEnvironment(NODE, 8042, "/home/", {}, admin_env, variables)


def made(given: dict[str, str], nm: NodeEnvironment | None = None) -> Environment:
    return environment(
        container_id(1), "alice", given, node=nm or node(), directories=DIRECTORIES, localization_counters="0,0,0,0,0"
    )


def exports(given: dict[str, str]) -> list[str]:
    script = launch_script(
        Environment({}, given), ("true",), inherited={}, links={}, log_dir="/g", debug=DebugFiles.NOBODY
    )
    return [line.split("=")[0].removeprefix("export ") for line in script.splitlines() if line.startswith("export V")]


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("{{JAVA_HOME}}/bin/java", "$JAVA_HOME/bin/java"),
        ("a<CPS>{{PWD}}/*", "a:$PWD/*"),
        ("x 1><LOG_DIR>/stdout", "x 1>/g/stdout"),
        ("java <ADD_OPENS> X", "java  X"),
        ('$HOME `id` "q"', '$HOME `id` "q"'),
    ],
)
def test_the_nms_own_marks_are_replaced_and_nothing_else(text: str, expanded: str) -> None:
    assert expand(text, "/g") == expanded


def test_the_nodes_variables_cannot_be_changed_by_a_master() -> None:
    variables = made({"USER": "root", "PWD": "/", "CONTAINER_ID": "x", "MINE": "1"})
    assert variables.of_node["USER"] == "alice"
    assert variables.other == {"MINE": "1"}


def test_administrators_variables_come_last_and_add_to_a_masters() -> None:
    nm = node("MALLOC_ARENA_MAX=$MALLOC_ARENA_MAX,ADDED=$OF_NM/x", OF_NM="/opt")
    assert made({}, nm).other == {"MALLOC_ARENA_MAX": "", "ADDED": "/opt/x"}
    assert made({"MALLOC_ARENA_MAX": "4"}, nm).other["MALLOC_ARENA_MAX"] == "4:4"


def test_a_whitelisted_variable_gives_way_to_the_masters() -> None:
    script = launch_script(
        Environment({}, {"PATH": "/mine"}),
        ("true",),
        inherited={"PATH": "/nm", "LANG": "C"},
        links={},
        log_dir="/g",
        debug=DebugFiles.NOBODY,
    )
    assert 'export LANG=${LANG:-"C"}' in script
    assert 'export PATH="/mine"' in script
    assert "/nm" not in script


def test_a_variable_follows_those_that_it_refers_to() -> None:
    assert exports({"V_A": "$V_B/a", "V_B": "b", "V_C": "$V_A:$V_B"}) == ["V_B", "V_A", "V_C"]


def test_variables_that_refer_in_a_circle_are_all_there() -> None:
    assert sorted(exports({"V_A": "$V_B", "V_B": "${V_A}"})) == ["V_A", "V_B"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("$A:${B}/$C_1", ["A", "B", "C_1"]),
        ("\\$A $B", ["B"]),
        ("${#A}", ["A"]),
        ("'$A'", ["A"]),
        ("\"'$A'\"$B", ["B"]),
        ("$ $$ $1 ${", []),
        ("a\\", []),
    ],
)
def test_references_are_those_that_bash_would_replace(value: str, found: list[str]) -> None:
    assert references(value) == found


def test_the_script_does_what_it_says(tmp_path: Path) -> None:
    """Run by bash: links (directories made on the way), debug copies, the command in the end."""
    logs, work = tmp_path / "logs", tmp_path / "work"
    logs.mkdir()
    work.mkdir()
    (tmp_path / "copy").write_text("content")
    script = launch_script(
        Environment({"V_OF_NODE": "n"}, {"V_OTHER": "$V_OF_NODE/o"}),
        ("echo $V_OTHER", "$(cat d/e/link)"),
        inherited={},
        links={"d/e/link": str(tmp_path / "copy")},
        log_dir=str(logs),
        debug=DebugFiles.SCRIPT,
    )
    (work / "launch_container.sh").write_text(script)
    subprocess.run(["bash", "launch_container.sh"], cwd=work, check=True, env={})
    assert (logs / "prelaunch.out").read_text() == (
        "Setting up env variables\nSetting up job resources\nCopying debugging information\nLaunching container\n"
        "n/o content\n"
    )
    assert (logs / "launch_container.sh").read_text() == script
    info = (logs / "directory.info").read_text()
    assert info.startswith("ls -l:\n")
    assert "\nfind -L . -maxdepth 5 -ls:\n" in info
    assert info.endswith("broken symlinks(find -L . -maxdepth 5 -type l -ls):\n")


def test_a_pid_is_believed_once_its_line_is_whole(tmp_path: Path) -> None:
    """The session script writes it in place: nobody may take the half of a number for a process."""
    pid_file, script = tmp_path / "c.pid", tmp_path / "launch_container.sh"
    assert read_pid(str(pid_file)) is None
    pid_file.write_text("12")
    assert read_pid(str(pid_file)) is None
    script.write_text("echo $$")
    session = subprocess.run(
        ["bash", "-c", session_script(str(script), str(pid_file))], check=True, stdout=subprocess.PIPE, text=True
    )
    assert read_pid(str(pid_file)) == int(session.stdout)
