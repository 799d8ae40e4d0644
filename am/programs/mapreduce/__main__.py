"""The AM's process: python -m am.programs.mapreduce --staging DIR (in a container)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from am.programs.mapreduce.master import make_master
from am.programs.master import run_master


def main() -> int:
    parser = argparse.ArgumentParser(prog="am.programs.mapreduce", description=__doc__)
    parser.add_argument("--staging", type=Path, required=True, help="the job's staging directory")
    options = parser.parse_args()
    return run_master(lambda environment: make_master(options.staging, environment.attempt_id))


if __name__ == "__main__":
    sys.exit(main())
