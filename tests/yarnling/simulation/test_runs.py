"""Whole runs: the same seed is the same run, the verdict is chaos's, and what is broken is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache

import pytest
from msgspec.structs import replace

from am.core.container_starts import ContainerStarts, FindContainer, StartEffect, StartEvent
from rm.core.durability import DividedStep
from rm.core.effects import Effect, StoreEffect
from rm.core.events import Event
from tests.yarnling.simulation.intruder import simulate
from yarnling.faults.history import ProcessRole
from yarnling.faults.kinds import KINDS
from yarnling.faults.plan import Plan
from yarnling.faults.plan_file import find_plan, parse_plan, plan_names
from yarnling.faults.schedule import random_plan
from yarnling.faults.verdict import RunVerdict
from yarnling.simulation import resource_manager, state_store
from yarnling.simulation.conditions import Conditions
from yarnling.simulation.faults import ACTIONS
from yarnling.simulation.runner import Options, SimulatedRun
from yarnling.simulation.state_store import SimulatedStore

SMALL = """
work:
  - {program: batch, applications: 2, tasks: 3, seconds: 1, users: "ann, bob", may_fail: true}
  - {program: tasks, tasks: 8, seconds: 0.4, users: dan}
faults:
  - {fault: kill-node, at: [0.5, 1], for: 2}
  - {fault: kill-rm, at: [0.3, 1.5], for: 0.5}
  - {fault: slow-node, node: half, at: 0.2, for: 2, delay: [0, 0.05], loss: 0.1, breaks: 0.01}
lasts: 4
"""
ASYNCHRONOUS = """
cluster: {settings: {yarn.scheduler.capacity.schedule-asynchronously.enable: "true"}}
"""
HASTY = """
work:
  - {program: batch, applications: 12, tasks: 1, seconds: 0.1, every: 0.1, users: ann}
faults:
  - {fault: kill-rm, at: [0.5, 1], for: 0.5}
begins: at once
lasts: 2
"""


def small() -> Plan:
    return parse_plan(SMALL, "small", "small")


@cache
def traced(seed: int) -> tuple[SimulatedRun, tuple[str, ...]]:
    """A run of the small plan that several tests look at, and the lines of its trace."""
    lines: list[str] = []
    return simulate(small(), seed, Options(traced=True, line=lines.append)), tuple(lines)


def decisions(lines: Iterable[str]) -> Sequence[str]:
    """Every state change, and every container with its node, as the RM answers."""
    found: list[str] = []
    for text in lines:
        now_ms, host, _, effects = json.loads(text)
        for effect in effects:
            if effect["$"].endswith("StateChanged"):
                found.append(f"{now_ms} {host} {effect['subject']} {effect['source']} {effect['target']}")
            elif host == "rm" and effect["$"].endswith(".Reply") and effect["value"]:
                for container in effect["value"].get("allocated", ()):
                    found.append(f"{now_ms} {container['id']} {container['node_id']}")
    return found


@pytest.mark.slow
def test_decisions_are_the_same_with_and_without_bytes() -> None:
    run, lines = traced(5)
    without_bytes: list[str] = []
    other = simulate(small(), 5, Options(encode=False, traced=True, line=without_bytes.append))
    assert run.judgement.verdict is other.judgement.verdict is RunVerdict.PASS
    with_bytes = decisions(lines)
    assert any("container_" in one and "n0000" in one for one in with_bytes)
    assert len(with_bytes) > 200
    assert decisions(without_bytes) == with_bytes


def test_the_same_seed_is_the_same_run_and_another_seed_another_one() -> None:
    first, _ = traced(5)
    again, other = (simulate(small(), seed, Options(traced=True)) for seed in (5, 2))
    assert (first.trace, first.events) == (again.trace, again.events)
    assert other.trace != first.trace


@pytest.mark.slow
def test_asynchronous_scheduling_passes_and_repeats() -> None:
    plan = parse_plan(SMALL + ASYNCHRONOUS, "small", "small")
    first, again = (simulate(plan, 2, Options(traced=True)) for _ in range(2))
    assert first.judgement.verdict is RunVerdict.PASS
    assert (first.trace, first.events) == (again.trace, again.events)


@pytest.mark.slow
def test_the_hash_does_not_depend_on_pythons_hashes() -> None:
    """In processes of their own, with different seeds of Python's string hashes, and files in different directories."""
    command = [sys.executable, "-m", "yarnling", "simulate", "kill-rm", "--seed", "3", "--hash"]
    hashes = set()
    for seed in ("1", "2"):
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True)
        hashes.add(done.stdout.split()[-1])
    ((digest),) = hashes
    assert len(digest) == 64


def test_every_fault_is_modelled() -> None:
    assert set(ACTIONS) == set(KINDS)


STUBBORN = """
work:
  - {program: service, tasks: 3, users: ann, ignores_term: true, killed_after: 1, may_fail: true}
  - {program: service, tasks: 3, users: bob, killed_after: 1}
faults: []
lasts: 3
"""


def test_a_user_kills_an_application_during_the_faults_and_its_processes_may_ignore_sigterm() -> None:
    run = simulate(parse_plan(STUBBORN, "stubborn", "stubborn"), 1)
    assert run.judgement.reasons == ()
    for one in run.history.submissions:
        (killed,) = [change for change in run.history.changes_of(str(one.application_id)) if change.state == "KILLED"]
        assert one.acknowledged_s is not None
        assert one.acknowledged_s + 1 <= killed.at_s < one.acknowledged_s + 1.2
        assert "Killed by its user" in run.history.outcomes[one.application_id].diagnostics
        ends_s = [span.last_s - killed.at_s for span in run.history.spans_of(one.application_id, ProcessRole.CONTAINER)]
        assert len(ends_s) == 3
        # A heartbeat comes every 50 ms, and SIGKILL follows SIGTERM after 100 ms.
        least_s, most_s = (0.1, 0.2) if one.user == "ann" else (0.0, 0.09)
        assert all(least_s <= end_s <= most_s for end_s in ends_s)


GANGS = """
cluster: {nodes: 2, memory_mb: 1024}
work:
  - {program: gang, applications: 2, tasks: 8, seconds: 3, users: "ann, bob"}
lasts: 1
"""


def test_gangs_wait_give_back_and_run_one_after_the_other() -> None:
    """Of 16 containers each needs nine with its AM. The second one gives up once while it waits for the first one."""
    run = simulate(parse_plan(GANGS, "gangs", "gangs"), 1)
    assert run.judgement.reasons == ()
    first, second = (run.history.spans_of(one.application_id, ProcessRole.CONTAINER) for one in run.history.submissions)
    for spans, tries in ((first, {1}), (second, {2})):
        members = [span.member for span in spans if span.member is not None]
        assert sorted(member.rank for member in members) == list(range(8))
        assert {len(member.hosts) for member in members} == {8}
        assert {member.try_number for member in members} == tries
    assert min(span.start_s for span in second) >= min(span.last_s for span in first)


@pytest.mark.parametrize("fault", ["kill-node", "stop-node", "pause-node", "decommission-node"])
def test_a_gang_starts_again_whole_when_it_loses_a_node(fault: str) -> None:
    lines = ["work: [{program: gang, tasks: 9, seconds: 6}]", "cluster: {nodes: 3}", "lasts: 8"]
    timeout = ", timeout: 0" if fault == "decommission-node" else ""
    lines.append(f"faults: [{{fault: {fault}, node: 2, at: 1, for: 5{timeout}}}]")
    run = simulate(parse_plan("\n".join(lines), "gang", "gang"), 1, Options(encode=False))
    assert run.judgement.reasons == ()
    (gang,) = run.history.submissions
    members = [span.member for span in run.history.spans_of(gang.application_id, ProcessRole.CONTAINER) if span.member]
    assert sorted((member.try_number, member.rank) for member in members) == [
        (number, rank) for number in (1, 2) for rank in range(9)
    ]


@pytest.mark.parametrize(
    "name", ["kill-node", *(pytest.param(it, marks=pytest.mark.slow) for it in ("full-store", "storm"))]
)
def test_a_ready_made_plan_passes(name: str) -> None:
    run = simulate(find_plan(name), 1)
    assert run.judgement.reasons == ()
    assert run.judgement.verdict is RunVerdict.PASS
    assert all(one.target or one.skipped for one in run.history.injected)


@pytest.mark.soak
@pytest.mark.parametrize("name", plan_names())
def test_every_ready_made_plan_passes_with_many_seeds(name: str) -> None:
    for seed in range(1, 11):
        assert simulate(find_plan(name), seed, Options(encode=seed % 2 == 0)).judgement.reasons == (), seed


@pytest.mark.soak
def test_random_plans_pass() -> None:
    for seed in range(1, 101):
        assert simulate(random_plan(seed), seed, Options(encode=False)).judgement.reasons == (), seed


@pytest.mark.slow
@pytest.mark.parametrize(
    "conditions", [Conditions(breaks=0.02), Conditions(duplicates=0.05), Conditions(jitter_ms=40)], ids=str
)
def test_a_network_that_breaks_duplicates_or_delays_does_no_harm(conditions: Conditions) -> None:
    """A duplicate is what no TCP connection does; the RM and the NMs bear it all the same."""
    assert simulate(small(), 1, Options(conditions=conditions)).judgement.reasons == ()


# Planted bugs: a run must notice that a safeguard is missing


def reasons_with(plan: Plan, seeds: range, options: Options) -> list[str]:
    """Why runs fail, of the first seed with which one does."""
    for seed in seeds:
        run = simulate(plan, seed, options)
        if run.judgement.verdict is RunVerdict.FAIL:
            return list(run.judgement.reasons)
    return []


@pytest.mark.slow
def test_an_answer_before_its_change_is_durable_loses_an_acknowledged_application(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hasty(event: Event, effects: list[Effect], *, store_is_busy: bool) -> DividedStep:
        to_store = [effect for effect in effects if isinstance(effect, StoreEffect)]
        return DividedStep([effect for effect in effects if not isinstance(effect, StoreEffect)], to_store, [])

    monkeypatch.setattr(resource_manager, "divided", hasty)
    monkeypatch.setattr(state_store, "WRITE_MS", (300, 400))
    found = reasons_with(parse_plan(HASTY, "hasty", "hasty"), range(1, 5), Options(encode=False))
    assert any("no acknowledged application is lost" in reason for reason in found), found


@pytest.mark.slow
def test_a_store_that_forgets_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedStore, "write", lambda self, effects: None)
    found = reasons_with(small(), range(1, 3), Options(encode=False))
    assert any("no acknowledged application is lost" in reason for reason in found), found


def test_a_start_that_is_repeated_without_a_query_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The container runs, its AM believes that it does not, and the application fails."""
    handle = ContainerStarts.handle

    def without_query(self: ContainerStarts, event: StartEvent, now_ms: int) -> list[StartEffect]:
        effects = handle(self, event, now_ms)
        for effect in [effect for effect in effects if isinstance(effect, FindContainer)]:
            effects.remove(effect)
            self._retry_or_settle(self._starts[effect.number])
        return effects

    monkeypatch.setattr(ContainerStarts, "handle", without_query)
    plan = replace(find_plan("partition-replies"), faults=find_plan("partition-nm-from-masters").faults)
    found = reasons_with(plan, range(1, 20), Options(encode=False, conditions=Conditions(breaks=0.05)))
    assert found


def test_a_broken_invariant_ends_the_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from rm.core import invariants

    monkeypatch.setattr(invariants, "violations", lambda scheduler: ["I-01: planted"])
    run = simulate(small(), 1)
    assert run.judgement.verdict is RunVerdict.FAIL
    assert any("rm: I-01: planted" in reason for reason in run.judgement.reasons)
