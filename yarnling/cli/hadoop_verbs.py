"""Hadoop's verbs among ours: `yarnling application -list` is what `yarn application -list` is there.

Their options have one dash and many letters, and wrong ones end as they end in Hadoop; so they are passed on as they
were typed, to be read in yarnling.cli.hadoop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated

import typer

from yarnling.cli.arguments import UsageException

# The verbs read their options themselves, in Hadoop's spelling: `-num_containers 3`.
PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}

Rest = Annotated[list[str], typer.Argument(metavar="OPTIONS")]

PANEL = "As in Hadoop (-help lists the options)"

_LOGS = "yarn-logs"
"""Inside, `logs` in Hadoop's spelling; `yarnling logs APPLICATION_ID` is ours."""
_LOGS_OPTIONS = ("-applicationId", "-help")

# {verb: (module and name of its Verb, what it does)}
_VERBS = {
    "application": ("application:APPLICATION", "List, look at, kill and change applications."),
    "app": ("application:APPLICATION", ""),
    "applicationattempt": ("attempt:ATTEMPT", "List, look at and fail attempts."),
    "container": ("container:CONTAINER", "List, look at and signal containers."),
    "node": ("node:NODE", "List and look at nodes."),
    "queue": ("queue:QUEUE", "Look at queues."),
    "cluster": ("cluster:CLUSTER", "List the labels of nodes."),
    _LOGS: ("logs:LOGS", ""),
}

_NO_SUCH_DAEMON = "yarnling has no such daemon"
_NO_TIMELINE = f"{_NO_SUCH_DAEMON}; `yarnling application -list -appStates ALL` also lists applications that have ended"
_ON_ITS_OWN = (
    "`yarnling up` starts the ResourceManager and the NodeManagers; `python -m {} --conf DIR` starts one alone"
)

ELSEWHERE = {
    "classpath": "there is no Java; a container finds yarnling's packages on PYTHONPATH",
    "daemonlog": "log levels cannot be changed while a daemon runs; `yarnling status` shows where the logs are, "
    "`yarnling watch` prints every call",
    "envvars": "`yarnling status` prints HADOOP_CONF_DIR; `yarnling config` lists every setting",
    "fs2cs": "convert with Hadoop's own `yarn fs2cs`, then run `yarnling config --conf DIR` on what it wrote",
    "globalpolicygenerator": f"{_NO_SUCH_DAEMON} (it has no federation)",
    "jar": "submit one of `yarnling submit`'s applications, or an ApplicationMaster of your own as "
    "examples/submit_minimal_master.py does",
    "nodeattributes": "node attributes are not supported; for node labels use `yarnling rmadmin -replaceLabelsOnNode`",
    "nodemanager": _ON_ITS_OWN.format("nm"),
    "proxyserver": f"{_NO_SUCH_DAEMON} (it has no web pages)",
    "registrydns": f"{_NO_SUCH_DAEMON} (it has no service registry)",
    "resourcemanager": _ON_ITS_OWN.format("rm"),
    "router": f"{_NO_SUCH_DAEMON} (it has no federation)",
    "routeradmin": f"{_NO_SUCH_DAEMON} (it has no federation)",
    "schedulerconf": "edit capacity-scheduler.xml in HADOOP_CONF_DIR, then run `yarnling rmadmin -refreshQueues`",
    "scmadmin": f"{_NO_SUCH_DAEMON} (it has no shared cache)",
    "sharedcachemanager": f"{_NO_SUCH_DAEMON} (it has no shared cache)",
    "timelinereader": _NO_TIMELINE,
    "timelineserver": _NO_TIMELINE,
}
"""{verb that only Hadoop's `yarn` has: what to use instead}"""


def add_to(app: typer.Typer) -> None:
    """Register them; a verb without a description is another's other name."""
    app.command("version", help="Tell the version, and the release of Hadoop that it is true to.")(_version)
    app.command("rmadmin", help="Operate: refreshes, nodes, labels.", context_settings=PASS_ON, rich_help_panel=PANEL)(
        _rmadmin
    )
    for name, (place, meaning) in _VERBS.items():
        register = app.command(name, help=meaning, hidden=not meaning, context_settings=PASS_ON, rich_help_panel=PANEL)
        register(_runner(place))
    for name, instead in ELSEWHERE.items():
        app.command(name, hidden=True, context_settings=PASS_ON)(_refuser(name, instead))


def rewritten(arguments: Sequence[str]) -> list[str]:
    """The command line with `logs -applicationId ...` and `logs -help` under its inner name."""
    if arguments[:1] == ["logs"] and any(option in arguments for option in _LOGS_OPTIONS):
        return [_LOGS, *arguments[1:]]
    return list(arguments)


def _version(as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False) -> None:
    from importlib.metadata import PackageNotFoundError, version

    from rm.core.resource_tracker import RM_VERSION
    from yarnling.cli import json_form

    try:
        own = version("yarnling")
    except PackageNotFoundError:
        own = "not installed"
    text = json_form.text({"yarnling": own, "hadoop": RM_VERSION})
    typer.echo(text if as_json else f"yarnling {own}, which does what Hadoop {RM_VERSION} does")


def _rmadmin(options: Rest = []) -> None:  # noqa: B006  typer copies it
    from yarnling.cli.hadoop.rmadmin import execute

    raise typer.Exit(execute(options))


def _runner(place: str) -> Callable[[list[str]], None]:
    def run(options: Rest = []) -> None:  # noqa: B006  typer copies it
        from yarnling.cli.hadoop.verb import execute

        module, _, name = place.partition(":")
        verb = getattr(import_module(f"yarnling.cli.hadoop.{module}"), name)
        raise typer.Exit(execute(verb, options))

    return run


def _refuser(verb: str, instead: str) -> Callable[[list[str]], None]:
    def refuse(options: Rest = []) -> None:  # noqa: B006  typer copies it
        raise UsageException(f"`yarn {verb}` is not available: {instead}")

    return refuse
