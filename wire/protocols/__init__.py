"""The RPCs of YARN's five protocols and of yarnling's own, with one module for each protocol.

A service's methods take the caller and the request's record, and return the reply's record; they raise YarnException to
refuse a call. A proxy (wire.rpc.Proxy) has the same methods without the caller.
"""
