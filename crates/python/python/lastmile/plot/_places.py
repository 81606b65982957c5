"""The values of a key on an axis: numbers by size or by ratio, words at even distances, as on the page of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lastmile import _lastmile
from lastmile.plot._style import unit
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator, StrMethodFormatter

__all__ = ["Design", "Places", "in_order"]

UNITS = {"bps": "bit/s", "s": "s", "bytes": "B"}
"""Units with steps of thousands, by the end of the name of a column."""
OTHER_UNITS = {
    "number": (1.0, ""),
    "share": (0.01, "%"),
    "packets": (1.0, "packets"),
    "cells": (1.0, "cells"),
    "wire_bytes": (1.0, "B on the wire"),
}
MOST_TICKS = 10
"""The most values that are ticks themselves."""
LEAST_GAP = 0.055
"""The least distance between two of these ticks, as a share of the axis."""
APART = 0.06
"""The distance between lines at one word."""
FEWEST_NUMBERS = 3
"""The fewest numbers of an axis that comes before words."""
MOST_LINES = 16
"""The most numbers with a line for each, where points alone would hide a key."""


def _numbers(values: Sequence[str]) -> tuple[str, list[float]] | None:
    """The kind of these values and their numbers, if all of them are numbers of one kind."""
    found = _lastmile.numbers(values)
    if found is None:
        return None
    known = [number for number in found[1] if number is not None]
    return (found[0], known) if len(known) == len(values) else None


def in_order(values: Sequence[str]) -> list[str]:
    """Different values: numbers by size, words in the order of appearance."""
    different = list(dict.fromkeys(values))
    found = _numbers(different)
    return different if found is None else [value for _, value in sorted(zip(found[1], different))]


def _unevenness(ordered: Sequence[float]) -> float:
    """The sum of squared gaps between neighbours, as a share of the square of their sum."""
    gaps = [later - earlier for earlier, later in zip(ordered, ordered[1:])]
    return sum(gap * gap for gap in gaps) / sum(gaps) ** 2


def _is_log(numbers: Sequence[float]) -> bool:
    """True if numbers above zero are spread more evenly by their ratios than by their differences."""
    ordered = sorted(set(numbers))
    if len(ordered) < 3 or ordered[0] <= 0:
        return False
    return _unevenness([round(math.log10(number), 6) for number in ordered]) < 0.99 * _unevenness(ordered)


class Places:
    """An axis with the values of a key."""

    def __init__(self, key: str, values: Sequence[str]) -> None:
        self._different = list(dict.fromkeys(values))
        found = _numbers(self._different)
        self.has_order = found is not None
        """True for numbers, whose points are joined."""
        self._is_log = False
        if found is None:
            self.label = key
            self._of = {value: float(place) for place, value in enumerate(self._different)}
            return
        ending, numbers = found
        size, name = unit(numbers, UNITS[ending]) if ending in UNITS else OTHER_UNITS[ending]
        self.label = f"{key}, {name}" if name else key
        """The name of the key, with the unit of its numbers."""
        self._of = {value: number / size for value, number in zip(self._different, numbers)}
        self._is_log = _is_log(numbers)

    def of(self, value: str, line: int = 0, lines: int = 1) -> float:
        """The place of a value. At words, lines are moved apart, so that their intervals do not cover each other."""
        shift = 0.0 if self.has_order else (line - (lines - 1) / 2) * min(APART, 0.6 / lines)
        return self._of[value] + shift

    def draw(self, axes: Axes) -> None:
        """Sets label, scale and ticks of the horizontal axis."""
        axes.set_xlabel(self.label)
        if not self.has_order:
            is_wide = max(map(len, self._different), default=0) * len(self._different) > 60
            axes.set_xticks(list(self._of.values()), self._different)
            axes.set_xlim(-0.5, len(self._different) - 0.5)
            axes.tick_params(axis="x", rotation=30 if is_wide else 0)
            return
        if self._is_log:
            axes.set_xscale("log")
        numbers = sorted(set(self._of.values()))
        places = [math.log10(number) for number in numbers] if self._is_log else numbers
        span = places[-1] - places[0]
        gaps = [later - earlier for earlier, later in zip(places, places[1:])]
        if len(numbers) <= MOST_TICKS and all(gap >= LEAST_GAP * span for gap in gaps):
            axes.set_xticks(numbers, [f"{number:.4g}" for number in numbers])
            axes.xaxis.set_minor_locator(NullLocator())
        elif self._is_log:
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if span < 2.5 else (1.0,)))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())


class Design:
    """Which key is the axis, and which keys have a line for each combination of their values."""

    def __init__(self, keys: Sequence[str], points: Sequence[Sequence[str]], x: str | None = None) -> None:
        columns = {key: [point[number] for point in points] for number, key in enumerate(keys)}
        varied = [key for key in keys if len(set(columns[key])) > 1]
        self.x = x or _axis(varied, columns) or keys[0]
        """The key of the axis."""
        others = [key for key in varied if key != self.x]
        factors: list[str] = []
        for key in others:
            before = [self.x, *others[: others.index(key)]]
            if _is_factor(columns[key], columns[self.x]) and not any(
                _is_tied(columns[key], columns[one]) for one in before
            ):
                factors.append(key)
        while hidden := _hidden([self.x, *factors], [key for key in others if key not in factors], columns):
            factors.append(hidden)
        self.factors = [key for key in others if key in factors]
        """Keys with lines."""
        self.is_scattered = len(factors) < len(others)
        """True if further keys vary with these, as in a Latin hypercube: points are not joined."""


def _axis(varied: Sequence[str], columns: Mapping[str, Sequence[str]]) -> str | None:
    """The first key; if that has words, the first with some numbers."""
    if not varied or _numbers(list(dict.fromkeys(columns[varied[0]]))) is not None:
        return varied[0] if varied else None
    for key in varied:
        values = list(dict.fromkeys(columns[key]))
        if len(values) >= FEWEST_NUMBERS and _numbers(values) is not None:
            return key
    return varied[0]


def _hidden(shown: Sequence[str], rest: Sequence[str], columns: Mapping[str, Sequence[str]]) -> str | None:
    """The first key of the rest that distinguishes points with equal values of the shown keys: words before numbers."""
    drawn = list(zip(*(columns[key] for key in shown)))
    has_numbers = {key: _numbers(list(dict.fromkeys(columns[key]))) is not None for key in rest}
    for key in sorted(rest, key=has_numbers.__getitem__):
        is_short = not has_numbers[key] or len(set(columns[key])) <= MOST_LINES
        if is_short and len(set(zip(drawn, columns[key]))) > len(set(drawn)):
            return key
    return None


def _is_factor(values: Sequence[str], across: Sequence[str]) -> bool:
    """True if every value occurs with two values of the axis."""
    met: dict[str, set[str]] = {}
    for value, other in zip(values, across):
        met.setdefault(value, set()).add(other)
    return all(len(others) > 1 for others in met.values())


def _is_tied(values: Sequence[str], others: Sequence[str]) -> bool:
    """True if each value of one key occurs with one value of the other alone."""
    pairs = set(zip(values, others))
    return len(pairs) == len(set(values)) == len(set(others))
