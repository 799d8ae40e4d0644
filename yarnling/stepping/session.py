"""A session: a run at one of its positions, which can be any earlier or later one.

A run is a function of its source and of the changes that a user made at certain positions. So going back is running
again up to an earlier position, and a fork is the same run with one change more. Position n is the cluster after its
first n steps.

There are two players. One is at the latest position that was ever reached, so going forwards again costs nothing; the
other one is somewhere before it. Views of the positions shortly before the one that is wanted are kept on the way,
because after a step back a user often wants one more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence

from yarn.errors import InvalidArgumentException, YarnException
from yarnling.stepping.changes import ClusterChange
from yarnling.stepping.cluster_view import ClusterView
from yarnling.stepping.moments import StepMoment, StepMoments
from yarnling.stepping.player import Made, Player
from yarnling.stepping.sources import Source
from yarnling.stepping.steps import Step
from yarnling.stepping.wording import StepWording

STEPS_MAX = 200_000
"""A run that is longer ends here: stepping is for small clusters, and each step takes memory."""
NODES_MAX = 100
LOOK_STEPS = 5000
"""The number of steps in which moments are looked for at once: two seconds of a core."""
VIEWS_MAX = 400
"""The number of views that are kept."""
VIEWS_BEFORE = 25
"""The number of views before that a position are made on the way there."""


class Session:
    """A run of `source` with `changes`, in the order of their positions. It begins at position 0."""

    def __init__(self, source: Source, changes: tuple[Made, ...] = (), known: Sequence[Step] = ()) -> None:
        """`known`: the first steps, if another session has described them already.

        Raises InvalidArgumentException, once it gets there, if the cluster does not allow a change.
        """
        self.source = source
        self.changes = changes
        self.position = 0
        self.steps: list[Step] = []
        self.is_complete = False
        """True once the end of the run was reached: `steps` are all that there are."""
        self.moments: list[StepMoment] = []
        """The moments in `steps`."""
        self._views: OrderedDict[int, ClusterView] = OrderedDict()
        self._ahead = Player(source, changes, checked=True)
        self._behind: Player | None = None
        self._known = known
        self._words = StepWording(self._ahead.run.names, self._ahead.run.node_names)
        self._moments = StepMoments(self._ahead.run.names, self._words.place)
        self._check_size()

    @property
    def step(self) -> Step | None:
        """The step that led to this position."""
        return self.steps[self.position - 1] if self.position else None

    @property
    def is_at_end(self) -> bool:
        return self.is_complete and self.position == len(self.steps)

    @property
    def at_ms(self) -> int:
        """The time since the start of the run."""
        return self.step.at_ms if self.step is not None else 0

    def view(self) -> ClusterView:
        """The cluster at this position."""
        if self.position not in self._views:
            if self.position == self._ahead.position:
                self._keep_view(self._ahead)
            else:
                self._rewind(self.position)
        return self._views[self.position]

    def go_to(self, position: int) -> None:
        """Go to a position, at most to the end of the run."""
        self._know(position)
        self.position = max(0, min(position, len(self.steps)))

    def next(self, count: int = 1) -> None:
        self.go_to(self.position + count)

    def back(self, count: int = 1) -> None:
        self.go_to(self.position - count)

    def go_to_time(self, at_ms: int) -> None:
        """Go to the last position at or before that time."""
        while not self.is_complete and (not self.steps or self.steps[-1].at_ms <= at_ms):
            self._know(len(self.steps) + 1)
        self.position = bisect_right(self.steps, at_ms, key=lambda step: step.at_ms)

    def go_to_opening(self) -> None:
        """Go to the first decision of the scheduler; in a run without one to its first moment, or its first change."""
        self.look_ahead()
        decided = next((moment for moment in self.moments if moment.is_decision), None)
        moment = decided or next(iter(self.moments), None)
        if moment is not None:
            self.go_to(moment.step)
        else:
            self.go_to(next((step.number for step in self.steps if step.is_change), 1))

    def look_ahead(self) -> None:
        """Compute the next LOOK_STEPS steps, and so their moments; the position stays."""
        self._know(len(self.steps) + LOOK_STEPS)

    def go_to_moment(self, by: int) -> bool:
        """Go to the next moment (`by` 1) or the previous one (-1) in another step; False if none is known."""
        others = [moment.step for moment in self.moments if (moment.step - self.position) * by > 0]
        if others:
            self.position = min(others, key=lambda step: abs(step - self.position))
        return bool(others)

    def go_to_next(self, wanted: Callable[[Step], bool]) -> bool:
        """Go to the next step of that kind; if there is none, stay and return False."""
        position = self.position + 1
        while True:
            self._know(position)
            if position > len(self.steps):
                return False
            if wanted(self.steps[position - 1]):
                self.position = position
                return True
            position += 1

    def go_to_previous(self, wanted: Callable[[Step], bool]) -> bool:
        """Go to the previous step of that kind; if there is none, stay and return False."""
        for position in range(self.position - 1, 0, -1):
            if wanted(self.steps[position - 1]):
                self.position = position
                return True
        return False

    def fork(self, change: ClusterChange) -> Session:
        """A session of the same run up to here, with this change at its position; what follows is another run.

        Raises InvalidArgumentException if the cluster does not allow the change; this session stays as it is.
        """
        before = tuple(made for made in self.changes if made.position < self.position)
        forked = Session(self.source, (*before, Made(self.position, change)), self.steps[: self.position])
        try:
            forked.go_to(self.position + 1)
        except YarnException:
            forked.close()
            raise
        return forked

    def close(self) -> None:
        """Release the resources of the runs that are outside memory, such as files."""
        self._ahead.run.close()
        if self._behind is not None:
            self._behind.run.close()

    def _know(self, position: int) -> None:
        """Compute the steps up to this position, or up to the end of the run."""
        ahead = self._ahead
        while ahead.position < position and not self.is_complete:
            noted = ahead.advance() if ahead.position < STEPS_MAX else []
            if not noted:
                self.is_complete = True
                return
            if ahead.position <= len(self._known):
                self.steps.append(self._known[ahead.position - 1])
            else:
                self.steps.append(self._words.step(ahead.position, ahead.run.now_ms, noted))
            self.moments += self._moments.of(ahead.position, ahead.run.now_ms, noted)

    def _rewind(self, position: int) -> None:
        """Run again up to this position, unless the player behind is still before it, and keep the last views."""
        behind = self._behind
        if behind is None or behind.position > position:
            if behind is not None:
                behind.run.close()
            # Commands that run again were checked when they ran first.
            behind = self._behind = Player(self.source, self.changes, checked=False)
        while behind.position < position and behind.advance():
            if behind.position >= position - VIEWS_BEFORE:
                self._keep_view(behind)
        self._keep_view(behind)

    def _keep_view(self, player: Player) -> None:
        if player.position not in self._views:
            self._views[player.position] = player.run.view()
            if len(self._views) > VIEWS_MAX:
                self._views.popitem(last=False)

    def _check_size(self) -> None:
        count = len(self._ahead.run.cluster.machines)
        if count > NODES_MAX:
            self.close()
            raise InvalidArgumentException(
                f"a cluster of {count} nodes is too large to be stepped through: use at most {NODES_MAX}"
            )
