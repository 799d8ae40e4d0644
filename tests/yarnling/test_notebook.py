"""Clusters, jobs and explanations as notebooks show them."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest

from yarn.applications import ApplicationReport
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.protocols.inspection import Explanation, PendingAsk, VerdictReport
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling import ClusterOptions, ContainerResult, Job, JobResult, LocalCluster
from yarnling.cluster.notebook import application_html, register_records
from yarnling.cluster.running_cluster import Explanations

APP_ID = ApplicationId(1700000000000, 1)
HOSTILE = "<script>alert('x')</script>\x1b[31m"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


def texts(html: str | None) -> list[str]:
    """The texts of the HTML, which must have no control characters and no script."""
    assert html is not None
    parser = _Tags()
    parser.feed(html)
    assert "script" not in parser.seen
    assert "\x1b" not in html
    return parser.cells


def report(**changes: Any) -> ApplicationReport:
    values = {
        "user": "ann",
        "queue": "root.default",
        "name": HOSTILE,
        "state": YarnApplicationState.FINISHED,
        "current_attempt_id": ApplicationAttemptId(APP_ID, 1),
        "final_status": FinalApplicationStatus.FAILED,
        "diagnostics": f"first line\n{HOSTILE}",
        **changes,
    }
    return ApplicationReport(APP_ID, **values)


def explanation(*sentences: str) -> Explanation:
    """An application with one pending request for each sentence, which is its verdict."""
    asks = [PendingAsk(priority, -1, "*", Resource(1024, 1), 9, True, "") for priority, _ in enumerate(sentences)]
    verdicts = [
        VerdictReport(priority, -1, "CLUSTER_FULL", sentence, 0, changes=("with 1 more node",))
        for priority, sentence in enumerate(sentences)
    ]
    state = YarnApplicationState.RUNNING
    return Explanation(APP_ID, "ann", "root.default", state, 0, tuple(asks), verdicts=tuple(verdicts))


def test_a_job_shows_its_outcome_and_the_end_of_each_output() -> None:
    container = ContainerResult(ContainerId.parse("container_1700000000000_0001_01_000002"), 3, "x" * 500, HOSTILE)
    shown = texts(JobResult(report(), (container,))._repr_html_())
    assert f"{APP_ID} FAILED" in shown
    assert "first line" in shown
    assert "<script>alert('x')</script>\\x1b[31m" in shown
    assert "3" in shown
    assert any(text.startswith("xxx") and len(text) < 250 for text in shown)


def test_an_application_that_runs_shows_its_state() -> None:
    running = report(state=YarnApplicationState.RUNNING, final_status=FinalApplicationStatus.UNDEFINED)
    assert f"{APP_ID} RUNNING" in texts(application_html(running))


def test_explanations_show_each_request_with_its_reason_and_what_would_help() -> None:
    shown = texts(Explanations([explanation("waits because the cluster is full", HOSTILE)])._repr_html_())
    assert "waits because the cluster is full" in shown
    assert "with 1 more node" in shown
    assert "9 x 1024 MB, 1 vcore anywhere, priority 0" in shown
    assert "<script>alert('x')</script>\\x1b[31m" in shown


def test_no_explanation_says_that_nothing_waits() -> None:
    assert "No application is waiting for containers." in texts(Explanations()._repr_html_())


def test_ipython_shows_records_of_yarn(monkeypatch: pytest.MonkeyPatch) -> None:
    formatters: dict[type, Any] = {}
    html = SimpleNamespace(for_type=formatters.__setitem__)
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": html}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    register_records()
    assert f"{APP_ID} FAILED" in texts(formatters[ApplicationReport](report()))
    assert "full" in texts(formatters[Explanation](explanation("full")))


def test_ipython_may_be_imported_without_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    register_records()


def test_a_cluster_shows_its_nodes_queues_and_applications_and_why_they_wait() -> None:
    small = {"yarn.scheduler.minimum-allocation-mb": "128"}
    with LocalCluster(1, memory_mb=1024, settings=small, fast=True, options=ClusterOptions(loopback=True)) as cluster:
        app_id = cluster.submit(Job("sleep 60", containers=2, memory_mb=768)).application_id
        cluster.wait_containers(app_id, 1)
        (waiting,) = cluster.until(cluster.explain)
        shown = texts(cluster._repr_html_())
        assert "Cluster of 1 node, 1 live application, 1 waiting for containers" in shown
        assert {"Waiting", "Nodes", "Queues", "Applications", str(app_id), "sleep 60"} <= set(shown)
        assert waiting.verdicts[0].sentence in shown
        assert waiting.verdicts[0].sentence in texts(cluster.explain()._repr_html_())
        cluster.client.kill(app_id)
    assert "Cluster whose ResourceManager has ended" in texts(cluster._repr_html_())


async def test_a_cluster_in_the_notebooks_own_loop_shows_its_processes() -> None:
    unstarted = LocalCluster(1, fast=True, options=ClusterOptions(loopback=True))
    assert unstarted._repr_html_() is None
    async with unstarted as cluster:
        assert "Cluster whose ResourceManager runs" in texts(cluster._repr_html_())
        assert "Cluster of 1 node, 0 live applications, 0 waiting for containers" in texts(await cluster.html())
