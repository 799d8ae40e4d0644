"""The answer in words: one headline and a few findings, the most important figures of a run. Pure."""

from __future__ import annotations

from yarn.times import HOUR_MS, SECOND_MS, duration
from yarnling.report.page import Tile
from yarnling.report.wording import count, counted, share, short_names
from yarnling.whatif.calibration_words import trust
from yarnling.whatif.figures import Figures, GroupFigures

SHORT_WAIT_MS = 10 * SECOND_MS
"""A p95 wait below this needs no queue to blame: it is a few heartbeats."""
CROWDED_FRACTION = 0.2
"""A queue that was at its maximum for more of the time than this is worth a sentence."""
REASON_MAX = 200
"""The most characters of a reason that are shown."""
NAMED_MAX = 3
"""The most queues that one sentence names."""


def headline(figures: Figures) -> str:
    """The answer, in one sentence or two."""
    waits = figures.cluster.waits
    if waits.p50 is None or waits.p95 is None:
        return "No container was requested."
    if waits.p95.ms < SHORT_WAIT_MS and not waits.p95.at_least:
        text = f"Containers start at once: 95 % wait less than {duration(max(waits.p95.ms, SECOND_MS))}"
    else:
        worst = _longest_waiting(figures)
        text = f"Half of the containers wait up to {waits.p50}, one in twenty more than {duration(waits.p95.ms)}"
        if worst is not None:
            name = short_names(queue.name for queue in figures.queues)[worst.name]
            text += f"; queue {name} waits longest (p95 {worst.waits.p95})"
    text += "."
    if figures.cluster.missed:
        text += f" {_missed(figures.cluster)}."
    return text


def findings(figures: Figures) -> tuple[str, ...]:
    """Sentences about what else happened: use, crowded queues, preemption, limits, unfinished waits."""
    cluster = figures.cluster
    return tuple(
        sentence
        for sentence in (
            _not_submitted(cluster),
            _refused(figures),
            _failed(cluster),
            _use(figures),
            _crowded(figures),
            _preempted(figures),
            _nodes(figures),
            _surplus(cluster),
            _limits(cluster),
            _unfinished(cluster),
            f"{counted(cluster.failed, 'container')} failed or ended with their application." if cluster.failed else "",
        )
        if sentence
    ) + trust(figures.calibration, figures.evidence)


def tiles(figures: Figures) -> tuple[Tile, ...]:
    """The large numbers at the top of a report."""
    cluster, use = figures.cluster, figures.cluster_use
    deadlines = f"of {count(cluster.with_deadline)} with one" if cluster.with_deadline else "no application has one"
    if cluster.undecided:
        deadlines = f"of {count(cluster.all_with_deadline)} with one; {count(cluster.undecided)} undecided at the end"
    return (
        Tile(str(cluster.waits.p95 or "-"), "p95 wait", f"median {cluster.waits.p50 or '-'}"),
        Tile(_percent(use.use if use else None), "cluster use", f"peak {_percent(use.peak_use if use else None)}"),
        Tile(count(cluster.lost.containers), "preempted containers", f"{_lost_work(cluster)} lost"),
        Tile(count(cluster.missed), "missed deadlines", deadlines, cluster.missed > 0),
        Tile(
            count(cluster.waits.unfinished),
            "never allocated",
            f"of {counted(cluster.containers, 'container')}",
            cluster.waits.unfinished > 0,
        ),
        Tile(f"{figures.finished_per_hour:.1f}", "applications an hour", f"{count(cluster.finished)} finished"),
        *_node_tiles(figures),
    )


def _node_tiles(figures: Figures) -> tuple[Tile, ...]:
    nodes = figures.nodes
    range_ = f"{count(nodes.least)} to {count(nodes.most)} nodes"
    return (Tile(node_hours(nodes.node_ms), "node-hours", range_),) if nodes.changes else ()


def _longest_waiting(figures: Figures) -> GroupFigures | None:
    waiting = [queue for queue in figures.queues if queue.waits.p95]
    if len(waiting) < 2:
        return None
    return max(waiting, key=lambda queue: queue.waits.p95.ms if queue.waits.p95 else 0)


def _missed(cluster: GroupFigures) -> str:
    return f"{count(cluster.missed)} of {counted(cluster.with_deadline, 'application')} with a deadline missed it"


def _use(figures: Figures) -> str:
    use = figures.cluster_use
    if use is None or use.use is None:
        return ""
    crowded = f"; it was at least 95 % full for {share(use.at_maximum)} of the time" if use.at_maximum else ""
    return f"The cluster was used {share(use.use)} on average, {_percent(use.peak_use)} at its peak{crowded}."


def _crowded(figures: Figures) -> str:
    names = short_names(queue.name for queue in figures.queues)
    found = [use for use in figures.uses if use.queue in names and use.at_maximum > CROWDED_FRACTION]
    found.sort(key=lambda use: -use.at_maximum)
    if not found:
        return ""
    named = ", ".join(f"{use.name_of(names[use.queue])} {share(use.at_maximum)}" for use in found[:NAMED_MAX])
    more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    return f"At their maximum for much of the time: {named}{more}."


def _preempted(figures: Figures) -> str:
    lost = figures.cluster.lost
    if not lost.containers:
        return ""
    names = short_names(queue.name for queue in figures.queues)
    most = max(figures.queues, key=lambda queue: queue.lost.containers)
    of_most = f", {count(most.lost.containers)} of them in {names[most.name]}" if len(names) > 1 else ""
    preempted = f"{counted(lost.containers, 'container')} {'was' if lost.containers == 1 else 'were'} preempted"
    return f"{preempted}{of_most}: {_lost_work(figures.cluster)} of work lost."


def _nodes(figures: Figures) -> str:
    """A sentence about nodes that came and went, and about what was lost with them."""
    nodes, lost = figures.nodes, figures.cluster.lost_with_nodes
    if not nodes.changes:
        return ""
    work = ""
    if lost.containers:
        were = "was" if lost.containers == 1 else "were"
        hours = _container_hours(lost.container_ms)
        work = f" {counted(lost.containers, 'container')} {were} lost with nodes: {hours} of work."
    return f"There were {nodes.least} to {nodes.most} nodes, {node_hours(nodes.node_ms)} node-hours.{work}"


def node_hours(node_ms: float) -> str:
    """The number of node-hours."""
    hours = node_ms / HOUR_MS
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.1f}"


def _surplus(cluster: GroupFigures) -> str:
    if not cluster.surplus:
        return ""
    placed = cluster.surplus + cluster.containers - cluster.waits.unfinished
    return (
        f"{count(cluster.surplus)} of {counted(placed, 'allocated container')} ({share(cluster.surplus / placed)}) "
        f"{'was' if cluster.surplus == 1 else 'were'} surplus: AMs sent lowered requests again, and released what came."
    )


def _limits(cluster: GroupFigures) -> str:
    limits = (("AM limits of queues", cluster.am_limit_wait_ms), ("users' limits", cluster.user_limit_wait_ms))
    parts = [f"{duration(waited)} for {limit}" for limit, waited in limits if waited]
    return f"Applications waited, all together, {' and '.join(parts)}." if parts else ""


def _unfinished(cluster: GroupFigures) -> str:
    number = cluster.waits.unfinished
    if not number:
        return ""
    what, bound = ("its wait counts", "a lower bound") if number == 1 else ("their waits count", "lower bounds")
    return f"{counted(number, 'container')} never got allocated; {what} as {bound}."


def not_submitted(cluster: GroupFigures) -> str:
    """A sentence about applications whose time had not come at the end, which no other figure counts; "" if none."""
    number = cluster.not_submitted
    if not number:
        return ""
    everything = counted(cluster.applications + number, "application")
    return f"{count(number)} of {everything} {'was' if number == 1 else 'were'} not submitted before the end"


def _not_submitted(cluster: GroupFigures) -> str:
    sentence = not_submitted(cluster)
    return f"{sentence}." if sentence else ""


def _refused(figures: Figures) -> str:
    cluster, said = figures.cluster, figures.first_refusal
    if not cluster.refused:
        return ""
    reason = f": {said if len(said) <= REASON_MAX else said[:REASON_MAX] + '...'}" if said else "."
    which = f"{counted(cluster.refused, 'application')} of {count(cluster.applications)}"
    return f"The ResourceManager refused {which}{reason}"


def _failed(cluster: GroupFigures) -> str:
    number = cluster.failed_applications
    return f"{counted(number, 'application')} failed or {'was' if number == 1 else 'were'} killed." if number else ""


def _lost_work(group: GroupFigures) -> str:
    return _container_hours(group.lost.container_ms)


def _container_hours(container_ms: int) -> str:
    hours = container_ms / HOUR_MS
    return f"{hours:,.0f} container-hours" if hours >= 10 else f"{hours:.1f} container-hours"


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else share(fraction)
