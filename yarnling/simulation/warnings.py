"""Which warnings of a ResourceManager are violations in a simulation.

Some of Hadoop's decisions violate an invariant, so a ResourceManager only warns of it. In a simulation nobody changes
labels, sizes of nodes or sizes of requests. There the warning is a mistake, except where a fault of a plan may be the
cause.
"""

from __future__ import annotations

import re

from rm.core.invariants import AS_HADOOP_BREAKS_IT

CAUSED_BY_FAULTS = frozenset({"I-02", "I-06", "I-08", "I-11 (miscounted)"})
"""I-02: a node that is being decommissioned shrinks to what it uses, after containers were placed where others ended.
I-06: an application ends before its containers, and its user is dropped. I-08: nodes are lost, so the cluster shrinks,
and with it the maximum of a queue. I-11: a container was made smaller, which Hadoop counts as its end.
"""

_NUMBER = re.compile(r": (I-\d\d(?: \([a-z]+\))?): ")


def unexpected(text: str) -> str:
    """The violation of which a warning speaks, "" if it speaks of none or of one that faults may cause."""
    found = _NUMBER.search(text) if text.startswith(AS_HADOOP_BREAKS_IT) else None
    return "" if found is None or found.group(1) in CAUSED_BY_FAULTS else text[found.start() + 2 :]
