"""/metrics in Prometheus' text format, made from the beans of /jmx under the names of Hadoop's own /prom.

`AllocatedMB` of a bean of `QueueMetrics` is queue_metrics_allocated_mb, its tags are labels (PrometheusMetricsSink).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable

from wire.web.application import TextAnswer
from wire.web.document import JavaDouble
from wire.web.jmx import Bean
from wire.web.pacing import collected, in_slices

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TAG = "tag."
_COUNTERS = re.compile(
    r"QueueMetrics\.(Aggregate.*|(Unmanaged)?Apps(Submitted|Completed|Killed|Failed))"
    r"|NodeManagerMetrics\.Containers(Launched|Completed|Failed|Killed)"
    r"|JvmMetrics\.Gc(Count|TimeMillis)"
)
_WORDS = re.compile(r"(?<!^)(?<![A-Z_])(?=[A-Z])|(?<!^)(?=[A-Z][a-z])")


async def prometheus_answer(beans: Callable[[], Iterable[Bean]]) -> TextAnswer:
    """The answer to a scrape. The text is made in a thread: of a thousand queues it takes half a second."""
    found = await in_slices(collected(beans()))
    return TextAnswer(await asyncio.to_thread(prometheus_text, found), CONTENT_TYPE)


def prometheus_text(beans: Iterable[Bean]) -> str:
    """The metrics of Hadoop's beans, those of one name together.

    prometheus_client, which would write this, renames each counter to `..._total`.
    """
    families: dict[str, list[str]] = {}
    for bean in beans:
        if not bean.name.startswith("Hadoop:"):
            continue
        record = bean.type.partition(",")[0]
        tags = {name[len(_TAG) :].lower(): str(value) for name, value in bean.attributes.items() if _is_tag(name)}
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in tags.items())
        for name, value in bean.attributes.items():
            number = _number(value)
            if number is None or _is_tag(name):
                continue
            full = prometheus_name(record, name)
            kind = "counter" if is_counter(record, name) else "gauge"
            family = families.setdefault(full, [f"# HELP {full} {record} {name}", f"# TYPE {full} {kind}"])
            family.append(f"{full}{{{labels}}} {number}")
    return "".join(f"{line}\n" for family in families.values() for line in family)


def is_counter(record: str, metric: str) -> bool:
    """True if Hadoop has the metric as a MutableCounter: it counts since the start of the daemon."""
    return _COUNTERS.fullmatch(f"{record}.{metric}") is not None


def prometheus_name(record: str, metric: str) -> str:
    """`QueueMetrics`, `AllocatedMB` -> `queue_metrics_allocated_mb`."""
    joined = record + metric[:1].upper() + metric[1:]
    return (
        "_".join(_WORDS.split(joined.replace(" ", ""))).lower().replace(".", "_").replace("-", "_").replace("__", "_")
    )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _is_tag(name: str) -> bool:
    return name.startswith(_TAG)


def _number(value: object) -> float | None:
    if isinstance(value, JavaDouble):
        return value.number
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
