"""Runs a workload in virtual time under a configuration, and compares two configurations."""
