"""Answers about node labels and who may use a queue: functions of the core's context that change nothing."""

from __future__ import annotations

from collections.abc import Iterable

from rm.core.context import RMContext
from rm.core.events import Asker
from rm.shell.groups import groups_of
from wire.web.document import Document, Element, Style, many
from wire.web.errors import bad_request, forbidden, illegal_argument
from wire.web.records import resource_element
from yarn.applications import DEFAULT_PARTITION
from yarn.ids import NodeId
from yarn.java.hash_order import hash_order, string_hash
from yarn.nodes import NodeLabel
from yarn.resource import Resource
from yarn.states import QueueACL


def cluster_labels(context: RMContext) -> Document:
    """The labels of the cluster, with the resources of their nodes."""
    found = {label.name: label for label in context.scheduler.labels.cluster_labels()}
    ordered = hash_order(found, string_hash, concurrent=True)
    return _labels(_label(found[name], resource=_of_label(context, name)) for name in ordered)


def rm_labels(context: RMContext) -> Document:
    """Like `cluster_labels`, with the partition of nodes without a label and the number of active nodes."""
    known = {"": True} | {label.name: label.exclusive for label in context.scheduler.labels.cluster_labels()}
    return _labels(
        Element(
            {
                **_label(NodeLabel(name or DEFAULT_PARTITION, exclusive), resource=_of_label(context, name)).fields,
                "activeNMs": context.scheduler.labels.active_count(name),
            }
        )
        for name, exclusive in sorted(known.items())
    )


def node_labels(context: RMContext, node_id: NodeId) -> Document:
    """The labels of one node; none for an unknown node."""
    label = context.scheduler.labels.nodes_to_labels().get(node_id)
    name = context.scheduler.labels.label_of(node_id) if label is None else label.name
    known = {one.name: one for one in context.scheduler.labels.cluster_labels()}
    return _labels([_label(known[name])] if name in known else [])


def nodes_to_labels(context: RMContext) -> Document:
    """{node: its labels}."""
    entries = many(
        Element({"key": str(node_id), "value": Element({"nodeLabelInfo": many([_label(label)])})})
        for node_id, label in context.scheduler.labels.nodes_to_labels().items()
    )
    return Document("nodeToLabelsInfo", Element({"nodeToLabels": Element({"entry": entries})}), Style.MAPPED)


def labels_to_nodes(context: RMContext, names: Iterable[str]) -> Document:
    """{label: its nodes}, of the named labels, or of all."""
    entries = many(
        Element(
            {
                "key": _label(label),
                "value": Element(
                    {
                        "nodes": many(map(str, node_ids)),
                        "partitionInfo": Element(
                            {"resourceAvailable": resource_element(_of_label(context, label.name))}
                        ),
                    }
                ),
            }
        )
        for label, node_ids in context.scheduler.labels.labels_to_nodes(tuple(names)).items()
    )
    return Document("labelsToNodesInfo", Element({"labelsToNodes": Element({"entry": entries})}), Style.MAPPED)


def queue_access(context: RMContext, asker: Asker, queue: str, user: str | None, acl_text: str) -> Document:
    """True if a user has access to a queue, for who administers it. Raises WebException."""
    found = context.scheduler.queue(queue)
    if found is None or not context.queue_acls.has_access(found.path, QueueACL.ADMINISTER_QUEUE, *asker):
        raise forbidden(
            f"User={asker[0]} doesn't haven access to queue={queue} so it cannot check ACLs for other users."
        )
    if not user:
        raise illegal_argument("Null user")
    try:
        acl = QueueACL[acl_text]
    except KeyError:
        valid = "SUBMIT_APPLICATIONS/ADMINISTER_QUEUE"
        raise bad_request(
            f"Specified queueAclType={acl_text} is not a valid type, valid queue acl types={{{valid}}}"
        ) from None
    allowed = context.queue_acls.has_access(found.path, acl, user, groups_of(user))
    why = "" if allowed else f"User={user} doesn't have access to queue={queue} with acl-type={acl_text}"
    return Document("rmQueueAcl", Element({"allowed": allowed, "user": user, "diagnostics": why}), Style.MAPPED)


def _labels(labels: Iterable[Element]) -> Document:
    return Document("nodeLabelsInfo", Element({"nodeLabelInfo": many(labels)}), Style.MAPPED)


def _label(label: NodeLabel, *, resource: Resource | None = None) -> Element:
    partition = None if resource is None else Element({"resourceAvailable": resource_element(resource)})
    return Element({"name": label.name, "exclusivity": label.exclusive, "partitionInfo": partition})


def _of_label(context: RMContext, name: str) -> Resource:
    return context.scheduler.context.partition_resource(name)
