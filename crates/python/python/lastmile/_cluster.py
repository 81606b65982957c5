"""Studies on a cluster of Dask: `Study.run(folder, client=...)`.

Runs go to the workers in tasks of about a second. A worker keeps each finished run in the study's folder, which all
machines must share. So a worker, the scheduler or the study itself may be killed: the next call goes on.
"""

from __future__ import annotations

import collections
import importlib
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lastmile import _lastmile

if TYPE_CHECKING:
    from lastmile import Study

TASK_S = 1.0
"""The length of a task."""
MOST_RUNS = 1000
"""The most runs of a task."""
AHEAD = 3
"""Tasks for each thread of the workers, so that none of them waits for the client."""
PATIENCE_S = 15.0
"""The longest time without a scheduler."""
COUNT_S = 5.0
"""Time between two counts of the workers."""
HIDDEN_S = 70.0
"""The longest time for which a network file system may hide new files: NFS keeps what it knows of a folder for 60 s."""
LOOK_S = 1.0
"""Time between two looks for files that are hidden."""
GONE = "the scheduler is gone; finished runs are kept, and another call goes on"
EVERYWHERE = "install one build of lastmile for scheduler and workers"

Run = tuple[int, int]
"""A point by its number, and a seed."""


class Task(NamedTuple):
    """Runs, and everything else that a worker needs to know of a study."""

    scenario: tuple[str, str | None, str, list[str]]
    space: tuple[list[str], list[tuple[str, list[str]]]]
    """The keys, and the cases with their settings."""
    runs: list[tuple[list[str], int]]
    folder: str
    memory: str
    engine: str


def work(task: Task) -> tuple[int, float]:
    """Simulates the runs of a task on a thread of a worker. Returns the number of simulated runs, and their time."""
    began = time.monotonic()
    simulated = _lastmile.work(*task)
    return simulated, time.monotonic() - began


class Pace:
    """The number of runs that take the time of a task, from the tasks so far."""

    def __init__(self) -> None:
        self._runs = 0.0
        self._time = 0.0

    def add(self, runs: int, seconds: float) -> None:
        """Records a task. Later tasks count more, since points differ in their cost."""
        self._runs = self._runs / 2 + runs
        self._time = self._time / 2 + seconds

    def size(self) -> int:
        """The runs of the next task: one until a task has ended."""
        if self._runs <= 0:
            return 1
        return max(1, min(MOST_RUNS, int(TASK_S * self._runs / max(self._time, 1e-6))))


def carry_out(
    study: Study, folder: str, client: Any, progress: Callable[[float], object] | None, memory: str = "4 GiB"
) -> None:
    """Simulates all runs that the folder does not have, on the workers of a client or of the scheduler's address."""
    if isinstance(client, str):
        distributed: Any = importlib.import_module("distributed")
        with distributed.Client(client, set_as_default=False) as own:
            return carry_out(study, folder, own, progress, memory)
    if not all(hasattr(client, method) for method in ("submit", "nthreads", "status")):
        raise TypeError(f"client: a client of Dask or the address of its scheduler, and not {type(client).__name__}")
    scenario, points = study.parts(), study.space.points
    space = (study.space.keys, list(study.space.cases.items()))
    pace = Pace()
    ended: set[Run] = set()
    """Runs that a worker has reported."""
    before: list[Run] = []
    seen = time.monotonic()
    told = 0.0

    def task(runs: Sequence[Run]) -> Task:
        rows = [(points[point], seed) for point, seed in runs]
        return Task(scenario, space, rows, str(folder), memory, _lastmile.ENGINE)

    while True:
        done, of, missing = study.missing(folder)
        if not missing:
            return
        if missing != before:
            before, seen = missing, time.monotonic()
        wanted = [run for run in missing if run not in ended]
        if not wanted:
            if time.monotonic() - seen > HIDDEN_S:
                raise RuntimeError(f"{folder}: no run of the workers is there. Do they share this folder?")
            time.sleep(LOOK_S)
            continue
        try:
            with Round(client, wanted, task, pace) as finished:
                for runs in finished:
                    ended.update(runs)
                    done += len(runs)
                    # The study itself tells of the end, once its table is written.
                    # An interval that is not narrow yet adds runs, and a share never falls.
                    if progress is not None and told <= done / of < 1:
                        told = done / of
                        progress(told)
        except Died as died:
            _, _, missing = study.missing(folder)
            # A worker simulates the runs of a task in their order.
            point, seed = next((run for run in died.runs if run in missing), died.runs[0])
            words = ", ".join(f'{key} "{value}"' for key, value in zip(space[0], points[point], strict=True))
            raise RuntimeError(f"failed: {words}, seed {seed}: {died}; finished runs are kept") from died


class Died(Exception):
    """The workers that died during a task."""

    def __init__(self, runs: list[Run], times: int) -> None:
        super().__init__(f"{times} workers died of it" if times > 1 else "a worker died of it")
        self.runs = runs


def result(future: Any, runs: list[Run]) -> tuple[int, float]:
    """What `work` has returned for these runs."""
    distributed: Any = importlib.import_module("distributed")
    try:
        simulated, seconds = future.result()
    except distributed.KilledWorker as killed:
        raise Died(runs, killed.allowed_failures + 1) from killed
    except ModuleNotFoundError as wrong:
        raise RuntimeError(f"a worker has no {wrong.name}: {EVERYWHERE}") from wrong
    except RuntimeError as wrong:
        if "deserialization of the task graph" not in str(wrong):
            raise
        text = f"the scheduler cannot read a task, perhaps for want of lastmile: {EVERYWHERE}"
        raise RuntimeError(text) from wrong
    return simulated, seconds


class Round:
    """Runs handed to the workers. Iterates over lists of runs that are finished."""

    def __init__(self, client: Any, runs: Sequence[Run], task: Callable[[Sequence[Run]], Task], pace: Pace) -> None:
        self._client = client
        self._queue = collections.deque(runs)
        self._task = task
        self._pace = pace
        self._pending: dict[Any, list[Run]] = {}
        self._seen = time.monotonic()
        self._threads = 0
        self._counted = 0.0

    def __enter__(self) -> Round:
        return self

    def __exit__(self, *_: object) -> None:
        """Takes back the tasks that no worker has begun."""
        if self._pending and self._client.status == "running":
            self._client.cancel(list(self._pending), force=True)

    def __iter__(self) -> Round:
        return self

    def __next__(self) -> list[Run]:
        self._hand_out()
        if not self._pending:
            raise StopIteration
        ended: list[Run] = []
        for future in self._wait():
            runs = self._pending.pop(future)
            simulated, seconds = result(future, runs)
            if simulated:
                self._pace.add(simulated, seconds)
            ended += runs
        return ended

    def _count(self) -> int:
        """The threads of all workers, which may come and go."""
        if self._client.status == "running" and time.monotonic() - self._counted > COUNT_S:
            try:
                self._threads = sum(self._client.nthreads().values())
            except OSError as lost:
                raise ConnectionError(GONE) from lost
            self._counted = time.monotonic()
        return self._threads

    def _hand_out(self) -> None:
        threads = self._count() if self._queue else 0
        while self._queue and len(self._pending) < AHEAD * max(threads, 1):
            size = min(self._pace.size(), len(self._queue))
            if len(self._queue) < size * AHEAD * threads:
                # The last tasks are small, so that all workers end together.
                size = max(1, len(self._queue) // (AHEAD * threads))
            runs = [self._queue.popleft() for _ in range(size)]
            self._pending[self._client.submit(work, self._task(runs), pure=False)] = runs

    def _wait(self) -> list[Any]:
        """The tasks that have ended, at least one."""
        distributed: Any = importlib.import_module("distributed")
        while True:
            if self._client.status == "running":
                self._seen = time.monotonic()
            elif time.monotonic() - self._seen > PATIENCE_S or self._client.status == "closed":
                raise ConnectionError(GONE)
            try:
                # Of several clients of a program, this one waits.
                with self._client.as_current():
                    waited = distributed.wait(list(self._pending), timeout=1, return_when="FIRST_COMPLETED")
                return list(waited.done)
            except TimeoutError:
                continue
            except distributed.CancelledError as cancelled:
                raise ConnectionError(GONE) from cancelled
