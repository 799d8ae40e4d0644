"""Timelines from synthetic events: what the page and the picture contain, and which part of a run is selected."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from defusedxml import ElementTree

from tests.yarnling.run.lines import HEADER, answered
from yarn.errors import InvalidArgumentException, YarnException
from yarnling.report.space_time_data import embedded, page_data
from yarnling.report.space_time_page import html_of
from yarnling.report.space_time_svg import EVENTS_MAX, svg_of
from yarnling.run.builder import RunBuilder
from yarnling.run.reader import run_of
from yarnling.run.records import Call, Decision, RecordedRun, Role, What
from yarnling.timeline.selection import Selection


class WellFormed(HTMLParser):
    """Collects the elements, and checks that each is closed where it should be."""

    VOID = frozenset({"meta", "input", "link", "br"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[str] = []
        self.data = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for _, value in attrs:
            assert value is None or not value.startswith(("http:", "https:", "//")), "the page needs no network"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"] and data.startswith('{"title"'):
            self.data = data


def parsed(page: str) -> WellFormed:
    parser = WellFormed()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser


# Pages and pictures

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\u2028\x00"


def hostile() -> RecordedRun:
    builder = RunBuilder(HOSTILE)
    source, target = builder.lifeline(f"nm-{HOSTILE}", Role.NM), builder.lifeline("rm", Role.RM)
    request = {"node_id": HOSTILE, HOSTILE: [HOSTILE]}
    builder.call(Call(source, target, HOSTILE, 1, request, arrived_ms=2, replied_ms=2, over_ms=3, error=HOSTILE))
    builder.change(2, "rm", dict.fromkeys(("kind", "subject", "event", "source", "target"), HOSTILE))
    builder.decisions.append(Decision(2, What.REFUSED, HOSTILE, HOSTILE, HOSTILE, HOSTILE, reason=HOSTILE))
    return builder.run()


def test_the_page_is_well_formed_and_texts_of_the_run_cannot_leave_their_place() -> None:
    page = html_of(hostile())
    parser = parsed(page)
    assert parser.seen.count("script") == 2, "the data and the page's own script"
    assert "img" not in parser.seen
    assert json.loads(parser.data)["title"] == HOSTILE


def test_the_picture_is_well_formed_and_texts_are_escaped() -> None:
    root = ElementTree.fromstring(svg_of(hostile()))
    known = {"svg", "style", "title", "rect", "text", "line", "g", "path"}
    assert {one.tag.rpartition("}")[2] for one in root.iter()} <= known


def test_a_label_of_the_picture_covers_no_times_and_ends_within_it() -> None:
    lines = answered(1, 0, rpc="r" * 200)
    root = ElementTree.fromstring(svg_of(run_of([HEADER, *lines])))
    (label,) = [one for one in root.iter() if (one.text or "").startswith("rrr")]
    assert label.get("text-anchor") is None
    assert float(root.get("width", "0")) > float(label.get("x", "0")) + 6 * len(label.text or "")


@pytest.mark.slow
def test_a_hundred_thousand_heartbeats_are_a_page_of_bounded_size() -> None:
    builder = RunBuilder("many")
    builder.lifeline("rm", Role.RM)
    for number in range(100_000):
        at_ms = 10 * number
        source = builder.lifeline(f"nm-{number % 100 + 1}", Role.NM)
        request = {"node_id": f"{source}:1", "response_id": number, "containers": []}
        call = Call(source, "rm", "nodeHeartbeat", at_ms, request, arrived_ms=at_ms + 1, replied_ms=at_ms + 1)
        call.over_ms, call.reply = at_ms + 2, {"response_id": number + 1, "action": "NORMAL"}
        builder.call(call)
    page = embedded(page_data(builder.run()))
    assert len(page) < 60 * 100_000


def test_a_picture_of_too_many_events_is_refused_with_the_bound() -> None:
    lines = [
        line for number in range(EVENTS_MAX + 1) for line in answered(number, 10 * number, rpc="getNewApplication")
    ]
    with pytest.raises(YarnException, match=f"{EVENTS_MAX + 1} events, at most {EVENTS_MAX}"):
        svg_of(run_of([HEADER, *lines]))


def test_a_selection_keeps_its_part() -> None:
    timeline = run_of([HEADER, *answered(1, 0), *answered(2, 5000, rpc="unRegisterNodeManager")])
    assert len(Selection(rpcs=("*heartbeat",)).of(timeline).calls) == 1
    assert len(Selection(from_ms=4000).of(timeline).calls) == 1
    with pytest.raises(InvalidArgumentException, match="nothing in the run matches"):
        Selection(hosts=("rm",)).of(timeline)
    with pytest.raises(InvalidArgumentException, match="no call is named 'nodeHeartbeats': did you mean nodeHeartbeat"):
        Selection(rpcs=("nodeHeartbeats",)).of(timeline)
    with pytest.raises(InvalidArgumentException, match="--from 5 is after --to 3"):
        Selection(from_ms=5000, until_ms=3000).of(timeline)
    with pytest.raises(InvalidArgumentException, match="--from 50 is after the end of the run"):
        Selection(from_ms=50_000).of(timeline)
    with pytest.raises(InvalidArgumentException, match="no host is called 'nm-7': did you mean nm-1"):
        Selection(hosts=("nm-7",)).of(timeline)
    with pytest.raises(InvalidArgumentException, match="no application is called '0009'"):
        Selection(application="0009").of(timeline)
