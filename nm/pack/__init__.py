"""The NodeManager's side of packed nodes: many nodes in one process, and in one call."""
