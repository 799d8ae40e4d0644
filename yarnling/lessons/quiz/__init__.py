"""Questions about states of a cluster that are drawn from a seed. The answers come from running the cores on."""
