"""Between processes: records as protobuf, errors as statuses, tokens, servers and proxies over gRPC."""

import os

# gRPC's C core writes its own lines to standard error (every GOAWAY of a server that stops); what matters of them
# comes as errors of calls. It reads this when it is first imported.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
