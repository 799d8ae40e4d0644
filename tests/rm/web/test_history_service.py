"""The REST API of the cluster's history, and who may see what of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rm.core.history.cluster_history import ClusterHistory
from rm.shell.inspection_service import InspectionService
from rm.shell.web.history import NAMED_MAX, HistoryService
from tests.rm.builders import RM, START_MS, done, resource_request
from tests.rm.served_cluster import serving
from tests.rm.test_verdicts import AMS, running, start
from tests.rm.web.test_acls import ACLS
from tests.rm.web.test_live import of
from tests.rm.web.test_writes import served, submit
from tests.wire.web.asgi import NoCheck, ask
from wire.web.application import WebApplication
from yarn.errors import YarnException
from yarn.ids import ApplicationId

BASE = "/ws/yarnling/v1"


class Served:
    """A core with one node of 8 GB, an application that holds some of it and requests more, and its history."""

    def __init__(self) -> None:
        self.rm: RM = start(AMS, 8192)
        self.history = ClusterHistory(self.rm.core.context)
        self.inspections = InspectionService(self.rm.core, lambda: self.rm.now_ms)
        self.inspections.history = self.history
        self.history.sample(self.rm.now_ms)
        self.app: ApplicationId = running(self.rm)
        first, *_ = self.rm.get(self.app, 3)
        self.rm.allocate(self.app, [resource_request(1, 8192)])
        self.rm.now_ms += 60_000
        self.rm.beat("n1", [done(first.id)])
        self.sample()
        rows = HistoryService(self.rm.core, self.history, self.inspections, lambda: self.rm.now_ms).rows()
        self.application = WebApplication(rows, NoCheck())  # type: ignore[arg-type]

    def sample(self) -> None:
        self.history.sample(self.rm.now_ms)
        list(self.history.explain_waiting(self.rm.now_ms))

    async def get(self, path: str) -> Any:
        reply = await ask(self.application, BASE + path)
        assert reply.status == 200, reply.text
        return reply.json


@pytest.fixture
def kept() -> Served:
    return Served()


async def test_curves_of_the_queues_and_nodes_that_are_named(kept: Served) -> None:
    found = await kept.get("/history?queue=root.default,root.none&node=n1:45454&minutes=5")
    assert (found["nowMs"] - found["fromMs"], found["stepMs"], found["sinceMs"]) == (300_000, 5000, START_MS)
    assert found["columns"]["nodes"] == ["time_ms", "total_mb", "used_mb", "reserved_mb", "containers"]
    assert found["nodes"] == {"n1:45454": [[START_MS, 8192, 0, 0, 0], [START_MS + 60_000, 8192, 3072, 0, 3]]}
    used = found["columns"]["queues"].index("used_mb")
    assert [row[used] for row in found["queues"]["root.default"]] == [0, 3072]
    assert found["queues"]["root.none"] is None
    assert found["cluster"] == [[START_MS, 8192, 1]]


async def test_why_an_application_waited_at_a_time(kept: Served) -> None:
    kept.rm.now_ms += 60_000
    found = await kept.get(f"/apps/{kept.app}/history?at={START_MS + 61_000}")
    (held,) = found["verdicts"]
    assert (held["cause"], held["from_ms"], held["until_ms"]) == ("NODE_FULL", START_MS + 60_000, None)
    assert (await kept.get(f"/apps/{kept.app}/history?at={START_MS + 1000}"))["verdicts"] == []
    assert (await kept.get(f"/apps/{kept.app}/history"))["verdicts"] == [held]
    too_early = await ask(kept.application, f"{BASE}/apps/{kept.app}/history?at={START_MS - 1}")
    assert too_early.status == 404
    assert str(START_MS) in too_early.text


async def test_decisions_come_last_first(kept: Served) -> None:
    found = await kept.get("/decisions?minutes=30&limit=2")
    assert found["count"] == 5
    first, second = found["decisions"]
    assert (first["what"], first["atMs"], first["app"]) == ("ended", START_MS + 60_000, str(kept.app))
    assert (second["what"], second["node"]) == ("placed", "n1:45454")


@pytest.mark.parametrize(
    "query", ["minutes=0", "minutes=-1", "minutes=99999", "minutes=x", f"queue={','.join('abc' * NAMED_MAX)}"]
)
async def test_bounds_of_a_query(kept: Served, query: str) -> None:
    assert (await ask(kept.application, f"{BASE}/history?{query}")).status == 400


async def test_without_samples_there_is_no_history(kept: Served) -> None:
    kept.inspections.history = None
    with pytest.raises(YarnException, match=r"yarn\.yarnling\.web\.enabled"):
        kept.inspections.past_explained(kept.app, ("ann", ()))


async def test_a_served_cluster_is_sampled_and_strangers_see_only_amounts(tmp_path: Path) -> None:
    async with serving(served(tmp_path, **ACLS)) as cluster:
        node = await cluster.node()
        app = await submit(cluster)
        while not (found := (await of(cluster, "/decisions?user.name=alice")).json["decisions"]):
            await node.beat()
        assert found[0]["app"] == app
        (hidden,) = (await of(cluster, "/decisions?user.name=bob")).json["decisions"]
        assert set(hidden) == {"atMs", "what", "resource", "node"}
        assert (await of(cluster, f"/apps/{app}/history?user.name=alice")).json["since_ms"] > 0
        assert (await of(cluster, f"/apps/{app}/history?user.name=bob")).status == 403
        assert (await of(cluster, "/apps/application_1_0001/history")).status == 404
