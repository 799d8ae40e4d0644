"""The memory of containers that have ended."""

from __future__ import annotations

import pytest

from benchmarks.what_if_memory import growth


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_container_that_has_ended_costs_at_most_100_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rm.scheduler.model.ended_containers.ENDED_MAX", 100)
    extra_bytes, containers = growth(nodes=10, minutes=4, container_s=30)
    assert containers > 1_000
    assert extra_bytes <= 100 * containers
