"""Stepping: a small simulated run one event at a time, back again, and on with a change."""
