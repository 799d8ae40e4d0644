"""The same work in simulation and as processes, and how the two differ."""
