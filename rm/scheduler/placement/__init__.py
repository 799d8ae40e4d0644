"""How a container is placed when a node sends its heartbeat: visit, allocate or reserve, commit."""
