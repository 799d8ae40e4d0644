"""What operators type after an option of `rmadmin`: labels, nodes with labels, sizes of nodes (RMAdminCLI)."""

from __future__ import annotations

import re

from yarn.errors import InvalidArgumentException, InvalidIdException
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.client import NodesToLabels
from yarn.resource import INT32_MAX, MEMORY_MB, VCORES, Resource

NO_MAPPING = "No node-to-labels mappings are specified"
NO_LABEL = "No cluster node-labels are specified"
BAD_RESOURCES = (
    "Resource Types parameter specified for updateNodeResource is wrong. It should be comma-delimited key value pairs. "
    "For example, memory-mb=1024Mi,vcores=1,resource1=3Gi,resource2=2"
)
_BAD_LABEL = (
    "Input format for adding node-labels is not correct, it should be "
    "labelName1[(exclusive=true/false)],LabelName2[] .."
)

WHOLE_HOST_PORT = 0
_LABEL = re.compile(r"([^()]+)(?:\(\s*(?:exclusive\s*=\s*(true|false))?\s*\))?", re.IGNORECASE)
_AMOUNT = re.compile(r"([0-9]+)([A-Za-z]*)", re.ASCII)
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}


def labels_of(text: str) -> tuple[NodeLabel, ...]:
    """`gpu(exclusive=true),fast(exclusive=false),plain`: a label is exclusive unless it is said not to be."""
    labels = []
    for word in text.split(","):
        if not word.strip():
            continue
        match = _LABEL.fullmatch(word.strip())
        if match is None:
            raise InvalidArgumentException(_BAD_LABEL)
        labels.append(NodeLabel(match[1].strip(), (match[2] or "true").lower() == "true"))
    if not labels:
        raise InvalidArgumentException(NO_LABEL)
    return tuple(labels)


def names_of(text: str) -> tuple[str, ...]:
    """`gpu,fast`."""
    names = tuple(dict.fromkeys(word for part in text.split(",") if (word := part.strip())))
    if not names:
        raise InvalidArgumentException(NO_LABEL)
    return names


def mappings_of(text: str) -> NodesToLabels:
    """`n1:45454=gpu n2= n3,fast`: blanks between nodes; without a port it is the whole host, without a label none."""
    found: dict[NodeId, tuple[str, ...]] = {}
    for word in text.split():
        if word.startswith("#"):
            continue
        name, equals, rest = word.partition("=")
        if not equals:
            name, _, rest = word.partition(",")
        labels = tuple(dict.fromkeys(label for part in rest.split(",") if (label := part.strip())))
        if not name:
            raise InvalidArgumentException("node name cannot be empty")
        if len(labels) > 1:
            raise InvalidArgumentException(
                f"{len(labels)} labels specified on host={name}, please note that we do not support specifying "
                "multiple labels on a single host for now."
            )
        found[_node_or_host(name)] = labels
    if not found:
        raise InvalidArgumentException(NO_MAPPING)
    return tuple(found.items())


def size_of(words: list[str]) -> Resource:
    """`2048 4` (MB and vcores), or `memory-mb=2Gi,vcores=4,yarn.io/gpu=1`."""
    if len(words) == 2 and all(word.isascii() and word.isdigit() for word in words):
        memory_mb, vcores = (min(int(word), INT32_MAX) for word in words)
        return Resource(memory_mb, vcores)
    amounts = dict(_amount(part) for part in words[0].split(",")) if len(words) == 1 else {}
    if MEMORY_MB not in amounts or VCORES not in amounts:
        raise InvalidArgumentException(BAD_RESOURCES)
    memory_mb, vcores = amounts.pop(MEMORY_MB), amounts.pop(VCORES)
    return Resource(memory_mb, vcores, tuple(amounts.items()))


def node_of(text: str) -> NodeId:
    """A node, in Hadoop's words if it is none."""
    try:
        return NodeId.parse(text)
    except InvalidIdException:
        raise InvalidArgumentException(f"Invalid NodeId [{text}]. Expected host:port") from None


def _amount(text: str) -> tuple[str, int]:
    """(type, amount): memory in MiB, which it is in without a unit; anything else counted."""
    name, _, value = (part.strip() for part in text.partition("="))
    match = _AMOUNT.fullmatch(value)
    if not name or match is None or match[2] not in {**_UNITS, **_BINARY_UNITS}:
        raise InvalidArgumentException(BAD_RESOURCES)
    factor = {**_UNITS, **_BINARY_UNITS}[match[2]]
    if name == MEMORY_MB:
        return name, int(match[1]) if not match[2] else int(match[1]) * factor // _BINARY_UNITS["Mi"]
    return name, int(match[1]) * factor


def _node_or_host(name: str) -> NodeId:
    return node_of(name) if ":" in name else NodeId(name, WHOLE_HOST_PORT)
