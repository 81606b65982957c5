"""Comparisons: equal to those of the command, on any number of threads."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any, cast

import lastmile as lm
import pytest

from conftest import Command

STARVED = "scenarios/upload-starves-download.toml"


def timeless(text: str) -> Any:
    document = json.loads(text)
    for run in document["runs"]:
        run["summary"].pop("timing", None)
    return document


def test_a_comparison_is_that_of_the_command(at_root: Path, lastmile: Command) -> None:
    command = lastmile("compare", STARVED, "--policy", "none,cake", "--duration", "3 s", "--json")
    compared = lm.compare(STARVED, policy=[None, "cake"], duration="3 s")
    assert compared.document == timeless(command.stdout) == json.loads(compared.json())
    # Values keep their digits and keys their order.
    assert compared.json() == re.sub(r',\n\s*"timing": \{[^}]*\}', "", command.stdout)
    assert (compared.varied, compared.rows) == (["policy"], [["none"], ["cake"]])


def test_means_over_seeds_are_those_of_the_command(at_root: Path, lastmile: Command) -> None:
    vary = ["--vary", "access.up.rate=256 kbit/s,1 Mbit/s", "--seeds", "2", "--duration", "2 s"]
    command = lastmile("compare", STARVED, *vary, "--json")
    compared = lm.compare(STARVED, vary={"access.up.rate": ["256 kbit/s", "1 Mbit/s"]}, seeds=2, duration="2 s")
    assert compared.document == timeless(command.stdout)
    assert len(compared) == 2 and len(compared.runs) == 4


def test_results_do_not_depend_on_threads(download: lm.Scenario) -> None:
    one, two = (lm.compare(download, policy=[None, "cake"], threads=threads).json() for threads in (1, 2))
    assert one == two


def test_without_a_choice_the_rows_are_the_usual_policies(download: lm.Scenario) -> None:
    compared = lm.compare(download, duration="1 s")
    assert [values[0] for values in compared.rows] == ["none", "cake", "fq-codel-sqm", "full-both-ways"]


def test_progress_counts_all_runs(download: lm.Scenario) -> None:
    heard: list[float] = []
    lm.compare(download, vary={"seed": [1, 2, 3]}, progress=heard.append)
    assert heard == sorted(heard) and heard[-1] == 1.0


def test_a_callback_that_raises_ends_the_comparison(endless: lm.Scenario) -> None:
    def stop(done: float) -> None:
        raise LookupError(done)

    with pytest.raises(LookupError):
        lm.compare(endless, vary={"seed": [1, 2, 3]}, progress=stop)


def test_a_wrong_value_is_named_with_its_row(download: lm.Scenario) -> None:
    with pytest.raises(lm.ScenarioError, match="access.up.rate=fast"):
        lm.compare(download, vary={"access.up.rate": ["1 Mbit/s", "fast"]})
    with pytest.raises(lm.ScenarioError, match="twice"):
        lm.compare(download, vary={"seed": [1, 1]})


def test_a_comparison_shows_itself(download: lm.Scenario, tmp_path: Path) -> None:
    compared = lm.compare(download, policy=[None, "cake"])
    assert repr(compared) == "<lastmile.Comparison: 2 rows, by policy>"
    assert "cake" in str(compared) and "<table>" in compared._repr_html_()
    assert compared.svg("goodput_bps").startswith("<svg")
    compared.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == compared.html()


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"seeds": 0}, "seeds: 0 is no whole number from 1"),
        ({"vary": {"access.up.rate": []}}, "no values of access.up.rate"),
        ({"policy": []}, "policy: no values"),
        ({"vary": {"access.policy": "cake"}}, r"access.policy: a list of values, and not a text: \['cake'\]"),
    ],
)
def test_nothing_to_compare_is_an_error(download: lm.Scenario, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lm.compare(download, **wrong)


def test_a_comparison_can_be_pickled(download: lm.Scenario) -> None:
    compared = lm.compare(download, policy=[None, "cake"], seeds=2, duration="2 s")
    again = pickle.loads(pickle.dumps(compared))
    assert again.json(timing=True) == compared.json(timing=True)
    assert (again.varied, again.rows, str(again)) == (compared.varied, compared.rows, str(compared))
    assert again.html() == compared.html()
    assert [run.json() for run in again.runs] == [run.json() for run in compared.runs]


def test_what_is_no_scenario_is_named() -> None:
    with pytest.raises(TypeError, match="a Scenario or the path of a file, and not <class 'list'>"):
        lm.compare(cast(str, []))


def test_the_table_says_what_it_measures(at_root: Path) -> None:
    compared = lm.compare(STARVED, policy=[None, "cake"], duration="90 s")
    assert str(compared).startswith("Measured during upload; losses, drops and applications over the whole run.\n\n")


def test_a_key_is_set_once(download: lm.Scenario) -> None:
    with pytest.raises(ValueError, match="vary and duration set one key, duration"):
        lm.compare(download, vary={"duration": ["1 s", "2 s"]}, duration="9 s")
    with pytest.raises(ValueError, match="vary and seed set one key, seed"):
        lm.compare(download, vary={"seed": [5, 6]}, seed=1)
    with pytest.raises(lm.ScenarioError, match="a number of seeds set one key, seed"):
        lm.compare(download, vary={"seed": [5, 6]}, seeds=2)
    runs = lm.compare(download, vary={"seed": [5, 6]}, duration="1 s").runs
    assert [run.summary["seed"] for run in runs] == [5, 6]
