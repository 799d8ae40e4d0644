"""The NodeManager's side of packed nodes: one process hosts many nodes, and one RPC carries calls of many nodes."""
