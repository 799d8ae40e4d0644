"""Recordings: a scenario, and what Hadoop's own ResourceManager answered and showed after each of its steps.

A recording is a .jsonl.gz file. Its first line holds the configuration and the first view (or the error with which the
ResourceManager refused to start), each further line one step with its reply and the changes of the view.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.scenario import HEARTBEATS_PLACE
from yarn.java.values import to_float32
from yarn.java.versions import HADOOP_VERSION
from yarn.settings.release import RELEASE

Json = dict[str, Any]

View = dict[str, object]
"""{path such as `node/h1/used`: value}: text, whole number or 32-bit float."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step: the order, the reply, and what changed afterwards (None: removed)."""

    action: Json
    reply: Json
    delta: View


@dataclass(frozen=True, slots=True)
class Recording:
    """A scenario with the answers of a release of Hadoop.

    `error` is the class of the exception that kept it from starting, if any.
    `restless`: a further step after which Hadoop did not come to rest, so there is nothing to compare it with.
    """

    name: str
    release: str
    configuration: Mapping[str, str]
    error: str | None
    first_view: View
    steps: tuple[Step, ...]
    restless: Json | None = None

    @property
    def followed(self) -> dict[str, str]:
        """The settings of a cluster that follows the recording: its configuration and its release."""
        return {**HEARTBEATS_PLACE, **self.configuration, RELEASE.key: self.release}


def read(path: Path) -> Recording:
    """Read a recording. Raises OSError if it cannot be read, ValueError if it is not a recording."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        header, *rest = [json.loads(line) for line in lines]
    if not isinstance(header, dict) or "conf" not in header:
        raise ValueError(f"{path}: is not a recording: the first line has no `conf`")
    steps = [line for line in rest if "step" in line]
    error = header.get("error")
    return Recording(
        name=path.name.removesuffix(".gz").removesuffix(".jsonl"),
        release=header.get("release", HADOOP_VERSION),
        configuration=header["conf"],
        error=error["class"] if error else None,
        first_view=_view(header.get("delta", {})),
        steps=tuple(Step(line["step"], line["reply"], _view(line["delta"])) for line in steps),
        restless=next((line["at"] for line in rest if "hang" in line), None),
    )


def _view(delta: Json) -> View:
    """Convert numbers back to 32-bit floats: they are printed with as few digits as those need."""
    return {key: to_float32(value) if isinstance(value, float) else value for key, value in delta.items()}
