"""A client that submits applications as fast as it can, and measures the time of each reply.

    python -m benchmarks.submitting_client CONF-DIR COUNT WINDOW RESULT [NAME=VALUE]

CONF-DIR is the configuration directory of the cluster. For each application it calls getNewApplication and
submitApplication; WINDOW applications are in progress at a time. NAME=VALUE is added to the environment of the
ApplicationMasters. The file RESULT contains {"passed_s", "reply_ms": the time of each submitApplication, "replied_s":
the times of its reply since the first call, "errors": texts}.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from wire.address import Address
from wire.channel import Channels
from wire.cluster_secret import read_client_token
from wire.files.hadoop_xml import load_configuration
from wire.protocols.client import ApplicationClientProtocol
from wire.retry import RetryPolicy
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext
from yarn.errors import YarnException
from yarn.resource import Resource
from yarn.settings import resourcemanager

AM_RESOURCE = Resource(1024, 1)
RETRY = RetryPolicy(max_wait_ms=20_000, interval_ms=100)


async def submit(conf: Configuration, count: int, window: int, environment: Mapping[str, str]) -> dict[str, object]:
    """Submit the applications and return the content of RESULT.

    After a refused or unanswered submission, the next one follows.
    """
    reply_ms: list[float] = []
    replied_s: list[float] = []
    errors: list[str] = []
    left = iter(range(count))
    async with Channels() as channels:
        rm = ApplicationClientProtocol(
            str(Address.read(conf, resourcemanager.ADDRESS)),
            user=getpass.getuser(),
            token=read_client_token(conf),
            retry=RETRY,
            channels=channels,
        )
        started = time.perf_counter()

        async def one() -> None:
            new = await rm.get_new_application()
            launch = ContainerLaunchContext(("true",), environment=dict(environment))
            context = ApplicationSubmissionContext(new.application_id, resource=AM_RESOURCE, am_container=launch)
            called = time.perf_counter()
            await rm.submit_application(context)
            replied = time.perf_counter()
            reply_ms.append((replied - called) * 1000)
            replied_s.append(replied - started)

        async def work() -> None:
            for _ in left:
                try:
                    await one()
                except YarnException as error:
                    errors.append(f"{type(error).__name__}: {error.message}")

        async with asyncio.TaskGroup() as tasks:
            for _ in range(window):
                tasks.create_task(work())
        passed_s = time.perf_counter() - started
    return {"passed_s": passed_s, "reply_ms": reply_ms, "replied_s": replied_s, "errors": errors}


def main() -> None:
    conf_dir, count, window, result, *variables = sys.argv[1:]
    environment = dict(variable.split("=", 1) for variable in variables)
    found = asyncio.run(submit(load_configuration(Path(conf_dir)), int(count), int(window), environment))
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
