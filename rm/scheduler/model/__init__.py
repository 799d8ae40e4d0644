"""The scheduler's model: queues, applications, nodes, containers, requests and usage."""
