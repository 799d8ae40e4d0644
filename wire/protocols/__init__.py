"""The RPCs of YARN's five protocols, one module a protocol, and what a server must answer.

A handler's methods take the caller and the request's record and return the reply's record; they raise YarnException
to refuse. A proxy (wire.proxies) has the same methods without the caller.
"""
