"""Scenarios: read, changed, refused."""

from __future__ import annotations

import copy
import decimal
import enum
import fractions
import pickle
from pathlib import Path

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
    assert type(rate * 2) is float
    again = pickle.loads(pickle.dumps(rate))
    assert (type(again), str(again)) == (lm.Rate, "50 Mbit/s")
    assert download.set("access.down.rate", rate).overrides == ["access.down.rate=50 Mbit/s"]
    assert download.set("access.up", {"rate": rate}).overrides == ['access.up={ "rate" = "50 Mbit/s" }']
    assert lm.run(download, duration=lm.Duration("1 s")).summary["duration_s"] == 1
    with pytest.raises(ValueError, match='"20 ms"'):
        lm.Rate("20 ms")
    with pytest.raises(TypeError, match="text: a number with a unit"):
        lm.Rate(5)  # type: ignore[arg-type]


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
    assert {"docsis-1000-50", "geo-50-5"} < set(lm.lines()) and "gamers" in lm.homes()


def test_oddities_are_warned_of_when_the_scenario_runs(download: lm.Scenario) -> None:
    odd = download.set("traffic.ping.start", "10 s")
    if not odd.warnings:
        pytest.fail("the scenario of this test must have a warning")
    with pytest.warns(lm.ScenarioWarning):
        lm.run(odd)
