"""Proxies: YARN's five protocols, and our own, as async methods over records, one module a protocol.

Who speaks one protocol imports no other: a master's start is mostly imports.
"""
