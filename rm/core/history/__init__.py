"""Notes of what the cluster was like in the last minutes and hours: curves of use, and why applications waited."""
