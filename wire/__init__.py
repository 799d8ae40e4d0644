"""Between processes: records as protobuf, errors as statuses, tokens, servers and proxies over gRPC."""

import os

# gRPC's C core writes lines of its own to standard error (a server that stops, a port in use); what matters of them
# comes as errors of calls. It reads this when it is first imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
