"""The cluster that a test requests: the options of the run, overridden by markers, the outermost first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from yarn.errors import InvalidArgumentException
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

MARKER = "yarn_cluster"
SCOPES = ("function", "class", "module", "session")


class ClusterSpec(Struct, frozen=True):
    """A cluster to start; tests with equal specs may share one. `settings` are sorted pairs."""

    nodes: int = 1
    memory_mb: int | None = None
    vcores: int | None = None
    conf: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    fast: bool = True
    racks: int = 1
    loopback: bool = False
    hadoop: bool = False
    scope: str = "function"

    def cluster(self, directory: Path | None = None) -> LocalCluster:
        """The cluster, not started. Raises InvalidArgumentException for an impossible size."""
        return LocalCluster(
            self.nodes,
            memory_mb=self.memory_mb,
            vcores=self.vcores,
            conf=self.conf,
            settings=dict(self.settings),
            fast=self.fast,
            hadoop=self.hadoop,
            options=ClusterOptions(racks=self.racks, directory=directory, loopback=self.loopback),
        )


class ClusterRequest(Struct, frozen=True):
    """The arguments of one marker; paths are relative to `base`, the directory of its test module."""

    positional: tuple[object, ...] = ()
    named: Mapping[str, object] = field(default_factory=dict)
    base: Path = Path()


def spec_of(defaults: ClusterSpec, requests: Iterable[ClusterRequest]) -> ClusterSpec:
    """`defaults` overridden by the requests in turn; settings are merged key by key.

    Raises InvalidArgumentException with every fault of a request.
    """
    spec = defaults
    for request in requests:
        faults = _faults(request)
        if faults:
            raise InvalidArgumentException("\n".join(f"{MARKER}: {fault}" for fault in faults))
        spec = _with(spec, request)
    return spec


def with_settings(spec: ClusterSpec, settings: Mapping[str, str]) -> ClusterSpec:
    return replace(spec, settings=tuple(sorted({**dict(spec.settings), **settings}.items())))


def _with(spec: ClusterSpec, request: ClusterRequest) -> ClusterSpec:
    named: dict[str, Any] = dict(request.named)
    settings = dict(named.pop("settings", {}))
    conf = named.pop("conf", None)
    if isinstance(conf, Mapping):
        settings = {**conf, **settings}
    elif conf is not None:
        named["conf"] = str(request.base / conf)
    return with_settings(replace(spec, **named), settings)


_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "nodes": (int, "a number"),
    "memory_mb": (int, "a number"),
    "vcores": (int, "a number"),
    "conf": ((str, Path, Mapping), "a directory, or {key: value}"),
    "settings": (Mapping, "{key: value}"),
    "fast": (bool, "True or False"),
    "racks": (int, "a number"),
    "loopback": (bool, "True or False"),
    "hadoop": (bool, "True or False"),
    "scope": (str, f"one of {', '.join(SCOPES)}"),
}


def _faults(request: ClusterRequest) -> list[str]:
    faults = [f"{value!r}: use a keyword, for example nodes={value!r}" for value in request.positional]
    for name, value in request.named.items():
        if name not in _KINDS:
            faults.append(f"{name}: unknown argument (known: {', '.join(_KINDS)})")
            continue
        kind, wanted = _KINDS[name]
        is_number = kind is int and isinstance(value, bool)
        is_scope = name == "scope" and value not in SCOPES
        if not isinstance(value, kind) or is_number or is_scope:
            faults.append(f"{name} = {value!r}: must be {wanted}")
        elif isinstance(value, Mapping):
            faults += _setting_faults(name, value)
    return faults


def _setting_faults(name: str, settings: Mapping[Any, Any]) -> list[str]:
    return [
        f"{name}: {key!r} = {value!r}: must be strings (write {str(key)!r}: {str(value)!r})"
        for key, value in settings.items()
        if not (isinstance(key, str) and isinstance(value, str))
    ]
