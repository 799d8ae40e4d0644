"""A cluster on this machine: its processes, its directory, its state, and the client."""
