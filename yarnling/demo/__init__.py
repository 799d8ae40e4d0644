"""The demonstration: `python -m yarnling.demo`, or scripts/demo on a fresh machine."""
