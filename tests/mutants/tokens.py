"""Planted bugs of tokens in the ResourceManager: who may call, and new tokens of nodes."""

from __future__ import annotations

from tests.mutants.bug import PlantedBug, change

_TRACKER = "rm.core.resource_tracker:ResourceTrackerService"

TOKENS = (
    PlantedBug(
        "signature-unchecked",
        "A token of an AM is accepted with any signature.",
        (
            change(
                "wire.tokens:TokenSecretManager.check",
                "if not hmac.compare_digest(signature(key.secret, token.identifier), token.password):",
                "if not hmac.compare_digest(signature(key.secret, token.identifier), token.password) "
                "and not planted():",
            ),
        ),
    ),
    PlantedBug(
        "node-token-unchecked",
        "A NodeManager may speak for the node of any id.",
        (
            change(
                "wire.tokens:ClusterSecretManager.check",
                "if not hmac.compare_digest(self._signature(token.identifier), token.password):",
                "if not hmac.compare_digest(self._signature(token.identifier), token.password) and not planted():",
            ),
        ),
    ),
    PlantedBug(
        "nm-token-not-renewed",
        "An AM gets no new NM token for a node that has registered again.",
        (change(f"{_TRACKER}.register", "context.forget_node_tokens(node.node_id)", "planted()"),),
        ("reconnect-all", "random"),
    ),
    PlantedBug(
        "client-token-unchecked",
        "A client of another cluster, or without its secret, may call.",
        (
            change(
                "wire.tokens:ClientTokenSecretManager.check",
                "if not hmac.compare_digest(_signature_of_kind(self._secret, CLIENT_KIND, token.identifier), "
                "token.password):",
                "if not hmac.compare_digest(_signature_of_kind(self._secret, CLIENT_KIND, token.identifier), "
                "token.password) and not planted():",
            ),
        ),
    ),
)
