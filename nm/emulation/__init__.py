"""The parts of emulated containers that are not pure: the YAML table, the launcher, and emulated ApplicationMasters."""
