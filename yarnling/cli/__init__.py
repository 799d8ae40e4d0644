"""The command line: `yarnling VERB`, or `python -m yarnling VERB`."""

import signal
import sys
from typing import NoReturn

from yarnling.cluster.own_packages import PackageShadowedError, check_packages

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line. Ctrl-C during the imports exits without a traceback, as it does later."""
    interrupted = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        check_packages()
    except PackageShadowedError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    from yarnling.cli.app import main as run

    signal.signal(signal.SIGINT, interrupted)
    run()
