"""Containers as real processes: their directories and scripts, their start, their end, what they leave behind."""
