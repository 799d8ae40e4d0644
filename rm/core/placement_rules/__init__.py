"""Hadoop's mapping rules, which choose the queue of a submitted application. They know queues by name only."""
