"""Planted bugs of the fencing in ZooKeeper, each found by contests over the model (tests/zookeeper/contest.py)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from rm.core.zookeeper_election import ZooKeeperElection
from rm.shell.znodes import ANY_VERSION, ConnectionLost, OperationRefused
from rm.shell.zookeeper_fence import FenceContent, ZooKeeperFence
from tests.mutants.bug import PlantedBug, always, bug, drop, instead, never
from wire.files.store_file import StoreFenced, StoreUnavailable


def _without_the_fence(original: Any, self: ZooKeeperFence, operations: Any, digest: bytes, *, is_first: bool) -> None:
    while True:
        try:
            self.znodes.commit(operations)
            return
        except ConnectionLost as lost:
            if not lost.was_sent:
                raise StoreUnavailable("ZooKeeper cannot be reached") from None
        except OperationRefused:
            return


def _of_any_version(original: Any, self: ZooKeeperFence, operations: Any, digest: bytes, *, is_first: bool) -> None:
    self._version = ANY_VERSION
    original(self, operations, digest, is_first=is_first)


def _without_losses(original: Any, self: ZooKeeperFence, operations: Any, digest: bytes, *, is_first: bool) -> None:
    commit = self.znodes.commit

    def never_lost(sent: Any) -> None:
        try:
            commit(sent)
        except ConnectionLost:
            return

    self.znodes.commit = never_lost  # type: ignore[method-assign]
    try:
        original(self, operations, digest, is_first=is_first)
    finally:
        self.znodes.commit = commit  # type: ignore[method-assign]


def _never_fenced(original: Any, self: ZooKeeperFence, operations: Any, digest: bytes, *, is_first: bool) -> None:
    try:
        original(self, operations, digest, is_first=is_first)
    except StoreFenced:
        return


def _again_if_fenced(original: Any, self: ZooKeeperFence, operations: Any, digest: bytes, *, is_first: bool) -> None:
    try:
        original(self, operations, digest, is_first=is_first)
    except StoreFenced:
        _, self._version = self._read()
        original(self, operations, digest, is_first=False)


def _without_digest(original: Any, self: ZooKeeperFence, operations: Any, digest: bytes, *, is_first: bool) -> None:
    original(self, operations, bytes(len(digest)), is_first=is_first)


def _same_claim(original: Any, self: ZooKeeperFence, after: FenceContent) -> bool:
    found, _ = self._read()
    is_stored: bool = found.claim == after.claim or original(self, after)
    return is_stored


def _only_read(original: Any, self: ZooKeeperFence, term: int, tables: Any) -> None:
    while not self._exists(tables):
        pass
    found, self._version = self._read()
    self.content = replace(found, epoch=found.epoch + 1)


def _in_the_first_epoch(original: Any, self: ZooKeeperFence, term: int, tables: Any) -> None:
    original(self, term, tables)
    self.content = replace(self.content, epoch=1)


def _from_the_answer(original: Any, self: ZooKeeperElection, term: int, now_ms: int) -> Any:
    self._sent_ms = now_ms
    return original(self, term, now_ms)


def _twice_as_long(original: Any, self: ZooKeeperElection, term: int, now_ms: int) -> Any:
    effects = original(self, term, now_ms)
    self._leads_until_ms += self._timeout_ms
    return effects


def _at_any_time(original: Any, self: ZooKeeperElection, now_ms: int) -> bool:
    return self._term != 0


def _session_as_term(original: Any, self: ZooKeeperElection, owner: int, term: int, holder: str, now_ms: int) -> Any:
    return original(self, owner, owner, holder, now_ms)


FENCING_BUGS: tuple[PlantedBug, ...] = (
    bug("fence-left-out", "A transaction does not set the fence.", instead(ZooKeeperFence.commit, _without_the_fence)),
    bug(
        "fence-of-any-version",
        "A transaction sets the fence whatever its version is.",
        instead(ZooKeeperFence.commit, _of_any_version),
    ),
    bug(
        "fence-only-read",
        "A ResourceManager that takes over leaves the fence as it is.",
        instead(ZooKeeperFence.take_over, _only_read),
    ),
    bug("lost-answer-is-success", "A lost answer counts as stored.", instead(ZooKeeperFence.commit, _without_losses)),
    bug(
        "lost-answer-is-refusal",
        "A change that was sent and not answered is reported as not stored.",
        always(ZooKeeperFence.commit, "was_sent"),
    ),
    bug("fenced-is-success", "A refused transaction counts as stored.", instead(ZooKeeperFence.commit, _never_fenced)),
    bug(
        "version-adopted",
        "A holder that finds another version of the fence writes with that.",
        instead(ZooKeeperFence.commit, _again_if_fenced),
    ),
    bug(
        "outcome-always-stored",
        "A transaction without an answer counts as stored if the fence can be read.",
        always(ZooKeeperFence._is_carried_out, "found", "after", "=="),
    ),
    bug(
        "number-of-writes-unchecked",
        "A transaction without an answer counts as stored if nobody else has taken over.",
        instead(ZooKeeperFence._is_carried_out, _same_claim),
    ),
    bug(
        "claim-unchecked",
        "A ResourceManager takes the fence of any reign for its own.",
        always(ZooKeeperFence.take_over, "claim", "found", "=="),
    ),
    bug(
        "earlier-term-takes-over",
        "A ResourceManager that won an earlier election takes over from a later one.",
        never(ZooKeeperFence.take_over, "term", "<"),
    ),
    bug(
        "epoch-not-raised-by-the-fence",
        "Each reign has the same epoch.",
        instead(ZooKeeperFence.take_over, _in_the_first_epoch),
    ),
    bug(
        "version-not-kept",
        "A holder forgets the version that its own transaction gave the fence.",
        drop(ZooKeeperFence.commit, "content", "_version"),
    ),
    bug("digest-not-kept", "The fence has no digest of the rows.", instead(ZooKeeperFence.commit, _without_digest)),
    bug(
        "leads-from-the-answer",
        "A leader counts its session timeout from the answer, not from when it asked.",
        instead(ZooKeeperElection._lead, _from_the_answer),
    ),
    bug(
        "leads-twice-as-long",
        "A leader leads for two session timeouts after it asked.",
        instead(ZooKeeperElection._lead, _twice_as_long),
    ),
    bug(
        "leads-without-end",
        "A leader that is cut off or stopped leads on.",
        instead(ZooKeeperElection.holds, _at_any_time),
    ),
    bug(
        "end-unnoticed",
        "A leader whose session timeout is over is not deposed.",
        never(ZooKeeperElection.handle, "_leads_until_ms", ">="),
    ),
    bug(
        "end-without-a-timer",
        "A leader that is cut off is deposed only once something else happens.",
        never(ZooKeeperElection.next_deadline_ms, "_term"),
    ),
    bug(
        "owner-unchecked",
        "A candidate takes the lock of any session for its own.",
        never(ZooKeeperElection._decide, "owner", "_session_id", "!="),
    ),
    bug(
        "leads-after-resigning",
        "A leader that has resigned leads on.",
        drop(ZooKeeperElection.handle, "_campaigns", "_term"),
    ),
    bug(
        "term-of-the-session",
        "The term is that of the session, which may lead again after another.",
        instead(ZooKeeperElection._decide, _session_as_term),
    ),
)
"""Mistakes that are not among those that scripts/planted looks for: there is no ZooKeeper in the runs of plans."""
