"""Scenarios and commands that the tests share."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lastmile as lm
import polars
import pytest

# Programs that are started in the background may ignore interrupts, and Python then keeps that.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[3]

DOWNLOAD = """
name = "a download"
duration = "5 s"
[access]
down = { rate = "8 Mbit/s" }
up = { rate = "512 kbit/s" }
[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
[[traffic]]
name = "ping"
kind = "ping"
"""


Command = Callable[..., subprocess.CompletedProcess[str]]


def frame(stream: Any) -> polars.DataFrame:
    """A data frame of anything with a stream of Arrow, which the types of Polars do not know."""
    return polars.DataFrame(stream)


@pytest.fixture
def download() -> lm.Scenario:
    """A download of five seconds, with a ping."""
    return lm.loads(DOWNLOAD)


@pytest.fixture
def endless() -> lm.Scenario:
    """A run that nobody waits for."""
    return lm.loads(DOWNLOAD).set("duration", "200 h").set("record.series", False)


@pytest.fixture
def lastmile() -> Command:
    """The command, run from the root of the repository."""
    script = os.environ["LASTMILE_COMMAND"]

    def run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [script, *arguments], cwd=cwd, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True
        )

    return run


@pytest.fixture
def at_root(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of the repository, from which paths are named."""
    monkeypatch.chdir(ROOT)
    return ROOT
