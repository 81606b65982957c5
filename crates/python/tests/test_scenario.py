"""Scenarios: read, changed, refused."""

from __future__ import annotations

import copy
import decimal
import enum
import fractions
import pickle
from pathlib import Path
from typing import Any

import lastmile as lm
import pytest

from conftest import Command

STARVED = "scenarios/upload-starves-download.toml"


def test_a_scenario_never_changes_and_set_returns_another(download: lm.Scenario) -> None:
    faster = download.set("access.up.rate", "1 Mbit/s").set("seed", 7)
    assert (faster.seed, faster.overrides) == (7, ["access.up.rate=1 Mbit/s", "seed=7"])
    assert (download.seed, download.overrides) == (1, [])
    assert faster.text == download.text
    assert faster != download and download == lm.loads(download.text)
    assert len({download, lm.loads(download.text), faster}) == 2


@pytest.mark.parametrize(
    ("value", "pair"),
    [
        (3, "seed=3"),
        ("3", "seed=3"),
    ],
)
def test_values_of_python_are_those_of_the_command(download: lm.Scenario, value: object, pair: str) -> None:
    assert download.set("seed", value).overrides == [pair]


def test_flags_lists_tables_and_none_are_values(download: lm.Scenario) -> None:
    assert download.set("record.series", False).overrides == ["record.series=false"]
    assert download.set("access.policy", None).overrides == ["access.policy=none"]
    queue = download.set("access.up.queue", {"kind": "fifo", "limit": "20 packets"})
    assert queue.overrides == ['access.up.queue={ "kind" = "fifo", "limit" = "20 packets" }']
    with pytest.raises(TypeError, match="a value of type object"):
        download.set("seed", object())


def test_numbers_of_numpy_are_values(download: lm.Scenario) -> None:
    numpy = pytest.importorskip("numpy")

    def pair(key: str, value: object) -> str:
        return download.set(key, value).overrides[0]

    assert pair("seed", numpy.int64(5)) == pair("seed", numpy.array(5)) == "seed=5"
    # A `float64` is a `float`, whose `repr` is of its own.
    rate = "access.down.bit_error_rate"
    assert pair(rate, numpy.float64(1e-6)) == pair(rate, numpy.array(1e-6)) == pair(rate, 1e-6) == f"{rate}=1e-06"
    assert pair(rate, numpy.float32(0.5)) == pair(rate, numpy.longdouble(0.5)) == f"{rate}=0.5"
    assert pair("record.series", numpy.bool_(False)) == "record.series=false"
    assert pair("record.series", numpy.array([True, False])[1]) == "record.series=false"
    assert pair("access.policy", numpy.str_("cake")) == "access.policy=cake"
    rates = numpy.array([1e-6, 2e-6])
    assert lm.compare(download, vary={rate: rates}, duration="1 s").rows == [["1e-06"], ["2e-06"]]
    assert lm.paired({rate: rates}).points == [["1e-06"], ["2e-06"]]


def test_lists_of_numpy_are_lists(download: lm.Scenario) -> None:
    numpy = pytest.importorskip("numpy")
    texts = []
    # An array of one number is no number.
    for several in ([5], numpy.array([5])):
        with pytest.raises(lm.ScenarioError) as caught:
            download.set("seed", several)
        texts.append(str(caught.value))
    assert texts[0] == texts[1] and "[5]" in texts[0]


def test_kinds_of_numbers_and_texts_are_their_values(download: lm.Scenario) -> None:
    class Seed(enum.IntEnum):
        FIRST = 5

    class Remedy(enum.StrEnum):
        CAKE = "cake"

    class Share(float):
        def __repr__(self) -> str:
            return "a share"

    assert download.set("seed", Seed.FIRST).overrides == ["seed=5"]
    assert download.set("access.policy", Remedy.CAKE).overrides == ["access.policy=cake"]
    key = "access.down.bit_error_rate"
    for value in (Share(0.5), fractions.Fraction(1, 2), decimal.Decimal("0.5")):
        assert download.set(key, value).overrides == [f"{key}=0.5"]


def test_quantities_are_numbers_and_values(download: lm.Scenario) -> None:
    assert [lm.Rate("50 Mbit/s"), lm.Duration("20 ms"), lm.Size("64 KiB")] == [50e6, 0.02, 65536.0]
    rate = lm.Rate("50 Mbit/s")
    assert (str(rate), repr(rate), f"{rate:.0f}") == ("50 Mbit/s", "lastmile.Rate('50 Mbit/s')", "50000000")
    again = pickle.loads(pickle.dumps(rate))
    assert (type(again), str(again)) == (lm.Rate, "50 Mbit/s")
    assert download.set("access.down.rate", rate).overrides == ["access.down.rate=50 Mbit/s"]
    assert download.set("access.up", {"rate": rate}).overrides == ['access.up={ "rate" = "50 Mbit/s" }']
    assert lm.run(download, duration=lm.Duration("1 s")).summary["duration_s"] == 1
    with pytest.raises(ValueError, match='"20 ms"'):
        lm.Rate("20 ms")


def test_numbers_become_quantities_on_the_grid_of_their_unit() -> None:
    numpy = pytest.importorskip("numpy")
    assert [str(one) for one in (lm.Rate(5e6), lm.Duration(0.01), lm.Size(1500))] == ["5 Mbit/s", "10 ms", "1500 bytes"]
    # A rate has whole bit/s, a time whole picoseconds, a size whole bytes.
    assert [str(lm.Rate(x)) for x in numpy.geomspace(5e5, 2e6, 4)] == [
        "500 kbit/s",
        "793.701 kbit/s",
        "1.259921 Mbit/s",
        "2 Mbit/s",
    ]
    assert [str(lm.Duration(x)) for x in (1 / 3000, 1e-5, 86400.1, -1e-15)] == [
        "333.333333 us",
        "10 us",
        "86400.1 s",
        "0 s",
    ]
    assert str(lm.Size(numpy.float32(1500.6))) == "1501 bytes"
    assert (str(lm.Rate(lm.Rate("1000 kbit/s"))), float(lm.Rate(numpy.int64(7)))) == ("1000 kbit/s", 7.0)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (float("nan"), ValueError, "value: nan bit/s are no Rate"),
        (1e20, ValueError, "value: 1e+20 bit/s are no Rate"),
        (0.3, ValueError, 'value: "0 bit/s" is zero; a bit rate is above zero, for example "512 kbit/s"'),
        (-1, ValueError, 'value: "-1 bit/s" is negative; a bit rate is zero or more, for example "512 kbit/s"'),
        (True, TypeError, "value: a text with a unit or a number of bit/s, and not of type bool"),
        (lm.Size("1 kB"), TypeError, "value: a text with a unit or a number of bit/s, and not of type Size"),
        (
            [1e6],
            TypeError,
            "value: a text with a unit or a number of bit/s, and not of type list; "
            "map(lastmile.Rate, values) makes one of each",
        ),
    ],
)
def test_what_is_no_rate_is_refused(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        lm.Rate(value)
    assert str(caught.value) == message


def test_arithmetic_keeps_the_unit_where_it_has_a_meaning() -> None:
    numpy = pytest.importorskip("numpy")
    rate = lm.Rate("1 Mbit/s")
    doubled = [rate * 2, 2 * rate, rate * 2.0, rate + rate, sum([rate, rate]), numpy.float64(2) * rate]
    doubled += [rate * numpy.float64(2), numpy.int64(2) * rate, rate * numpy.int64(2), rate / fractions.Fraction(1, 2)]
    assert [repr(one) for one in doubled] == ["lastmile.Rate('2 Mbit/s')"] * len(doubled)
    assert repr(rate / 3) == "lastmile.Rate('333.333 kbit/s')"
    assert repr(lm.Duration("0.1 s") * 3) == "lastmile.Duration('300 ms')"
    # Other results are numbers: of bits, of seconds, of nothing.
    numbers: list[tuple[object, float]] = [
        (rate / rate, 1.0),
        (rate * lm.Duration("20 ms"), 20000.0),
        (lm.Size(1500) / rate, 0.0015),
        (rate - rate, 0.0),
        (rate + 5, 1000005.0),
    ]
    assert all(type(found) is float and found == wanted for found, wanted in numbers), numbers
    assert (rate * numpy.array([1, 2])).tolist() == [1e6, 2e6]
    with pytest.raises(TypeError, match="a Rate and a Duration have no sum"):
        _ = rate + lm.Duration("1 s")
    with pytest.raises(TypeError, match="a Rate and a Duration have no difference"):
        _ = rate - lm.Duration("1 s")


def test_whole_floats_are_whole_numbers(download: lm.Scenario) -> None:
    numpy = pytest.importorskip("numpy")
    key = "tcp.initial_window"
    assert download.set(key, 4.0).overrides == download.set(key, numpy.linspace(1, 10, 4)[1]).overrides == [f"{key}=4"]
    assert lm.paired({key: numpy.linspace(1, 10, 4)}).points == [["1"], ["4"], ["7"], ["10"]]
    with pytest.raises(lm.ScenarioError, match="4.5"):
        download.set(key, 4.5)


def test_a_scenario_can_be_copied_and_pickled(
    download: lm.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faster = download.set("access.up.rate", "2 Mbit/s").set("seed", 7)
    assert copy.copy(faster) is faster and copy.deepcopy(faster) is faster
    other = pickle.loads(pickle.dumps(faster))
    assert other == faster and hash(other) == hash(faster) and other.overrides == faster.overrides
    # The folder of a file, from which it names others, is that of the pickle.
    (tmp_path / "line.toml").write_text(download.text)
    monkeypatch.chdir(tmp_path)
    read = lm.load("line.toml")
    text = pickle.dumps(read)
    monkeypatch.chdir(tmp_path.parent)
    moved = pickle.loads(text)
    assert moved == lm.load(tmp_path / "line.toml") and lm.run(moved).json() == lm.run(tmp_path / "line.toml").json()
    space = lm.paired({"access.up.rate": ["1 Mbit/s", "2 Mbit/s"]})
    assert pickle.loads(pickle.dumps(space)).points == space.points


def test_an_error_of_a_file_has_its_place_and_the_message_of_the_command(tmp_path: Path, lastmile: Command) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text('[access]\ndown = { rate = "8 Mbit/s" }\nup = { rate = "1 Mbit/s" }\nencapsulaton = "ip"\n')
    with pytest.raises(lm.ScenarioError) as caught:
        lm.load(path)
    error = caught.value
    assert (error.file, error.line, error.key, error.hint) == (
        str(path),
        4,
        "access.encapsulaton",
        'did you mean "encapsulation"?',
    )
    assert error.column == 1
    command = lastmile("run", str(path))
    assert command.returncode == 2 and command.stderr == f"{error}\n"


def test_an_error_of_a_changed_key_has_the_message_of_the_command(at_root: Path, lastmile: Command) -> None:
    with pytest.raises(lm.ScenarioError) as caught:
        lm.load(STARVED).set("access.up.rate", "0")
    assert (caught.value.file, caught.value.line, caught.value.key) == (None, None, "access.up.rate")
    command = lastmile("run", STARVED, "--set", "access.up.rate=0")
    assert command.stderr == f"{caught.value}\n"


def test_an_error_can_be_pickled_as_pools_of_processes_do() -> None:
    with pytest.raises(lm.ScenarioError) as caught:
        lm.loads("duration = 3")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.key, again.line) == (str(caught.value), caught.value.key, caught.value.line)


def test_a_text_names_files_from_a_folder(download: lm.Scenario, tmp_path: Path) -> None:
    text = download.text.replace('down = { rate = "8 Mbit/s" }', 'down = { trace = { file = "line.csv" } }')
    with pytest.raises(lm.ScenarioError, match="line.csv: No such file") as caught:
        lm.loads(text)
    assert caught.value.hint == f"files are found from {Path.cwd()}, or from folder="
    with pytest.raises(lm.ScenarioError, match=str(tmp_path / "line.csv")):
        lm.loads(text, folder=tmp_path)
    (tmp_path / "line.csv").write_text("at,rate\n0 s,8 Mbit/s\n")
    scenario = lm.loads(text, "line", folder=tmp_path)
    assert scenario == pickle.loads(pickle.dumps(scenario)) and scenario.set("seed", 2).seed == 2
    assert lm.run(scenario, duration="1 s").summary["inputs"]["file"] is None


def test_a_missing_file_is_a_scenario_error() -> None:
    with pytest.raises(lm.ScenarioError, match="no such file") as caught:
        lm.load("missing.toml")
    assert (caught.value.file, caught.value.line) == ("missing.toml", None)


def test_a_line_and_a_home_are_those_that_the_command_writes(lastmile: Command) -> None:
    written = lastmile("new", "--line", "docsis-1000-50", "--home", "family").stdout
    assert lm.line("docsis-1000-50", home="family").text == written
    with pytest.raises(lm.ScenarioError, match="unknown line") as caught:
        lm.line("docsis-1000-5")
    assert caught.value.hint == "did you mean docsis-1000-50?"
    for name, home, hint in (
        ("q7", "family", "lastmile.lines() has all"),
        ("geo-50-5", "", "lastmile.homes() has all"),
    ):
        with pytest.raises(lm.ScenarioError) as caught:
            lm.line(name, home=home)
        assert caught.value.hint == f"{hint} names"
    assert {"docsis-1000-50", "geo-50-5"} < set(lm.lines()) and "gamers" in lm.homes()


def test_oddities_are_warned_of_when_the_scenario_runs(download: lm.Scenario) -> None:
    odd = download.set("traffic.ping.start", "10 s")
    if not odd.warnings:
        pytest.fail("the scenario of this test must have a warning")
    with pytest.warns(lm.ScenarioWarning):
        lm.run(odd)
