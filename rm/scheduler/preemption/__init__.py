"""Preemption: queues below their guarantee get resources back from queues above theirs."""
