"""The racks of hosts: TableMapping's file of `host rack` lines, or one rack for all hosts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.nodes import DEFAULT_RACK
from yarn.settings.yarnling import NODE_SWITCH_MAPPING, TOPOLOGY_TABLE_FILE

TABLE_BYTES_MAX = 16 * 1024 * 1024
"""The maximum size of the file: room for half a million hosts, as a line has some 30 bytes."""

_TABLE_MAPPING = "org.apache.hadoop.net.TableMapping"


class Topology:
    """The racks of hosts: {host: rack}. Hosts that are not listed are in the default rack."""

    def __init__(self, racks: Mapping[str, str]) -> None:
        self._racks = racks

    @staticmethod
    def read(conf: Configuration) -> Topology:
        """The topology that `conf` configures. Raises YarnException if the table cannot be read.

        As in Hadoop, all hosts are in the default rack if no table is configured, or a mapping other than TableMapping.
        """
        if NODE_SWITCH_MAPPING.of(conf) != _TABLE_MAPPING:
            return Topology({})
        name = TOPOLOGY_TABLE_FILE.maybe_of(conf)
        return Topology(_read_table(Path(name)) if name else {})

    def rack_of(self, host: str) -> str:
        return self._racks.get(host, DEFAULT_RACK)


def _read_table(path: Path) -> dict[str, str]:
    """Read the table. As in TableMapping, comments and lines that do not have two words are skipped."""
    said = f"{TOPOLOGY_TABLE_FILE.key} = {path}"
    try:
        if path.stat().st_size > TABLE_BYTES_MAX:
            raise YarnException(f"{said}: larger than {TABLE_BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise YarnException(f"{said}: {error.strerror} (name a file of `host rack` lines)") from None
    except UnicodeDecodeError:
        raise YarnException(f"{said}: not UTF-8 (save it as UTF-8)") from None
    racks = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and not line.lstrip().startswith("#"):
            racks[words[0]] = words[1]
    return racks
