"""The file of mapping rules: read before the core sees the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from rm.daemon import ResourceManager
from rm.shell.configuration_files import RULES_BYTES_MAX, with_mapping_rules
from tests.rm.served_cluster import configuration, serving
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException

PREFIX = "yarn.scheduler.capacity."
KEY = PREFIX + "mapping-rule-json"
RULES = '{"rules": [{"type": "user", "matches": "*", "policy": "custom", "customPlacement": "root.default"}]}'


def configured(path: Path, **more: str) -> Configuration:
    conf = {PREFIX + "mapping-rule-format": "json", PREFIX + "mapping-rule-json-file": f" {path} "}
    return Configuration.of(conf | more)


def test_the_text_of_the_file_becomes_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text(RULES)
    conf = with_mapping_rules(configured(path))
    assert conf.get(KEY) == RULES
    assert str(conf.origin(KEY)) == str(path)


def test_rules_in_the_configuration_win_and_the_format_has_to_say_json(tmp_path: Path) -> None:
    """CapacitySchedulerConfiguration.parseJSONMappingRules; a file that is not used need not exist."""
    inline = configured(tmp_path / "none", **{KEY: RULES})
    assert with_mapping_rules(inline) == inline
    legacy = configured(tmp_path / "none", **{PREFIX + "mapping-rule-format": "legacy"})
    assert with_mapping_rules(legacy) == legacy


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, "No such file"), (b"\xff", "decode"), (b" " * (RULES_BYTES_MAX + 1), "more than 4194304 bytes")],
    ids=["absent", "no text", "too long"],
)
def test_a_bad_file_is_reported_with_key_and_remedy(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "rules.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationException, match=problem) as caught:
        with_mapping_rules(configured(path))
    assert caught.value.faults[0].key == PREFIX + "mapping-rule-json-file"
    assert KEY in caught.value.faults[0].remedy


async def test_the_daemon_reads_the_rule_file_at_its_start_and_at_refreshes(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    conf = configuration(tmp_path).overlaid(configured(path))
    with pytest.raises(ConfigurationException, match="No such file"):
        ResourceManager(conf)
    path.write_text(RULES)
    async with serving(conf, reload=lambda: conf) as cluster:
        placement = cluster.rm.core.context.placement
        assert placement.place(user="ann", groups=(), application="a", queue="default") == "root.default"
        path.write_text(RULES.replace("root.default", "root.nowhere"))
        with pytest.raises(ConfigurationException, match=r"root\.nowhere"):
            await (await cluster.admin()).refresh_queues()
