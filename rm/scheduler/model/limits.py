"""How far a queue may grow in one pass over the tree, handed from parent to child."""

from __future__ import annotations

from yarn.resource import Resource


class ResourceLimits:
    """Hadoop's ResourceLimits: `limit` is what the queue may use at most in this pass.

    `headroom` is set by the queue's own check (limit - used), `blocked_headroom` by a parent for the room that a
    hungrier child could not take and later children must leave alone, `amount_needed_unreserve` by the user check:
    what must be given up elsewhere to stay within the user's limit.
    """

    __slots__ = ("amount_needed_unreserve", "blocked_headroom", "headroom", "limit")

    def __init__(self, limit: Resource, none: Resource) -> None:
        self.limit = limit
        self.headroom = limit
        self.amount_needed_unreserve = none
        self.blocked_headroom: Resource | None = None

    def net_limit(self) -> Resource:
        """The limit without the room that is kept for children that came before."""
        return self.limit if self.blocked_headroom is None else self.limit - self.blocked_headroom

    def add_blocked_headroom(self, amount: Resource) -> None:
        """Leave `amount` more to a child that came before."""
        self.blocked_headroom = amount if self.blocked_headroom is None else self.blocked_headroom + amount
