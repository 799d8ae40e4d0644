import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

from probe.daemon import serve
from wire.files.hadoop_xml import load_configuration
from yarn.errors import YarnException

parser = argparse.ArgumentParser()
parser.add_argument("--conf", type=Path)
parser.add_argument("-D", action="append", default=[])
parser.add_argument("--ready-fd", type=int)
arguments = parser.parse_args()


def ready(facts: dict[str, object]) -> None:
    os.write(arguments.ready_fd, json.dumps(facts).encode() + b"\n")


try:
    conf = load_configuration(arguments.conf, dict(setting.split("=", 1) for setting in arguments.D))
    sys.exit(asyncio.run(serve(conf, ready)))
except YarnException as error:
    sys.exit(f"probe: {error}")
