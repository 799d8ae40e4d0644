"""Several ResourceManagers, of which one is active: election, fencing, and what a standby answers."""
