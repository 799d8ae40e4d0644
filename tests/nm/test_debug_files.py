"""The debug files beside a container's logs, written by its launch script or by the NM: both must be equal."""

from __future__ import annotations

import os
import random
import stat
import subprocess
from pathlib import Path

from msgspec.structs import replace

from nm.core.effects import LaunchContainer
from nm.core.launch_script import NodeEnvironment
from nm.launcher.directories import NodeDirectories
from nm.launcher.files import PreparedLaunch, listing, prepare_launch
from tests.nm.nodes import NODE, container_id
from yarn.resource import Resource

PROGRAMS = """
echo "ls -l:"
ls -l
echo "find -L . -maxdepth 5 -ls:"
find -L . -maxdepth 5 -ls
echo "broken symlinks(find -L . -maxdepth 5 -type l -ls):"
find -L . -maxdepth 5 -type l -ls
"""
LAUNCH = LaunchContainer(container_id(1), 1, "alice", ("true",), {}, {}, "0,0,0,0,0", Resource(128, 1))
ENVIRONMENT = NodeEnvironment(NODE, 8042, "/home/", {}, "", {})
MADE = {"launch_container.sh": 0o640, "directory.info": 0o644}


class Launches:
    """Launches of one container on one node. `logs` is the container's log directory."""

    def __init__(self, directory: Path) -> None:
        self._directories = NodeDirectories([f"{directory}/local"], [f"{directory}/logs"], random.Random(1))
        self._chosen = self._directories.for_launch(LAUNCH.container_id, LAUNCH.user)
        self.logs = Path(self._chosen.log_dir)

    def prepare(self, launch: LaunchContainer = LAUNCH) -> PreparedLaunch:
        return prepare_launch(launch, node=ENVIRONMENT, directories=self._directories, chosen=self._chosen, debug=True)

    def run(self, prepared: PreparedLaunch) -> None:
        subprocess.run(["bash", prepared.wrapper], cwd=prepared.directories.work_dir, check=True, env={})

    def made(self) -> dict[str, int]:
        return {file.name: stat.S_IMODE(file.stat().st_mode) for file in self.logs.iterdir() if file.name in MADE}

    def info(self) -> str:
        return (self.logs / "directory.info").read_text()


def by_programs(directory: Path) -> str:
    """The output of the programs for a directory, whose files may be listed in any order."""
    return subprocess.run(
        ["bash", "-c", PROGRAMS],
        cwd=directory,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def parts(text: str) -> list[list[str]]:
    """The lines of each listing, by title. Those of the second listing are sorted."""
    long, _, rest = text.partition("find -L . -maxdepth 5 -ls:\n")
    tree, _, broken = rest.partition("broken symlinks")
    return [long.splitlines(), sorted(tree.splitlines()), broken.splitlines()]


def test_a_listing_equals_the_output_of_the_programs(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir(mode=0o710)
    (tmp_path / "long").write_bytes(b"x" * 12345)
    (tmp_path / "a_short").write_text("")
    (tmp_path / "a.short").write_text("1")
    (tmp_path / ".hidden").write_text("h")
    os.chmod(tmp_path / "long", 0o4755)
    assert parts(listing(str(tmp_path))) == parts(by_programs(tmp_path))


def test_without_links_the_nm_writes_the_files_and_the_script_runs_no_program(tmp_path: Path) -> None:
    launches = Launches(tmp_path)
    prepared = launches.prepare()
    assert launches.made() == MADE
    script = (launches.logs / "launch_container.sh").read_text()
    assert script == Path(prepared.directories.work_dir, "launch_container.sh").read_text()
    assert "find" not in script
    assert parts(launches.info()) == parts(by_programs(Path(prepared.directories.work_dir)))
    launches.run(prepared)
    assert (launches.logs / "prelaunch.out").read_text() == (
        "Setting up env variables\nSetting up job resources\nCopying debugging information\nLaunching container\n"
    )
    assert launches.made() == MADE


def test_links_are_listed_by_the_script_that_makes_them(tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("content")
    launches = Launches(tmp_path)
    prepared = launches.prepare(replace(LAUNCH, links={"d/link": f"{tmp_path}/copy"}))
    assert launches.made() == {}
    launches.run(prepared)
    assert launches.made() == MADE
    assert " ./d/link\n" in launches.info()


def test_files_of_an_earlier_launch_are_listed_by_the_script(tmp_path: Path) -> None:
    launches = Launches(tmp_path)
    work_dir = Path(launches.prepare().directories.work_dir)
    (work_dir / "left" / "deep").mkdir(parents=True)
    launches.run(launches.prepare(replace(LAUNCH, launch=2)))
    assert " ./left/deep\n" in launches.info()
