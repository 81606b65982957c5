"""Scenarios: read, changed, refused."""

from __future__ import annotations

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
    assert download.set("seed", numpy.int64(5)).overrides == ["seed=5"]


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
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.key, copy.line) == (str(caught.value), caught.value.key, caught.value.line)


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
