"""The applications of three users in three departments."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from msgspec import Struct

from am.client.submission import ApplicationOptions, Submission
from am.programs.distributed_shell.client import DistributedShell
from am.programs.distributed_shell.core import Width
from am.programs.mapreduce.client import status_file, word_count
from examples.demo.input_text import InputText
from yarn.ids import ApplicationId
from yarn.resource import Resource
from yarnling.cluster.client import Client

AM_RESOURCE = Resource(256, 1)
SPLIT_BYTES = 256 << 10
REDUCES = 2
DIGESTS = 8
DIGESTED_FILES = 20
DIGEST_ROUNDS = 25
DIGEST_PAUSE_S = 0.4
SERVICES = 4
SERVICE_S = 14.0


class UserJob(Struct, frozen=True):
    """An application of the demonstration."""

    user: str
    what: str
    submission: Submission


class Submitted(Struct, frozen=True):
    """A submitted job; `client` is the client of its user."""

    job: UserJob
    application_id: ApplicationId
    client: Client


def workload(
    text: InputText, output: Path, *, gate: Path | None = None, split_bytes: int = SPLIT_BYTES
) -> list[UserJob]:
    """alice counts words, bob computes digests, carol runs a service.

    The containers of bob and carol take about ten seconds, or with a `gate` until that file exists. A map task of
    alice reads at most `split_bytes`.
    """
    counting = word_count(
        text.files,
        output,
        options=ApplicationOptions("word count", queue="root.engineering.development", am_resource=AM_RESOURCE),
        reduces=REDUCES,
        split_bytes=split_bytes,
    )
    digests = DistributedShell(
        digest_command(list(text.files), gate),
        Width(DIGESTS, Resource(512, 1)),
        ApplicationOptions("digests", queue="root.marketing.sales", am_resource=AM_RESOURCE),
    )
    service = DistributedShell(
        service_command(gate),
        Width(SERVICES, Resource(768, 1)),
        ApplicationOptions("service", queue="root.support.services", am_resource=AM_RESOURCE),
    )
    return [
        UserJob("alice", f"word count over {len(text.files)} files", counting),
        UserJob("bob", f"digests in {DIGESTS} containers", digests),
        UserJob("carol", f"service of {SERVICES} containers", service),
    ]


def digest_command(files: list[Path], gate: Path | None) -> str:
    """A shell loop that computes digests of the first files, with a short pause after each round."""
    names = shlex.join(str(path) for path in files[:DIGESTED_FILES])
    rounds = f"for round in {{1..{DIGEST_ROUNDS}}}" if gate is None else f"until test -e {shlex.quote(str(gate))}"
    return f"{rounds}; do sha256sum {names} || exit 1; sleep {DIGEST_PAUSE_S:g}; done"


def service_command(gate: Path | None) -> str:
    """A service that only waits."""
    if gate is None:
        return f"exec sleep {SERVICE_S:g}"
    return f"until test -e {shlex.quote(str(gate))}; do sleep {DIGEST_PAUSE_S:g}; done"


def map_reduce_status(application_id: ApplicationId, staging_root: Path) -> dict[str, object]:
    """The status that the job's ApplicationMaster last wrote; empty if it has not written one yet."""
    try:
        status: dict[str, object] = json.loads(status_file(application_id, staging_root).read_text())
    except (OSError, ValueError):
        return {}
    return status
