"""The NodeManager's core: pure, an event and the time in, effects out."""

from nm.core.node_manager import NodeManagerCore

__all__ = ["NodeManagerCore"]
