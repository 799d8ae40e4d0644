"""The topics of the quiz."""

from __future__ import annotations

from yarn.errors import InvalidArgumentException
from yarn.suggestions import did_you_mean
from yarnling.lessons.quiz import limits, nodes, placement
from yarnling.lessons.quiz.question import Topic

TOPICS = (
    Topic("register", 1, "How much memory has the cluster after these registrations?", nodes.register),
    Topic("heartbeat", 2, "What is the reply to a repeated or late heartbeat?", nodes.heartbeat),
    Topic("lost", 2, "When is a silent node LOST?", nodes.lost),
    Topic("submit", 3, "How large is the container that a request gets?", limits.submit),
    Topic("headroom", 4, "Which headroom does the next reply report?", limits.headroom),
    Topic("placement", 4, "On which node is the next container placed?", placement.placement),
    Topic("user-limit", 6, "How much may one user have?", limits.user_limit),
    Topic("queue", 6, "Which queue is served next?", limits.queue),
    Topic("preemption", 8, "Which application is preempted first?", placement.preemption),
    Topic("failure", 9, "How does an application end whose AM fails?", placement.failure),
)


def find_topic(name: str) -> Topic:
    """The topic of that name. Raises InvalidArgumentException if there is none."""
    for topic in TOPICS:
        if topic.name == name:
            return topic
    known = [topic.name for topic in TOPICS]
    raise InvalidArgumentException(
        f"there is no topic {name!r}: {did_you_mean(name, known)}choose one of {', '.join(known)}"
    )
