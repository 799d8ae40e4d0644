"""Five NodeManagers under a queue tree, three users' applications at once, one kill -9 half way, a verified result.

    scripts/demo [PATH ...]

The exit status is 0 only if every application succeeded and the word count equals a plain count of the same files.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from rich.console import Console

from examples.demo.input_text import DEFAULT_BYTES_MAX, find_text
from examples.demo.screen import Screen
from examples.demo.story import CONF, Story
from yarn.errors import YarnException

PLAIN_WIDTH = 120


def main() -> int:
    options = _parser().parse_args()
    is_plain = options.plain or not sys.stdout.isatty()
    width = PLAIN_WIDTH if is_plain else None
    screen = Screen(Console(highlight=False, force_terminal=False if is_plain else None, width=width))
    try:
        text = find_text(options.paths, options.megabytes << 20)
        screen.say(f"Text: {len(text.files)} files, {text.size_bytes / 1e6:.1f} MB, from {text.origin}")
        is_right = asyncio.run(Story(text, screen, options.nodes, options.conf).run())
    except YarnException as error:
        sys.stderr.write(f"demo: {error.message}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("demo: interrupted; all processes have ended\n")
        return 130
    return 0 if is_right else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="text files or directories to count (default: Python's own)"
    )
    parser.add_argument(
        "--nodes", type=_node_count, default=5, metavar="N", help="NodeManagers, at least 2 (default: 5)"
    )
    parser.add_argument(
        "--megabytes", type=int, default=DEFAULT_BYTES_MAX >> 20, metavar="MB", help="how much of Python's own text"
    )
    parser.add_argument("--conf", type=Path, default=CONF, metavar="DIR", help="configuration (default: conf)")
    parser.add_argument("--plain", action="store_true", help="lines instead of the live view")
    return parser


def _node_count(text: str) -> int:
    count = int(text)
    if count < 2:
        raise argparse.ArgumentTypeError(f"{count}: one is killed, so at least 2 are needed")
    return count


if __name__ == "__main__":
    sys.exit(main())
