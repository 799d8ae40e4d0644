"""Communication between processes: protobuf messages, errors, tokens, servers and proxies over gRPC."""

import os

# gRPC's C core writes lines to standard error (a server that stops, a port in use). The important ones are also raised
# as errors of calls. gRPC reads this variable when it is first imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
