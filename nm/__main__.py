"""Command line of a NodeManager: `python -m nm --conf DIR [-D key=value ...] [--ready-fd N]`.

Once the node has registered, the process writes one line of JSON to the file descriptor of --ready-fd (default:
stdout).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from nm.daemon import serve
from wire.files.hadoop_xml import load_configuration
from yarn.errors import YarnException

STDOUT = 1


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=options.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    environ = dict(os.environ)
    if options.conf is not None:
        # ApplicationMasters inherit HADOOP_CONF_DIR and read the ResourceManager's address from that directory.
        environ["HADOOP_CONF_DIR"] = str(options.conf.resolve())
    try:
        conf = load_configuration(options.conf, dict(options.define))
        return asyncio.run(serve(conf, lambda facts: _write_facts(options.ready_fd, facts), environ=environ))
    except YarnException as error:
        sys.stderr.write(f"nodemanager: {error.message}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m nm", description="One NodeManager of a yarnling cluster.")
    parser.add_argument("--conf", type=Path, help="directory with yarn-site.xml")
    parser.add_argument("-D", dest="define", action="append", default=[], type=_pair, metavar="KEY=VALUE")
    parser.add_argument(
        "--ready-fd", type=int, default=STDOUT, help="file descriptor for the line of JSON (default: stdout)"
    )
    parser.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    return parser


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY=VALUE")
    return key, value


def _write_facts(descriptor: int, facts: dict[str, object]) -> None:
    os.write(descriptor, (json.dumps(facts) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main())
