"""The file of runs: what decides a result is in the key, and other files are refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.yarnling.search.imagined import TEMPLATE, sides
from yarn.errors import YarnException
from yarnling.search.run_cache import Refused, digest_of, key_of, open_cache
from yarnling.workload.formats import read_node_list

AUTOSCALED = Path(__file__).parents[3] / "examples/what-if/autoscaling/autoscaled.yaml"


def test_figures_and_refusals_come_back(tmp_path: Path) -> None:
    with open_cache(tmp_path / "runs.sqlite") as cache:
        cache.put("a", TEMPLATE)
        cache.put("b", Refused("no"))
    with open_cache(tmp_path / "runs.sqlite") as cache:
        assert (cache.get("a"), cache.get("b"), cache.get("c")) == (TEMPLATE, Refused("no"), None)


def test_a_run_that_this_version_cannot_read_is_made_again(tmp_path: Path) -> None:
    with open_cache(tmp_path / "runs.sqlite") as cache:
        cache.put("a", TEMPLATE)
    database = sqlite3.connect(tmp_path / "runs.sqlite")
    with database:
        database.execute("UPDATE runs SET figures = x'00'")
    database.close()
    with open_cache(tmp_path / "runs.sqlite") as cache:
        assert cache.get("a") is None


def test_all_that_decides_a_result_is_in_the_key_and_names_are_not() -> None:
    [one, other] = sides(2)
    schedule = read_node_list(AUTOSCALED).schedule
    assert digest_of(one) == digest_of(replace(one, title="another"))
    assert len({digest_of(one), digest_of(other), digest_of(replace(one, schedule=schedule))}) == 3
    assert key_of(b"x", {"a": "1", "b": "2"}) == key_of(b"x", {"b": "2", "a": "1"}) != key_of(b"x", {"a": "1"})


@pytest.mark.parametrize("content", ["text", None])
def test_another_file_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "runs.sqlite"
    if content is None:
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE other (a TEXT)")
        database.close()
    else:
        path.write_text(content * 200)
    with pytest.raises(YarnException, match="name another directory"), open_cache(path):
        pass
