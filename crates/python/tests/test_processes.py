"""Threads and forks: none that outlives the interpreter, or that is forked in the middle of a run, breaks anything."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from conftest import DOWNLOAD

PREAMBLE = f"""
import os, sys, threading, time
import lastmile as lm
TEXT = '''{DOWNLOAD}'''
LINE = lm.loads(TEXT)
ENDLESS = LINE.set("duration", "200 h").set("record.series", False)

class Fifo:
    def __init__(self):
        self.packets = []
    def enqueue(self, packet, now):
        self.packets.append(packet)
    def dequeue(self, now):
        return self.packets.pop(0) if self.packets else None
"""


def run(script: str, seconds: float = 120) -> str:
    """What a program prints that ends with code 0 in this time."""
    began = time.monotonic()
    command = [sys.executable, "-X", "faulthandler", "-c", PREAMBLE + script]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    assert ended.returncode == 0, (ended.returncode, ended.stdout, ended.stderr)
    assert "Fatal" not in ended.stderr and "panicked" not in ended.stderr, ended.stderr
    assert time.monotonic() - began < seconds
    return ended.stdout


def test_a_fork_after_a_run_simulates_too() -> None:
    run("""
text = lm.run(LINE).json()
child = os.fork()
if child == 0:
    os._exit(0 if lm.run(LINE).json() == text and len(lm.compare(LINE, policy=[None, "cake"])) == 2 else 1)
assert os.waitpid(child, 0)[1] == 0
""")


@pytest.mark.parametrize("queues", ["None", "{'up': Fifo}"])
def test_a_fork_in_the_middle_of_a_run_simulates_too(queues: str) -> None:
    run(f"""
class Enough(Exception):
    pass

def stop(done):
    if over.is_set():
        raise Enough

def simulate():
    try:
        lm.run(ENDLESS, progress=stop, queues={queues})
    except Enough:
        pass

over = threading.Event()
thread = threading.Thread(target=simulate)
thread.start()
time.sleep(0.2)
for _ in range(5):
    child = os.fork()
    if child == 0:
        os._exit(0 if lm.run(LINE, queues={queues}).summary["flows"] else 1)
    assert os.waitpid(child, 0)[1] == 0
over.set()
thread.join()
""")


@pytest.mark.parametrize(
    "call",
    [
        "lm.run(ENDLESS)",
        "lm.run(ENDLESS, queues={'up': Fifo})",
        "lm.run(ENDLESS, progress=lambda done: None)",
        "lm.compare(ENDLESS, vary={'seed': range(4)})",
        "[lm.run(LINE, queues={'up': Fifo}) for _ in range(10_000)]",
        "lm.run(ENDLESS, progress=lambda done: time.sleep(3600))",
    ],
)
def test_threads_that_simulate_at_the_end_of_the_interpreter_break_nothing(call: str) -> None:
    assert (
        run(f"""
for _ in range(3):
    threading.Thread(target=lambda: {call}, daemon=True).start()
time.sleep(0.3)
print("over")
""")
        == "over\n"
    )


def test_what_runs_at_the_end_of_the_interpreter_may_simulate() -> None:
    printed = run("""
import atexit
threading.Thread(target=lambda: lm.run(ENDLESS), daemon=True).start()
# Called in the order opposite to that in which they are registered: this one after the end of the threads' runs.
atexit.unregister(lm._ending.end_simulations)
atexit.register(lambda: print("after", lm.run(LINE, seed=7).summary["seed"]))
lm._ending.prepare()
atexit.register(lambda: print("before", lm.run(LINE, seed=6).summary["seed"]))
time.sleep(0.1)
""")
    assert printed == "before 6\nafter 7\n"


def test_a_child_forked_beside_a_run_does_not_wait_for_it() -> None:
    run("""
threading.Thread(target=lambda: lm.run(ENDLESS), daemon=True).start()
time.sleep(0.2)
child = os.fork()
if child == 0:
    began = time.monotonic()
    lm._ending.end_simulations()
    # It would wait for two seconds.
    os._exit(0 if time.monotonic() - began < 2 else 1)
assert os.waitpid(child, 0)[1] == 0
""")


def test_threads_share_a_scenario_and_a_result() -> None:
    run("""
run = lm.run(LINE)
found = []
def read():
    for _ in range(50):
        found.append((len(run.series), run.summary["seed"], LINE.set("seed", 2).seed, run.json()))
threads = [threading.Thread(target=read) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(found) == 400 and len(set(found)) == 1
""")


def test_several_threads_may_run_queues_of_python() -> None:
    run("""
texts = {}
def simulate(seed):
    texts[seed] = lm.run(LINE.set("seed", seed), queues={"up": Fifo, "down": Fifo}).json()
threads = [threading.Thread(target=simulate, args=(seed,)) for seed in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert texts == {seed: lm.run(LINE.set("seed", seed), queues={"up": Fifo, "down": Fifo}).json() for seed in range(4)}
""")


def test_an_interpreter_without_the_lock_keeps_it_off() -> None:
    enabled = getattr(sys, "_is_gil_enabled", lambda: True)
    if enabled():
        pytest.skip("this Python has the interpreter's lock")
    import lastmile

    # An extension module that needs the lock would have turned it on.
    assert lastmile and not enabled()
