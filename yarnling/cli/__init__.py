"""The command line: `yarnling VERB`, or `python -m yarnling VERB`."""

from yarnling.cli.app import main

__all__ = ["main"]
