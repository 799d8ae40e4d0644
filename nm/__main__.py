"""Runs one NodeManager in this process: `python -m nm --conf DIR [-D key=value ...] [--ready-fd N]`."""

from nm.daemon import ROLE, serve
from wire.daemon_process import main

if __name__ == "__main__":
    # A NodeManager reads its configuration once, so it has no use for `reload`.
    main(ROLE, lambda conf, ready, reload=None: serve(conf, ready))
