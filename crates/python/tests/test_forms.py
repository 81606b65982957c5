"""Closed forms and link layers, over numbers, sequences and arrays."""

from __future__ import annotations

import json
import math
from array import array

import numpy
import pytest
from lastmile import ScenarioError, linklayer, theory

from conftest import Command


def test_bytes_on_the_wire_are_those_of_the_command(lastmile: Command) -> None:
    sizes = [40, 52, 576, 1500]
    rows = json.loads(lastmile("overhead", "--json").stdout)
    for preset in linklayer.presets():
        own = [row for row in rows if row["link"] == preset.name]
        assert list(linklayer.on_wire(sizes, preset.name)) == [row["wire_bytes"] for row in own]
        assert list(linklayer.efficiency(sizes, preset.name)) == pytest.approx([row["efficiency"] for row in own])
        if preset.framing == "atm":
            assert list(linklayer.cells(sizes, preset.name)) == [row["cells"] for row in own]


def test_asymmetry_is_that_of_the_command(lastmile: Command) -> None:
    command = lastmile(
        "model", "asymmetry", "--down", "24 Mbit/s", "--up", "1 Mbit/s", "--link", "pppoe-vcmux",
        "--delayed-ack-factor", "1.5", "--json",
    )  # fmt: skip
    row = json.loads(command.stdout)["links"][0]
    own = theory.asymmetry("24 Mbit/s", "1 Mbit/s", link="pppoe-vcmux", segments_per_ack=1.5)
    assert own == (row["k"], row["utilisation_bound"], row["goodput_bound_bps"], row["acks_needed_per_s"])


def test_ack_rates_and_delays_are_those_of_the_command(lastmile: Command) -> None:
    rates = json.loads(
        lastmile("model", "ack-rate", "--down", "8 Mbit/s", "--line", "--link", "pppoe-vcmux", "--json").stdout
    )["links"][0]
    own = theory.ack_rate("8 Mbit/s", link="pppoe-vcmux")
    assert own == (rates["acks_per_s"], rates["ack_rate_bps"])
    bound = json.loads(lastmile("model", "delay-bound", "--up", "1 Mbit/s", "--link", "pppoe-vcmux", "--json").stdout)[
        "rows"
    ]
    sizes = [row["ip_bytes"] for row in bound]
    delays = theory.wait_behind("1 Mbit/s", link="pppoe-vcmux", size=sizes)
    assert list(delays) == [row["up_s"] for row in bound]


def test_shapes_are_those_of_the_arguments() -> None:
    one = theory.asymmetry(24e6, 1e6, link="pppoe-vcmux")
    rates = numpy.array([[1e6], [2e6]])
    sizes = numpy.array([40, 52, 64])
    grid = theory.asymmetry(24e6, rates, link="pppoe-vcmux", ack=sizes)
    assert isinstance(one.k, float) and grid.k.shape == (2, 3) and grid.k[0, 0] == one.k
    assert isinstance(linklayer.on_wire([40], "none"), array)
    assert isinstance(linklayer.on_wire(numpy.int64(40), "none"), float)
    every_second = numpy.arange(40.0, 60.0)[::2]
    assert list(linklayer.on_wire(every_second, "none")) == list(every_second)
    assert list(linklayer.on_wire(array("d", [40, 41]), "none")) == [40, 41]
    with pytest.raises(ValueError, match="different lengths"):
        theory.r_factor([0.1, 0.2], [0.0])


def test_the_amp_bound_is_that_of_the_command(lastmile: Command) -> None:
    command = lastmile(
        "model", "amp", "--down", "8 Mbit/s", "--up", "64 kbit/s", "--link", "pppoe-vcmux", "--packets-per-ack", "1.5",
        "--json",
    )  # fmt: skip
    row = json.loads(command.stdout)["links"][0]
    own = theory.amp("8 Mbit/s", "64 kbit/s", link="pppoe-vcmux", packets_per_ack=1.5)
    assert own == (row["acks_per_s"], row["packet_bits"], row["forward_bps"], row["bound_bps"])
    assert math.isnan(theory.amp(8e6, 64e3, link="none", packets_per_ack=0).bound_bps)


def test_grants_bound_downloads_as_published() -> None:
    """CED, December 2006: 5 and 3 ms allow 2.4 and 4 Mbit/s; twice as much with delayed ACKs."""
    bounds = theory.grant_bound(numpy.array([[0.005], [0.003]]), segments_per_ack=numpy.array([1, 2]))
    assert bounds.tolist() == [[2.4e6, 4.8e6], [4e6, 8e6]]
    assert theory.grant_bound(0.005, acks=10) == 24e6
    wrong = [theory.grant_bound(0), theory.grant_bound(-1), theory.grant_bound(math.nan), theory.grant_bound(1, acks=0)]
    assert all(math.isnan(bound) for bound in wrong), wrong


def test_values_without_a_meaning_are_nan() -> None:
    assert [math.isnan(value) for value in linklayer.on_wire([0, 1, 1.5, -3, 65_536, math.inf], "none")] == [
        True, False, True, True, True, True,
    ]  # fmt: skip
    assert math.isnan(linklayer.cells(40, "none"))
    for size in (-1, 0, 1500.5, 70_000, math.nan, math.inf, numpy.int64(0), numpy.float64(1.5)):
        for form in (linklayer.on_wire, linklayer.cells, linklayer.efficiency):
            with pytest.raises(ValueError, match="size: .* is no whole number from 1 to 65535"):
                form(size, "bridged-vcmux")
    with pytest.raises(ValueError, match="count: -1 is no whole number from 0"):
        linklayer.largest_ip(-1, "bridged-vcmux")
    assert linklayer.on_wire(65_535.0, "none") == 65_535
    assert math.isnan(theory.asymmetry(0, 1e6, link="none").k)


def test_unknown_names_have_hints() -> None:
    with pytest.raises(ScenarioError, match="did you mean") as caught:
        linklayer.on_wire(40, "pppoe-vcmx")
    assert caught.value.hint is not None and "pppoe-vcmux" in caught.value.hint
    with pytest.raises(ValueError, match="there are g711"):
        theory.r_factor(0.1, codec="opus")
    with pytest.raises(ValueError):
        theory.asymmetry("fast", 1, link="none")


def test_calls_follow_the_e_model() -> None:
    """G.107, clause 7.7: R is 93.2 with all defaults. Delay and loss lower it."""
    r = theory.r_factor(numpy.array([0.0, 0.2, 0.4]), 0.0)
    assert round(float(r[0]), 1) == 93.2 and r[0] > r[1] > r[2]
    assert theory.r_factor(0.1, 0.05) < theory.r_factor(0.1, 0.0)
    assert list(theory.mos([0, 100])) == [1.0, 4.5]


def test_means_have_students_interval() -> None:
    """Two samples 1 and 3: s = sqrt 2, s/sqrt 2 = 1, and t(0.975, 1) = 12.706."""
    found = theory.mean([1.0, 3.0])
    assert found is not None and found.mean == 2 and found.ci95 == pytest.approx(12.7062, abs=1e-4)
    assert theory.mean([]) is None and theory.jain([]) is None
    assert theory.jain([3, 3]) == 1
    one = theory.mean([5.0])
    assert one is not None and one.mean == 5 and math.isnan(one.ci95)


def test_values_without_a_meaning_have_no_result() -> None:
    nan = math.nan
    wrong = [theory.r_factor(0.1, loss) for loss in (nan, 1.5, -0.5)]
    wrong += [theory.r_factor(nan), theory.r_factor(-0.1), theory.r_factor(0.1, 0.1, burst_ratio=0), theory.mos(nan)]
    wrong += [theory.jain([nan, 1]), theory.jain([-1, 1]), theory.jain([math.inf, 1])]
    assert all(math.isnan(value) for value in wrong), wrong


def test_delayed_acks_limit_a_download_above_as_many_segments() -> None:
    """k is of an ACK for each segment; the share is the least of 1 and d/k."""
    for per_ack in (1.0, 1.5, 2.0):
        found = theory.asymmetry(24e6, [1e6, 512e3, 128e3], link="bridged-vcmux", segments_per_ack=per_ack)
        assert list(found.k) == [1.5, 2.9296875, 11.71875]
        assert list(found.share) == pytest.approx([min(1, per_ack / k) for k in found.k])


def test_nothing_gives_nothing() -> None:
    assert list(linklayer.on_wire([], "none")) == [] == list(theory.r_factor([]))
    assert list(theory.asymmetry([], 1e6, link="none").k) == []
