"""Registers Hadoop's verbs: `yarnling application -list` does what `yarn application -list` does.

These verbs have Hadoop's options (a single dash and a word) and treat wrong options as Hadoop does. So the command line
is passed unparsed to the module of the verb.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from yarnling.cli.shared.arguments import UsageException

# The verbs parse their options themselves, in Hadoop's spelling: `-num_containers 3`.
PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}

Rest = Annotated[list[str], typer.Argument(metavar="OPTIONS")]

PANEL = "As in Hadoop (-help lists the options)"

_LOGS = "yarn-logs"
"""The internal name of Hadoop's `logs`, because `yarnling logs APPLICATION_ID` is another verb."""
_LOGS_OPTIONS = ("-applicationId", "-help")

_VERBS = {
    "application": "List, show, kill and change applications.",
    "applicationattempt": "List, show and fail application attempts.",
    "container": "List, show and signal containers.",
    "node": "List and show nodes.",
    "queue": "Show queues.",
    "cluster": "List node labels.",
}
"""{verb: help}"""
VERBS = ("rmadmin", *_VERBS)
"""The verbs that help lists, in its order."""
_HIDDEN = {"app": "application", _LOGS: "logs"}
"""Verbs that help does not list: {name: the verb that it stands for}."""

_NO_SUCH_DAEMON = "yarnling does not have this daemon"
_NO_TIMELINE = (
    f"{_NO_SUCH_DAEMON}; `yarnling application -list -appStates ALL` lists applications that have ended as well"
)
_STARTED_BY_UP = (
    "`yarnling up` starts the ResourceManager and the NodeManagers; `python -m {} --conf DIR` starts a single one"
)

ELSEWHERE = {
    "classpath": "yarnling does not use Java; containers find yarnling's packages on PYTHONPATH",
    "daemonlog": "log levels cannot be changed while a daemon runs; `yarnling status` shows where the logs are, "
    "`yarnling watch` prints every RPC",
    "envvars": "`yarnling status` prints HADOOP_CONF_DIR; `yarnling config` lists every setting",
    "fs2cs": "convert with Hadoop's own `yarn fs2cs`, then run `yarnling config --conf DIR` on its output",
    "globalpolicygenerator": f"{_NO_SUCH_DAEMON} (it has no federation)",
    "jar": "run one of the applications of `yarnling submit`, or submit your own ApplicationMaster as in "
    "examples/submit_minimal_master.py",
    "nodeattributes": "node attributes are not supported; for node labels use `yarnling rmadmin -replaceLabelsOnNode`",
    "nodemanager": _STARTED_BY_UP.format("nm"),
    "proxyserver": f"{_NO_SUCH_DAEMON} (it has no web pages)",
    "registrydns": f"{_NO_SUCH_DAEMON} (it has no service registry)",
    "resourcemanager": _STARTED_BY_UP.format("rm"),
    "router": f"{_NO_SUCH_DAEMON} (it has no federation)",
    "routeradmin": f"{_NO_SUCH_DAEMON} (it has no federation)",
    "schedulerconf": "edit capacity-scheduler.xml in HADOOP_CONF_DIR, then run `yarnling rmadmin -refreshQueues`; with "
    "yarn.scheduler.configuration.store.class = memory or fs call /ws/v1/cluster/scheduler-conf, or Hadoop's own "
    "`yarn schedulerconf`",
    "scmadmin": f"{_NO_SUCH_DAEMON} (it has no shared cache)",
    "sharedcachemanager": f"{_NO_SUCH_DAEMON} (it has no shared cache)",
    "timelinereader": _NO_TIMELINE,
    "timelineserver": _NO_TIMELINE,
}
"""Verbs of `yarn` that yarnling does not have: {verb: what to use instead}."""


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command(
        "rmadmin",
        help="Administer the cluster: refresh queues and nodes, change labels and node resources.",
        context_settings=PASS_ON,
    )(_rmadmin)
    for name, meaning in _VERBS.items():
        app.command(name, help=meaning, context_settings=PASS_ON)(_runner(name))
    for name, verb in _HIDDEN.items():
        app.command(name, hidden=True, context_settings=PASS_ON)(_runner(verb))
    for name, instead in ELSEWHERE.items():
        app.command(name, hidden=True, context_settings=PASS_ON)(_refuser(name, instead))


def rewritten(arguments: Sequence[str]) -> list[str]:
    """Rewrite Hadoop's `logs -applicationId ...` and `logs -help` to the internal name of that verb."""
    if arguments[:1] == ["logs"] and any(option in arguments for option in _LOGS_OPTIONS):
        return [_LOGS, *arguments[1:]]
    return list(arguments)


def _rmadmin(options: Rest = []) -> None:  # noqa: B006  typer copies it
    from yarnling.cli.hadoop.rmadmin import execute

    raise typer.Exit(execute(options))


def _runner(name: str) -> Callable[[list[str]], None]:
    def run(options: Rest = []) -> None:  # noqa: B006  typer copies it
        from yarnling.cli.hadoop.application import APPLICATION, ATTEMPT
        from yarnling.cli.hadoop.container import CONTAINER
        from yarnling.cli.hadoop.logs import LOGS
        from yarnling.cli.hadoop.node import CLUSTER, NODE
        from yarnling.cli.hadoop.queue import QUEUE
        from yarnling.cli.hadoop.verb import execute

        verbs = {verb.name: verb for verb in (APPLICATION, ATTEMPT, CLUSTER, CONTAINER, LOGS, NODE, QUEUE)}
        raise typer.Exit(execute(verbs[name], options))

    return run


def _refuser(verb: str, instead: str) -> Callable[[list[str]], None]:
    def refuse(options: Rest = []) -> None:  # noqa: B006  typer copies it
        raise UsageException(f"`yarn {verb}` is not available: {instead}")

    return refuse
