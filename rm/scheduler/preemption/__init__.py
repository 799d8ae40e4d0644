"""Preemption: queues that are owed resources get them back from those that hold too much."""
