"""The ResourceManager's configuration, as Hadoop shows it (ConfServlet) and with origins and meanings.

GET /conf                            the values of yarn-site.xml with the defaults; `?name=KEY` selects one
GET /ws/yarnling/v1/configuration    each key with its value, its origin and its meaning, as `yarnling config`
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from msgspec import Struct

from rm.shell.configuration_report import configuration_report
from rm.shell.web.live import BASE
from wire.web.application import JSON, JSON_UTF8, XML, TextAnswer, WebRoute
from wire.web.document import escaped
from wire.web.errors import PlainRefusal
from wire.web.request import WebRequest
from yarn.configuration import Configuration, Entry
from yarn.faults import OVERRIDE
from yarn.settings import defaults
from yarn.settings.report import KeyIgnored, KeyRead, KeyUnknown, is_secret, shown_value
from yarn.settings.scheduler import PREFIX

CONF_XML_UTF8 = "text/xml;charset=utf-8"
REDACTED, REDACTED_XML = "<redacted>", "******"
"""Shown for the value of a key such as a password, in JSON and in XML (ConfigRedactor)."""


class _ShownProperty(Struct, frozen=True):
    """A key of the configuration. `written`: its value before `${...}` is replaced, which XML has."""

    key: str
    value: str
    written: str
    is_final: bool
    source: str


class ConfigurationService:
    """Serves the configuration with which the ResourceManager was started."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf

    def rows(self) -> Iterator[WebRoute]:
        """The routes."""
        yield WebRoute("GET", "/conf", self._properties, (XML, JSON))
        yield WebRoute("GET", f"{BASE}/configuration", self._report, (JSON,))

    async def _properties(self, request: WebRequest) -> TextAnswer:
        """The properties: JSON for a caller that asks for it, else XML."""
        name = request.first("name")
        found = list(_properties(self._conf, name))
        if name and not (found and found[0].value):
            raise PlainRefusal(404, f"Property {name[:200]} not found")
        if request.is_xml:
            return TextAnswer(_xml(found), CONF_XML_UTF8)
        entries = [_entry(each) for each in found]
        body = {"property": entries[0]} if name else {"properties": entries}
        return TextAnswer(json.dumps(body, separators=(",", ":")), JSON_UTF8)

    async def _report(self, request: WebRequest) -> TextAnswer:
        return TextAnswer(await asyncio.to_thread(_report_text, self._conf), JSON_UTF8)


def _properties(conf: Configuration, name: str | None) -> Iterator[_ShownProperty]:
    """The properties in the order of their keys; those of capacity-scheduler.xml are not among them, as in Hadoop."""
    known = defaults()
    for key in [name] if name else sorted({*conf, *known}):
        entry, default = conf.entry(key), known.get(key)
        if key.startswith(PREFIX) or (entry is None and default is None):
            continue
        written = entry.value if entry is not None else default or ""
        is_final = entry is not None and entry.final
        yield _ShownProperty(key, _expanded(conf, written), written, is_final, _source(entry))


def _expanded(conf: Configuration, written: str) -> str:
    """The value with its variables replaced, or as written if they refer to each other without an end."""
    try:
        return conf.expand(written)
    except ValueError:
        return written


def _source(entry: Entry | None) -> str:
    """The file in which a value is, by Hadoop's names."""
    if entry is None:
        return "yarn-default.xml"
    return PurePath(entry.origin.source).name if entry.origin != OVERRIDE else "programatically"


def _entry(found: _ShownProperty) -> dict[str, str | bool]:
    value = REDACTED if is_secret(found.key) else found.value
    return {"key": found.key, "value": value, "isFinal": found.is_final, "resource": found.source}


def _xml(properties: Iterable[_ShownProperty]) -> str:
    lines = ['<?xml version="1.0" encoding="UTF-8" standalone="no"?><configuration>']
    for each in properties:
        value = REDACTED_XML if is_secret(each.key) else each.written
        lines.append(
            f"<property><name>{escaped(each.key)}</name><value>{escaped(value)}</value>"
            f"<final>{str(each.is_final).lower()}</final><source>{escaped(each.source)}</source></property>"
        )
    return "\n".join([*lines, "</configuration>"])


def _report_text(conf: Configuration) -> str:
    """The report of `yarnling config`, with faults as text and without secrets."""
    found = configuration_report(conf)
    lists = {
        "read": [_setting(entry, meaning=entry.meaning) for entry in found.read],
        "ignored": [_setting(entry) for entry in found.ignored],
        "unknown": [_setting(entry, nearest=entry.nearest) for entry in found.unknown],
        "defaulted": [{"key": entry.key, "value": entry.value, "meaning": entry.meaning} for entry in found.defaulted],
    }
    return json.dumps({**lists, "faults": [str(fault) for fault in found.faults]})


def _setting(entry: KeyRead | KeyIgnored | KeyUnknown, **more: str | None) -> dict[str, str | None]:
    return {"key": entry.key, "value": shown_value(entry.key, entry.value), "origin": str(entry.origin), **more}
