"""Measurements: run by scripts/bench, never asserted by a test."""
