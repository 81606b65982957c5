"""Studies: kept in a folder, resumed after a kill, equal to single runs."""

from __future__ import annotations

import math
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lastmile as lm
import polars
import pytest

from conftest import DOWNLOAD, frame

SPACE: dict[str, list[str | None]] = {
    "access.up.rate": ["128 kbit/s", "256 kbit/s", "512 kbit/s"],
    "access.policy": [None, "cake"],
}


def files(folder: Path) -> dict[str, int]:
    """The finished runs of a folder, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "runs").glob("*/*.parquet")}


def test_a_run_of_a_study_is_a_single_run(download: lm.Scenario, tmp_path: Path) -> None:
    table = lm.study(download, SPACE, seeds=2).run(tmp_path)
    rows = frame(table)
    assert rows.columns[:4] == ["access.up.rate", "access.up.rate_bps", "access.policy", "seed"] and len(table) == 12
    wanted: dict[str, object] = {"access.up.rate": "256 kbit/s", "access.policy": "cake", "seed": 2}
    (row,) = (row for row in rows.to_dicts() if row.items() >= wanted.items())
    single = lm.compare(download, policy=["cake"], vary={"access.up.rate": ["256 kbit/s"]}, seed=2)
    assert row["upload_bps"] == single.document["runs"][0]["upload_bps"]
    run = lm.run(download.set("access.up.rate", "256 kbit/s").set("access.policy", "cake"), seed=2)
    flow = run.summary["flows"][0]
    assert row["download_bps"] == flow["goodput_bps"]
    assert row["flows.download.retransmissions"] == flow["retransmissions"] and flow["name"] == "download"
    assert row["flows.download.delay_s.p95"] == flow["delay_s"]["p95"] > 0


def test_the_table_is_a_file_of_the_folder(download: lm.Scenario, tmp_path: Path) -> None:
    table = lm.study(download, SPACE, seeds=2).run(tmp_path)
    written = frame(table).drop("access.up.rate_bps")
    assert polars.read_parquet(tmp_path / "table.parquet").equals(written, null_equal=True)
    page = (tmp_path / "report.html").read_text()
    assert "<h2>Differences from access.policy" in page and "sha256-" in page


def test_keys_with_numbers_have_a_column_of_them(download: lm.Scenario, tmp_path: Path) -> None:
    axes: dict[str, list[object]] = {
        "access.up.rate": ["512 kbit/s", "1.024 Mbit/s"],
        "access.backbone.delay": [lm.Duration("20 ms"), "1.5 ms"],
        "access.up.queue.limit": ["50 packets", "20 packets"],
        "access.down.loss": ["1 %", "0.5 %"],
        "access.up.header_compression": ["10 %", None],
        "tcp.receive_window": ["64 KiB", "1 MB"],
        "tcp.ack_every": [1, 2],
        "access.policy": [None, "cake"],
    }
    table = lm.study(download, lm.paired(axes), duration="1 s").run(tmp_path)
    assert table.keys == list(axes)
    numbers = {name: table.column(name) for name in table.columns[: table.columns.index("seed")]}
    assert {name: values for name, values in numbers.items() if name not in axes} == {
        "access.up.rate_bps": [512000.0, 1024000.0],
        "access.backbone.delay_s": [0.02, 0.0015],
        "access.up.queue.limit_packets": [50.0, 20.0],
        "access.down.loss_share": [0.01, 0.005],
        "access.up.header_compression_share": [0.1, None],
        "tcp.receive_window_bytes": [65536.0, 1e6],
        "tcp.ack_every_number": [1.0, 2.0],
    }
    rows = frame(table)
    assert rows.columns == table.columns and rows["access.backbone.delay_s"].to_list() == [0.02, 0.0015]
    assert rows["access.backbone.delay"].to_list() == ["20 ms", "1.5 ms"]


def test_nothing_runs_twice_and_studies_share_a_folder(download: lm.Scenario, tmp_path: Path) -> None:
    first = lm.study(download, SPACE, seeds=2)
    assert first.status(tmp_path) == (0, 12)
    table = first.run(tmp_path)
    before = files(tmp_path)
    assert len(before) == 12 and first.status(tmp_path) == (12, 12)
    assert frame(first.run(tmp_path)).equals(frame(table), null_equal=True)
    assert files(tmp_path) == before
    more = lm.study(download, SPACE, seeds=3)
    assert more.status(tmp_path) == (12, 18)
    more.run(tmp_path)
    assert before.items() <= files(tmp_path).items() and len(files(tmp_path)) == 18


def test_a_changed_scenario_is_another_run(download: lm.Scenario, tmp_path: Path) -> None:
    lm.study(download, {"access.up.rate": ["1 Mbit/s"]}).run(tmp_path)
    for other in (download.set("duration", "4 s"), lm.loads(download.text + "# a comment\n")):
        with pytest.warns(UserWarning, match='the study "a download" with another scenario or other changes of it'):
            lm.study(other, {"access.up.rate": ["1 Mbit/s"]}).run(tmp_path)
    assert len(files(tmp_path)) == 3


def test_other_keys_are_another_study_and_other_values_are_not(download: lm.Scenario, tmp_path: Path) -> None:
    lm.study(download, {"access.up.rate": ["1 Mbit/s"]}, duration="1 s").run(tmp_path)
    lm.study(download, {"access.up.rate": ["1 Mbit/s", "2 Mbit/s"]}, duration="1 s").run(tmp_path)
    with pytest.warns(UserWarning, match='over access.up.rate: they become those of "a download" over access.policy'):
        lm.study(download, {"access.policy": [None]}, duration="1 s").run(tmp_path)


def test_results_do_not_depend_on_threads(download: lm.Scenario, tmp_path: Path) -> None:
    tables = [lm.study(download, SPACE, seeds=2).run(tmp_path / str(threads), threads=threads) for threads in (1, 2)]
    assert frame(tables[0]).equals(frame(tables[1]), null_equal=True)
    one, two = (files(tmp_path / name) for name in ("1", "2"))
    assert one.keys() == two.keys()
    for name in one:
        texts = [(tmp_path / folder / "runs" / name[:2] / name).read_bytes() for folder in ("1", "2")]
        assert texts[0] == texts[1]


CHILD = """
import sys
import lastmile as lm
line = lm.loads(sys.argv[2])
space = {"access.up.rate": lm.log("128 kbit/s", "2 Mbit/s", 8), "access.policy": [None, "cake"]}
lm.study(line, space, seeds=4).run(sys.argv[1])
"""


def test_a_study_that_is_killed_at_random_moments_loses_no_finished_run(tmp_path: Path) -> None:
    text = DOWNLOAD.replace("5 s", "100 s")
    moments = random.Random(20)
    seen: dict[str, int] = {}
    kills = 0
    for _ in range(200):
        with subprocess.Popen([sys.executable, "-c", CHILD, tmp_path, text], stderr=subprocess.DEVNULL) as child:
            # The child is killed a few runs after its start, at any moment of the next one: not by the clock alone,
            # which would let a fast machine end the study before it.
            runs = len(seen) + moments.randint(1, 8)
            while child.poll() is None and len(files(tmp_path)) < runs:
                time.sleep(0.002)
            time.sleep(moments.uniform(0, 0.03))
            if child.poll() is None:
                kills += 1
                os.kill(child.pid, signal.SIGKILL)
        now = files(tmp_path)
        assert seen.items() <= now.items(), "a finished run was lost, or ran twice"
        seen = now
        if child.returncode == 0:
            break
    assert kills >= 3 and child.returncode == 0 and len(seen) == 64, (kills, child.returncode, len(seen))
    # Every file is whole, and the table is that of a study without interruption.
    for name in seen:
        assert polars.read_parquet(tmp_path / "runs" / name[:2] / name).columns == ["measure", "value"]
    rates = lm.log("128 kbit/s", "2 Mbit/s", 8)
    whole = lm.study(lm.loads(text), {"access.up.rate": rates, "access.policy": [None, "cake"]}, seeds=4).run(
        tmp_path / "whole"
    )
    assert polars.read_parquet(tmp_path / "table.parquet").equals(
        frame(whole).drop("access.up.rate_bps"), null_equal=True
    )


def test_ctrl_c_stops_a_study_and_it_goes_on(endless: lm.Scenario, tmp_path: Path) -> None:
    study = lm.study(endless, {"duration": ["1 s", "200 h", "300 h"]})
    at: list[float] = []

    def interrupt() -> None:
        # In the second run.
        deadline = time.monotonic() + 60
        while not files(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        study.run(tmp_path)
    thread.join()
    assert time.monotonic() - at[0] < 5 and study.status(tmp_path) == (1, 3)


def test_a_callback_that_raises_ends_the_study(download: lm.Scenario, tmp_path: Path) -> None:
    def stop(done: float) -> None:
        raise LookupError(done)

    with pytest.raises(LookupError):
        lm.study(download, {"access.up.rate": lm.linear("1 Mbit/s", "40 Mbit/s", 40)}).run(tmp_path, progress=stop)


def test_seeds_are_added_until_the_interval_is_narrow(download: lm.Scenario, tmp_path: Path) -> None:
    noisy = lm.loads(download.text + '[[traffic]]\nkind = "poisson"\nrate = "4 Mbit/s"\ndirection = "down"\n')
    space = {"access.up.rate": ["512 kbit/s"]}
    few = lm.study(noisy, space, seeds=lm.until(ci=0.5, at_least=4, at_most=20)).run(tmp_path)
    many = lm.study(noisy, space, seeds=lm.until(ci=0.000001, at_least=4, at_most=9)).run(tmp_path)
    assert (len(few), len(many)) == (4, 9)
    assert len(lm.study(noisy, space, seeds=lm.until(ci=0.5)).run(tmp_path)) == 10
    said = "\nPoints whose interval of download_bps is wider after their most seeds: 1 of 1.\n"
    assert many.text().endswith(said) and said not in few.text()
    (_, mean, ci95, seeds) = few.means("download_bps")[0]
    assert seeds == 4 and ci95 <= 0.5 * mean


def test_over_a_network_without_an_access_line_goodput_is_to_be_narrow(tmp_path: Path) -> None:
    network = lm.loads(
        'duration = "2 s"\n[[link]]\nfrom = "a"\nto = "b"\nrate = "1 Mbit/s"\nloss = "1 %"\n'
        '[[traffic]]\nkind = "bulk"\nfrom = "a"\nto = "b"\n'
    )
    study = lm.study(network, {"link.0.rate": ["1 Mbit/s"]}, seeds=lm.until(ci=0.000001, at_most=7))
    assert len(study.run(tmp_path)) == 7
    with pytest.raises(lm.ScenarioError, match="nonsense"):
        lm.study(network, {"link.0.rate": ["1 Mbit/s"]}, seeds=lm.until(ci=0.1, at_most=7, measure="nonsense"))


def test_a_damaged_run_and_the_table_of_another_study_are_warned_of(download: lm.Scenario, tmp_path: Path) -> None:
    space = {"access.up.rate": ["1 Mbit/s"]}
    study = lm.study(download, space, seeds=2, duration="1 s")
    first = study.run(tmp_path).means("download_bps")
    next((tmp_path / "runs").rglob("*.parquet")).write_bytes(b"")
    with pytest.warns(UserWarning, match="damaged file of a run, replaced by a new run"):
        assert study.run(tmp_path).means("download_bps") == first
    other = lm.study(lm.loads(download.text.replace("a download", "another")), space, duration="1 s")
    with pytest.warns(UserWarning, match="the table and the report of the study"):
        other.run(tmp_path)


def test_paired_differences_are_narrower_than_means(download: lm.Scenario, tmp_path: Path) -> None:
    noisy = lm.loads(download.text + '[[traffic]]\nkind = "poisson"\nrate = "4 Mbit/s"\ndirection = "down"\n')
    table = lm.study(noisy, {"access.down.rate": ["8 Mbit/s", "8.1 Mbit/s"]}, seeds=6).run(tmp_path)
    (_, difference, ci95, seeds) = table.paired("download_bps", "access.down.rate", "8 Mbit/s", "8.1 Mbit/s")[0]
    assert seeds == 6
    assert difference == pytest.approx(table.means("download_bps")[1][1] - table.means("download_bps")[0][1])
    with pytest.raises(lm.ScenarioError, match="no run has the measure"):
        table.means("speed")
    with pytest.raises(lm.ScenarioError, match="does not vary"):
        table.paired("download_bps", "seed", "1", "2")


def test_numbers_of_a_table_are_values_of_the_next_study(download: lm.Scenario, tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    rates = numpy.geomspace(5e5, 2e6, 4)
    first = lm.study(download, {"access.up.rate": map(lm.Rate, rates)}, duration="1 s").run(tmp_path)
    numbers = frame(first)["access.up.rate_bps"]
    assert numbers.to_list() == [500e3, 793701.0, 1259921.0, 2e6]
    again = lm.study(download, {"access.up.rate": map(lm.Rate, numbers)}, duration="1 s")
    assert again.space.points == [[value] for value in first.column("access.up.rate")]
    # An array has lost the unit, which is known before anything runs.
    with pytest.raises(lm.ScenarioError, match="500000 bit/s"):
        lm.study(download, {"access.up.rate": rates})


def test_seeds_are_unsigned_and_end(download: lm.Scenario, tmp_path: Path) -> None:
    first = 2**63 + 5
    table = lm.study(download.set("seed", first), {"access.policy": [None]}, seeds=2, duration="1 s").run(tmp_path)
    assert table.column("seed") == [first, first + 1]
    written = polars.read_parquet(tmp_path / "table.parquet")["seed"]
    assert written.dtype == polars.UInt64() and written.to_list() == [first, first + 1]
    last = download.set("seed", 2**64 - 2)
    assert len(lm.compare(last, policy=[None], seeds=2, duration="1 s").runs) == 2
    wrong = "seed: 3 seeds from 18446744073709551614 on pass 18446744073709551615, the largest"
    for make in (
        lambda: lm.study(last, {"access.policy": [None]}, seeds=3),
        lambda: lm.study(last, {"access.policy": [None]}, seeds=lm.until(ci=0.1, at_most=3)),
        lambda: lm.compare(last, policy=[None], seeds=3),
    ):
        with pytest.raises(lm.ScenarioError, match=wrong):
            make()


def test_a_wrong_point_is_named(download: lm.Scenario, tmp_path: Path) -> None:
    with pytest.raises(lm.ScenarioError, match="access.up.rate=fast") as caught:
        lm.study(download, {"access.up.rate": ["1 Mbit/s", "fast"]})
    assert caught.value.key == "access.up.rate"
    with pytest.raises(lm.ScenarioError, match="a: no values"):
        lm.study(download, {"a": []})
    with pytest.raises(lm.ScenarioError, match="different units"):
        lm.linear("1 ms", "1 kB", 3)
    with pytest.raises(ValueError, match="no share"):
        lm.until(ci=0, at_most=3)
    with pytest.raises(ValueError, match="no share"):
        lm.until(ci=5)
    with pytest.raises(ValueError, match="at_most: 1 seeds have no interval"):
        lm.until(ci=0.1, at_most=1)
    assert (lm.until(ci=0.1).at_least, lm.until(ci=0.1, at_most=3).at_least) == (10, 3)
    for least in (1, 9):
        with pytest.raises(ValueError, match=f"at_least: {least} is no whole number from 2 to at_most, 8"):
            lm.until(ci=0.1, at_least=least, at_most=8)
    with pytest.raises(ValueError, match="seeds: -1 is no whole number from 1"):
        lm.study(download, SPACE, seeds=-1)
    with pytest.raises(ValueError, match="threads: 0 is no whole number from 1"):
        lm.study(download, SPACE).run(tmp_path, threads=0)
    with pytest.raises(TypeError, match="client: a client of Dask or the address of its scheduler, and not int"):
        lm.study(download, SPACE).run(tmp_path, client=5)


def test_pictures_of_a_study_have_its_means(download: lm.Scenario, tmp_path: Path) -> None:
    table = lm.study(download, SPACE, seeds=2).run(tmp_path)
    axes = table.plot.heatmap("download_bps").axes[0]
    means = [mean / 1e6 for _, mean, _, _ in table.means("download_bps")]
    assert [float(text.get_text()) for text in axes.texts] == pytest.approx(means, rel=0.01)
    assert len(table.plot.means("download_bps").axes[0].containers) == 2


def test_a_text_says_that_runs_measure_other_phases(download: lm.Scenario, tmp_path: Path) -> None:
    said = "Some runs measure a phase of another time"
    differ = lm.study(download, {"duration": ["1 s", "2 s"]}).run(tmp_path / "differ")
    assert said in differ.text("download_bps")
    equal = lm.study(download, SPACE, duration="1 s").run(tmp_path / "equal")
    assert said not in equal.text("download_bps")


def test_a_text_is_no_list_of_values(download: lm.Scenario) -> None:
    for make in (lambda: lm.study(download, {"access.policy": "cake"}), lambda: lm.paired({"access.policy": "cake"})):
        with pytest.raises(ValueError, match=r"access.policy: a list of values, and not a text: \['cake'\]"):
            make()


def test_differences_are_between_values_of_the_study(download: lm.Scenario, tmp_path: Path) -> None:
    table = lm.study(download, {"access.policy": [None, "cake"]}, seeds=2, duration="1 s").run(tmp_path)
    assert table.paired("download_bps", "access.policy", None, "cake") == table.paired(
        "download_bps", "access.policy", "none", "cake"
    )
    study = lm.study(download, {"access.up.rate": ["1 Mbit/s", "2 Mbit/s"]}, seeds=2, duration="1 s")
    rates = study.run(tmp_path / "rates")
    for one, other in (("1000 kbit/s", "0.002 Gbit/s"), (lm.Rate(1e6), lm.Rate("2 Mbit/s"))):
        assert rates.paired("download_bps", "access.up.rate", one, other) == rates.paired(
            "download_bps", "access.up.rate", "1 Mbit/s", "2 Mbit/s"
        )
    with pytest.raises(ValueError, match='no run has access.policy = "cakee"'):
        table.paired("download_bps", "access.policy", None, "cakee")
    with pytest.raises(ValueError, match='a difference between access.up.rate = "1 Mbit/s" and itself'):
        rates.paired("download_bps", "access.up.rate", "1 Mbit/s", "1000 kbit/s")


SENDERS: dict[str, dict[str, object]] = {
    "CUBIC": {},
    "BBR": {"traffic.download.tcp.variant": "bbr"},
    "QUIC": {"traffic.download.transport": "quic"},
}


def test_cases_are_settings_under_names(download: lm.Scenario, tmp_path: Path) -> None:
    senders = lm.cases(SENDERS)
    assert (senders.keys, senders.points) == (["case"], [["CUBIC"], ["BBR"], ["QUIC"]])
    assert senders.cases == {"CUBIC": [], "BBR": ["traffic.download.tcp.variant=bbr"],
                             "QUIC": ["traffic.download.transport=quic"]}  # fmt: skip
    table = lm.study(download, senders * {"access.policy": [None, "cake"]}, seeds=2, duration="1 s").run(tmp_path)
    rows = frame(table).select("case", "access.policy", "seed", "download_bps").to_dicts()
    assert len(rows) == 3 * 2 * 2
    for row in rows:
        scenario = download.set("access.policy", row["access.policy"])
        for key, value in SENDERS[row["case"]].items():
            scenario = scenario.set(key, value)
        single = lm.run(scenario, seed=row["seed"], duration="1 s")
        assert row["download_bps"] == single.summary["flows"][0]["goodput_bps"], row
    assert len({row["download_bps"] for row in rows if row["access.policy"] == "none"}) > 1
    assert len(table.paired("download_bps", "case", "CUBIC", "QUIC")) == 2
    [axes] = table.plot.means("download_bps").axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["CUBIC", "BBR", "QUIC"]
    copied = pickle.loads(pickle.dumps(senders))
    assert (copied.points, copied.cases) == (senders.points, senders.cases)

    (tmp_path / "line.toml").write_text(download.text)
    (tmp_path / "study.toml").write_text(
        'scenario = "line.toml"\nduration = "1 s"\nseeds = 2\nmeasures = ["drops"]\n[grid]\n'
        'access.policy = ["none", "cake"]\n[[case]]\nname = "CUBIC"\n'
        '[[case]]\nname = "BBR"\nset = "traffic.download.tcp.variant=bbr"\n'
        '[[case]]\nname = "QUIC"\nset = ["traffic.download.transport=quic"]\n'
    )
    of_file = lm.study(tmp_path / "study.toml").run(tmp_path / "file")
    assert frame(of_file).equals(frame(table), null_equal=True)
    assert of_file.text().split()[:4] == ["case", "access.policy", "seeds", "drops"]


def test_wrong_cases_are_named(download: lm.Scenario, tmp_path: Path) -> None:
    number: Any = {"a": 5}
    wrong: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: lm.cases({}), lm.ScenarioError, "case: no values"),
        (lambda: lm.cases({"a": {}, "b": {}}), lm.ScenarioError, 'the cases "a" and "b" are equal'),
        (lambda: lm.cases({"a": {"seed": 1}}), lm.ScenarioError, 'case "a": the seed is no key of a study'),
        (lambda: lm.cases(number), TypeError, "cases: a: a dict of values of keys, and not of type int"),
        (
            lambda: lm.cases({"a": {"access.policy": "cake"}}) * {"access.policy": [None]},
            lm.ScenarioError,
            'access.policy is a key of the study, and case "a" sets it',
        ),
        (
            lambda: lm.study(download, lm.cases({"a": {"tcp.variant": "cubik"}})),
            lm.ScenarioError,
            'case "a".*tcp.variant=cubik|tcp.variant=cubik',
        ),
        (
            lambda: lm.study(download, lm.cases({"a": {"duration": "1 s"}}), duration="2 s"),
            ValueError,
            "space and duration set one key, duration",
        ),
        (
            lambda: lm.study(download, {"case": ["BBR", "CUBIC"]}),
            lm.ScenarioError,
            r"names of settings, and the study has none\nhint: .*cases\(\) in Python",
        ),
    ]
    for make, error, message in wrong:
        with pytest.raises(error, match=message):
            make()


def test_a_dict_multiplies_as_a_grid() -> None:
    rates = {"access.up.rate": ["1 Mbit/s", "2 Mbit/s"]}
    policies = lm.paired({"access.policy": [None, "cake"]})
    assert (policies * rates).points == (policies * lm.paired(rates)).points
    assert (rates * policies).points == (lm.paired(rates) * policies).points
    with pytest.raises(ValueError, match="a: a list of values, and not a text"):
        _ = policies * {"a": "b"}
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = policies * 3  # type: ignore[operator]


def test_measures_are_known_before_and_after_the_runs(download: lm.Scenario, tmp_path: Path) -> None:
    study = lm.study(download, {"access.policy": [None]}, duration="1 s")
    assert {"download_bps", "ping.p50_s", "goodput_bps", "drops"} <= set(study.measures)
    for measure in study.measures:
        lm.study(download, {"access.policy": [None]}, seeds=lm.until(ci=0.1, measure=measure))
    table = study.run(tmp_path)
    assert ["access.policy", "seed", *table.measures] == table.columns
    assert all(len(table.means(measure)) == 1 for measure in table.measures if measure in study.measures)


def test_beyond_their_memory_runs_and_studies_raise_memory_error(tmp_path: Path) -> None:
    """A queue without a limit, whose arrivals exceed its rate."""
    endless = lm.loads(
        'duration = "1 h"\n[access]\ndown = { rate = "1 Gbit/s" }\n'
        'up = { rate = "1 kbit/s", queue = { kind = "fifo", limit = "1000000000 packets" } }\n'
        '[[traffic]]\nkind = "poisson"\nrate = "50 Mbit/s"\nsize = "28 B"\ndirection = "up"\n'
    )
    for simulate in (
        lambda: lm.run(endless, memory="60 MB"),
        lambda: lm.compare(endless, vary={"seed": [1, 2]}, memory="60 MB"),
        lambda: lm.study(endless, {"access.backbone.delay": ["1 ms", "2 ms"]}).run(tmp_path, memory="60 MB"),
    ):
        with pytest.raises(MemoryError, match="may take 57.220 MiB; .*packets wait in the queue of link \"up\""):
            simulate()


def test_one_seed_has_no_interval(download: lm.Scenario, tmp_path: Path) -> None:
    table = lm.study(download, {"access.policy": [None]}, duration="1 s").run(tmp_path)
    [(_, mean, ci95, seeds)] = table.means("download_bps")
    assert mean > 0 and math.isnan(ci95) and seeds == 1


def test_a_key_is_set_once(download: lm.Scenario) -> None:
    with pytest.raises(ValueError, match="space and duration set one key, duration"):
        lm.study(download, {"duration": ["1 s", "2 s"]}, duration="9 s")
