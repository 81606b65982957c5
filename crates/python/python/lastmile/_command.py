"""The script ``lastmile``: the same command as the program of Rust."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig

from lastmile import _lastmile


def main() -> None:
    """Runs the command and ends the process with its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # The command has its own answer to Ctrl-C, and the interpreter would add a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = _lastmile.main(_script(), sys.argv[1:])
    # The command has written all it had to. Destructors of the interpreter would only take time.
    sys.exit(code)


def _script() -> str:
    """The path of the script, which `python -m` is not: systemd and a supervisor start it."""
    started = os.path.abspath(sys.argv[0])
    if os.path.basename(started) != "__main__.py":
        return started
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    scripts = [os.path.join(sysconfig.get_path("scripts", scheme), "lastmile") for scheme in schemes]
    return next((script for script in scripts if os.path.exists(script)), scripts[0])
