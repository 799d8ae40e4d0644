"""The explanations of a container afterwards: its placement, its reservation, its preemption."""

from __future__ import annotations

import pytest

from rm.core.explain.container import container_explanation
from rm.scheduler.model import ended_containers
from tests.rm.builders import RM, done
from tests.rm.test_preemption import QUEUES, crowded, pass_time
from tests.rm.test_verdicts import AMS, CAPACITY, running, start
from tests.rm.test_verdicts_of_nodes import reserved
from yarn.containers import ANY, ResourceRequest
from yarn.errors import ContainerNotFoundException
from yarn.ids import ApplicationId, ContainerId
from yarn.protocols.inspection import ContainerExplanation
from yarn.resource import Resource


def explain(rm: RM, container_id: ContainerId) -> ContainerExplanation:
    return container_explanation(rm.core.context, container_id, rm.now_ms)


def rows(count: int, *places: str, relax: bool = True) -> list[ResourceRequest]:
    """Rows for containers at these places, and anywhere else after a delay."""
    return [ResourceRequest(1, place, Resource(1024, 1), count, relax_locality=relax) for place in (*places, ANY)]


def placed(rm: RM, app: ApplicationId) -> ContainerId:
    """The only container that the AM's next call returns."""
    (container,) = rm.allocate(app).allocated
    return container.id


def test_a_container_on_the_node_that_its_request_names() -> None:
    rm = start(None, 8192, 8192)
    app = running(rm)
    rm.allocate(app, rows(1, "n2", "/default-rack"))
    rm.now_ms += 2000
    rm.beat("n2")
    found = explain(rm, placed(rm, app))
    assert (found.locality, found.state) == ("NODE_LOCAL", "ACQUIRED")
    assert (found.requested_ms, found.placed_ms) == (rm.now_ms - 2000, rm.now_ms)
    assert found.sentences == (
        "it was placed on n2, 2 s after its request: the request names n2, which had enough free when it was "
        "offered (node-local)",
    )


def test_a_container_elsewhere_after_the_delay_names_who_refused_before() -> None:
    """n3 is full, so it is not offered. There are three nodes, so the fourth offer on its rack is accepted."""
    rm = start(
        {**AMS, f"{CAPACITY}root.default.user-limit-factor": "10", f"{CAPACITY}rack-locality-additional-delay": "10"},
        8192,
        8192,
        1024,
    )
    running(rm, host="n3")
    app = running(rm)
    rm.allocate(app, rows(1, "n3", "/default-rack"))
    for host in ("n1", "n2", "n1", "n2"):
        rm.now_ms += 1000
        rm.beat(host)
    found = explain(rm, placed(rm, app))
    assert found.locality == "RACK_LOCAL"
    assert found.sentences[0] == (
        "it was placed on n2, 4 s after its request: the request names the rack of n2, and accepts it from "
        "scheduling opportunity 4 on, counted since its last local placement; this was number 4 (rack-local)"
    )
    assert [(passed.node_id.host, passed.reason, rm.now_ms - passed.at_ms) for passed in found.passed] == [
        ("n1", "NODE_OFF_SWITCH_DELAY", 1000),
    ]


def test_a_container_off_switch_says_how_many_offers_were_needed() -> None:
    rm = start(
        {**AMS, f"{CAPACITY}node-locality-delay": "1", f"{CAPACITY}rack-locality-additional-delay": "0"}, 8192, 8192
    )
    app = running(rm)
    rm.allocate(app, rows(1, "far", "/far"))
    rm.beat("n1")
    rm.now_ms += 1000
    rm.beat("n2")
    found = explain(rm, placed(rm, app))
    assert found.locality == "OFF_SWITCH"
    assert "the request names 2 places, others than n2, and accepts it from scheduling opportunity 2 on" in str(
        found.sentences
    )
    assert [passed.node_id.host for passed in found.passed] == ["n1"]


def test_a_request_that_names_no_place() -> None:
    rm = start()
    app = running(rm)
    found = explain(rm, rm.get(app, 1)[0].id)
    assert "the request names no place, and n1 had enough free when it was offered" in found.sentences[0]
    assert found.state == "RUNNING"


def test_a_reservation_says_since_when_and_what_it_waits_for_and_then_how_it_was_filled() -> None:
    rm, app, _ = reserved()
    attempt = rm.core.context.scheduler.attempt_of(app)
    assert attempt is not None
    (container,) = attempt.reserved_containers
    rm.wait(3000)
    found = explain(rm, container.id)
    assert (found.state, found.placed_ms, found.reserved_ms) == ("RESERVED", None, rm.now_ms - 3000)
    assert found.sentences == (
        "n1 is reserved for it for 3 s, since 0 s after its request, because it had too little free for the "
        "request at that time",
        "it waits for free capacity there: 1024 MB free, 3072 needed",
    )
    rm.beat("n1", [done(container_id) for container_id in list(rm.nodes["n1"].running)[:3]])
    rm.beat("n1")
    filled = explain(rm, container.id)
    assert filled.reserved_ms == found.reserved_ms
    assert "n1 had been reserved for it for 3 s, until enough was free there" in filled.sentences[0]


def test_a_preempted_container_has_the_selector_and_the_numbers_of_both_rounds() -> None:
    rm = RM(QUEUES)
    early, _ = crowded(rm)
    pass_time(rm, 3000)
    victim = max(rm.core.context.scheduler.containers_of(early))
    (asked,) = explain(rm, victim).preemptions
    assert (asked.step, asked.reason, asked.at_ms) == ("requested", "GUARANTEE", rm.now_ms)
    assert asked.sentence == (
        "its AM was asked to release it 3 s after it was placed, chosen by FifoCandidatesSelector: its queue uses "
        "more than it is entitled to; the resources are for root.b"
    )
    assert asked.numbers == (
        "root.a: 7168 MB used, 4096 MB guaranteed, 0 MB pending, should have 4096 MB; 3072 MB above that, 3072 MB to "
        "be taken",
        "root.b: 1024 MB used, 4096 MB guaranteed, 3072 MB pending, should have 4096 MB",
    )
    assert asked.served is not None
    assert (asked.victim.used, asked.served.pending.memory_mb) == (Resource(7168, 7), 3072)
    pass_time(rm, 3000)
    pass_time(rm, 3000)
    rm.now_ms += 500
    found = explain(rm, victim)
    assert [(step.step, rm.now_ms - step.at_ms) for step in found.preemptions] == [("requested", 6500), ("killed", 500)]
    assert (found.state, found.ended_ms) == ("KILLED", rm.now_ms - 500)
    assert found.sentences[-1] == (
        "it ended 9 s after it was placed, with exit status -102: Container preempted by scheduler"
    )


def test_containers_that_ended_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_containers, "ENDED_MAX", 2)
    rm = start()
    app = running(rm)
    ids = [container.id for container in rm.get(app, 3)]
    rm.beat("n1", [done(container_id, 7, "out of luck") for container_id in ids])
    assert len(rm.core.context.scheduler.context.ended) == 2
    assert explain(rm, ids[2]).sentences[-1] == "it ended 0 s after it was placed, with exit status 7: out of luck"
    with pytest.raises(ContainerNotFoundException, match="neither live nor reserved nor one of the last"):
        explain(rm, ids[0])
