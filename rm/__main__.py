"""Runs one ResourceManager in this process: `python -m rm --conf DIR [-D key=value ...] [--ready-fd N]`."""

from rm.daemon import ROLE, serve
from wire.daemon_process import main

if __name__ == "__main__":
    main(ROLE, serve)
