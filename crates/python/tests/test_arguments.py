"""Wrong arguments: a `ValueError` or `TypeError` names them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lastmile as lm
import numpy
import pytest
from lastmile import linklayer, theory

from conftest import ROOT

LINE = lm.line("adsl2plus-12-1", home="single").set("duration", "1 s")
RATES = {"access.up.rate": ["1 Mbit/s", "2 Mbit/s"]}
CAPTURE = ROOT / "crates/cli/tests/captures/bulk-sender.pcap.zst"
OTHER: Any = 5
"""A value of another type."""

TYPES: dict[str, tuple[Callable[[], object], str]] = {
    "load": (lambda: lm.load(b"x"), "path: a path, and not of type bytes"),  # type: ignore[arg-type]
    "loads": (lambda: lm.loads(OTHER), "text: that of a scenario, and not of type int"),
    "loads-name": (lambda: lm.loads("", name=OTHER), "name: a text, and not of type int"),
    "line": (lambda: lm.line(OTHER), "name: a text, and not of type int"),
    "home": (lambda: lm.line("geo-50-5", OTHER), "home: a text, and not of type int"),
    "set": (lambda: LINE.set(OTHER, 1), 'key: a text such as "access.up.rate", and not of type int'),
    "memory": (lambda: lm.run(LINE, memory=OTHER), 'memory: a size such as "4 GiB", and not of type int'),
    "progress": (
        lambda: lm.run(LINE, progress="yes"),  # type: ignore[arg-type]
        "progress: True for a bar, a function of the share that is done, or None, and not of type str",
    ),
    "queues": (lambda: lm.run(LINE, queues=OTHER), "queues: a dict of classes by link, and not of type int"),
    "congestion": (
        lambda: lm.run(LINE, congestion=OTHER),
        "congestion: a dict of classes by traffic, and not of type int",
    ),
    "queues-link": (
        lambda: lm.run(LINE, queues={OTHER: OTHER}),
        "queues: classes by link, which is a text, and not of type int",
    ),
    "compare-policy": (
        lambda: lm.compare(LINE, policy=OTHER),
        "policy: a name, a list of names, or None, and not of type int",
    ),
    "vary": (lambda: lm.compare(LINE, vary=OTHER), "vary: a dict of lists of values of keys, and not of type int"),
    "vary-values": (
        lambda: lm.compare(LINE, vary={"access.up.rate": OTHER}),
        "access.up.rate: a list of values, and not of type int",
    ),
    "seeds": (lambda: lm.compare(LINE, seeds=True), "seeds: a whole number, and not of type bool"),
    "space": (lambda: lm.study(LINE, OTHER), "space: a dict of lists of values of keys, and not of type int"),
    "space-key": (
        lambda: lm.study(LINE, {OTHER: [1]}),
        'space: keys are texts such as "access.up.rate", and not of type int',
    ),
    "space-values": (lambda: lm.study(LINE, {"seed": OTHER}), "seed: a list of values, and not of type int"),
    "paired": (lambda: lm.paired({"a": OTHER}), "a: a list of values, and not of type int"),
    "ci": (lambda: lm.until(ci="5 %"), "ci: a number, and not of type str"),  # type: ignore[arg-type]
    "at_most": (
        lambda: lm.until(ci=0.1, at_most="3"),  # type: ignore[arg-type]
        "at_most: a whole number, and not of type str",
    ),
    "at_least": (
        lambda: lm.until(ci=0.1, at_least=2.5),  # type: ignore[arg-type]
        "at_least: a whole number, and not of type float",
    ),
    "until-measure": (lambda: lm.until(ci=0.1, measure=OTHER), "measure: a text, and not of type int"),
    "log": (lambda: lm.log(1, 8, 4.0), "count: a whole number, and not of type float"),  # type: ignore[arg-type]
    "latin": (
        lambda: lm.latin(5.0, {"a": (1, 2)}),  # type: ignore[arg-type]
        "count: a whole number, and not of type float",
    ),
    "ranges": (lambda: lm.latin(5, OTHER), "ranges: a dict of ranges of keys, and not of type int"),
    "folder": (lambda: lm.study(LINE, RATES).run(OTHER), "folder: a path, and not of type int"),
    "status": (lambda: lm.study(LINE, RATES).status(OTHER), "folder: a path, and not of type int"),
    "reproduce": (lambda: lm.reproduce(OTHER), 'tables: texts such as "phanse2000/5.2", and not of type int'),
    "analyse": (lambda: lm.analyse(OTHER), "files: a path, and not of type int"),
    "group_by": (
        lambda: lm.analyse(CAPTURE, group_by=OTHER),
        'group_by: "port", "dscp" or "prefix/BITS", and not of type int',
    ),
    "times-of-numpy": (
        lambda: theory.grant_bound(numpy.array([5], "m8[ms]")),
        "request_grant_s: a number, or a sequence or an array of numbers, and not of type ndarray",
    ),
    "time-of-numpy": (
        lambda: lm.Duration(numpy.timedelta64(1_000_000, "ns")),
        "value: a text with a unit or a number of s, and not of type timedelta64",
    ),
    "size-for-a-rate": (
        lambda: theory.amp(lm.Size("1 MB"), "64 kbit/s", link="none", ack=40, packets_per_ack=1),
        "down: a rate, and not of type Size",
    ),
    "size": (
        lambda: linklayer.on_wire(None, "none"),  # type: ignore[arg-type]
        "size: a number, or a sequence or an array of numbers, and not of type NoneType",
    ),
    "size-numpy": (
        lambda: theory.grant_bound(["x"], acks=numpy.array([1])),  # type: ignore[list-item]
        "request_grant_s: a number, or a sequence or an array of numbers, and not of type list",
    ),
    "link": (lambda: linklayer.on_wire(40, OTHER), "link: the name of an encapsulation, and not of type int"),
    "codec": (lambda: theory.r_factor(0.1, codec=OTHER), "codec: a text, and not of type int"),
    "shares": (lambda: theory.jain(["x"]), "shares: a number, and not of type str"),  # type: ignore[list-item]
}


VALUES: dict[str, tuple[Callable[[], object], str]] = {
    "range": (
        lambda: lm.latin(5, {"a": ("1 Mbit/s",)}),  # type: ignore[dict-item]
        "a: a range is (low, high) or (low, high, 'log'), and not ('1 Mbit/s',)",
    ),
    "range-number": (
        lambda: lm.latin(5, {"a": OTHER}),
        "a: a range is (low, high) or (low, high, 'log'), and not 5",
    ),
    "seed": (
        lambda: lm.latin(5, {"a": (1, 2)}, seed=-1),
        "seed: -1 is no whole number from 0 to 18446744073709551615",
    ),
    "count": (lambda: lm.linear(1, 2, 0), "count: 0 is no whole number from 1 to 18446744073709551615"),
    "group_by": (
        lambda: lm.analyse(CAPTURE, group_by="host"),
        "group_by: groups are port, dscp or prefix/BITS, such as prefix/24",
    ),
    "capture": (
        lambda: lm.run(LINE, capture={"up": "a.pcapng", "down": "./a.pcapng"}),
        "capture: up and down have one file, './a.pcapng'",
    ),
    "rate": (
        lambda: theory.wait_behind("1 ms", link="none"),
        'rate: "1 ms" is a time, where a bit rate is expected, for example "512 kbit/s"',
    ),
    "codec": (
        lambda: theory.r_factor(0.1, codec="opus"),
        'codec: unknown "opus": there are g711, g711-no-plc, g729a, g723.1, gsm-efr',
    ),
    "lengths": (
        lambda: theory.grant_bound([0.005, 0.003], acks=[1, 2, 3]),
        "arguments of different lengths: request_grant_s has 2, acks has 3",
    ),
}


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [(TypeError, *case) for case in TYPES.values()] + [(ValueError, *case) for case in VALUES.values()],
    ids=[*TYPES, *VALUES],
)
def test_a_wrong_argument_is_named(error: type[Exception], call: Callable[[], object], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


def test_arguments_of_results_are_named(tmp_path: Path) -> None:
    run, table = lm.run(LINE), lm.study(LINE, RATES).run(tmp_path)
    packets = lm.analyse(CAPTURE, packets=True).packets
    half: Any = 0.5
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: run.limits(OTHER), "flow: a text, and not of type int"),
        (lambda: run.save(OTHER), "folder: a path, and not of type int"),
        (lambda: run.svg(OTHER), "series: texts, and not of type int"),
        (lambda: run.series.samples(OTHER, "ping"), "name: a text, and not of type int"),
        (lambda: run.series.samples("rtt_s", OTHER), "entity: a text, and not of type int"),
        (lambda: run.plot.throughput(axes=OTHER), "axes: Axes of matplotlib, and not of type int"),
        (lambda: table.column(OTHER), "name: a text, and not of type int"),
        (lambda: table.means(OTHER), "measure: a text, and not of type int"),
        (lambda: table.means("x", where=OTHER), "where: a dict of values of keys, and not of type int"),
        (
            lambda: table.means("x", where={OTHER: 1}),
            'where: keys are texts such as "access.up.rate", and not of type int',
        ),
        (lambda: table.text(OTHER), "measures: texts, and not of type int"),
        (lambda: table.paired(OTHER, "access.up.rate", 1, 2), "measure: a text, and not of type int"),
        (lambda: packets.data(OTHER, OTHER), 'direction: "up" or "down", and not of type int'),
        (lambda: packets.acks(half, "up"), "connection: a whole number, and not of type float"),
    ]
    for call, message in wrong:
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message
    with pytest.raises(ValueError, match='direction: up or down, and not "sideways"'):
        packets.data(1, "sideways")
    for ask in (packets.data, packets.acks):
        with pytest.raises(KeyError, match="no connection 99: there are 1, numbered from 1 on"):
            ask(99, "down")


def test_numbers_of_numpy_are_whole_numbers(tmp_path: Path) -> None:
    seed = numpy.int64(3)
    assert lm.run(LINE, seed=seed).summary["seed"] == 3
    assert len(lm.compare(LINE, policy=[None], seed=seed, seeds=numpy.int64(2), threads=numpy.int64(1)).runs) == 2
    assert len(lm.latin(numpy.int64(3), {"a": (1.0, 2.0)}, seed=seed)) == 3
    assert lm.log(1, 100, numpy.int64(3)) == ["1", "10", "100"]


def test_memory_and_progress_of_a_study_are_those_of_a_run(tmp_path: Path) -> None:
    table = lm.study(LINE, RATES).run(tmp_path, memory=lm.Size("1 GiB"), progress=True)
    assert len(table) == 2
