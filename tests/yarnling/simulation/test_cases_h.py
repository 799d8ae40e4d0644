"""Mission cases H1 and H2 on a whole simulated cluster: the resources of nodes, and requests for idle memory."""

from __future__ import annotations

import pytest

from rm.core.events import UpdateNodeResource
from tests.yarnling.simulation.case_cluster import GB, CaseCluster
from yarn.protocols.admin import ResourceOption
from yarn.resource import Resource

ONE_QUEUE = {"root.queues": "a", "root.a.capacity": "100", "root.a.user-limit-factor": "2"}


@pytest.mark.case("H1")
def test_available_is_total_minus_allocated_and_an_administrator_changes_the_total() -> None:
    cluster = CaseCluster(ONE_QUEUE, nodes=(Resource(4 * GB, 4),))
    cluster.launch("app")
    cluster.ask("app", 1)
    cluster.run(3)
    node = cluster.node("n1")
    assert (node.total, node.allocated, node.unallocated) == (
        Resource(4 * GB, 4),
        Resource(2 * GB, 2),
        Resource(2 * GB, 2),
    )
    changes = ((node.node_id, ResourceOption(Resource(2 * GB, 3))),)
    cluster.admin(lambda call: UpdateNodeResource(call, changes))
    cluster.ask("app", 1)
    cluster.run(5)
    assert (node.total, node.allocated) == (Resource(2 * GB, 3), Resource(2 * GB, 2))
    assert node.unallocated == Resource(0, 1)
    assert cluster.count("app") == (2,)


@pytest.mark.case("H2")
@pytest.mark.parametrize(("asked_gb", "both"), [(10, False), (5, True)])
def test_a_node_of_11_gb_is_full_by_what_is_asked(asked_gb: int, both: bool) -> None:
    """The AMs run on another node. A and B ask for 10 GB each: B waits until A's container ends. 5 GB let both run."""
    cluster = CaseCluster(ONE_QUEUE, nodes=(11 * GB, 2 * GB))
    first = cluster.cluster.machine(1).nm
    first.pause()
    for app in ("a", "b"):
        cluster.launch(app, user=app)
    first.resume()
    cluster.run(2)
    for app in ("a", "b"):
        cluster.ask(app, 1, asked_gb * GB)
        cluster.run(3)
    assert cluster.held("a")["a/2"] == "n1"
    assert cluster.count("b") == ((2,) if both else (1,))
    assert cluster.free_mb("n1") == ((11 - 2 * asked_gb) * GB if both else GB,)
    if not both:
        cluster.run(20)
        assert cluster.count("b") == (1,)
        cluster.end("a/2")
        cluster.run(3)
        assert cluster.held("b")["b/2"] == "n1"
