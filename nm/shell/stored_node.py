"""A node's open recovery store, with what an earlier NodeManager has stored there."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from nm.core.stored_state import RecoveredContainerStatus, RecoveredNode, RecoveredResource, RemoveStoredResource
from nm.launcher.directories import NodeDirectories, is_below
from nm.shell.recovery_store import RecoveryStore


class StoredNode(Struct, frozen=True):
    """The store and its content when it was opened."""

    store: RecoveryStore
    state: RecoveredNode

    @staticmethod
    def open(directory: Path, directories: NodeDirectories) -> StoredNode:
        """Open the store in `directory`, and read it. Copies of files that are gone are left out and removed from it.

        Raises StoreDamaged and YarnException, naming the directory and a remedy.
        """
        store = RecoveryStore.open(directory)
        try:
            state = store.load()
            kept = tuple(resource for resource in state.resources if _exists(resource, directories))
            if kept != state.resources:
                store.write(RemoveStoredResource(one.path) for one in state.resources if one not in kept)
        except BaseException:
            store.close()
            raise
        return StoredNode(store, replace(state, resources=kept))

    @property
    def is_new(self) -> bool:
        """True if nothing was stored: the store was just made."""
        return self.state == RecoveredNode()

    @property
    def containers(self) -> frozenset[str]:
        """The ids of the containers whose processes may run."""
        return frozenset(
            str(container.token.container_id)
            for container in self.state.containers
            if container.progress.status is RecoveredContainerStatus.LAUNCHED
        )


def _exists(resource: RecoveredResource, directories: NodeDirectories) -> bool:
    """True if the copy is there, in a directory that the node still has (ResourceLocalizationService)."""
    return any(is_below(resource.path, local) for local in directories.local_dirs) and os.path.lexists(resource.path)
