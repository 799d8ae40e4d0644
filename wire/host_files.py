"""The files of included and excluded hosts (Hadoop's HostsFileReader): one host per line, or XML with timeouts."""

from __future__ import annotations

from pathlib import Path

import defusedxml
from defusedxml.ElementTree import fromstring

from yarn.errors import YarnException
from yarn.settings.kinds import TextSetting

FILE_BYTES_MAX = 16 * 1024 * 1024
"""Room for half a million hosts."""


def read_hosts(setting: TextSetting, path: str) -> tuple[tuple[str, int | None], ...]:
    """(host, timeout in s or None) in the order of the file; empty without a path. Raises YarnException naming the key.

    A `#` starts a comment. If the file's name ends in .xml: `<host><name>h1,h2</name><timeout>60</timeout></host>`.
    """
    if not path:
        return ()
    said = f"{setting.key} = {path}"
    try:
        if Path(path).stat().st_size > FILE_BYTES_MAX:
            raise YarnException(f"{said}: larger than {FILE_BYTES_MAX} bytes")
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise YarnException(f"{said}: {error.strerror} (name a file with one host per line)") from None
    except UnicodeDecodeError:
        raise YarnException(f"{said}: not UTF-8 (save it as UTF-8)") from None
    if path.endswith(".xml"):
        return _xml_hosts(text, said)
    return tuple((host, None) for line in text.splitlines() for host in line.partition("#")[0].split())


def _xml_hosts(text: str, said: str) -> tuple[tuple[str, int | None], ...]:
    try:
        root = fromstring(text)
    except (SyntaxError, defusedxml.DefusedXmlException) as error:
        raise YarnException(f"{said}: malformed or unsupported XML: {error}") from None
    return tuple(
        (host.strip(), _timeout_s(entry.findtext("timeout", "").strip(), said))
        for entry in root.iter("host")
        for host in entry.findtext("name", "").split(",")
        if host.strip()
    )


def _timeout_s(text: str, said: str) -> int | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise YarnException(f"{said}: timeout {text!r} is not a number of seconds") from None
