"""Plots of comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lastmile.plot._heatmap import heatmap, some_of, unit_of, words
from lastmile.plot._run import cdf, no_samples, round_trips
from lastmile.plot._style import Picture, axes_of, legend, styled, unit
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from lastmile._lastmile import Comparison

__all__ = ["ComparisonPlots"]


def _at(row: dict[str, Any], path: str) -> float:
    """The number at a path such as ``ping.p50_s``; ``nan`` for ``null``."""
    value: Any = row
    for key in path.split("."):
        if not isinstance(value, dict):
            raise KeyError(f"no {key!r} in {path!r}: the part before it is no group of measures")
        if key not in value:
            raise KeyError(f"no {key!r} in {path!r}: there are {', '.join(sorted(value))}")
        value = value[key]
    if isinstance(value, dict):
        raise KeyError(f"{path!r} is a group of measures: {', '.join(f'{path}.{key}' for key in sorted(value))}")
    return float("nan") if value is None else float(value)


def _mean(values: list[float]) -> tuple[float, str]:
    """The mean of the known values, and their number where others are unknown."""
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else float("nan"), some_of(len(known), len(values))


class ComparisonPlots:
    """Plots of a comparison. Measures are the keys of its document, such as ``download_bps`` and ``ping.p50_s``.

    >>> import lastmile as lm
    >>> line = lm.line("adsl2plus-12-1", home="single").set("duration", "3 s")
    >>> comparison = lm.compare(line, policy=[None, "cake"])
    >>> len(comparison.plot.measures("download_bps", "probe.p50_s").axes)
    2
    """

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def _means(self, path: str) -> list[tuple[float, str]]:
        """A measure of each row: the mean over the seeds that have it, and their number where others have not."""
        runs = [_at(run, path) for run in self._comparison.document["runs"]]
        each = len(runs) // len(self._comparison)
        return [_mean(runs[at : at + each]) for at in range(0, len(runs), each)]

    @styled
    def measures(self, *paths: str) -> Figure:
        """Measures of each row, side by side. A mean of fewer seeds than the row has is marked by their number.

        >>> import lastmile as lm
        >>> line = lm.line("adsl2plus-12-1", home="single").set("duration", "3 s")
        >>> picture = lm.compare(line, policy=[None, "cake"]).plot.measures("download_bps")
        >>> [text.get_text() for text in picture.axes[0].get_yticklabels()]
        ['none', 'cake']
        """
        if not paths:
            raise ValueError("no measures: such as measures('download_bps', 'ping.p50_s')")
        labels = [", ".join(values) for values in self._comparison.rows]
        size = (1.2 + 2.7 * len(paths), 1.0 + 0.3 * max(len(labels), 2))
        picture = Picture(figsize=size, layout="constrained")
        for axes, path in zip(picture.subplots(1, len(paths), sharey=True, squeeze=False).flat, paths):
            means = self._means(path)
            factor, name = unit_of(path, [mean for mean, _ in means])
            bars = axes.barh(labels, [mean / factor for mean, _ in means], height=0.62, color="#1b9e77")
            if any(some for _, some in means):
                axes.bar_label(bars, [some for _, some in means], padding=3, fontsize=8)
                axes.margins(x=0.25)
            axes.set_xlabel(words(path, name))
            axes.grid(visible=False, axis="y")
        picture.axes[0].invert_yaxis()
        return picture

    @styled
    def delay_cdf(self, ping: str | None = None, *, axes: Axes | None = None) -> Figure:
        """Distribution of the round trips of a ping in each run; of the first ping by default.

        >>> import lastmile as lm
        >>> line = lm.line("adsl2plus-12-1", home="single").set("duration", "3 s")
        >>> lm.compare(line, policy=[None, "cake"]).plot.delay_cdf().axes[0].get_ylabel()
        'share of samples'
        """
        samples = {run.label: round_trips(run) for run in self._comparison.runs}
        pings = list(dict.fromkeys(name for of in samples.values() for name in of))
        if not pings:
            raise no_samples(self._comparison.runs[0], "rtt_s")
        if ping is not None and ping not in pings:
            raise KeyError(f"no ping is called {ping!r}: there are {', '.join(pings)}")
        chosen = pings[0] if ping is None else ping
        curves = {label: of.get(chosen, []) for label, of in samples.items()}
        figure, axes = axes_of(axes, (5.4, 3.2))
        size, name = unit((value for values in curves.values() for value in values), "s")
        for label, values in curves.items():
            cdf(axes, values, label, size)
        axes.set(title=f"Round trips of {chosen}", xlabel=f"round trip, {name}", ylabel="share of samples")
        axes.set(ylim=(0, 1.02))
        axes.set_xlim(left=0)
        legend(axes)
        return figure

    @styled
    def heatmap(self, path: str, *, x: str | None = None, y: str | None = None, axes: Axes | None = None) -> Figure:
        """A measure over two keys that the comparison varies; by default the first two.

        >>> import lastmile as lm
        >>> line = lm.line("adsl2plus-12-1", home="single").set("duration", "2 s")
        >>> grid = {"access.up.rate": ["1 Mbit/s", "2 Mbit/s"], "access.down.rate": ["8 Mbit/s", "16 Mbit/s"]}
        >>> lm.compare(line, vary=grid).plot.heatmap("download_bps").axes[0].get_xlabel()
        'access.down.rate'
        """
        varied = self._comparison.varied
        others = [key for key in varied if key not in (x, y)]
        y = y or (others.pop(0) if others else varied[0])
        x = x or (others.pop(0) if others else varied[0])
        if len(varied) != 2 or {x, y} != set(varied):
            raise ValueError(f"a heat map is of two keys, and the comparison varies {', '.join(varied)}")
        column, row = varied.index(x), varied.index(y)
        means = {(values[row], values[column]): mean for values, mean in zip(self._comparison.rows, self._means(path))}
        return heatmap(path, (y, x), means, axes)
