"""Emulated containers outside of the core: the YAML table, and emulated ApplicationMasters."""
