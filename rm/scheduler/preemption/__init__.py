"""Preemption: queues below their guarantees get resources back from queues above theirs."""
