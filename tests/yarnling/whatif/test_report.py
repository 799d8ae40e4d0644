"""The report: its words, its pictures, and that names from others are only text in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from defusedxml import ElementTree
from msgspec.structs import replace

from tests.yarnling.whatif.outcomes import HOUR, MINUTE, application, busy_day, container, result, sample
from yarnling.report.inline_svg import drawing, inline_svg
from yarnling.report.page import PICTURES_EXTRA, html_of
from yarnling.whatif import report
from yarnling.whatif.containers import End
from yarnling.whatif.figures import figures_of
from yarnling.whatif.headlines import findings, headline
from yarnling.whatif.report import report_page, write_report
from yarnling.whatif.result import NodeCount, WhatIfResult

EVIL = "</text><script>alert('$x_1$')</script>\x1b&\"'"
LIKE_SVG = 'font: 1 url(#2) id="3 #010203'
"""A name with everything that is replaced in the elements of pictures."""


class Page(HTMLParser):
    """The elements and the text of a page; a void element, or one of SVG, may be left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.alternatives: list[str] = []
        self.references: set[str] = set()
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if tag == "svg" and name == "aria-label":
                self.alternatives.append(value or "")
            if name in ("src", "href", "xlink:href"):
                self.references.add(value or "")
            if name == "id":
                self.ids.append(value or "")


def page_of(outcome: WhatIfResult) -> str:
    return html_of(report_page(outcome, figures_of(outcome)))


@pytest.fixture(scope="module")
def day_page() -> str:
    return page_of(busy_day())


def test_the_page_is_one_file_with_pictures_that_have_alternative_texts(day_page: str) -> None:
    page = Page(day_page)
    assert "script" not in page.tags
    assert len(page.alternatives) == 8, "the cluster in two widths, three queues, two of waits, preemption"
    assert all(len(text) > 20 for text in page.alternatives)
    assert "Use of queue etl over time: 121 GB on average" in " ".join(page.alternatives)
    assert all(reference.startswith("#") for reference in page.references)
    assert len(page.ids) == len(set(page.ids))


def test_no_picture_has_a_colour_of_its_own(day_page: str) -> None:
    svgs = re.findall(r"<svg.*?</svg>", day_page, re.DOTALL)
    assert not re.findall("#[0-9a-f]{6}", " ".join(svgs))


@pytest.mark.slow
def test_the_same_result_is_the_same_page(day_page: str) -> None:
    assert page_of(busy_day()) == day_page


@pytest.mark.slow
def test_names_of_others_are_only_text() -> None:
    queue = f"root.{EVIL}"
    outcome = result(
        [application(EVIL, EVIL, queue, diagnostics=EVIL)],
        [container(0, 60_000), container(0, 1000, end=End.PREEMPTED)],
        [sample(0, name, 1, 2, 3) for name in ("root", queue)],
        leaf_queues=(queue,),
        title=EVIL,
        warnings=(EVIL,),
    )
    page = page_of(outcome)
    assert "script" not in Page(page).tags
    assert "alert('$x_1$')" in page.replace("&#39;", "'").replace("&#x27;", "'")
    assert "\x1b" not in page


def test_a_name_that_looks_like_svg_is_shown_as_it_is() -> None:
    with drawing(400, 200) as (figure, axes):
        axes.text(0, 0, LIKE_SVG)
        svg = inline_svg(figure, "a name", "p")
    assert LIKE_SVG in ElementTree.fromstring(svg).itertext()


def test_queues_that_exist_for_a_part_of_the_time_are_drawn() -> None:
    samples = [sample(at, "root", 30, 100, 100) for at in (0, HOUR)]
    samples += [sample(0, "root.old", 10, 50, 100), sample(HOUR, "root.new", 20, 50, 100)]
    apps = [application(queue="root.old"), application(queue="root.new")]
    page = page_of(result(apps, [container(0, 1000)], samples, leaf_queues=("root.new",)))
    assert "Use of the cluster over time, by queue: new" in " ".join(Page(page).alternatives)


def test_the_tables_are_there_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "has_matplotlib", lambda: False)
    page = page_of(busy_day())
    assert PICTURES_EXTRA in page
    assert "<svg" not in page
    assert "Waits by queue" in page


def test_all_files_are_written(tmp_path: Path) -> None:
    write_report(result([application()], [container(0, 1)]), tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"result.json", "report.html", "waits.csv", "applications.csv", "queues.csv"}


def test_no_earlier_report_is_left_beside_a_new_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_report(result([application()], [container(0, 1)]), tmp_path)
    monkeypatch.setattr(report, "html_of", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(result([], []), tmp_path)
    assert (tmp_path / "result.json").exists()
    assert not (tmp_path / "report.html").exists()


def test_an_interrupted_run_says_so() -> None:
    assert "Incomplete: the simulation was interrupted after 2 h." in page_of(result([], [], is_complete=False))


def test_an_empty_result_has_a_report() -> None:
    assert "No container was requested." in page_of(result([], []))


def test_the_headline_names_the_queue_that_waits_longest() -> None:
    apps = [application(), application(queue="root.adhoc")]
    slow = [container(0, 41 * MINUTE, app=0), container(0, MINUTE, app=1)]
    expected = (
        "Half of the containers wait up to 60 s, one in twenty more than 41 min; queue etl waits longest (p95 41 min)."
    )
    assert headline(figures_of(result(apps, slow))) == expected
    fast = [container(0, 2000, app=0), container(0, 1000, app=1)]
    assert headline(figures_of(result(apps, fast))) == "Containers start at once: 95 % wait less than 2 s."


def test_a_lower_bound_does_not_count_as_a_short_wait() -> None:
    [found] = [headline(figures_of(result([application()], [container(0, None)], until_ms=5000)))]
    assert found == "Half of the containers wait up to \u2265 5 s, one in twenty more than 5 s."


def test_what_failed_before_it_began_was_refused() -> None:
    apps = [
        application(state="FAILED", diagnostics="no such queue"),
        application(state="FAILED"),
        application(state="KILLED"),
    ]
    found = findings(figures_of(result(apps, [container(0, 5, app=1)])))
    assert found == (
        "The ResourceManager refused 1 application of 3: no such queue",
        "2 applications failed or were killed.",
    )


def test_missed_deadlines_are_in_the_headline() -> None:
    late = application(deadline_ms=MINUTE)
    assert "1 of 1 application with a deadline missed it." in headline(figures_of(result([late], [container(0, 1)])))


def test_findings_are_only_about_what_happened() -> None:
    quiet = result([application()], [container(0, 1000)], [sample(0, "root", 100, 400, 400)])
    assert findings(figures_of(quiet)) == ("The cluster was used 25 % on average, 25 % at its peak.",)
    app = application(am_limit_wait_ms=HOUR, state="REFUSED")
    containers = [container(0, 0, HOUR, end=End.PREEMPTED), container(0, None)]
    busy = result([app], containers, [sample(0, "root.etl", 100, 50, 100)])
    assert findings(figures_of(busy)) == (
        "The ResourceManager refused 1 application of 1.",
        "At their maximum for much of the time: etl 100 %.",
        "1 container was preempted, 1 of them in etl: 1.0 container-hours of work lost.",
        "Applications waited, all together, 60 min for AM limits of queues.",
        "1 container never got allocated; its wait counts as a lower bound.",
    )


def with_nodes(outcome: WhatIfResult) -> WhatIfResult:
    """The nodes of a result: 4 in the first hour, 8 in the second, then 6."""
    counts = ((0, 4), (HOUR, 8), (2 * HOUR, 6))
    return replace(outcome, until_ms=3 * HOUR, node_counts=tuple(NodeCount(*count) for count in counts))


def test_nodes_over_time_are_drawn_and_said() -> None:
    lost = container(0, 1000, HOUR, end=End.LOST)
    samples = [sample(0, name, 30, 100, 100) for name in ("root", "root.etl")]
    page = page_of(with_nodes(result([application()], [lost], samples)))
    assert Page(page).alternatives.count("Nodes over time: 4 to 8, 6 at the end") == 2
    assert (
        "There were 4 to 8 nodes, 18 node-hours. 1 container was lost with nodes: 1.0 container-hours of work." in page
    )
    assert "4 to 8 of" in page
    assert "lost with nodes</th>" in page


def test_nodes_that_stay_are_not_drawn(day_page: str) -> None:
    assert "Nodes over time" not in day_page
    assert "node-hours" not in day_page
    assert "lost with nodes" not in day_page


def test_the_numbers_of_nodes_are_a_file_if_they_change(tmp_path: Path) -> None:
    outcome = result([application()], [container(0, 1)])
    write_report(with_nodes(outcome), tmp_path)
    assert (tmp_path / "nodes.csv").read_text().split() == ["time_ms,nodes", "0,4", f"{HOUR},8", f"{2 * HOUR},6"]
    write_report(outcome, tmp_path)
    assert not (tmp_path / "nodes.csv").exists()


def test_the_peak_of_a_cluster_that_changes_is_of_what_there_was() -> None:
    """90 of 100 GB, then 150 of 300 GB."""
    samples = [sample(0, "root", 90, 100, 100), sample(HOUR, "root", 150, 300, 300)]
    use = figures_of(result([application()], [container(0, 1)], samples)).cluster_use
    assert use is not None
    assert use.peak_use == 0.9
