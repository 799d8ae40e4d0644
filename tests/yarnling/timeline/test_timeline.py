"""Timelines from synthetic events: which call is lost, what is a heartbeat without news, and what the page contains."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from defusedxml import ElementTree

from wire.event_log import FORMAT
from yarn.errors import InvalidArgumentException, YarnException
from yarnling.report.space_time_data import embedded, page_data
from yarnling.report.space_time_page import html_of
from yarnling.report.space_time_svg import EVENTS_MAX, svg_of
from yarnling.run.builder import RunBuilder
from yarnling.run.reader import read_lines, read_run, run_of
from yarnling.run.records import Call, Decision, Outcome, RecordedRun, Role, What
from yarnling.run.watched import watched
from yarnling.run.writer import RunWriter
from yarnling.timeline.selection import Selection

HEADER = {"run": FORMAT, "title": "synthetic"}
APP = "application_1700000000000_0001"
QUIET_REQUEST = {"node_id": "n1:1", "response_id": 1, "containers": []}
QUIET_REPLY = {"response_id": 2, "action": "NORMAL", "containers_to_clean_up": []}


def steps(number: int, *happened: tuple[str, int], rpc: str = "nodeHeartbeat", **fields: Any) -> list[dict[str, Any]]:
    """The line of one call of nm-1 to the ResourceManager; `happened`: (what, when) after it was called at 0."""
    times, request = dict(happened), fields.pop("request", QUIET_REQUEST)
    call = {"source": "nm-1", "target": "rm", "rpc": rpc, "sent_ms": happened[0][1] - 1 if happened else 0}
    call |= {"request": request, "number": number, "is_sent": "sent" in times, "arrivals": int("arrived" in times)}
    call |= {f"{what}_ms": times[what] for what in ("arrived", "replied", "over") if what in times}
    return [{"call": call | (fields or {"reply": QUIET_REPLY}) if "over" in times else call}]


def answered(number: int, at_ms: int, **fields: Any) -> list[dict[str, Any]]:
    times = (("sent", at_ms), ("arrived", at_ms + 1), ("replied", at_ms + 1), ("over", at_ms + 2))
    return steps(number, *times, **fields)


LOST = {"error": "SocketTimeoutException: no reply in time"}


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


@pytest.mark.parametrize(
    ("happened", "fields", "outcome"),
    [
        ((("sent", 1), ("arrived", 2), ("replied", 2), ("over", 3)), {}, Outcome.ANSWERED),
        ((("sent", 1), ("over", 3)), LOST, Outcome.REQUEST_LOST),
        (
            (("sent", 1), ("arrived", 2), ("over", 3)),
            LOST,
            Outcome.UNANSWERED,
        ),
        (
            (("sent", 1), ("arrived", 2), ("replied", 2), ("over", 9)),
            LOST,
            Outcome.REPLY_LOST,
        ),
        ((("sent", 1), ("arrived", 2), ("replied", 2)), {}, Outcome.REPLY_LOST),
        (
            (("over", 3),),
            LOST,
            Outcome.UNREACHABLE,
        ),
        (
            (("sent", 1), ("arrived", 2), ("replied", 2), ("over", 3)),
            {"error": "YarnException: no", "is_refused": True},
            Outcome.REFUSED,
        ),
    ],
)
def test_how_a_call_ended(happened: tuple[tuple[str, int], ...], fields: dict[str, Any], outcome: Outcome) -> None:
    timeline = run_of([HEADER, *steps(1, *happened, **fields), {"ended": 60_000}])
    assert [one.outcome for one in timeline.calls] == [outcome]


def test_a_call_without_an_answer_at_the_end_of_the_run_is_under_way() -> None:
    timeline = run_of([HEADER, *steps(1, ("sent", 1), ("arrived", 2)), {"ended": 100}])
    assert timeline.calls[0].outcome is Outcome.UNDER_WAY


def test_only_the_second_heartbeat_of_the_same_content_is_without_news() -> None:
    lines = [line for number in range(3) for line in answered(number, 1000 * number)]
    order = {**QUIET_REPLY, "containers_to_clean_up": ["container_1700000000000_0001_01_000002"]}
    timeline = run_of([HEADER, *lines, *answered(9, 5000, reply=order)])
    assert [one.is_quiet for one in timeline.calls] == [False, True, True, False]


def test_a_heartbeat_that_led_to_an_allocation_has_news() -> None:
    lines = [line for number in range(3) for line in answered(number, 1000 * number, request=QUIET_REQUEST)]
    registration = answered(7, -10, rpc="registerNodeManager", request={"node_id": "n1:1"}, reply={"action": "NORMAL"})
    decision = {"at_ms": 2001, "what": "allocated", "application": APP, "node": "n1:1", "container": "c"}
    timeline = run_of([HEADER, *registration, *lines, {"decision": decision}])
    assert [one.is_quiet for one in timeline.calls] == [False, False, True, False]
    assert timeline.decisions[0].node == "nm-1"


@pytest.mark.parametrize(
    "line",
    [
        {"call": {"source": "nm-1"}},
        {"eaten": {}},
        [1],
        7,
        {"decision": {"what": "sold"}},
        {},
    ],
)
def test_a_line_that_is_not_of_a_trace_is_refused_with_its_number(line: Any) -> None:
    called = steps(1)
    with pytest.raises(InvalidArgumentException, match="line 3"):
        run_of([HEADER, *called, line])


def test_recordings_of_watch_show_calls_errors_and_changes() -> None:
    def call(**fields: Any) -> dict[str, Any]:
        usual = {"at_ms": 100, "ms": 4.0, "from": "127.0.0.2:4000", "to": "ResourceManager", "rpc": "nodeHeartbeat"}
        return {**usual, "request": QUIET_REQUEST, "reply": QUIET_REPLY, "error": None, **fields}

    attempt = "appattempt_1700000000000_0001_000001"
    refusal = {"reply": None, "error": {"exception": "org.x.InvalidToken", "message": "expired"}}
    change = {"at_ms": 99, "of": "ResourceManager", "kind": "RMApp", "subject": APP, "event": "START"}
    lines: list[str] = []
    writer = RunWriter(lines.append, "watched")
    writer.record(watched(call()))
    writer.record(watched(call(**{"from": attempt, "rpc": "allocate"}, **refusal)))
    writer.record(watched({**change, "source": "NEW", "target": "NEW_SAVING"}))
    timeline = run_of([*map(json.loads, lines), {"dropped": 3}])
    assert [(one.role, one.title) for one in timeline.lifelines] == [
        (Role.AM, "AM 0001"),
        (Role.RM, "RM"),
        (Role.NM, "127.0.0.2:4000"),
    ]
    assert [one.outcome for one in timeline.calls] == [Outcome.ANSWERED, Outcome.REFUSED]
    assert timeline.calls[1].error == "InvalidToken: expired"
    assert timeline.changes[0].application == APP
    assert "3 calls were dropped" in timeline.notes[0]


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


# Files


def test_a_file_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text('{"hello": 1}\n')
    with pytest.raises(YarnException, match="is not an event log, a trace"):
        read_run(file)
    file.write_text("no JSON\n")
    with pytest.raises(YarnException, match=r"run\.jsonl:1: is not JSON"):
        read_run(file)
    with pytest.raises(YarnException, match="No such file"):
        read_run(tmp_path / "none")


def test_an_incomplete_last_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text('{"a": 1}\n{"a": ')
    assert list(read_lines(file)) == [{"a": 1}]
