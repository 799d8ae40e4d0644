"""Carries out the events of nodes, applications and AMs: Hadoop's scheduler events and the allocate call."""
