"""Reports to clients about applications, queues and nodes: pure functions over a core's context."""
