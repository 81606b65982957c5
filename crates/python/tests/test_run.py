"""Runs: equal to those of the command, interruptible, and what they return."""

from __future__ import annotations

import concurrent.futures
import json
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lastmile as lm
import pytest

from conftest import DOWNLOAD, ROOT, Command, frame

SCENARIOS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "scenarios").rglob("*.toml"))
STARVED = "scenarios/upload-starves-download.toml"
QUICK = ["--duration", "2 s", "--seed", "3"]
LONG = os.environ.get("LASTMILE_LONG") is not None


def without_timing(text: str) -> str:
    """The text of --json without its last key, which depends on the machine."""
    at = text.index(',\n  "timing": {')
    return text[:at] + "\n}\n"


@pytest.mark.parametrize("path", SCENARIOS if LONG else SCENARIOS[::4])
def test_a_summary_is_that_of_the_command_byte_for_byte(path: str, at_root: Path, lastmile: Command) -> None:
    command = lastmile("run", path, *([] if LONG else QUICK), "--json")
    try:
        run = lm.run(path) if LONG else lm.run(path, seed=3, duration="2 s")
    except lm.ScenarioError as error:
        assert command.returncode == 2 and command.stderr.endswith(f"{error}\n")
        return
    assert run.json() == without_timing(command.stdout)
    assert run.summary == json.loads(run.json())
    assert json.loads(run.json(timing=True))["timing"]["wall_s"] == run.wall_s


def test_files_are_those_of_the_command(at_root: Path, tmp_path: Path, lastmile: Command) -> None:
    assert lastmile("run", STARVED, *QUICK, "--out", str(tmp_path / "command")).returncode == 0
    run = lm.run(STARVED, seed=3, duration="2 s")
    written = run.save(tmp_path / "python")
    assert sorted(path.name for path in written) == ["report.html", "series.parquet", "summary.json"]
    for path in written:
        assert path.read_bytes() == (tmp_path / "command" / path.name).read_bytes(), path.name
    assert run.html() == (tmp_path / "python" / "report.html").read_text()


def test_a_policy_is_that_of_the_command(at_root: Path, lastmile: Command) -> None:
    command = lastmile("run", STARVED, *QUICK, "--policy", "cake", "--json")
    assert lm.run(STARVED, seed=3, duration="2 s", policy="cake").json() == without_timing(command.stdout)


def test_equal_seeds_give_equal_bytes_and_others_differ(download: lm.Scenario) -> None:
    assert lm.run(download, seed=1).json() == lm.run(download, seed=1).json() != lm.run(download, seed=2).json()


def test_limits_are_the_words_of_the_summary(download: lm.Scenario) -> None:
    run = lm.run(download)
    flow = run.summary["flows"][0]
    assert run.limits("download") == flow["explanation"] != ""
    with pytest.raises(KeyError, match="did you mean .*download"):
        run.limits("downlaod")


def test_progress_grows_to_one(download: lm.Scenario) -> None:
    heard: list[float] = []
    lm.run(download.set("duration", "60 s"), progress=heard.append)
    assert heard == sorted(heard) and heard[-1] == 1.0 and 0.0 < heard[0]


def test_a_bar_of_progress_is_on_standard_error_and_goes(
    download: lm.Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    lm.run(download, progress=True)
    drawn = capsys.readouterr()
    assert drawn.out == "" and drawn.err.endswith(" \r")


def test_a_callback_that_raises_ends_the_run_with_its_exception(endless: lm.Scenario) -> None:
    class Enough(Exception):
        pass

    def stop(done: float) -> None:
        raise Enough(done)

    with pytest.raises(Enough):
        lm.run(endless, progress=stop)


def interrupted(call: Callable[[], object]) -> None:
    """Ctrl-C ends the call in the middle."""
    at: list[float] = []

    def interrupt() -> None:
        at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    with pytest.raises(KeyboardInterrupt):
        # Within: on a busy machine the time may be over before the call begins.
        timer.start()
        call()
    timer.join()
    assert time.monotonic() - at[0] < 5


def test_ctrl_c_stops_a_run(endless: lm.Scenario) -> None:
    interrupted(lambda: lm.run(endless))


def test_ctrl_c_stops_a_comparison(endless: lm.Scenario) -> None:
    interrupted(lambda: lm.compare(endless, vary={"seed": range(8)}))


def test_ctrl_c_stops_a_reproduction_inside_of_a_simulation() -> None:
    # Minutes for a part, of which the first simulation takes many seconds.
    interrupted(lambda: lm.reproduce("ano2002/1", threads=1))


def test_a_callback_that_raises_ends_the_reproduction() -> None:
    class Enough(Exception):
        pass

    def stop(done: float) -> None:
        raise Enough(done)

    with pytest.raises(Enough, match=r"^0\.0$"):
        lm.reproduce("ano2002/1", progress=stop)


def test_other_threads_run_during_a_simulation(download: lm.Scenario) -> None:
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    run = lm.run(download.set("duration", "600 s"))
    before = counted
    over.set()
    thread.join()
    # A thread that sleeps a millisecond at a time counts at least once in five, if it runs at all.
    assert before > run.wall_s * 1000 / 25, (before, run.wall_s)


def test_runs_of_several_threads_are_those_of_one(download: lm.Scenario) -> None:
    texts: dict[int, str] = {}

    def simulate(seed: int) -> None:
        texts[seed] = lm.run(download, seed=seed).json()

    threads = [threading.Thread(target=simulate, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {seed: lm.run(download, seed=seed).json() for seed in range(4)}


def test_memory_is_limited(download: lm.Scenario) -> None:
    with pytest.raises((lm.ScenarioError, MemoryError), match="grant more with memory="):
        lm.run(download, memory="10 kB")
    with pytest.raises(ValueError, match="memory: "):
        lm.run(download, memory="much")


def test_captures_are_those_of_the_command(at_root: Path, tmp_path: Path, lastmile: Command) -> None:
    scenario = "scenarios/upload-starves-download.toml"
    lastmile("run", scenario, "--duration", "3 s", "--out", str(tmp_path / "out"), "--capture", "up,down")
    files = {link: tmp_path / "python" / f"{link}.pcapng" for link in ("up", "down")}
    run = lm.run(scenario, duration="3 s", capture=files)
    for link, path in files.items():
        assert path.read_bytes() == (tmp_path / "out" / f"{link}.pcapng").read_bytes() and path.stat().st_size > 10_000
    # A capture needs an event for each transmission.
    plain = lm.run(scenario, duration="3 s").summary
    assert run.summary.pop("events") > plain.pop("events") and run.summary == plain
    with pytest.raises(lm.ScenarioError, match='capture: no link is called "upp"'):
        lm.run(scenario, capture={"upp": tmp_path / "x"})
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot write"):
        lm.run(scenario, capture={"up": tmp_path / "file" / "x"})
    with pytest.raises(TypeError, match="capture: a dict of paths by link, and not of type list"):
        lm.run(scenario, capture=["up"])  # type: ignore[arg-type]


def test_memory_of_the_caller_does_not_count(download: lm.Scenario) -> None:
    frames = b"x" * 300_000_000
    run = lm.run(download, memory="200 MB")
    assert len(frames) == 300_000_000 and run.summary["flows"][0]["goodput_bps"] > 0


def test_bad_arguments_are_named(download: lm.Scenario) -> None:
    with pytest.raises(ValueError, match="duration: "):
        lm.run(download, duration="soon")
    with pytest.raises(lm.ScenarioError, match="nothing runs"):
        lm.run(lm.loads('[access]\ndown = { rate = "8 Mbit/s" }\nup = { rate = "1 Mbit/s" }\n'))
    with pytest.raises(TypeError):
        lm.run(3)  # type: ignore[arg-type]
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"seed": -1}, ValueError, "seed: -1 is no whole number from 0 to 18446744073709551615"),
        ({"seed": 2**64}, ValueError, "seed: 18446744073709551616 is no whole number"),
        ({"seed": 1.5}, TypeError, "seed: a whole number, and not of type float"),
        ({"duration": 20}, TypeError, 'duration: a text with a unit such as "20 s", and not of type int'),
        ({"policy": 5}, TypeError, 'policy: a name such as "cake", a file, or None, and not of type int'),
        ({"threads": 0}, ValueError, "threads: 0 is no whole number from 1 to"),
        ({"threads": -1}, ValueError, "threads: -1 is no whole number from 1 to"),
        ({"seeds": -1}, ValueError, "seeds: -1 is no whole number from 1 to"),
    ]
    for arguments, kind, message in wrong:
        call = lm.compare if {"threads", "seeds"} & set(arguments) else lm.run
        with pytest.raises(kind) as caught:
            call(download, **arguments)
        assert message in str(caught.value)
    with pytest.raises(ValueError, match="threads: 0 is no whole number"):
        lm.reproduce("phanse2000/text-3.4", threads=0)
    with pytest.raises(ValueError, match="files: at least one capture"):
        lm.analyse()


def test_a_run_shows_itself(download: lm.Scenario) -> None:
    run = lm.run(download)
    assert repr(run) == '<lastmile.Run "a download", 5 s, seed 1>'
    assert "download" in str(run)
    assert run.svg().startswith("<svg") and run._repr_svg_() == run.svg()
    assert len(run.svg("rtt_s")) < len(run.svg())
    with pytest.raises(ValueError, match='series: no panel shows "rtt": did you mean "rtt_s"'):
        run.svg("rtt")
    silent = lm.run(download.set("record.series", False), duration="1 s")
    assert silent._repr_svg_() is None


def test_a_run_can_be_pickled(download: lm.Scenario) -> None:
    [run] = lm.compare(download, policy=["cake"], duration="2 s").runs
    again = pickle.loads(pickle.dumps(run))
    assert again.label == run.label == "cake" and again.json(timing=True) == run.json(timing=True)
    assert again.series.names == run.series.names and again.html() == run.html()
    assert frame(again.series).equals(frame(run.series))


def test_pools_of_processes_run_scenarios(download: lm.Scenario) -> None:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        [run] = pool.map(lm.run, [download])
    assert run.json() == lm.run(download).json()


def test_no_policy_is_none_and_that_of_the_file_is_the_default(download: lm.Scenario) -> None:
    cake = download.set("access.policy", "cake")
    goodput = [lm.run(cake, policy=policy).summary["links"] for policy in (None, "none", "cake")]
    assert goodput[0] == goodput[1] == lm.run(download).summary["links"]
    assert goodput[2] == lm.run(cake).summary["links"] != goodput[0]
    link = lm.loads(
        'duration = "1 s"\n[[link]]\nfrom = "A"\nto = "B"\nrate = "1 Mbit/s"\n'
        '[[traffic]]\nkind = "bulk"\nfrom = "A"\nto = "B"\n'
    )
    assert lm.run(link, policy=None).json() == lm.run(link).json(), "a network without an access line has no policy"


def test_a_folder_with_several_captures_is_analysed(lastmile: Command, tmp_path: Path) -> None:
    (tmp_path / "line.toml").write_text(DOWNLOAD)
    done = lastmile("run", "line.toml", "--out", "run", "--capture", "up,down", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(lm.analyse(tmp_path / "run").document["files"]) == 2
