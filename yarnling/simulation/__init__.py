"""A cluster in virtual time: the cores of its daemons and AMs, with a simulated network, processes and store."""
