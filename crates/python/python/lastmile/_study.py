"""Studies: a scenario at many points of a space of parameters, with several seeds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple, SupportsIndex, overload

from lastmile import _lastmile
from lastmile._arguments import axes as lists
from lastmile._arguments import mapping, number, whole, wrong
from lastmile._lastmile import Scenario, Space, Study
from lastmile._quantities import Duration
from lastmile._runs import ScenarioOrPath

__all__ = ["Until", "cases", "latin", "linear", "log", "paired", "study", "until"]

Quantity = str | float
"""A number, or a text with a unit."""


class Until(NamedTuple):
    """Seeds until the interval of a mean is narrow enough. `until` makes it.

    >>> import lastmile as lm
    >>> lm.until(ci=0.02, at_most=64)
    Until(ci=0.02, at_least=10, at_most=64, measure=None)
    """

    ci: float
    """Half the width of the 95 % confidence interval, as a share of the mean."""
    at_least: int
    """The first seeds of a point."""
    at_most: int
    """The most seeds of a point."""
    measure: str | None
    """The measure: a column of the table. ``None`` is ``download_bps``, or ``goodput_bps`` without an access line."""


def until(
    *, ci: float, at_least: SupportsIndex | None = None, at_most: SupportsIndex = 64, measure: str | None = None
) -> Until:
    """Seeds until half of the 95 % confidence interval of ``measure`` is at most ``ci`` of its mean.

    Each point begins with ``at_least`` seeds, by default 10 or ``at_most`` if that is less, and gets half as many more
    until its interval is narrow or it has ``at_most``. A larger ``at_least`` is for measures of which a few runs differ
    from the others, as by an outage.
    The measure is ``download_bps`` by default, or ``goodput_bps`` of a network without an access line.

    >>> import lastmile as lm
    >>> lm.until(ci=0.05, at_most=16, measure="ping.p50_s").measure
    'ping.p50_s'
    """
    ci, at_most = number("ci", ci), whole("at_most", at_most)
    if measure is not None and not isinstance(measure, str):
        raise wrong("measure", "a text", measure)
    if not 0 < ci < 1:
        raise ValueError(f"ci: {ci} is no share of the mean, such as 0.02")
    if at_most < 2:
        raise ValueError(f"at_most: {at_most} seeds have no interval: at least 2")
    least = min(10, at_most) if at_least is None else whole("at_least", at_least)
    if not 2 <= least <= at_most:
        raise ValueError(f"at_least: {least} is no whole number from 2 to at_most, {at_most}")
    return Until(ci, least, at_most, measure)


def log(low: Quantity, high: Quantity, count: SupportsIndex) -> list[str]:
    """``count`` values from ``low`` to ``high`` with even ratios, in four digits.

    >>> import lastmile as lm
    >>> lm.log("128 kbit/s", "2048 kbit/s", 5)
    ['128 kbit/s', '256 kbit/s', '512 kbit/s', '1.024 Mbit/s', '2.048 Mbit/s']
    """
    return _lastmile.steps(str(low), str(high), count, True)


def linear(low: Quantity, high: Quantity, count: SupportsIndex) -> list[str]:
    """``count`` values from ``low`` to ``high`` with even differences, in four digits.

    >>> import lastmile as lm
    >>> lm.linear("10 ms", "50 ms", 3)
    ['10 ms', '30 ms', '50 ms']
    """
    return _lastmile.steps(str(low), str(high), count, False)


def grid(axes: Mapping[str, object]) -> Space:
    """Every combination of the values of each key."""
    return _lastmile.grid(lists("space", axes))


def cases(cases: Mapping[str, Mapping[str, object]], /) -> Space:
    """Points of settings under names, which are values of one key, ``case``: those of tables, figures and the page.

    A case sets several keys, or none; another may leave them to the scenario.

    >>> import lastmile as lm
    >>> senders = lm.cases(
    ...     {"CUBIC": {}, "BBR": {"tcp.variant": "bbr"}, "QUIC": {"traffic.download.transport": "quic"}}
    ... )
    >>> senders * {"access.policy": [None, "cake"]}
    <lastmile.Space: 6 points of case, access.policy>
    >>> senders.cases["BBR"]
    ['tcp.variant=bbr']
    """
    named = mapping("cases", "settings by name", cases)
    for name in named:
        if not isinstance(name, str):
            raise wrong("cases", 'names are texts such as "BBR"', name)
    return _lastmile.cases([(name, _settings(name, case)) for name, case in named.items()])


def _settings(name: str, case: object) -> dict[str, object]:
    """The values of the keys of a case."""
    settings = mapping(f"cases: {name}", "values of keys", case)
    for key in settings:
        if not isinstance(key, str):
            raise wrong(f"cases: {name}", 'keys are texts such as "access.up.rate"', key)
    return settings


def paired(axes: Mapping[str, object]) -> Space:
    """Points of lists of equal length: the n-th point has the n-th value of each key.

    >>> import lastmile as lm
    >>> lm.paired({"access.down.rate": ["8 Mbit/s", "50 Mbit/s"], "access.up.rate": ["1 Mbit/s", "10 Mbit/s"]}).points
    [['8 Mbit/s', '1 Mbit/s'], ['50 Mbit/s', '10 Mbit/s']]

    The product of two spaces has each point of one with each of the other; a dict is a grid.

    >>> len(lm.paired({"access.up.delay": ["2 ms", "20 ms"]}) * {"access.policy": [None, "cake", "fifo"]})
    6
    """
    return _lastmile.paired(lists("axes", axes))


def latin(
    count: SupportsIndex,
    ranges: Mapping[str, tuple[Quantity, Quantity] | tuple[Quantity, Quantity, str]],
    *,
    seed: SupportsIndex = 1,
) -> Space:
    """``count`` points of a Latin hypercube: each key takes one value in each of ``count`` equal parts of its range.

    A range is ``(low, high)``, or ``(low, high, "log")`` for parts of even ratios.

    >>> import lastmile as lm
    >>> ranges = {"access.up.rate": ("128 kbit/s", "2 Mbit/s", "log"), "access.up.delay": ("2 ms", "40 ms")}
    >>> space = lm.latin(20, ranges)
    >>> len(space), space.keys
    (20, ['access.up.rate', 'access.up.delay'])
    """
    rows = []
    for key, ends in mapping("ranges", "ranges of keys", ranges).items():
        if not isinstance(ends, (tuple, list)) or len(ends) not in (2, 3):
            raise ValueError(f"{key}: a range is (low, high) or (low, high, 'log'), and not {ends!r}")
        low, high, *scale = ends
        if scale not in ([], ["log"], ["linear"]):
            raise ValueError(f"{key}: the third item of a range is 'log' or 'linear', and not {scale[0]!r}")
        rows.append((key, str(low), str(high), scale == ["log"]))
    return _lastmile.latin(count, rows, seed)


@overload
def study(file: str | os.PathLike[str], /) -> Study: ...
@overload
def study(
    scenario: ScenarioOrPath,
    space: Mapping[str, object] | Space,
    /,
    *,
    seeds: SupportsIndex | Until = 1,
    duration: str | Duration | None = None,
) -> Study: ...
def study(
    scenario: ScenarioOrPath,
    space: Mapping[str, object] | Space | None = None,
    /,
    *,
    seeds: SupportsIndex | Until = 1,
    duration: str | Duration | None = None,
) -> Study:
    """A study of a scenario: every combination of the values of each key, or the points of `paired`, `latin` or
    `cases`.

    A path alone is that of a study file, which `lastmile study` takes, too.

    A value that the scenario does not take is an error at once. Each point runs with ``seeds`` seeds from that of the
    scenario on, or until an interval is narrow enough. All points have the same seeds, so that differences between
    points are paired comparisons with common random numbers.

    ``Study.run(folder)`` simulates on all processors and keeps each finished run in the folder, under an address made
    of everything that determines its result. A study that was stopped, also by ``kill -9``, goes on; nothing runs
    twice; studies may share a folder. ``Study.run(folder, client=client)`` simulates on a cluster of Dask.

    >>> import lastmile as lm
    >>> line = lm.line("adsl2plus-12-1", home="single")
    >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    >>> table = study.run("out/policies")
    >>> len(table), study.status("out/policies")
    (4, (4, 4))
    """
    if space is None:
        if isinstance(scenario, Scenario) or seeds != 1 or duration is not None:
            raise ValueError("a study has a space: values of keys, or the points of `paired` or `latin`")
        return _lastmile.study_file(scenario)
    if not isinstance(space, Space):
        space = grid(space)
    if isinstance(seeds, Until):
        until = (seeds.measure, seeds.ci, seeds.at_least)
        return _lastmile.study(scenario, space, seeds=seeds.at_most, until=until, duration=duration)
    return _lastmile.study(scenario, space, seeds=seeds, until=None, duration=duration)
