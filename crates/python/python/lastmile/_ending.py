"""The end of the interpreter while threads simulate."""

from __future__ import annotations

import atexit
import os

from lastmile._lastmile import end_simulations, forget_simulations


def prepare() -> None:
    """Let threads that simulate end before the interpreter does."""
    atexit.register(end_simulations)
    os.register_at_fork(after_in_child=forget_simulations)
