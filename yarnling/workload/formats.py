"""The formats of workloads and node lists: which one a file has, and its reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wire.files.yaml_file import choose_from, parse_yaml
from yarn.errors import YarnException
from yarnling.workload import mapreduce_history, rm_log
from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import Faults, json_documents, read_text, refusal
from yarnling.workload.dynoyarn import read_dynoyarn
from yarnling.workload.evidence import Basis, Evidence
from yarnling.workload.line_files import Line, head_of, lines_of
from yarnling.workload.model import Workload, WorkloadNode, WorkloadNodes
from yarnling.workload.nodes_file import NodeList
from yarnling.workload.recorded_applications import read_recording
from yarnling.workload.recorded_cluster import RecordedCluster, read_cluster
from yarnling.workload.recorded_nodes import recorded_nodes
from yarnling.workload.recorded_times import recorded_times
from yarnling.workload.recording_lines import MARK
from yarnling.workload.rest_answers import refuse_other_answers
from yarnling.workload.rest_applications import read_applications
from yarnling.workload.rest_cluster import read_cluster_nodes
from yarnling.workload.rumen import read_rumen
from yarnling.workload.run_times import RunTimes
from yarnling.workload.sls import hosts_of, read_jobs, read_racks
from yarnling.workload.spark_events import MARK as SPARK_MARK
from yarnling.workload.spark_events import read_spark_events
from yarnling.workload.summary_file import read_summary
from yarnling.workload.swim import read_swim
from yarnling.workload.synth import read_synth, synth_nodes
from yarnling.workload.tez_history import MARK as TEZ_MARK
from yarnling.workload.tez_history import read_tez_history
from yarnling.workload.workload_file import WORKLOAD_MARK, parse_workload_lines, parse_workload_yaml

HEAD_CHARACTERS = 64 * 1024
"""The part of a file that is looked at to recognise its format."""
_SWIM_LINE = re.compile(r"[^\t\n]*(\t\d+){5}")

_DEFAULTS = Defaults()


class Format(Struct, frozen=True):
    """A format of workloads that are read whole.

    `marks`: keys of which one is in the beginning of each JSON file of this format. `basis`, `rests_on`: of the sizes
    and times of its containers, unless the reader says it for each part; None: the file itself says it.
    """

    about: str
    marks: tuple[str, ...]
    read: Callable[[str, str, Defaults], Workload]
    basis: Basis | None = None
    rests_on: str = ""


class LinesFormat(Struct, frozen=True):
    """A format that is read line by line, from a file or a directory of files, plain or compressed with gzip.

    `mark`: is found in the beginning of each input of this format, and of no other. `lines`: makes lines of its files.
    """

    about: str
    mark: re.Pattern[str]
    read: Callable[[Iterable[Line], str, Defaults], Workload]
    lines: Callable[[Path], Iterable[Line]] = lines_of


LINES_FORMATS: Mapping[str, LinesFormat] = {
    "rm-log": LinesFormat("the log of a ResourceManager, or its audit log", rm_log.MARKS, rm_log.read_rm_log),
    "recording": LinesFormat("what yarnling record wrote", re.compile(re.escape(MARK)), read_recording),
    "spark": LinesFormat("event logs of Spark applications", SPARK_MARK, read_spark_events),
    "jhist": LinesFormat(
        "history files of MapReduce's AMs",
        mapreduce_history.MARK,
        mapreduce_history.read_mapreduce_history,
        mapreduce_history.history_lines,
    ),
    "tez": LinesFormat("history files of Tez's AMs", TEZ_MARK, read_tez_history),
}

FORMATS: Mapping[str, Format] = {
    "yarnling": Format(
        "yarnling's own: JSON lines, or YAML",
        (WORKLOAD_MARK,),
        lambda text, source, _: (parse_workload_lines if _is_json(text) else parse_workload_yaml)(text, source),
    ),
    "summary": Format(
        "rates, sizes and durations as distributions (YAML)", (), read_summary, Basis.ASSUMED, "all was drawn"
    ),
    "rumen": Format(
        "MapReduce jobs traced by Rumen",
        ("mapTasks", "reduceTasks"),
        read_rumen,
        Basis.ASSUMED,
        "sizes (durations are recorded)",
    ),
    "sls": Format("jobs of SLS", ("job.tasks", "job.start.ms", "job.queue.name"), read_jobs),
    "synth": Format(
        "classes of jobs of SLS's SYNTH",
        ("job_classes", "workloads", "time_distribution"),
        read_synth,
        Basis.ASSUMED,
        "all was drawn",
    ),
    "dynoyarn": Format(
        "applications of DynoYARN",
        ("resourceRequestSpecs",),
        read_dynoyarn,
        Basis.RECORDED,
        "sizes and durations of containers",
    ),
    "apps": Format("the answer to GET /ws/v1/cluster/apps", ("apps", "app", "memorySeconds"), read_applications),
    "swim": Format(
        "jobs of SWIM, tab-separated", (), read_swim, Basis.ASSUMED, "sizes and durations (bytes are recorded)"
    ),
}


def read_workload(path: Path, format_name: str = "", defaults: Defaults = _DEFAULTS) -> Workload:
    """Read a workload in any of FORMATS; without a name the format is recognised.

    Raises ConfigurationException with every fault of the file, and YarnException for an unknown format.
    """
    names = all_formats()
    if format_name and format_name not in names:
        raise YarnException(f"{format_name} is not a valid format ({choose_from(names, format_name)})")
    name = format_name if format_name in names else _lines_format(path)
    if name in LINES_FORMATS:
        by_lines = LINES_FORMATS[name]
        return by_lines.read(by_lines.lines(path), str(path), defaults)
    text = _content(path)
    chosen = FORMATS[name or recognise(text, str(path))]
    workload = chosen.read(text, str(path), defaults)
    if chosen.basis is None or workload.evidence:
        return workload
    return replace(workload, evidence=(Evidence(chosen.basis, 1.0, chosen.rests_on),))


def read_recorded_cluster(path: Path) -> RecordedCluster | None:
    """The cluster of a recording; None if the file or directory is none."""
    return read_cluster(lines_of(path), str(path)) if _lines_format(path) == "recording" else None


def read_recorded_times(path: Path) -> RunTimes | None:
    """The times of the run in a recording or in the log of a ResourceManager; None if the input is neither.

    Raises ConfigurationException if nothing in it can be used.
    """
    name = _lines_format(path)
    if name == "recording":
        return recorded_times(read_cluster(lines_of(path), str(path)))
    return rm_log.read_rm_log_times(lines_of(path), str(path)) if name == "rm-log" else None


def all_formats() -> dict[str, str]:
    """{name: about}, of all formats."""
    return {name: each.about for formats in (FORMATS, LINES_FORMATS) for name, each in formats.items()}


def _lines_format(path: Path) -> str:
    """The name of the format that is read by lines of a file or directory; "" if it has none of them."""
    head = head_of(path, HEAD_CHARACTERS) if path.is_dir() or path.is_file() else ""
    return next((name for name, each in LINES_FORMATS.items() if each.mark.search(head)), "")


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
    raise refusal(source, "has none of the known formats of workloads", f"name its format: {', '.join(all_formats())}")


def read_nodes(path: Path) -> tuple[WorkloadNode, ...]:
    """The nodes that `read_node_list` reads, without its assumptions and changes."""
    return read_node_list(path).nodes


def read_node_list(path: Path) -> WorkloadNodes:
    """Read a list of nodes: yarnling's own, SLS's, an answer to GET /ws/v1/cluster/nodes, or those that an SLS or SYNTH
    trace implies. Raises ConfigurationException with every fault.
    """
    source = str(path)
    format_name = _lines_format(path)
    if format_name == "rm-log":
        found = rm_log.read_rm_log_nodes(lines_of(path), source)
    elif format_name == "recording":
        found = recorded_nodes(read_cluster(lines_of(path), source))
    else:
        found = _parse_nodes(_content(path), source)
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
        return parse_yaml(text, source, NodeList).record(source)
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
        assert nodes is not None, "its faults were raised"
        return nodes.record(source)
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
