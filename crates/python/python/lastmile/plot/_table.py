"""Plots of studies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lastmile._arguments import mapping
from lastmile.plot._heatmap import heatmap, some_of, unit_of, words
from lastmile.plot._places import Design, Places, in_order
from lastmile.plot._style import COLOURS, MARKERS, axes_of, legend, styled
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from lastmile._lastmile import Table

__all__ = ["TablePlots"]

_Mean = tuple[list[str], float, float, str]
"""Values of keys, the mean, half its interval, and the number of its seeds where the point has more."""


class TablePlots:
    """Plots of the table of a study. Measures are its columns.

    >>> from lastmile.plot import TablePlots
    >>> [name for name in vars(TablePlots) if not name.startswith("_")]
    ['heatmap', 'means']
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def _means(self, measure: str, where: Mapping[str, object] | None) -> tuple[list[str], list[_Mean], str]:
        """The keys that vary, the means by their values, and the values of the others in words."""
        fixed = {} if where is None else mapping("where", "values of keys", where)
        keys, rows = self._table.keys, self._table.means(measure, where=fixed)
        at = [number for number, key in enumerate(keys) if key not in fixed]
        title = ", ".join(f"{key} {value}" for key, value in zip(keys, rows[0][0] if rows else []) if key in fixed)
        runs = Counter(zip(*(self._table.column(key) for key in keys)))
        means = [
            ([point[number] for number in at], mean, ci95, some_of(seeds, runs[tuple(point)]))
            for point, mean, ci95, seeds in rows
        ]
        return [keys[number] for number in at], means, title

    @styled
    def heatmap(
        self,
        measure: str,
        *,
        x: str | None = None,
        y: str | None = None,
        where: Mapping[str, object] | None = None,
        axes: Axes | None = None,
    ) -> Figure:
        """The mean of a measure over two keys of the study; by default the second is ``x``.

        ``where`` has a value of each further key: the map is of the points with these. Numbers are in their order,
        words in that of the study.

        >>> import lastmile as lm
        >>> line = lm.line("adsl2plus-12-1", home="single")
        >>> space = {"access.up.rate": ["1 Mbit/s", "2 Mbit/s"], "access.policy": [None, "cake"]}
        >>> table = lm.study(line, space, duration="2 s").run("out/study")
        >>> table.plot.heatmap("download_bps").axes[0].get_ylabel()
        'access.up.rate'
        """
        keys, rows, title = self._means(measure, where)
        if len(keys) != 2:
            more = ": where={key: value} fixes others" if len(keys) > 2 else ""
            raise ValueError(f"a heat map is of two keys, and the study varies {', '.join(keys)}{more}")
        y = y or (keys[1] if x == keys[0] else keys[0])
        x = x or (keys[0] if y == keys[1] else keys[1])
        if {x, y} != set(keys):
            raise ValueError(f"x and y: the two keys of the study are {keys[0]} and {keys[1]}")
        row, column = keys.index(y), keys.index(x)
        means = {(point[row], point[column]): (mean, some) for point, mean, _, some in rows}
        return heatmap(measure, (y, x), means, axes, title)

    @styled
    def means(
        self,
        measure: str,
        *,
        x: str | None = None,
        where: Mapping[str, object] | None = None,
        axes: Axes | None = None,
    ) -> Figure:
        """Means of a measure with their 95 % intervals over one key, a line for each value of the others.

        Numbers have their place by size, or by ratio on a logarithmic axis where their ratios are even; words are at
        even distances, and no line joins them. Numbers that vary from point to point, as in a Latin hypercube, have no
        lines, and the points are not joined; a key has lines wherever two points would else look alike. By default
        ``x`` is the axis of the page of the study: the first key, or the first with three numbers if that has words.
        ``where`` has values of keys: the points with these alone. A mean of fewer seeds than its point has is marked by
        their number.

        >>> import lastmile as lm
        >>> line = lm.line("adsl2plus-12-1", home="single")
        >>> space = {"access.up.rate": ["1 Mbit/s", "2 Mbit/s"], "access.policy": [None, "cake"]}
        >>> table = lm.study(line, space, seeds=2, duration="2 s").run("out/study")
        >>> axes = table.plot.means("download_bps").axes[0]
        >>> axes.get_xlabel(), axes.get_legend().get_title().get_text()
        ('access.up.rate, Mbit/s', 'access.policy')
        """
        keys, rows, title = self._means(measure, where)
        if not keys:
            raise ValueError("x: the study varies no key")
        if x is not None and x not in keys:
            raise ValueError(f"x: {x!r} is no key of the study: there are {', '.join(keys)}")
        design = Design(keys, [point for point, _, _, _ in rows], x)
        at, factors = keys.index(design.x), [keys.index(key) for key in design.factors]
        places = Places(design.x, [point[at] for point, _, _, _ in rows])
        orders = [in_order([point[key] for point, _, _, _ in rows]) for key in factors]
        # Lines are in the order of their values, the first key first.
        rows.sort(key=lambda row: [order.index(row[0][key]) for key, order in zip(factors, orders)])
        lines: dict[str, list[tuple[str, float, float, str]]] = {}
        for point, mean, ci95, some in rows:
            lines.setdefault(", ".join(point[key] for key in factors), []).append((point[at], mean, ci95, some))
        figure, axes = axes_of(axes, (5.6, 3.2))
        factor, name = unit_of(measure, [mean for line in lines.values() for _, mean, _, _ in line])
        looks: dict[str, Any] = {} if places.has_order and not design.is_scattered else {"linestyle": "none"}
        for number, (label, line) in enumerate(lines.items()):
            placed = sorted(
                (places.of(value, number, len(lines)), mean, ci95, some) for value, mean, ci95, some in line
            )
            axes.errorbar(
                [place for place, _, _, _ in placed],
                [mean / factor for _, mean, _, _ in placed],
                yerr=[interval / factor for _, _, interval, _ in placed],
                label=label,
                capsize=2.5,
                marker=MARKERS[number // len(COLOURS) % len(MARKERS)],
                markersize=3.5,
                **looks,
            )
            for place, mean, _, some in placed:
                if some:
                    axes.annotate(some, (place, mean / factor), (4, 4), textcoords="offset points", fontsize=7)
        places.draw(axes)
        axes.set_ylabel(words(measure, name))
        axes.set_ylim(bottom=0)
        if title:
            axes.set_title(title)
        legend(axes, ", ".join(design.factors))
        return figure
