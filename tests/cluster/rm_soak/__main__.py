"""Kill the ResourceManager of many clusters, and say what came of it.

    scripts/soak --seed 1 --runs 40 --kills 25 --directory /tmp/soak
    scripts/soak --storm --runs 10                          submissions and changes by the thousand, nothing runs
    scripts/soak --fuzz --seed 1 --messages 200000          hostile messages over all RPCs (tests/cluster/rpc_fuzz)

A run is a cluster of its own; its line tells its seed, which repeats what is drawn. What was wrong keeps its files.
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
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="so many seeds, one after another")
    parser.add_argument("--kills", type=int, default=25, metavar="N", help="of one ResourceManager")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="for the clusters' files (default: temporary)")
    parser.add_argument("--record", action="store_true", help="keep the daemons' event logs")
    parser.add_argument("--storm", action="store_true", help="submissions and changes by the thousand; nothing runs")
    parser.add_argument("--fuzz", action="store_true", help="hostile messages over all RPCs instead of kills")
    parser.add_argument(
        "--messages", type=int, default=FUZZ_MESSAGES, metavar="N", help="of --fuzz (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the summary of --fuzz for programs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
