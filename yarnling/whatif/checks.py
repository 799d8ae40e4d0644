"""Finds before the simulation starts what of a workload does not fit the cluster and the configuration."""

from __future__ import annotations

import difflib
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.model.leaf_queue import LeafQueue
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.resource import Resource
from yarn.settings.scheduler import NODE_LABELS_ENABLED, RESOURCE_TYPES
from yarn.times import duration
from yarnling.whatif.expectations import KnownNames
from yarnling.workload.model import (
    UNCHANGED,
    NodeChange,
    NodeEvent,
    NodeSchedule,
    RequestStyle,
    TaskGroup,
    Workload,
    WorkloadApplication,
    WorkloadNode,
)
from yarnling.workload.start_times import described

NODES_MAX = 20_000
SIMILAR_MAX = 3


class QueueMap(Struct, frozen=True):
    """Queues to submit to instead: `targets` {queue of the workload: other queue}, from the `option` of that name."""

    targets: Mapping[str, str] = {}
    option: str = "--queue-map"


NO_QUEUE_MAP = QueueMap()


def with_queues(workload: Workload, queue_map: QueueMap) -> Workload:
    """The workload with its queues mapped. Raises YarnException for a mapping of a queue that no application uses."""
    targets = queue_map.targets
    unused = sorted(set(targets) - {application.queue for application in workload.applications})
    if unused:
        raise YarnException(f"{queue_map.option}: no application of the workload is in queue {', '.join(unused)}")
    moved = (replace(one, queue=targets.get(one.queue, one.queue)) for one in workload.applications)
    return replace(workload, applications=tuple(moved))


def refuse_if_unfit(
    conf: Configuration,
    workload: Workload,
    nodes: Sequence[WorkloadNode],
    queue_map: QueueMap = NO_QUEUE_MAP,
    *,
    schedule: NodeSchedule = UNCHANGED,
) -> None:
    """Raise YarnException with all faults that keep the workload, to which `queue_map` was applied, from running."""
    core = ResourceManagerCore(conf, cluster_timestamp=1)
    faults = [
        *_node_faults(conf, nodes),
        *_node_event_faults(nodes, schedule.events),
        *_unknown_hosts(nodes, schedule),
        *_type_faults(core, workload, nodes),
        *_label_faults(workload, nodes),
        *_queue_faults(core, workload, queue_map),
    ]
    if faults:
        raise YarnException("\n".join(faults))


def names_of_run(conf: Configuration, workload: Workload) -> KnownNames:
    """The queues and users that a run will have: those of the configuration, and queues that the workload creates."""
    core = ResourceManagerCore(conf, cluster_timestamp=1)
    queues = dict.fromkeys(core.scheduler.queues)
    for application in _one_of_each(workload.applications):
        with suppress(YarnException):
            queues |= dict.fromkeys(core.scheduler.paths_to_create(_placed(core, application)))
    return KnownNames(tuple(queues), tuple(dict.fromkeys(one.user for one in workload.applications)))


def warnings_about(conf: Configuration, workload: Workload, nodes: Sequence[WorkloadNode]) -> tuple[str, ...]:
    """Warnings about parts of the workload that are simulated differently."""
    return (*_size_warnings(conf, workload), *_host_warnings(workload, nodes))


def assumed_of_starts(workload: Workload) -> tuple[str, ...]:
    """Describe the assumed start times of AMs and tasks, and the way AMs send requests; traces do not record them."""
    applications = workload.applications
    am = described({one.am_start_ms for one in applications}, duration)
    task = described({one.task_start_ms for one in applications}, duration)
    exact = sum(one.client is RequestStyle.EXACT for one in applications)
    clients = (
        "AMs request containers as Hadoop's AMRMClient does: they send lowered requests again, and release the surplus "
        "containers that this brings (client: hadoop in the workload file)."
    )
    if exact:
        clients = (
            f"{exact} of {len(applications)} applications never send a lowered request again (client: exact in the "
            "workload file), unlike Hadoop's AMRMClient."
        )
    starts = f"An AM takes {am} to start, and a task {task} before its duration (am_start_ms and task_start_ms of the "
    return (f"{starts}workload file; a JVM takes seconds).", clients)


def assumed_of_nodes(nodes: Sequence[WorkloadNode], schedule: NodeSchedule) -> tuple[str, ...]:
    """Describe the changes of the nodes during the workload; nothing if there are none."""
    found = []
    if schedule.events:
        counted = Counter(event.change.value for event in schedule.events)
        changes = ", ".join(f"{change} {count}" for change, count in counted.items())
        found.append(f"Nodes change ({changes}).")
    for spot in schedule.spots:
        again = "" if spot.replaced_ms is None else f", replaced after {duration(spot.replaced_ms)}"
        found.append(
            f"{len(spot.hosts)} nodes are lost by chance, {spot.lost_per_hour * 100:.3g} % of them an hour{again}."
        )
    if (scaling := schedule.scaling) is not None:
        found.append(
            f"An autoscaler keeps {scaling.least} to {len(scaling.hosts)} nodes of a group. It reads the metrics once "
            f"a minute, a node takes {duration(scaling.start_ms)} to start, and those with the least memory in use are "
            "removed first."
        )
    return (*found, f"The size of the cluster is that of all {len(nodes)} nodes, joined or not.") if found else ()


def _node_faults(conf: Configuration, nodes: Sequence[WorkloadNode]) -> Iterator[str]:
    if not 1 <= len(nodes) <= NODES_MAX:
        yield f"{len(nodes)} nodes: there must be 1 to {NODES_MAX} (change the file of the nodes)"
    twice = [host for host, times in Counter(node.host for node in nodes).items() if times > 1]
    if twice:
        are = "node {} is" if len(twice) == 1 else "nodes {} are"
        yield f"{are.format(_listed(twice))} listed twice (remove one of them)"
    if any(node.label for node in nodes) and not NODE_LABELS_ENABLED.of(conf):
        yield f"nodes have labels, but the configuration has none (set {NODE_LABELS_ENABLED.key}=true)"


def _node_event_faults(nodes: Sequence[WorkloadNode], events: Sequence[NodeEvent]) -> Iterator[str]:
    """Events of unknown nodes, before the start, or that cannot follow the one before it."""
    known = {node.host for node in nodes}
    last: dict[str, NodeChange] = {}
    for event in sorted(events, key=lambda event: event.time_ms):
        what = f"node {event.host}, {event.change.value} at {duration(event.time_ms)}"
        before = last.get(event.host)
        last[event.host] = event.change
        if event.host not in known:
            yield f"{what}: there is no such node (add it to the file of the nodes)"
        elif event.time_ms < 0:
            yield f"{what}: that is before the start (use a time of 0 or more)"
        elif event.change is NodeChange.JOIN and before is NodeChange.JOIN:
            yield f"{what}: it has joined before (remove one of the events, or let it leave between them)"
        elif event.change is not NodeChange.JOIN and before in (NodeChange.LEAVE, NodeChange.LOST):
            yield f"{what}: it is not there after {before.value} (remove one of the events, or let it join again)"


def _unknown_hosts(nodes: Sequence[WorkloadNode], schedule: NodeSchedule) -> Iterator[str]:
    """Hosts of spot nodes and of the autoscaler that are no nodes, and events of those that the autoscaler has."""
    scaled = schedule.scaling.hosts if schedule.scaling is not None else ()
    listed = {host for spot in schedule.spots for host in spot.hosts}.union(scaled)
    if unknown := listed - {node.host for node in nodes}:
        yield f"there are no nodes {_listed(sorted(unknown))}, which may be lost or scaled (add them to the nodes)"
    if both := {event.host for event in schedule.events}.intersection(scaled):
        yield f"nodes {_listed(sorted(both))} have events, but an autoscaler adds and removes them (remove the events)"


def _type_faults(core: ResourceManagerCore, workload: Workload, nodes: Sequence[WorkloadNode]) -> Iterator[str]:
    """Resource types that the configuration does not have: the ResourceManager would refuse such nodes and requests."""
    known = core.scheduler.resource_types.extra_names
    applications = (resource for one in workload.applications for resource in _resources(one))
    for what, resources in (("nodes have", (node.resource for node in nodes)), ("containers request", applications)):
        for name in dict.fromkeys(name for resource in resources for name, _ in resource.extra if name not in known):
            yield f"{what} the resource type {name}, but the configuration does not (add it to {RESOURCE_TYPES.key})"


def _resources(application: WorkloadApplication) -> Iterator[Resource]:
    yield application.am_resource
    yield from (group.resource for group in application.groups)


def _label_faults(workload: Workload, nodes: Sequence[WorkloadNode]) -> Iterator[str]:
    """Labels that no node has: the ResourceManager would refuse such requests."""
    known = {node.label for node in nodes}
    used = (label for one in workload.applications for label in (one.label, *(group.label for group in one.groups)))
    for label in dict.fromkeys(used):
        if label and label not in known:
            yield f"label {label} is requested, but no node has it (give it to nodes in the file of the nodes)"


def _queue_faults(core: ResourceManagerCore, workload: Workload, queue_map: QueueMap) -> Iterator[str]:
    """Queues that neither exist, nor are created on demand, nor are replaced by the mappings of the configuration."""
    leaves = [path for path, queue in core.scheduler.queues.items() if isinstance(queue, LeafQueue)]
    users: dict[tuple[str, str], list[str]] = {}
    for application in _one_of_each(workload.applications):
        problem = _submission_problem(core, application)
        if problem:
            users.setdefault((application.queue, problem), []).append(application.user)
    for (name, problem), found in users.items():
        similar = _similar(name, leaves)
        target = (similar or sorted(leaves) or ["QUEUE"])[0]
        mapped = [old for old, new in queue_map.targets.items() if new == name] or [name]
        options = " ".join(f"{queue_map.option} {shlex.quote(f'{old}={target}')}" for old in mapped)
        known = f"similar leaf queues: {', '.join(similar)}" if similar else f"leaf queues: {_listed(leaves)}"
        yield (
            f"{problem}, which {_listed(found)} would submit to (add the queue, or use another one: {options}; {known})"
        )


def _similar(name: str, leaves: Sequence[str]) -> list[str]:
    """The paths of leaf queues with the most similar names."""
    paths = {path.rpartition(".")[2]: path for path in sorted(leaves)}
    return [paths[one] for one in difflib.get_close_matches(name.rpartition(".")[2], paths, SIMILAR_MAX, 0.4)]


def _one_of_each(applications: Iterable[WorkloadApplication]) -> Iterable[WorkloadApplication]:
    """An application for each user and queue."""
    found: dict[tuple[str, str], WorkloadApplication] = {}
    for one in applications:
        found.setdefault((one.user, one.queue), one)
    return found.values()


def _submission_problem(core: ResourceManagerCore, application: WorkloadApplication) -> str:
    """The fault of an application's queue, "" if it can be used; access lists are checked at the submission."""
    scheduler = core.scheduler
    try:
        path = _placed(core, application)
    except YarnException as error:
        return f"queue {application.queue} is refused by the queue mappings: {error.message}"
    queue = scheduler.queue(path)
    if queue is None:
        ambiguous = scheduler.is_ambiguous(application.queue)
        what = "is ambiguous without its full path" if ambiguous else "does not exist"
        return "" if scheduler.can_create(path) else f"queue {application.queue} {what}"
    return "" if isinstance(queue, LeafQueue) else f"queue {application.queue} is not a leaf queue"


def _placed(core: ResourceManagerCore, application: WorkloadApplication) -> str:
    """The path of the queue that the application is submitted to; its name, as given, if there is no such queue.

    Raises YarnException if the queue mappings refuse the application.
    """
    placed = core.context.placement.place(
        user=application.user, groups=(), application=application.name, queue=application.queue
    )
    return placed if placed is not None else core.scheduler.queue_path(application.queue)


def _size_warnings(conf: Configuration, workload: Workload) -> Iterator[str]:
    scheduler = ResourceManagerCore(conf, cluster_timestamp=1).scheduler
    maximum, complete = scheduler.maximum_allocation(scheduler.context.now_ms), scheduler.resource_types.complete
    cut = [group for group in _groups(workload) if not complete(group.resource).fits_in(maximum)]
    if cut:
        count = sum(len(group.durations_ms) for group in cut)
        remedy = "raise yarn.scheduler.maximum-allocation-mb or -vcores"
        yield f"{count} containers are larger than the largest that can be requested; they get {maximum} ({remedy})"


def _host_warnings(workload: Workload, nodes: Sequence[WorkloadNode]) -> Iterator[str]:
    known = {node.host for node in nodes}
    unknown = {host for group in _groups(workload) for host in group.hosts} - known
    if unknown:
        yield f"containers are wanted on hosts that are not among the nodes: {len(unknown)}, for example {min(unknown)}"


def _groups(workload: Workload) -> Iterator[TaskGroup]:
    return (group for application in workload.applications for group in application.groups)


def _listed(names: Sequence[str]) -> str:
    shown = sorted(set(names))
    return ", ".join(shown[:SIMILAR_MAX]) + (
        f" and {len(shown) - SIMILAR_MAX} more" if len(shown) > SIMILAR_MAX else ""
    )
