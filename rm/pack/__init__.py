"""The ResourceManager's side of packed nodes: many NodeManagers share a process, and their calls are batched."""
