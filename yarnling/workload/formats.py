"""The formats of workloads and node lists: which one a file has, and its reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from wire.files.yaml_file import choose_from, parse_yaml
from yarn.errors import YarnException
from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import Faults, json_documents, read_text, refusal
from yarnling.workload.dynoyarn import read_dynoyarn
from yarnling.workload.model import Workload, WorkloadNode, WorkloadNodes
from yarnling.workload.rest_answers import refuse_other_answers
from yarnling.workload.rest_applications import read_applications
from yarnling.workload.rest_cluster import read_cluster_nodes
from yarnling.workload.rumen import read_rumen
from yarnling.workload.sls import hosts_of, read_jobs, read_racks
from yarnling.workload.summary_file import read_summary
from yarnling.workload.swim import read_swim
from yarnling.workload.synth import read_synth, synth_nodes
from yarnling.workload.workload_file import WORKLOAD_MARK, NodeList, parse_workload_lines, parse_workload_yaml

HEAD_CHARACTERS = 64 * 1024
"""The part of a file that is looked at to recognise its format."""
_SWIM_LINE = re.compile(r"[^\t\n]*(\t\d+){5}")

_DEFAULTS = Defaults()


class Format(Struct, frozen=True):
    """A format of workloads. `marks`: keys of which one is in the beginning of each JSON file of this format."""

    about: str
    marks: tuple[str, ...]
    read: Callable[[str, str, Defaults], Workload]


FORMATS: Mapping[str, Format] = {
    "yarnling": Format(
        "yarnling's own: JSON lines, or YAML",
        (WORKLOAD_MARK,),
        lambda text, source, _: (parse_workload_lines if _is_json(text) else parse_workload_yaml)(text, source),
    ),
    "summary": Format("rates, sizes and durations as distributions (YAML)", (), read_summary),
    "rumen": Format("MapReduce jobs traced by Rumen", ("mapTasks", "reduceTasks"), read_rumen),
    "sls": Format("jobs of SLS", ("job.tasks", "job.start.ms", "job.queue.name"), read_jobs),
    "synth": Format("classes of jobs of SLS's SYNTH", ("job_classes", "workloads", "time_distribution"), read_synth),
    "dynoyarn": Format("applications of DynoYARN", ("resourceRequestSpecs",), read_dynoyarn),
    "apps": Format("the answer to GET /ws/v1/cluster/apps", ("apps", "app", "memorySeconds"), read_applications),
    "swim": Format("jobs of SWIM, tab-separated", (), read_swim),
}


def read_workload(path: Path, format_name: str = "", defaults: Defaults = _DEFAULTS) -> Workload:
    """Read a workload in any of FORMATS; without a name the format is recognised.

    Raises ConfigurationException with every fault of the file, and YarnException for an unknown format.
    """
    if format_name and format_name not in FORMATS:
        raise YarnException(f"{format_name} is not a valid format ({choose_from(FORMATS, format_name)})")
    text = _content(path)
    name = format_name or recognise(text, str(path))
    return FORMATS[name].read(text, str(path), defaults)


def recognise(text: str, source: str) -> str:
    """The name of the format of a file. Raises ConfigurationException if it has none of FORMATS."""
    head = text[:HEAD_CHARACTERS]
    if _is_json(head):
        keys = set(re.findall(r'"([^"\\\n]{1,64})"\s*:', head))
        for name, each in FORMATS.items():
            if not keys.isdisjoint(each.marks):
                return name
    elif _SWIM_LINE.match(head.lstrip("\n")):
        return "swim"
    else:
        keys = set(re.findall(r"^([\w-]+):", head, re.MULTILINE))
        if not keys.isdisjoint({"applications", WORKLOAD_MARK}):
            return "yarnling"
        if "queues" in keys:
            return "summary"
    raise refusal(source, "has none of the known formats of workloads", f"name its format: {', '.join(FORMATS)}")


def read_nodes(path: Path) -> tuple[WorkloadNode, ...]:
    """The nodes that `read_node_list` reads, without its assumptions."""
    return read_node_list(path).nodes


def read_node_list(path: Path) -> WorkloadNodes:
    """Read a list of nodes: yarnling's own, SLS's, an answer to GET /ws/v1/cluster/nodes, or those that an SLS or SYNTH
    trace implies. Raises ConfigurationException with every fault.
    """
    text, source = _content(path), str(path)
    found = _parse_nodes(text, source)
    hosts: set[str] = set()
    faults = Faults(source)
    for node in found.nodes:
        if node.host in hosts:
            faults.add("host", "is the name of two nodes", "give each node a name of its own", value=node.host)
        hosts.add(node.host)
    faults.refuse()
    return found


def _parse_nodes(text: str, source: str) -> WorkloadNodes:
    if not _is_json(text):
        if _SWIM_LINE.match(text.lstrip("\n")):
            raise refusal(source, "is a SWIM trace, which has no nodes", "name a file of nodes with --nodes")
        return WorkloadNodes(parse_yaml(text, source, NodeList).records())
    line, document = next(json_documents(text, source))
    keys = document.keys() if isinstance(document, dict) else frozenset()
    if "rack" in keys:
        return WorkloadNodes(read_racks(text, source))
    if "nodes" in keys and isinstance(document, dict):
        if isinstance(document["nodes"], dict):
            return read_cluster_nodes(text, source)
        faults = Faults(source)
        nodes = faults.checked(NodeList, document, "", line)
        faults.refuse()
        return WorkloadNodes(nodes.records() if nodes else ())
    return WorkloadNodes(_implied_nodes(text, source))


def _implied_nodes(text: str, source: str) -> tuple[WorkloadNode, ...]:
    name = recognise(text, source)
    if name == "synth":
        nodes = synth_nodes(text, source)
    else:
        nodes = hosts_of(FORMATS[name].read(text, source, _DEFAULTS)) if name in ("sls", "rumen") else ()
    if not nodes:
        raise refusal(source, "has no nodes", "name a file of nodes with --nodes")
    return nodes


def _content(path: Path) -> str:
    text = read_text(path)
    if not text.strip():
        raise refusal(path, "is empty", "name another file")
    refuse_other_answers(text, str(path))
    return text


def _is_json(text: str) -> bool:
    return text[:HEAD_CHARACTERS].lstrip()[:1] in ("{", "[")
