"""Checks of what always holds in the scheduler: of its state, and of each decision."""
