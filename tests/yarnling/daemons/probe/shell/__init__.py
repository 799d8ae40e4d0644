"""The daemon of the package probe."""
