"""Rounds of a study on a cluster, without one: files of a network file system that appear late."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lastmile as lm
import lastmile._cluster
import pytest
from lastmile import cluster as command
from lastmile._cluster import Run, Task


class Client:
    """What `carry_out` asks of a client."""

    status = "running"

    def submit(self) -> None: ...
    def nthreads(self) -> None: ...


class Round:
    """Simulates its runs at once."""

    handed: list[Run] = []

    def __init__(self, _client: object, runs: Sequence[Run], task: Callable[[Sequence[Run]], Task], _: object) -> None:
        self._runs, self._task = list(runs), task

    def __enter__(self) -> Iterator[list[Run]]:
        Round.handed += self._runs
        lastmile._cluster.work(self._task(self._runs))
        return iter([self._runs])

    def __exit__(self, *_: object) -> None: ...


class Hidden:
    """A study whose finished runs stay missing for a while after they are first asked for."""

    def __init__(self, study: lm.Study, hidden_s: float) -> None:
        self._study, self._hidden_s = study, hidden_s
        self._first: tuple[int, int, list[Run]] | None = None
        self._until = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)

    def missing(self, folder: str) -> tuple[int, int, list[Run]]:
        if self._first is None:
            self._first, self._until = self._study.missing(folder), time.monotonic() + self._hidden_s
        return self._first if time.monotonic() < self._until else self._study.missing(folder)


@pytest.fixture(autouse=True)
def rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lastmile._cluster, "Round", Round)
    monkeypatch.setattr(lastmile._cluster, "LOOK_S", 0.05)
    monkeypatch.setattr(Round, "handed", [])


def test_runs_that_appear_late_are_waited_for_and_run_once(download: lm.Scenario, tmp_path: Path) -> None:
    study = lm.study(download, {"access.policy": [None, "cake"]}, seeds=2, duration="1 s")
    hidden: Any = Hidden(study, 2.0)
    lastmile._cluster.carry_out(hidden, str(tmp_path), Client(), None)
    assert study.status(tmp_path) == (4, 4)
    assert sorted(Round.handed) == [(0, 1), (0, 2), (1, 1), (1, 2)], "what a worker has reported runs once"


def test_runs_that_never_appear_are_an_error(
    download: lm.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lastmile._cluster.HIDDEN_S > 60, "NFS may hide new files for 60 s"
    monkeypatch.setattr(lastmile._cluster, "HIDDEN_S", 0.3)
    study: Any = Hidden(lm.study(download, {"access.policy": [None]}, duration="1 s"), 1e9)
    with pytest.raises(RuntimeError, match="share this folder"):
        lastmile._cluster.carry_out(study, str(tmp_path), Client(), None)
    assert Round.handed == [(0, 1)]


@pytest.mark.parametrize(("result", "code"), [(2, 0), (1, 1), (ValueError("no"), 2), (RuntimeError("no"), 2)])
def test_exit_codes_are_those_of_the_command(
    result: int | Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Table(list[int]):
        def text(self) -> str:
            return "means\n"

    def run(folder: str, **_: object) -> Table:
        if isinstance(result, Exception):
            raise result
        return Table(range(result))

    study = SimpleNamespace(run=run, status=lambda folder: (2, 2))
    monkeypatch.setattr("lastmile._lastmile.study_file", lambda path: study)
    client = SimpleNamespace(Client=lambda *_, **__: contextlib.nullcontext())
    monkeypatch.setitem(sys.modules, "distributed", client)
    assert command.main(["tcp://127.0.0.1:1", "study.toml", "--out", "out"]) == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (("means\n", "") if code < 2 else ("", "error: no\n"))
