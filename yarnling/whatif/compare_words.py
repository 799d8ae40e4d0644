"""A comparison in words: "etl waits p95 12 min -> 41 min; 1,830 containers preempted, were 210". Pure."""

from __future__ import annotations

from collections.abc import Sequence

from yarn.times import duration
from yarnling.report.page import Tile
from yarnling.report.wording import labels, short_names
from yarnling.whatif.calibration_words import doubt, trust
from yarnling.whatif.compare import Balance, Comparison, Difference, nodes_differ
from yarnling.whatif.error_margins import margin_of, with_margin
from yarnling.whatif.expectations import median_of
from yarnling.whatif.headlines import not_submitted
from yarnling.whatif.measures import CLUSTER, MEASURES, NODE_HOURS, Kind, Scope, value_of

NAMED_MAX = 3
HEADLINE_DIFFERENCES = 3
FINDINGS_MAX = 6
SEEDS_ENOUGH = 3
"""With fewer seeds of each side chance often passes for a difference: with two in a fifth of all figures, if these vary
as a normal distribution does, with three in 6 of 100, and with five in less than 1.
"""
SEEDS_ADVISED = 5
PARENTS_SHARE = 0.05
"""A parent queue with less of all changes of waiting time is not named in the headline."""
ARROW = "->"
NO_DIFFERENCE = "No difference that matters."
_SUBJECTS = {
    "lost work": "preempted containers",
    "work of lost containers": "lost containers",
    "completed containers": "preempted containers",
    "p50 wait": "wait",
    "p95 wait": "wait",
}
"""{measure: what it is about, if another measure is about the same}."""
_PERCENTILES = ("p50 wait", "p95 wait", "p95 AM wait")
_TILES = (
    "p95 wait",
    "use",
    "preempted containers",
    "missed deadlines",
    "unallocated containers",
    "finished applications",
)


def headline(comparison: Comparison) -> str:
    """Name who gains and who pays, and the most important differences of queues and the cluster.

    If the replay of the recorded run was far off, that comes first.
    """
    doubtful = doubt(comparison.calibration)
    if not comparison.differences:
        return f"{doubtful}{NO_DIFFERENCE}"
    names = names_of(comparison)
    who = _who(comparison, names)
    chosen = [sentence(each, names) for each in _for_headline(comparison)]
    if _who_differs(comparison) == "user":
        most = (*comparison.payers("user")[:1], *comparison.gainers("user")[:1])
        chosen = [mean_sentence(each, names) for each in most]
    text = "; ".join(chosen)
    joined = f"{who[0].upper()}{who[1:]}: {text}" if who and text else who or text
    return f"{doubtful}{joined}."


def _who_differs(comparison: Comparison) -> str:
    """ "user" if some users gain and others pay, but not so queues; else "queue"."""
    is_between = {kind: comparison.gainers(kind) and comparison.payers(kind) for kind in ("queue", "user")}
    return "user" if is_between["user"] and not is_between["queue"] else "queue"


def _who(comparison: Comparison, names: dict[str, str]) -> str:
    """Name who waits shorter and who longer: queues, or users if the change is between users of the same queues."""
    kind = _who_differs(comparison)
    sides = (comparison.gainers(kind), comparison.payers(kind))
    gain, pay = ([names.get(each.scope.name, each.scope.name) for each in side] for side in sides)
    preposition = "for" if kind == "user" else "in"
    if kind == "queue" and (parents := comparison.parents()):
        least_ms = PARENTS_SHARE * sum(abs(each.total_ms) for each in parents)
        gain = [names.get(each.parent, each.parent) for each in reversed(parents) if each.total_ms <= -least_ms]
        pay = [names.get(each.parent, each.parent) for each in parents if each.total_ms >= least_ms]
        preposition = "below"
    parts = [f"shorter waits {preposition} {_enumerated(gain)}"] if gain else []
    parts += [f"longer waits {preposition} {_enumerated(pay)}"] if pay else []
    return ", ".join(parts)


def findings(comparison: Comparison) -> tuple[str, ...]:
    """The certainty of the answer, further differences, most important first, and what one side alone has."""
    names = names_of(comparison)
    shown = [] if _who_differs(comparison) == "user" else _for_headline(comparison)
    seen = {_values(each) for each in shown}
    others: dict[object, Difference] = {}
    for each in _one_a_subject(_spoken_of(comparison)):
        if _values(each) not in seen:
            others.setdefault(_values(each), each)
    found = _doubt(comparison)
    found += [sentence(each, names) for each in others.values()][:FINDINGS_MAX]
    found += _not_submitted(comparison)
    for paths, when in ((comparison.only_before, "before"), (comparison.only_after, "after")):
        if paths:
            found.append(f"only {when} the change: {'queue' if len(paths) == 1 else 'queues'} {_enumerated(paths)}")
    if comparison.noise:
        number = len(comparison.noise)
        noun = "difference is" if number == 1 else "differences are"
        found.append(f"{number} more {noun} within the spread between seeds")
    return (*found, *trust(comparison.calibration, comparison.after[0].evidence))


def _doubt(comparison: Comparison) -> list[str]:
    """A warning that too few seeds were run to tell chance from the effect of the change."""
    seeds = min(len(comparison.before), len(comparison.after))
    if seeds >= SEEDS_ENOUGH or not comparison.differences:
        return []
    few = "one seed" if seeds == 1 else f"{seeds} seeds"
    remedy = f"--seeds {SEEDS_ADVISED} leaves out what differs as much from seed to seed"
    return [f"{few} of each side: some of this may be chance ({remedy})"]


def _not_submitted(comparison: Comparison) -> list[str]:
    """Applications of the first seed that both sides, or one of them, leave out because they ended before."""
    before, after = (not_submitted(runs[0].cluster) for runs in (comparison.before, comparison.after))
    if before == after:
        return [before] if before else []
    sides = (("before", before), ("after", after))
    return [f"{when} the change, {said}" for when, said in sides if said]


def tiles(comparison: Comparison) -> tuple[Tile, ...]:
    """The cluster's figures after the change, with those before."""
    found = []
    for name in (*_TILES, NODE_HOURS) if nodes_differ((*comparison.before, *comparison.after)) else _TILES:
        measure = MEASURES[name]
        before, after = (
            median_of([value_of(measure, CLUSTER, run) for run in runs])
            for runs in (comparison.before, comparison.after)
        )
        worse = any(
            each.scope == CLUSTER and each.measure is measure and each.verdict.value == "worse"
            for each in comparison.differences
        )
        label = "cluster use" if name == "use" else name
        margin = margin_of(measure, CLUSTER, after, comparison.calibration)
        found.append(Tile(with_margin(measure, after, margin), label, f"was {measure.written(before)}", worse))
    return tuple(found)


def sentence(difference: Difference, names: dict[str, str]) -> str:
    """A difference in words, for example "etl waits p95 12 min -> 41 min"."""
    measure, scope = difference.measure, difference.scope
    before, after = measure.written(difference.before), difference.after_text
    subject = {"cluster": "cluster", "user": f"user {scope.name}"}.get(scope.kind, names.get(scope.name, scope.name))
    if measure.name in _PERCENTILES:
        kind, _, of_ams = measure.name.removesuffix(" wait").partition(" ")
        ams = "AMs wait" if scope == CLUSTER else f"AMs of {subject} wait"
        who = ams if of_ams else f"{subject} waits"
        return f"{who} {kind} {before} {ARROW} {after}"
    if measure.kind is Kind.COUNT:
        noun, _, things = measure.name.partition(" ")
        if difference.after is not None and difference.after.number == 1:
            things = things.removesuffix("s")
        where = "" if scope == CLUSTER else f" in {subject}" if scope.kind == "queue" else f" of user {scope.name}"
        return f"{after} {things} {noun}{where}, were {before}"
    return f"{subject}: {measure.name} {before} {ARROW} {after}"


def mean_sentence(balance: Balance, names: dict[str, str]) -> str:
    """The mean wait of a queue or a user on both sides."""
    name = names.get(balance.scope.name, balance.scope.name)
    return f"{name} waits {duration(balance.before_ms)} {ARROW} {duration(balance.after_ms)} on average"


def labels_of(comparison: Comparison) -> dict[str, str]:
    """{path: label in pictures} of the queues of both sides."""
    names = names_of(comparison)
    short = labels(names.values())
    return {path: short[name] for path, name in names.items()}


def names_of(comparison: Comparison) -> dict[str, str]:
    """{path: short name} of the queues of both sides."""
    runs = (comparison.before[0], comparison.after[0])
    return short_names(queue.name for run in runs for queue in (*run.queues, *run.parents))


def _for_headline(comparison: Comparison) -> list[Difference]:
    """The most important differences, one of each queue; if none is for a headline, the most important of all."""
    chosen: dict[object, Difference] = {}
    for each in _telling(comparison):
        chosen.setdefault(each.measure if each.scope == CLUSTER else each.scope, each)
    return list(chosen.values())[:HEADLINE_DIFFERENCES] or _spoken_of(comparison)[:1]


def _values(difference: Difference) -> tuple[str, object, object]:
    """A key that is equal for a queue and its only user, whose sentences would say the same."""
    return difference.measure.name, difference.before, difference.after


def _spoken_of(comparison: Comparison) -> list[Difference]:
    """The differences to describe in sentences: only those of the cluster and of parents if many queues changed."""
    parents = {each.parent for each in comparison.parents()}
    return [
        each
        for each in comparison.differences
        if not parents or each.scope == CLUSTER or (each.scope.kind == "queue" and each.scope.name in parents)
    ]


def _telling(comparison: Comparison) -> list[Difference]:
    """The differences for a headline: waits of leaf queues, or of parents if many queues changed, everything else of
    the cluster.
    """
    parents = {each.parent for each in comparison.parents()}
    leaves = {queue.name for runs in (comparison.before, comparison.after) for queue in runs[0].queues}

    def is_telling(each: Difference) -> bool:
        if each.measure.name not in _PERCENTILES:
            return each.scope == CLUSTER
        return each.scope.kind == "queue" and each.scope.name in (parents or leaves)

    return [each for each in _one_a_subject(_spoken_of(comparison)) if is_telling(each)]


def _one_a_subject(differences: Sequence[Difference]) -> list[Difference]:
    """The most important difference of each scope in each subject: p50 and p95 waits say the same."""
    first: dict[tuple[Scope, str], Difference] = {}
    for each in differences:
        first.setdefault((each.scope, _subject(each)), each)
    return list(first.values())


def _subject(difference: Difference) -> str:
    return _SUBJECTS.get(difference.measure.name, difference.measure.name)


def _enumerated(names: Sequence[str]) -> str:
    """Names with commas and a last "and"."""
    if len(names) > NAMED_MAX:
        names = [*names[: NAMED_MAX - 1], f"{len(names) - NAMED_MAX + 1} others"]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
