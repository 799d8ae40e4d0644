"""The kinds of tokens: Hadoop's, and three of our own (wire.tokens)."""

from __future__ import annotations

AMRM_KIND = "YARN_AM_RM_TOKEN"
NM_KIND = "NMToken"
CONTAINER_KIND = "ContainerToken"
NODE_KIND = "YarnlingNodeToken"
PACK_KIND = "YarnlingPackToken"
CLIENT_KIND = "YarnlingClientToken"
