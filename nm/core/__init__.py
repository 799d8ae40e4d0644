"""The pure core of a NodeManager: it handles one event at a given time and returns the effects to carry out.

Effects are data; nm.shell carries them out.
"""

from nm.core.node_manager import NodeManagerCore

__all__ = ["NodeManagerCore"]
