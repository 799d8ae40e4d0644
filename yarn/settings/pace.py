"""The pace of the cluster: one factor that scales all its intervals.

A test or a demonstration should not wait ten minutes for a node to be lost. One factor for all intervals keeps their
proportions: three missed heartbeats stay three missed heartbeats.

    scaled(conf, 0.05)      heartbeats 1000 -> 50 ms, NM expiry 600 -> 30 s, AM expiry 900 -> 45 s

Not scaled: durations that depend on the machine (a kill, a connection), retention, token keys. An interval is never
scaled below its `least_ms`.
"""

from __future__ import annotations

from yarn.configuration import Configuration, Entry
from yarn.faults import Origin
from yarn.settings.kinds import TimeSetting
from yarn.settings.registry import BY_KEY
from yarn.settings.yarnling import TIME_FACTOR

FAST_TIME_FACTOR = 0.05
"""The factor of `--fast`: one second of YARN's timers takes 50 ms. With a smaller factor, heartbeats keep a
laptop's cores busy."""


def scaled(conf: Configuration, factor: float | None = None) -> Configuration:
    """The configuration with every paced interval multiplied by `factor` (default: the configured time factor).

    The origin of each value is kept, with the factor appended. The time factor itself becomes 1, so scaling twice has
    no effect.
    """
    chosen = TIME_FACTOR.of(conf) if factor is None else factor
    if chosen == 1:
        return conf
    entries: dict[str, Entry] = {}
    for setting in BY_KEY.values():
        if isinstance(setting, TimeSetting) and setting.paced and setting.text(conf) is not None:
            value_ms = setting.of(conf)
            if value_ms > 0:
                entries[setting.key] = _entry(conf, setting, _shortened(setting, value_ms, chosen), chosen)
    entries[TIME_FACTOR.key] = Entry("1", _scaled_origin(conf.origin(TIME_FACTOR.key), chosen))
    return conf.with_entries(entries)


def _shortened(setting: TimeSetting, value_ms: int, factor: float) -> int:
    """The value times the factor; not below `least_ms`, unless the value itself is."""
    return max(round(value_ms * factor), min(setting.least_ms, value_ms))


def _entry(conf: Configuration, setting: TimeSetting, value_ms: int, factor: float) -> Entry:
    entry = conf.entry(setting.key)
    return Entry(f"{value_ms}ms", _scaled_origin(conf.origin(setting.key), factor), bool(entry and entry.final))


def _scaled_origin(origin: Origin, factor: float) -> Origin:
    return Origin(f"{origin} x {factor:g}")
