"""Workloads: applications with the times of their submission and what they ask for; readers of trace formats."""
