"""Which labels a queue may use, has capacities of, and takes for asks that name none (QueueNodeLabelsSettings)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rm.scheduler.config.queue_keys import PREFIX, ROOT, queue_key
from rm.scheduler.config.reading import Reader
from yarn.asks import ANY

if TYPE_CHECKING:
    from rm.scheduler.config.queue_configuration import QueueConfiguration

_LABELS = "accessible-node-labels"


def configured_labels(reader: Reader, path: str) -> tuple[str, ...]:
    """The labels that some key of the queue gives it a part of, in the file's order; root has those of all queues."""
    prefix = PREFIX if path == ROOT else queue_key(path, _LABELS + ".")
    labels: dict[str, None] = {}
    for key in reader.configuration.keys(prefix):
        _, found, rest = key.partition(_LABELS + ".")
        label, dot, _ = rest.partition(".")
        if found and dot:
            labels[label] = None
    return tuple(labels)


def read_accessible_labels(reader: Reader, path: str, inherited: tuple[str, ...] | None) -> tuple[str, ...]:
    """The labels that the queue may use, `*` alone for all; its parent's unless set, and no others than those."""
    key = queue_key(path, _LABELS)
    if inherited is None:
        return (ANY,)
    if reader.configuration.get(key) is None:
        return inherited
    labels = tuple(dict.fromkeys(filter(None, reader.words(key))))
    if ANY in labels:
        labels = (ANY,)
    if ANY not in inherited:
        more = [label for label in labels if label not in inherited]
        if ANY in labels:
            problem = f"Parent's accessible queue is not ANY(*), but child's accessible queue is {ANY}"
            reader.fault(key, problem, "name the labels, or give the parent all")
        elif more:
            problem = f"Some labels of child queue is not a subset of parent queue, these labels=[{','.join(more)}]"
            reader.fault(key, problem, "remove them, or give them to the parent too")
    return labels


def read_default_label(
    reader: Reader, path: str, parent: QueueConfiguration | None, accessible: tuple[str, ...], *, is_leaf: bool
) -> str | None:
    """What asks that name no label get; the parent's if the queue may use all that its parent may."""
    key = queue_key(path, "default-node-label-expression")
    label = reader.configuration.get(key)
    if label is not None:
        label = label.strip()
    elif parent is not None and set(accessible) >= set(parent.accessible_labels):
        label = parent.default_label
    if is_leaf and label and label not in accessible and ANY not in accessible:
        problem = (
            f"Invalid default label expression of  queue={path} doesn't have permission to access all labels in "
            f"default label expression. labelExpression of resource request={label}. Queue labels="
            f"{','.join(accessible)}"
        )
        reader.fault(key, problem, "name a label that the queue may use")
    return label
