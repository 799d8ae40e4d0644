"""What the scheduler knows: queues, applications, nodes, containers, requests and usage."""
