"""What an NM leaves beside a container's logs for who has to find out why it failed: its script, and its directory.

In Hadoop the launch script makes both, with four programs that take longer than many a container. They are the same
here, but where nothing is linked into a new work directory the NM knows all that will be in it, and writes them.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import time
from functools import lru_cache

from nm.core.launch_script import BROKEN_LINKS_TITLE, DIRECTORY_INFO, LS_TITLE, SCRIPT, TREE_TITLE

SCRIPT_COPY_MODE = 0o640
INFO_MODE = 0o644


def debug_files(work_dir: int, script: bytes) -> list[tuple[str, bytes, int]]:
    """(name, content, mode) of each. `work_dir` is a descriptor of what holds files and empty directories, no link."""
    return [
        (SCRIPT, script, SCRIPT_COPY_MODE),
        (DIRECTORY_INFO, listing(work_dir).encode(errors="surrogateescape"), INFO_MODE),
    ]


def listing(directory: str | int) -> str:
    """As `ls -l`, `find -L . -maxdepth 5 -ls` and `find -L . -maxdepth 5 -type l -ls` in it print, under titles."""
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    tree = [(".", os.stat(directory)), *((f"./{name}", status) for name, status in found)]
    lines = [LS_TITLE, *_ls(found), TREE_TITLE, *(_find(name, status) for name, status in tree), BROKEN_LINKS_TITLE]
    return "\n".join(lines) + "\n"


def _ls(found: list[tuple[str, os.stat_result]]) -> list[str]:
    visible = sorted(entry for entry in found if not entry[0].startswith("."))
    rows = [(name, status, _user(status.st_uid), _group(status.st_gid)) for name, status in visible]
    links, users, groups, sizes = (
        max((len(str(value)) for value in column), default=0)
        for column in (
            [status.st_nlink for _, status, _, _ in rows],
            [user for _, _, user, _ in rows],
            [group for _, _, _, group in rows],
            [status.st_size for _, status, _, _ in rows],
        )
    )
    blocks = sum(status.st_blocks for _, status, _, _ in rows)
    return [
        f"total {blocks // 2}",
        *(
            f"{stat.filemode(status.st_mode)} {status.st_nlink:>{links}} {user:<{users}} {group:<{groups}} "
            f"{status.st_size:>{sizes}} {_moment(status)} {name}"
            for name, status, user, group in rows
        ),
    ]


def _find(name: str, status: os.stat_result) -> str:
    return (
        f"{status.st_ino:>9} {status.st_blocks // 2:>6} {stat.filemode(status.st_mode)} {status.st_nlink:>3} "
        f"{_user(status.st_uid):<8} {_group(status.st_gid):<8} {status.st_size:>8} {_moment(status)} {name}"
    )


def _moment(status: os.stat_result) -> str:
    """To the minute, without the year: what is listed has just been made."""
    return time.strftime("%b %e %H:%M", time.localtime(status.st_mtime))


@lru_cache(maxsize=64)
def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


@lru_cache(maxsize=64)
def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
