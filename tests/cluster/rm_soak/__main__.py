"""Kill the ResourceManager of many clusters, and print the results.

    scripts/soak --seed 1 --runs 40 --kills 25 --directory /tmp/soak
    scripts/soak --storm --runs 10                          thousands of submissions and changes, no nodes
    scripts/soak --fuzz --seed 1 --messages 200000          hostile messages over all RPCs (tests/cluster/rpc_fuzz)

Each run has its own cluster; its line shows the seed that repeats its random choices. Files of failed runs are kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster.rm_soak.soak import Figures, soak, storm_soak
from tests.cluster.rpc_fuzz import command

FUZZ_MESSAGES = 200_000


def main() -> int:
    options = _parser().parse_args()
    if options.fuzz:
        return command.run(options)
    root = options.directory or Path(tempfile.mkdtemp(prefix="rm-soak-"))
    total = Figures()
    for seed in range(options.seed, options.seed + options.runs):
        directory = root / f"seed-{seed}"
        shutil.rmtree(directory, ignore_errors=True)
        if options.storm:
            figures = asyncio.run(storm_soak(seed, options.kills, directory))
        else:
            figures = asyncio.run(soak(seed, options.kills, directory, record=options.record))
        total.add(figures)
        sys.stdout.write(time.strftime("%H:%M:%S ") + json.dumps(figures.summary()) + "\n")
        sys.stdout.flush()
        if not figures.wrong:
            shutil.rmtree(directory, ignore_errors=True)
    sys.stdout.write(json.dumps(total.summary(), indent=1) + "\n")
    return 1 if total.wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the first seed")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="the number of runs, with consecutive seeds")
    parser.add_argument("--kills", type=int, default=25, metavar="N", help="kills of the ResourceManager in a run")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="for the clusters' files (default: temporary)")
    parser.add_argument("--record", action="store_true", help="keep the daemons' event logs")
    parser.add_argument("--storm", action="store_true", help="thousands of submissions and changes, no nodes")
    parser.add_argument("--fuzz", action="store_true", help="hostile messages over all RPCs instead of kills")
    parser.add_argument(
        "--messages",
        type=int,
        default=FUZZ_MESSAGES,
        metavar="N",
        help="messages of --fuzz (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print the summary of --fuzz as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
