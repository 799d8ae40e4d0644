"""Scenarios: a configuration and steps, from JSON, out of a recording or of Hadoop's own files; writing recordings."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wire.files.hadoop_xml import read_file
from yarn.java.versions import HADOOP_VERSION
from yarn.settings.scheduler import SCHEDULE_ASYNCHRONOUSLY

Json = dict[str, Any]

RECORDING_SUFFIX = ".jsonl.gz"

HEARTBEATS_PLACE = {SCHEDULE_ASYNCHRONOUSLY.key: "false"}


@dataclass(frozen=True, slots=True)
class Scenario:
    """The steps to execute. `about`: other keys of the first line, for example the features it was generated with."""

    name: str
    configuration: dict[str, str]
    steps: Sequence[Json]
    about: Json = field(default_factory=dict)

    @property
    def release(self) -> str:
        """The release of Hadoop whose ResourceManager records it."""
        return str(self.about.get("release", HADOOP_VERSION))

    @property
    def header(self) -> Json:
        """The first line of its recording, without Hadoop's reply."""
        return {"name": self.name, **self.about, "conf": self.configuration}

    @property
    def hangs_together(self) -> bool:
        """True if each step refers only to nodes and applications that an earlier step named."""
        named: set[str] = set()
        for step in self.steps:
            if step["op"] == "register_node":
                named.add(f"node {step['node']}")
            elif step["op"] == "submit":
                named.add(f"app {step['app']}")
            elif not {f"{key} {step[key]}" for key in ("node", "app") if key in step} <= named:
                return False
        return True

    def as_json(self) -> Json:
        return {**self.header, "steps": list(self.steps)}

    def with_steps(self, steps: Sequence[Json]) -> Scenario:
        return Scenario(self.name, self.configuration, steps, self.about)

    def on_release(self, release: str) -> Scenario:
        """The scenario for another release. Its heartbeats place containers, whatever the release's default is."""
        if release == self.release:
            return self
        configuration = {**self.configuration, **HEARTBEATS_PLACE}
        return Scenario(self.name, configuration, self.steps, {**self.about, "release": release})

    def with_configuration(self, configuration: dict[str, str]) -> Scenario:
        return Scenario(self.name, configuration, self.steps, self.about)


def of_json(scenario: Json) -> Scenario:
    """Raises ValueError if it is not a scenario."""
    if not isinstance(scenario.get("conf"), dict) or not isinstance(scenario.get("steps"), list):
        raise ValueError(f"a scenario has `name`, `conf` and `steps`, this has {', '.join(scenario) or 'nothing'}")
    about = {key: value for key, value in scenario.items() if key not in ("name", "conf", "steps")}
    return Scenario(scenario["name"], scenario["conf"], scenario["steps"], about)


def of_file(path: Path) -> Scenario:
    """The scenario of a capacity-scheduler.xml: a start with it, a node, and a refresh with it."""
    file = read_file(path)
    configuration = {key: file.get(key, "") or "" for key in file}
    own = {key: value for key, value in configuration.items() if key.startswith("yarn.scheduler.capacity.")}
    resource = {"memory": 102_400, "vcores": 100}
    node = {"op": "register_node", "node": "h1", "resource": resource}
    return Scenario(path.stem, configuration, [node, {"op": "refresh_queues", "properties": own}])


def read(path: Path) -> Scenario:
    """A scenario from a JSON file, a configuration file, or the one that a recording holds.

    Raises OSError, ValueError, or ConfigurationException for a configuration file that is none.
    """
    if path.suffix == ".xml":
        return of_file(path)
    if not path.name.endswith(RECORDING_SUFFIX):
        return of_json(json.loads(path.read_text(encoding="utf-8")))
    header, *rest = read_lines(path)
    steps = [line["at"] if "hang" in line else line["step"] for line in rest]
    about = {key: value for key, value in header.items() if key not in ("ready", "error", "delta")}
    return of_json({**about, "steps": steps})


def read_lines(path: Path) -> list[Json]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_lines(path: Path, lines: Iterable[Json]) -> None:
    """Write a recording. The same lines give the same bytes: no time, no file name inside."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        for line in lines:
            packed.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
