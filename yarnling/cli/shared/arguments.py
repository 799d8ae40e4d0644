"""Arguments and options that several verbs have, and the words that the shell's completion offers for them.

Completion offers clusters and nodes from their state files, and applications from the ResourceManager. Completion must
be quick and must not print errors: if something fails, it offers nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from yarn.errors import YarnException

EXIT_CRASHED = 3
"""The exit status if yarnling itself has failed: the command has no result."""
SUFFIXES_OF_FILES = frozenset(
    (".csv", ".gz", ".htm", ".html", ".json", ".jsonl", ".log", ".md", ".pdf", ".png", ".py", ".sqlite", ".svg")
) | frozenset((".tar", ".tgz", ".txt", ".xml", ".yaml", ".yml", ".zip"))
"""Suffixes that the name of a directory to write cannot have. Others, as in `runs.2`, are part of a name."""
TRACES = (".jsonl", ".ndjson")
"""Suffixes of files with a JSON value on each line."""
T = TypeVar("T")
DEFAULT_NAME = "default"
COMPLETION_S = 1.0
"""The time that completion waits for the ResourceManager, in seconds."""


class UsageException(YarnException):
    """The command line is wrong, whatever the state of the cluster is. Nothing was done. Exit status 2."""


@contextmanager
def reading_arguments() -> Iterator[None]:
    """Turn a YarnException raised in this context into a UsageException: the command line is wrong, not the cluster."""
    try:
        yield
    except YarnException as error:
        raise UsageException(error.message) from None


class ArgumentFaults:
    """Reads several arguments, and reports the faults of all of them together.

    faults = ArgumentFaults()
    nodes = faults.of(lambda: read_nodes(path))   # None after a fault
    ...
    faults.refuse()
    assert nodes is not None
    """

    def __init__(self) -> None:
        self._messages: list[str] = []

    def of(self, read: Callable[[], T]) -> T | None:
        """The result of `read`; None after it raised a YarnException, whose message is kept."""
        try:
            return read()
        except YarnException as error:
            self._messages.append(error.message)
            return None

    def refuse(self) -> None:
        """Raise UsageException with every fault, each once, if there are any."""
        if self._messages:
            lines = (line for message in self._messages for line in message.splitlines())
            raise UsageException("\n".join(dict.fromkeys(lines)))


def strict_settings(is_strict: bool) -> list[str]:
    """KEY=VALUE texts for the option --strict."""
    from yarn.settings.yarnling import STRICT

    return [f"{STRICT.key}=true"] if is_strict else []


def release(text: str) -> str:
    """The version of a release whose rules are known. Raises BadParameter with those that are."""
    from yarn.settings.release import BASES, RELEASES, known_releases

    version = text.strip()
    if version not in RELEASES:
        raise typer.BadParameter(f"{text!r} is not one of {known_releases()} ({BASES}).")
    return version


def release_settings(version: str | None) -> list[str]:
    """KEY=VALUE texts for the option --release."""
    from yarn.settings.release import RELEASE

    return [] if version is None else [f"{RELEASE.key}={version}"]


def check_output_file(path: Path | None, *suffixes: str) -> None:
    """Raise UsageException if a file cannot be written where it is named, or its name promises another format.

    A name without a suffix promises nothing.
    """
    if path is None:
        return
    if path.suffix and path.suffix.lower() not in suffixes:
        raise UsageException(f"{path}: cannot write {path.suffix} here (name a file with {' or '.join(suffixes)})")
    if not path.parent.is_dir():
        raise UsageException(f"{path}: there is no directory {path.parent} (create it, or name another file)")
    if path.is_dir():
        raise UsageException(f"{path}: this is a directory (name a file)")


def check_output_directory(path: Path | None) -> None:
    """Raise UsageException if a directory cannot be made where it is named, or its name promises a file."""
    if path is None or path.is_dir():
        return
    in_the_way = next(one for one in (path, *path.parents) if one.exists())
    if not in_the_way.is_dir():
        raise UsageException(f"{in_the_way}: this is a file, not a directory (name another directory)")
    if path.suffix.lower() in SUFFIXES_OF_FILES:
        raise UsageException(f"{path}: a directory is written here, not a {path.suffix} file (name a directory)")


def memory_mb(text: str | int, least: int = 1) -> int:
    """The MB of an amount of memory as files have it: 2048, 2048MB or 2GB. Raises BadParameter, also below `least`."""
    try:
        found = int(text)
    except ValueError:
        # This import takes 0.15 s.
        from wire.files.yaml_file import MEGABYTES, MEMORY_REMEDY, quantity

        megabytes = quantity(str(text), MEGABYTES)
        if megabytes is None:
            raise typer.BadParameter(f"{text!r} is not a valid amount of memory ({MEMORY_REMEDY}).") from None
        found = round(megabytes)
    if found < least:
        raise typer.BadParameter(f"{found} is not in the range x>={least}.")
    return found


def memory_of_node_mb(text: str | int) -> int:
    """The MB of the memory of a node; -1 stands for the default."""
    return memory_mb(text, -1)


def plan_faults(plan: str, *, is_random: bool) -> list[str]:
    """The fault of the choice between a chaos plan, "" for none, and `--random`."""
    if plan and is_random:
        return [f"{plan} --random: a plan and --random exclude each other (give only one of them)"]
    if not plan and not is_random:
        return ["give a plan or --random (yarnling chaos --list shows the ready-made plans)"]
    return []


def complete_clusters() -> list[str]:
    """The names of the clusters that are up."""
    from yarnling.cluster.state import known_clusters

    return [state.name for state in known_clusters() if state.supervisor.process() is not None]


def complete_nodes(context: typer.Context) -> list[tuple[str, str]]:
    """(number, description) of each node of the cluster."""
    from yarnling.cluster.state import conditions, find_cluster

    with suppress(YarnException):
        entries = find_cluster(_cluster_name(context)).nodes
        found = conditions(entries)
        return [
            (str(entry.number), " ".join((entry.name, entry.node_id, found.get(entry.node_id, ""))))
            for entry in entries
        ]
    return []


def complete_applications(context: typer.Context) -> list[tuple[str, str]]:
    """(id, description) of each application, newest first."""
    with suppress(YarnException, TimeoutError):
        return asyncio.run(_applications(_cluster_name(context)))
    return []


async def _applications(name: str) -> list[tuple[str, str]]:
    from yarnling.cli.shared.connection import connect

    _, client = connect(name)
    async with asyncio.timeout(COMPLETION_S), client:
        found = await client.applications()
    newest_first = sorted(found, key=lambda app: app.application_id, reverse=True)
    return [(str(app.application_id), f"{app.name} {app.state.name}") for app in newest_first]


def _cluster_name(context: typer.Context) -> str:
    name = context.params.get("name")
    return name if isinstance(name, str) else DEFAULT_NAME


def _checked_name(context: typer.Context, name: str | None) -> str | None:
    from yarnling.cluster.state import check_name

    if name is not None and not context.resilient_parsing:
        with reading_arguments():
            check_name(name)
    return name


Name = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Name of the cluster.",
        envvar="YARNLING_NAME",
        autocompletion=complete_clusters,
        callback=_checked_name,
    ),
]
OptionalName = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Report on this running cluster instead of a directory.",
        autocompletion=complete_clusters,
        callback=_checked_name,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Define = Annotated[list[str], typer.Option("--define", "-D", metavar="KEY=VALUE", help="Set a configuration key.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a configuration that requests what yarnling does not do.")
]
Conf = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Directory with Hadoop's *-site.xml files, or one such file.")
]
RELEASE_METAVAR = "VERSION"
Release = Annotated[
    str | None,
    typer.Option(
        metavar=RELEASE_METAVAR, help="Follow the rules of this release of Hadoop (default: 3.4.1).", parser=release
    ),
]
Application = Annotated[str, typer.Argument(metavar="APPLICATION_ID", autocompletion=complete_applications)]
Node = Annotated[
    str,
    typer.Argument(help="Number, name (nm-2) or id (host:port) of the node.", autocompletion=complete_nodes),
]
