"""Benchmarks, which scripts/bench runs. No test checks their figures."""
