"""Files of a launch: symbolic links that a container may have made are not followed."""

from __future__ import annotations

import errno
import os
import random
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from nm.core.effects import LaunchContainer
from nm.core.events import ErrorLogs
from nm.core.launch_script import NodeEnvironment
from nm.launcher.containers_launcher import read_error_logs
from nm.launcher.deletion import TREE_DEPTH_MAX, delete_tree
from nm.launcher.directories import NodeDirectories
from nm.launcher.files import PreparedLaunch, prepare_launch, read_pid
from tests.nm.nodes import NODE, container_id
from wire.files.full_disk import DiskFull
from yarn.resource import Resource

LAUNCH = LaunchContainer(container_id(1), 1, "alice", ("true",), {}, {}, "0,0,0,0,0", Resource(128, 1))
PATTERN = "{*stderr*,*STDERR*}"


class Launches:
    """Launches of one container. `outside` is a directory outside the node's, with a link and a file in it."""

    def __init__(self, directory: Path) -> None:
        self.outside = directory / "outside"
        self.outside.mkdir()
        (self.outside / "file").write_text("kept")
        (self.outside / "link").symlink_to("file")
        self.directories = NodeDirectories([f"{directory}/local"], [f"{directory}/logs"], random.Random(1))
        self.chosen = self.directories.for_launch(LAUNCH.container_id, LAUNCH.user)
        self.work, self.logs = Path(self.chosen.work_dir), Path(self.chosen.log_dir)

    def prepare(self, launch: LaunchContainer = LAUNCH) -> PreparedLaunch:
        return prepare_launch(
            launch,
            node=NodeEnvironment(NODE, 8042, "/home/", {}, "", {}),
            directories=self.directories,
            chosen=self.chosen,
            debug=True,
        )

    def error_logs(self) -> ErrorLogs:
        return read_error_logs(self.directories, str(self.logs), PATTERN, 4096)

    def outside_is_untouched(self) -> bool:
        return sorted(os.listdir(self.outside)) == ["file", "link"] and (self.outside / "file").read_text() == "kept"


@pytest.fixture
def launches(tmp_path: Path) -> Launches:
    return Launches(tmp_path)


def test_a_full_disk_is_named(launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(DiskFull, match="free some space there") as caught:
        launches.prepare()
    assert caught.value.filename.startswith(launches.directories.local_dirs[0])


def test_a_link_name_that_leads_outside_removes_nothing_there(launches: Launches) -> None:
    """Both the core and the launcher refuse such names; the NM process used to remove the link."""
    launches.prepare()
    name = os.path.relpath(launches.outside / "link", launches.work)
    with pytest.raises(ValueError, match="part of a path"):
        launches.prepare(replace(LAUNCH, links={name: "/x"}))
    assert launches.outside_is_untouched()


def test_a_parent_of_a_link_that_has_become_a_link_is_not_followed(launches: Launches) -> None:
    """A relaunched container has replaced the parent directory of its resource `sub/link` by the link
    `sub -> outside`.
    """
    again = replace(LAUNCH, launch=2, links={"sub/link": str(launches.outside / "file")})
    launches.prepare(again)
    (launches.work / "sub").symlink_to(launches.outside)
    prepared = launches.prepare(again)
    subprocess.run(["bash", prepared.wrapper], cwd=launches.work, check=True, env={})
    assert launches.outside_is_untouched()
    assert not (launches.work / "sub").is_symlink()
    assert (launches.work / "sub" / "link").read_text() == "kept"


@pytest.mark.parametrize("which", ["work", "logs"])
def test_nothing_is_written_through_a_directory_of_the_container_that_has_become_a_link(
    launches: Launches, which: str
) -> None:
    launches.prepare()
    directory = launches.work if which == "work" else launches.logs
    directory.rename(directory.with_name("aside"))
    directory.symlink_to(launches.outside)
    with pytest.raises(OSError, match="symbolic link"):
        launches.prepare()
    assert launches.outside_is_untouched()


def test_nothing_is_written_through_an_application_directory_that_has_become_a_link(launches: Launches) -> None:
    launches.prepare()
    parent = launches.work.parent
    parent.rename(parent.with_name("aside"))
    parent.symlink_to(launches.outside)
    with pytest.raises(OSError, match="symbolic link"):
        launches.prepare()
    assert launches.outside_is_untouched()


def test_links_of_the_administrator_are_followed(tmp_path: Path) -> None:
    """The configured directories may be links; directories made by a container may not."""
    for name in ("local", "logs"):
        (tmp_path / f"disk-{name}").mkdir()
        (tmp_path / name).symlink_to(f"disk-{name}")
    launches = Launches(tmp_path)
    launches.prepare()
    assert (launches.work / "launch_container.sh").exists()


@pytest.mark.parametrize("name", ["stderr", "prelaunch.err"])
def test_the_tail_of_an_error_log_follows_no_link(launches: Launches, name: str) -> None:
    """The tail becomes part of the diagnostics, which the AM and every user with access to the application can read."""
    launches.prepare()
    (launches.outside / "file").write_text("a secret")
    (launches.logs / name).symlink_to(launches.outside / "file")
    logs = launches.error_logs()
    assert (logs.prelaunch_tail, logs.names, logs.newest_tail) == (None, (), "")


def test_error_logs_are_not_read_through_a_directory_that_has_become_a_link(launches: Launches) -> None:
    launches.prepare()
    (launches.outside / "stderr").write_text("a secret")
    (launches.outside / "prelaunch.err").write_text("a secret")
    launches.logs.rename(launches.logs.with_name("aside"))
    launches.logs.symlink_to(launches.outside)
    assert launches.error_logs() == ErrorLogs()


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_an_error_log_that_is_not_a_file_is_left_out(launches: Launches, kind: str) -> None:
    """An exception while the exit is handled would leave the container without a reported end."""
    launches.prepare()
    for name in ("stderr", "prelaunch.err"):
        if kind == "fifo":
            os.mkfifo(launches.logs / name)
        else:
            (launches.logs / name).mkdir()
    logs = launches.error_logs()
    assert (logs.prelaunch_tail, logs.names) == (None, ())


def test_the_tails_of_regular_error_logs_are_read(launches: Launches) -> None:
    launches.prepare()
    (launches.logs / "prelaunch.err").write_text("x" * 5000)
    (launches.logs / "my-stderr.log").write_text("said")
    logs = launches.error_logs()
    assert (logs.prelaunch_tail, logs.names, logs.newest_tail) == ("x" * 4096, ("my-stderr.log",), "said")


def test_a_pid_file_that_is_a_pipe_does_not_block_the_node(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    assert read_pid(str(tmp_path / "pid")) is None
    (tmp_path / "other").write_text("1\n")
    (tmp_path / "link").symlink_to("other")
    assert read_pid(str(tmp_path / "link")) is None


def test_nothing_is_deleted_through_a_link(launches: Launches) -> None:
    """The application's directory is a link to another place. The container's directory there is not deleted."""
    launches.prepare()
    (launches.outside / launches.work.name).mkdir()
    parent = launches.work.parent
    parent.rename(parent.with_name("aside"))
    parent.symlink_to(launches.outside)
    delete_tree(launches.directories.local_dirs[0], str(launches.work))
    assert (launches.outside / launches.work.name).is_dir()
    delete_tree(launches.directories.local_dirs[0], str(parent))
    assert not os.path.lexists(parent)
    assert (launches.outside / "file").exists()


def test_a_link_in_a_tree_is_deleted_and_not_what_it_leads_to(launches: Launches) -> None:
    launches.prepare()
    (launches.work / "away").symlink_to(launches.outside)
    closed = launches.work / "closed"
    closed.mkdir()
    (closed / "file").touch()
    closed.chmod(0)
    delete_tree(launches.directories.local_dirs[0], str(launches.work))
    assert not launches.work.exists()
    assert launches.outside_is_untouched()


@pytest.mark.slow
@pytest.mark.parametrize("depth", [TREE_DEPTH_MAX - 1, TREE_DEPTH_MAX, 1200])
def test_a_tree_deeper_than_python_recurses_is_deleted(launches: Launches, depth: int) -> None:
    """A container can make such a tree in a moment. It used to end the deletion task, and the node with it."""
    launches.prepare()
    here = os.open(launches.work, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    delete_tree(launches.directories.local_dirs[0], str(launches.work))
    assert not launches.work.exists()
