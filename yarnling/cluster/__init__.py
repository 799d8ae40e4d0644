"""A cluster on this machine: its processes, its directory, its state file, and its client."""
