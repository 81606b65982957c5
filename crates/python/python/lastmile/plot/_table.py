"""Plots of studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastmile.plot._heatmap import heatmap, unit_of, words
from lastmile.plot._style import axes_of, legend, styled
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from lastmile._lastmile import Table

__all__ = ["TablePlots"]


class TablePlots:
    """Plots of the table of a study. Measures are its columns.

    >>> from lastmile.plot import TablePlots
    >>> [name for name in vars(TablePlots) if not name.startswith("_")]
    ['heatmap', 'means']
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    @styled
    def heatmap(self, measure: str, *, x: str | None = None, y: str | None = None, axes: Axes | None = None) -> Figure:
        """The mean of a measure over two keys of the study; by default the first two.

        >>> import lastmile as lm
        >>> line = lm.line("adsl2plus-12-1", home="single")
        >>> space = {"access.up.rate": ["1 Mbit/s", "2 Mbit/s"], "access.policy": [None, "cake"]}
        >>> table = lm.study(line, space, duration="2 s").run("out/study")
        >>> table.plot.heatmap("download_bps").axes[0].get_ylabel()
        'access.up.rate'
        """
        keys = self._table.keys
        if len(keys) != 2:
            raise ValueError(f"a heat map is of two keys, and the study varies {', '.join(keys)}")
        y = y or (keys[1] if x == keys[0] else keys[0])
        x = x or (keys[0] if y == keys[1] else keys[1])
        if {x, y} != set(keys):
            raise ValueError(f"x and y are {keys[0]} and {keys[1]}")
        row, column = keys.index(y), keys.index(x)
        means = {(point[row], point[column]): mean for point, mean, _, _ in self._table.means(measure)}
        return heatmap(measure, (y, x), means, axes)

    @styled
    def means(self, measure: str, *, x: str | None = None, axes: Axes | None = None) -> Figure:
        """Means of a measure with their 95 % intervals over one key, a line for each value of the other.

        >>> import lastmile as lm
        >>> line = lm.line("adsl2plus-12-1", home="single")
        >>> space = {"access.up.rate": ["1 Mbit/s", "2 Mbit/s"], "access.policy": [None, "cake"]}
        >>> table = lm.study(line, space, seeds=2, duration="2 s").run("out/study")
        >>> table.plot.means("download_bps").axes[0].get_xlabel()
        'access.up.rate'
        """
        keys = self._table.keys
        x = x or keys[0]
        if x not in keys:
            raise ValueError(f"{x!r} is no key of the study: there are {', '.join(keys)}")
        at = keys.index(x)
        lines: dict[str, list[tuple[str, float, float]]] = {}
        for point, mean, ci95, _ in self._table.means(measure):
            rest = ", ".join(value for number, value in enumerate(point) if number != at)
            lines.setdefault(rest, []).append((point[at], mean, ci95))
        figure, axes = axes_of(axes, (5.6, 3.2))
        factor, name = unit_of(measure, [mean for line in lines.values() for _, mean, _ in line])
        for label, line in lines.items():
            values, means, intervals = zip(*line)
            axes.errorbar(
                values,
                [mean / factor for mean in means],
                yerr=[interval / factor for interval in intervals],
                label=label,
                capsize=2.5,
                marker="o",
                markersize=3.5,
            )
        axes.set(xlabel=x, ylabel=words(measure, name))
        axes.set_ylim(bottom=0)
        is_wide = max((len(value) for line in lines.values() for value, _, _ in line), default=0) > 8
        axes.tick_params(axis="x", rotation=30 if is_wide else 0)
        legend(axes)
        return figure
