"""Searches for the change of a configuration that meets goals: runs of a workload under many configurations."""
