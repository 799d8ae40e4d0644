"""Explains why a request is not served, why a container is where it is, and what would help."""
