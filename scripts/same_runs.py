"""Run random workloads in two ways and print the first difference of each; the exit status is 1 if there is one.

CI compares the first 60 (tests/yarnling/simulation/test_ways_of_workload_runs.py).
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.yarnling.simulation.random_workloads import random_workload
from tests.yarnling.simulation.workload_ways import EXPLANATIONS, Way, first_difference, run_in


def main() -> int:
    arguments = _arguments()
    first, last = map(int, arguments.seeds.split("-"))
    ways = [Way[name] for name in arguments.ways]
    differing = 0
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for seed, difference in pool.map(partial(_compare, ways), range(first, last + 1)):
            if difference:
                differing += 1
                print(f"seed {seed}: {difference}", flush=True)
    print(f"{differing} of {last + 1 - first} workloads differ")
    return 1 if differing else 0


def _arguments() -> argparse.Namespace:
    names = [way.name for way in Way]
    parser = argparse.ArgumentParser(prog="scripts/same-runs", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", default="61-160", metavar="FIRST-LAST", help="the workloads (default: 61-160)")
    parser.add_argument("--ways", nargs=2, choices=names, default=["QUIET_LEFT_OUT", "PLAYED"], metavar="WAY")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    return parser.parse_args()


def _compare(ways: list[Way], seed: int) -> tuple[int, str]:
    workload = random_workload(seed)
    ignored = EXPLANATIONS if Way.EVERY_HEARTBEAT in ways else ()
    try:
        one, two = (run_in(way, workload) for way in ways)
    except Exception as error:  # The other workloads are compared all the same.
        return seed, f"{type(error).__name__}: {error}"
    return seed, first_difference(one, two, ignored=ignored)


if __name__ == "__main__":
    sys.exit(main())
