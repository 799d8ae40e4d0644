"""Hadoop's CapacityScheduler and yarnling's in the same situations, for benchmarks/hadoop_core.py."""
