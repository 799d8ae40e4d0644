"""Computes how much queues, users and applications may use, and books what they use."""
