"""What tokens call themselves: Hadoop's kinds, and two of our own (wire.tokens)."""

from __future__ import annotations

AMRM_KIND = "YARN_AM_RM_TOKEN"
NM_KIND = "NMToken"
CONTAINER_KIND = "ContainerToken"
NODE_KIND = "YarnlingNodeToken"
PACK_KIND = "YarnlingPackToken"
