"""Places containers when a node sends its heartbeat: visit, allocate or reserve, commit."""
