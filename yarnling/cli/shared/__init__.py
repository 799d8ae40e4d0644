"""Parts that all commands share: arguments, the connection to a cluster, and output."""
