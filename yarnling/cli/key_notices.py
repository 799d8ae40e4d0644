"""What a start tells of a configuration: how many keys were read, which are ignored or unknown, what is odd."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rm.scheduler.config.configuration import check_scheduler
from wire.hadoop_keys import hadoop_keys
from wire.hadoop_xml import read_configuration
from yarn.faults import refuse_if_faulty
from yarn.settings.report import describe
from yarnling.cli.terminal import in_line, notices
from yarnling.cluster.configuration import replaced, with_defaults


def tell_of_keys(conf: str | None, settings: Mapping[str, str]) -> None:
    """A few lines on stderr, none if nothing was configured. ConfigurationException with every fault there is."""
    if conf is None and not settings:
        return
    given = read_configuration(None if conf is None else Path(conf), settings)
    configuration = with_defaults(given)
    found = describe(configuration, hadoop_keys(), check_scheduler(configuration))
    refuse_if_faulty(found.faults)
    console = notices()
    read = sum(key.key in given for key in found.read)
    counts = f"{read} keys read, {len(found.ignored)} ignored, {len(found.unknown)} unknown"
    where = "" if conf is None else f" (yarnling config --conf {conf} lists them)"
    console.print(in_line(f"Configuration: {counts}{where}"))
    if own := replaced(configuration, settings):
        console.print(in_line(f"The cluster chooses itself (unless -D says otherwise): {', '.join(own)}"))
    for key in found.unknown:
        nearest = f", perhaps {key.nearest}" if key.nearest else ""
        console.print(in_line(f"unknown: {key.origin}: {key.key} = {key.value!r}{nearest}"))
    for fault in found.faults:
        console.print(in_line(f"warning: {fault}"))
