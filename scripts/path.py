"""Print the files of the ResourceManager's core that a request passes through, in order.

Two steps of the core are traced: an allocate with one resource request, and a node heartbeat that places three
containers. Each is traced after an equal step, so that lazy set-up is not counted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.core_driver import CoreDriver, queues  # noqa: E402  the checkout must be on the path first
from yarn.resource import Resource  # noqa: E402

OFF_SWITCH = "yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments"
CONTAINERS = 3


class RequestPath(NamedTuple):
    """The files that a step enters, in order; how many functions it calls; and how often it moves to another file."""

    files: tuple[str, ...]
    functions: int
    hops: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/path", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one object {step: {files: [...], functions: n, hops: n}}")
    as_json = parser.parse_args().json
    found = {name: summarised(codes) for name, codes in traced_steps().items()}
    if as_json:
        print(json.dumps({name: path._asdict() for name, path in found.items()}, indent=2))
        return
    for name, path in found.items():
        print(f"{name}: {len(path.files)} files, {path.functions} functions, {path.hops} hops from file to file")
        for number, file in enumerate(path.files, 1):
            print(f"  {number:3} {file}")


def traced_steps() -> dict[str, list[CodeType]]:
    """{name of the step: the code objects of our functions that it calls, in order}."""
    cluster = CoreDriver(4, {**queues(2), OFF_SWITCH: "100"}, Resource(65_536, 64))
    attempt = cluster.run_application(1, "root.q0", "user", CONTAINERS)
    cluster.beat_until_placed(CONTAINERS)
    return {
        "an allocate with one resource request": trace(lambda: cluster.request(attempt, CONTAINERS)),
        f"a heartbeat that places {CONTAINERS} containers": trace(lambda: cluster.beat_until_placed(CONTAINERS)),
    }


def trace(work: Callable[[], object]) -> list[CodeType]:
    """The calls of functions of the core that `work` makes, in order."""
    calls: list[CodeType] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and _is_core(frame.f_code.co_filename):
            calls.append(frame.f_code)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def _is_core(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] == "rm"


def summarised(codes: list[CodeType]) -> RequestPath:
    files = [str(Path(code.co_filename).relative_to(ROOT)) for code in codes]
    hops = sum(one != other for one, other in pairwise(files))
    return RequestPath(tuple(dict.fromkeys(files)), len(set(codes)), hops)


if __name__ == "__main__":
    main()
