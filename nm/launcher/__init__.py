"""Runs containers as real processes: makes their directories and scripts, starts and ends them, and cleans up."""
