"""The command line: `yarnling VERB`, or `python -m yarnling VERB`."""

import signal
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line. Ctrl-C during the imports exits without a traceback, as it does later."""
    interrupted = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from yarnling.cli.app import main as run

    signal.signal(signal.SIGINT, interrupted)
    run()
