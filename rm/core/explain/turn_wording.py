"""Words for whose turn it was: who comes first, by which figure, and what others were given meanwhile."""

from __future__ import annotations

from rm.core.explain.turn import Ahead, Figure, Overtaking, Precedence

_DIGITS_MAX = 3


def comes_first(ahead: Ahead) -> str:
    """`queue root.b comes first (it uses 40 % of its guarantee, root.a 110 %)`, or the application in the same leaf."""
    order = ahead.precedence
    if order is None:
        return f"{ahead.application_id} in queue {ahead.queue} was offered the node first"
    who = f"queue {order.first}" if order.figure in _OF_QUEUES else f"{order.first} in queue {ahead.queue}"
    return f"{who} comes first ({by_figure(order)})"


def meanwhile(found: Overtaking) -> str:
    """The containers that others were given since the request."""
    count = f"{found.count} container{'' if found.count == 1 else 's'} of at least its size"
    was, order = "was" if found.count == 1 else "were", found.precedence
    where = f"in {found.queue}" if found.of_queue == found.count else f"{found.of_queue} of them in {found.queue}"
    text = f"since its request {count} {was} placed for others, {where}"
    if order is None:
        return text
    who = "which" if order.figure in _OF_QUEUES else f"where {order.first}"
    return f"{text}, {who} comes first ({by_figure(order)})"


def by_figure(order: Precedence) -> str:
    """`it uses 40 % of its guarantee, root.a 110 %`."""
    one, other = order.values
    match order.figure:
        case Figure.WITH_GUARANTEE:
            return f"{order.second} has no guarantee"
        case Figure.BELOW_GUARANTEE:
            uses, that = _percents(one, other)
            return f"{order.first} is below its guarantee with {uses}, {order.second} is not with {that}"
        case Figure.QUEUE_PRIORITY:
            return f"the priority of {order.first} is {one:g}, that of {order.second} {other:g}"
        case Figure.USED_CAPACITY:
            uses, that = _percents(one, other)
            return f"{order.first} uses {uses} of its guarantee, {order.second} {that}"
        case Figure.GUARANTEE:
            return f"both use as much of their guarantees, and that of {order.first} is larger"
        case Figure.APPLICATION_PRIORITY:
            return f"its priority is {one:g}, that of this one {other:g}"
        case Figure.OLDER:
            return "it is older"
        case Figure.FAIR_SHARE:
            return f"it uses {one:g} MB, this one {other:g}"


def _percents(one: float, other: float) -> tuple[str, str]:
    """Format two percentages with as many digits as are needed to tell them apart."""
    digits = next((count for count in range(_DIGITS_MAX) if f"{one:.{count}%}" != f"{other:.{count}%}"), _DIGITS_MAX)
    return _percent(one, digits), _percent(other, digits)


def _percent(value: float, digits: int) -> str:
    text = f"{100 * value:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits else text} %"


_OF_QUEUES = frozenset(
    {Figure.WITH_GUARANTEE, Figure.BELOW_GUARANTEE, Figure.QUEUE_PRIORITY, Figure.USED_CAPACITY, Figure.GUARANTEE}
)
