"""Progress of a run as a bar on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from lastmile._arguments import wrong

WIDTH = 40

Progress = bool | Callable[[float], object] | None
"""``True`` for a bar on standard error, or a function of the share that is done."""


class Bar:
    """A bar, redrawn in place. It is removed at the end."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, done: float) -> None:
        if done >= 1:
            sys.stderr.write("\r" + " " * (WIDTH + 30) + "\r")
        else:
            left = (time.monotonic() - self._began) * (1 - done) / done if done > 0 else 0.0
            full = round(WIDTH * done)
            sys.stderr.write(f"\rsimulating {'━' * full}{' ' * (WIDTH - full)} {done:4.0%}  {left:.0f} s left ")
        sys.stderr.flush()


def callback(progress: Progress) -> Callable[[float], object] | None:
    """The function that hears of the progress."""
    if progress is True:
        return Bar()
    if progress is None or progress is False:
        return None
    if not callable(progress):
        raise wrong("progress", "True for a bar, a function of the share that is done, or None", progress)
    return progress
