"""Planted bugs of tokens in the ResourceManager: who may call, and new tokens of nodes."""

from __future__ import annotations

from rm.core.resource_tracker import ResourceTrackerService
from tests.mutants.bug import bug, drop, never
from wire.tokens import ClientTokenSecretManager, ClusterSecretManager, TokenSecretManager

TOKENS = (
    bug(
        "signature-unchecked",
        "A token of an AM is accepted with any signature.",
        never(TokenSecretManager.check, "compare_digest"),
    ),
    bug(
        "node-token-unchecked",
        "A NodeManager may speak for the node of any id.",
        never(ClusterSecretManager.check, "compare_digest"),
    ),
    bug(
        "nm-token-not-renewed",
        "An AM gets no new NM token for a node that has registered again.",
        drop(ResourceTrackerService.register, "forget_node_tokens"),
        plans=("reconnect-all", "random"),
    ),
    bug(
        "client-token-unchecked",
        "A client of another cluster, or without its secret, may call.",
        never(ClientTokenSecretManager.check, "compare_digest"),
    ),
)
