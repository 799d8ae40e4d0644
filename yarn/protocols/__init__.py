"""Requests and replies of YARN's five protocols, one module a protocol."""
