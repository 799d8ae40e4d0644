"""What clients may know of applications, queues and nodes: pure functions over a core's context."""
