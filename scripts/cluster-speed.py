"""The speed of a study by engine: one thread and two of the pool, one worker and two of a cluster of Dask.

`scripts/python-tests.sh --run scripts/cluster-speed.py` prints the table. Every engine simulates equal runs of about a
second, each in an empty folder; the order changes from round to round, and the least time of each counts. On a machine
whose speed varies, times of one round cannot be compared; *busy* can: the share of the workers' time that their runs
took, with the last runs, for which one worker waits.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lastmile as lm
import lastmile._cluster

distributed: Any = importlib.import_module("distributed")

ROUNDS = 3
RUNS = 24
RUN_S = 1.0
LINE = """
duration = "{duration} s"
[access]
encapsulation = "ethernet"
down = {{ rate = "50 Mbit/s", delay = "10 ms" }}
up = {{ rate = "5 Mbit/s", delay = "10 ms" }}
[[traffic]]
kind = "bulk"
direction = "down"
count = 4
[[traffic]]
kind = "bulk"
direction = "up"
"""


def calibrated() -> int:
    """The simulated seconds of a run that takes about a second."""
    began = time.monotonic()
    lm.run(lm.loads(LINE.format(duration=20)), seed=1)
    return max(1, round(20 * RUN_S / (time.monotonic() - began)))


@contextlib.contextmanager
def cluster(workers: int, folder: str) -> Iterator[Any]:
    """A client of workers with one thread each, in processes of their own."""
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=folder
        ) as local,
        distributed.Client(local) as client,
    ):
        client.wait_for_workers(workers)
        yield client


def timed(study: lm.Study, folder: Path, **options: Any) -> float:
    began = time.monotonic()
    assert len(study.run(folder, **options)) == RUNS
    return time.monotonic() - began


class Busy(lastmile._cluster.Pace):
    """The pace of tasks, and the time of all of them."""

    seconds = 0.0

    def add(self, runs: int, seconds: float) -> None:
        super().add(runs, seconds)
        Busy.seconds += seconds


def main() -> None:
    setattr(lastmile._cluster, "Pace", Busy)
    study = lm.study(
        lm.loads(LINE.format(duration=calibrated())), {"access.up.delay": ["10 ms", "11 ms"]}, seeds=RUNS // 2
    )
    best: dict[str, float] = {}
    busy: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(ROUNDS):
            for engine in sorted(("pool", "dask"), reverse=turn % 2 == 1):
                for number in (1, 2):
                    name, folder = f"{engine} {number}", Path(scratch) / f"{turn}-{engine}-{number}"
                    if engine == "pool":
                        seconds = timed(study, folder, threads=number)
                    else:
                        with cluster(number, scratch) as client:
                            Busy.seconds = 0.0
                            seconds = timed(study, folder, client=client)
                            busy[number] = max(busy.get(number, 0.0), Busy.seconds / seconds / number)
                    best[name] = min(best.get(name, seconds), seconds)
    print(f"{RUNS} runs of about {RUN_S:g} s, {os.cpu_count()} processors; least of {ROUNDS} rounds\n")
    print("| engine | one, s | two, s | two against one |\n| --- | ---: | ---: | ---: |")
    for engine, label in (("pool", "threads of the pool"), ("dask", "workers of Dask")):
        one, two = best[f"{engine} 1"], best[f"{engine} 2"]
        print(f"| {label} | {one:.1f} | {two:.1f} | {one / two:.2f} |")
    print(f"\nDask: {busy[1]:.0%} of one worker's time busy, {busy[2]:.0%} of that of two.")
    print(f"Two workers of Dask reach {best['pool 2'] / best['dask 2']:.0%} of the speed of two threads.")


if __name__ == "__main__":
    main()
