"""The keys that Hadoop 3.4.1 knows, listed in hadoop_keys.txt."""

from __future__ import annotations

from importlib import resources

from yarn.settings.report import HadoopKeys


def hadoop_keys() -> HadoopKeys:
    text = resources.files("wire").joinpath("hadoop_keys.txt").read_text()
    return HadoopKeys(line for line in text.splitlines() if line and not line.startswith("#"))
