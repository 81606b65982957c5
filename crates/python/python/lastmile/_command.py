"""The script ``lastmile``: the same command as the program of Rust."""

from __future__ import annotations

import os
import sys

from lastmile import _lastmile


def main() -> None:
    """Runs the command and ends the process with its exit code."""
    script = os.path.abspath(sys.argv[0])
    code = _lastmile.main(script, sys.argv[1:])
    # The command has written all it had to. Destructors of the interpreter would only take time.
    sys.exit(code)
