"""`yarnling env`: the environment in which Hadoop's own clients find a cluster, for a shell or as JSON."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from wire.files.hadoop_xml import load_configuration
from yarn.errors import YarnException
from yarnling.cli.shared.output import print_json
from yarnling.cluster.hadoop_clients import are_served, client_environment
from yarnling.cluster.state import find_cluster, name_option


def show(name: str, *, as_json: bool) -> None:
    """Print one export a line, quoted for the shell. Raises YarnException if the cluster does not answer them."""
    conf_dir = Path(find_cluster(name).conf_dir)
    if not are_served(load_configuration(conf_dir)):
        named = name_option(name)
        raise YarnException(
            f"the cluster {name!r} does not answer Hadoop's own clients "
            f"(start it with them: yarnling down{named}; yarnling up --hadoop --detach{named})"
        )
    variables = client_environment(conf_dir)
    if as_json:
        print_json(variables)
    else:
        for variable, value in variables.items():
            typer.echo(f"export {variable}={shlex.quote(value)}")
