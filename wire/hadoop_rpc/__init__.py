"""Hadoop's own RPC, so that Hadoop's clients can call daemons unchanged (docs/design/hadoop-rpc.md).

framing and sasl are the byte formats, session is one connection as a state machine; none of them does I/O. connection
carries a session out, server has all connections, which wire.listener accepts and knows by their first bytes.
"""
