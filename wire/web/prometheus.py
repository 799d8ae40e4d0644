"""/metrics in Prometheus' text format, made from the beans of /jmx under the names of Hadoop's own /prom.

`AllocatedMB` of a bean of `QueueMetrics` is queue_metrics_allocated_mb, its tags are labels (PrometheusMetricsSink).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from wire.web.application import TextAnswer
from wire.web.document import JavaDouble
from wire.web.jmx import Bean
from wire.web.pacing import collected, in_slices

_TAG = "tag."
_WORDS = re.compile(r"(?<!^)(?<![A-Z_])(?=[A-Z])|(?<!^)(?=[A-Z][a-z])")


class BeanCollector(Collector):
    """Reads the beans when it is scraped."""

    def __init__(self, beans: Callable[[], Iterable[Bean]]) -> None:
        self._beans = beans

    def collect(self) -> Iterator[Metric]:
        families: dict[str, GaugeMetricFamily] = {}
        for bean in self._beans():
            if not bean.name.startswith("Hadoop:"):
                continue
            tags = {name[len(_TAG) :].lower(): str(value) for name, value in bean.attributes.items() if _is_tag(name)}
            for name, value in bean.attributes.items():
                number = _number(value)
                if number is None or _is_tag(name):
                    continue
                full = prometheus_name(bean.type.partition(",")[0], name)
                family = families.get(full)
                if family is None:
                    family = families[full] = GaugeMetricFamily(
                        full, f"{bean.type.partition(',')[0]} {name}", labels=tuple(tags)
                    )
                family.add_metric(list(tags.values()), number)
        yield from families.values()


async def prometheus_answer(beans: Callable[[], Iterable[Bean]]) -> TextAnswer:
    """The answer to a scrape. The text is made in a thread: of a thousand queues it takes half a second."""
    found = await in_slices(collected(beans()))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(BeanCollector(lambda: found))
    return TextAnswer(await asyncio.to_thread(generate_latest, registry), CONTENT_TYPE_LATEST)


def prometheus_name(record: str, metric: str) -> str:
    """`QueueMetrics`, `AllocatedMB` -> `queue_metrics_allocated_mb`."""
    joined = record + metric[:1].upper() + metric[1:]
    return (
        "_".join(_WORDS.split(joined.replace(" ", ""))).lower().replace(".", "_").replace("-", "_").replace("__", "_")
    )


def _is_tag(name: str) -> bool:
    return name.startswith(_TAG)


def _number(value: object) -> float | None:
    if isinstance(value, JavaDouble):
        return value.number
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
