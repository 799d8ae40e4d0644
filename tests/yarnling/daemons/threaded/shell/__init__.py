"""The daemon of the package threaded."""
