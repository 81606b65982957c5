"""Studies on a cluster of Dask: results of the built-in pool, whichever process is killed."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lastmile as lm
import lastmile._cluster
import polars
import pytest
from lastmile import cluster as command

from conftest import DOWNLOAD
from test_study import files

distributed: Any = importlib.import_module("distributed")

# Processes that are killed leave sockets and tasks behind.
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::DeprecationWarning"
    ),
    # Minutes, with processes that are killed.
    pytest.mark.skipif(os.environ.get("LASTMILE_LONG") != "1", reason="takes minutes: LASTMILE_LONG=1"),
]

STUDY = """
scenario = "line.toml"
duration = "20 s"
seeds = 6
[grid]
access.up.rate = { from = "128 kbit/s", to = "2 Mbit/s", count = 8, scale = "log" }
access.policy = ["none", "cake"]
"""
RUNS = 6 * 8 * 2


class Cluster:
    """A scheduler and two workers, each a process that can be killed."""

    def __init__(self, folder: Path, before: str = "") -> None:
        """`before` is code that the processes run first."""
        self._folder = folder
        self._code = f"{before}\nfrom dask.cli import run_cli\nrun_cli()"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.scheduler = self._start("scheduler", "--host", self.address, "--no-dashboard", "--no-jupyter")
        self.workers = [self.worker(), self.worker()]

    def worker(self) -> subprocess.Popen[bytes]:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self._folder))
        return self._start("worker", self.address, *options)

    def _start(self, what: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen([sys.executable, "-c", self._code, what, *arguments], stdout=log, stderr=log)

    def mend(self) -> None:
        """Starts processes in place of those that have ended."""
        if self.scheduler.poll() is not None:
            self.scheduler = self._start("scheduler", "--host", self.address, "--no-dashboard", "--no-jupyter")
        self.workers = [worker if worker.poll() is None else self.worker() for worker in self.workers]

    def end(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@contextlib.contextmanager
def started(folder: Path, before: str = "") -> Iterator[Cluster]:
    (folder / "dask").mkdir()
    cluster = Cluster(folder / "dask", before)
    try:
        yield cluster
    finally:
        cluster.end()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with started(tmp_path) as cluster:
        yield cluster


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study file and its scenario."""
    (tmp_path / "line.toml").write_text(DOWNLOAD)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a run, and the table."""
    runs = {path.name: path.read_bytes() for path in (folder / "runs").glob("*/[!.]*")}
    return {"table": (folder / "table.parquet").read_bytes(), **runs}


def test_results_are_those_of_the_pool_byte_for_byte(cluster: Cluster, study: Path, tmp_path: Path) -> None:
    told: list[float] = []
    lm.study(study).run(tmp_path / "pool")
    with distributed.Client(cluster.address) as client:
        client.wait_for_workers(2, timeout=60)
        table = lm.study(study).run(tmp_path / "cluster", client=client, progress=told.append)
        assert len(table) == RUNS and lm.study(study).status(tmp_path / "cluster") == (RUNS, RUNS)
        assert told == sorted(told) and told[-1] == 1
        before = files(tmp_path / "cluster")
        assert len(lm.study(study).run(tmp_path / "cluster", client=client)) == RUNS
        assert files(tmp_path / "cluster") == before, "nothing runs twice"
    assert contents(tmp_path / "pool") == contents(tmp_path / "cluster")


def test_seeds_are_added_in_rounds_and_files_of_the_scenario_are_found(
    cluster: Cluster, tmp_path: Path, at_root: Path
) -> None:
    # The scenario names a trace.
    line = lm.load(at_root / "scenarios/lte-trace.toml")
    space = {"access.backbone.delay": ["5 ms", "20 ms"]}
    study = lm.study(line, space, seeds=lm.until(ci=1e-6, at_least=4, at_most=7), duration="3 s")
    study.run(tmp_path / "pool")
    # The address of the scheduler makes a client.
    assert len(study.run(tmp_path / "cluster", client=cluster.address)) == 14
    assert contents(tmp_path / "pool") == contents(tmp_path / "cluster")


def test_the_module_runs_a_study_file(
    cluster: Cluster, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([cluster.address, str(study), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "access.up.rate" in printed.splitlines()[0] and "± " in printed
    study.write_text(STUDY.replace("2 Mbit/s", "2 furlongs"))
    assert command.main([cluster.address, str(study), "--out", str(tmp_path / "out")]) == 2
    assert "study.toml:6:" in capsys.readouterr().err


def test_a_worker_of_another_build_and_a_folder_of_its_own_are_errors(
    cluster: Cluster, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with distributed.Client(cluster.address) as client:
        with monkeypatch.context() as patch:
            patch.setattr("lastmile._lastmile.ENGINE", "another")
            with pytest.raises(RuntimeError, match="install one build everywhere"):
                lm.study(study).run(tmp_path / "one", client=client)
        with monkeypatch.context() as patch:
            made = lastmile._cluster.Task
            elsewhere = str(tmp_path / "elsewhere")
            patch.setattr(lastmile._cluster, "Task", lambda *parts: made(*parts)._replace(folder=elsewhere))
            patch.setattr(lastmile._cluster, "HIDDEN_S", 2.0)
            with pytest.raises(RuntimeError, match="share this folder"):
                lm.study(study).run(tmp_path / "two", client=client)


def test_workers_that_die_of_a_run_are_an_error_that_names_it(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # By default four workers die.
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    monkeypatch.setattr(lastmile._cluster, "work", lambda _: os.abort())
    with started(tmp_path) as cluster:
        assert command.main([cluster.address, str(study), "--out", str(tmp_path / "out")]) == 2
    point = r'access.up.rate "[^"]*", access.policy "[^"]*", seed \d'
    wanted = rf"error: failed: {point}: a worker died of it; finished runs are kept\n"
    assert re.fullmatch(wanted, capsys.readouterr().err)


def test_a_scheduler_without_lastmile_is_an_error_that_says_so(study: Path, tmp_path: Path) -> None:
    wanted = "install one build of lastmile for scheduler and workers"
    with started(tmp_path, "import sys; sys.modules['lastmile'] = None") as cluster:
        with distributed.Client(cluster.address) as client, pytest.raises(RuntimeError, match=wanted):
            lm.study(study).run(tmp_path / "out", client=client)


def test_a_scheduler_that_is_gone_is_an_error_and_the_study_goes_on(
    cluster: Cluster, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lastmile._cluster, "PATIENCE_S", 2.0)

    def kill(done: float) -> None:
        cluster.scheduler.kill()
        cluster.scheduler.wait()

    client = distributed.Client(cluster.address)
    with pytest.raises(ConnectionError, match="another call goes on"):
        lm.study(study).run(tmp_path / "out", client=client, progress=kill)
    with contextlib.suppress(TimeoutError, OSError):
        client.close(timeout=1)
    seen = files(tmp_path / "out")
    assert 0 < len(seen) < RUNS
    assert len(lm.study(study).run(tmp_path / "out")) == RUNS
    assert seen.items() <= files(tmp_path / "out").items()


def test_whichever_process_is_killed_no_finished_run_is_lost(cluster: Cluster, study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY.replace("seeds = 6", "seeds = 24"))
    moments = random.Random(20)
    out = tmp_path / "out"
    arguments = [sys.executable, "-m", "lastmile.cluster", cluster.address, str(study), "--out", str(out)]
    seen: dict[str, int] = {}
    kills = {"study": 0, "scheduler": 0, "worker": 0}
    deadline = time.monotonic() + 240
    child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while time.monotonic() < deadline and child.poll() != 0:
        cluster.mend()
        if child.poll() is not None:
            child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + moments.uniform(0.1, 1.5)
        # Only processes that have begun to work are worth a kill.
        while child.poll() is None and (time.monotonic() < until or len(files(out)) <= len(seen)):
            time.sleep(0.01)
        if child.poll() is None:
            victim = min(kills, key=lambda name: kills[name])
            worker = moments.choice(cluster.workers)
            process = {"study": child, "scheduler": cluster.scheduler, "worker": worker}[victim]
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills[victim] += 1
            if victim == "scheduler":
                # Without a scheduler, neither workers nor the study have work.
                for other in [child, *cluster.workers]:
                    other.kill()
                    other.wait()
        now = files(out)
        assert seen.items() <= now.items(), "a finished run was lost, or ran twice"
        seen = now
    assert child.returncode == 0 and len(seen) == 4 * RUNS and min(kills.values()) >= 1, (kills, len(seen))
    for name in seen:
        assert polars.read_parquet(out / "runs" / name[:2] / name).columns == ["measure", "value"]
    lm.study(study).run(tmp_path / "pool")
    assert contents(tmp_path / "pool") == contents(out)
