"""The script ``lastmile``: the same command as the program of Rust."""

from __future__ import annotations

import os
import signal
import sys

from lastmile import _lastmile


def main() -> None:
    """Runs the command and ends the process with its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # The command has its own answer to Ctrl-C, and the interpreter would add a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    script = os.path.abspath(sys.argv[0])
    code = _lastmile.main(script, sys.argv[1:])
    # The command has written all it had to. Destructors of the interpreter would only take time.
    sys.exit(code)
