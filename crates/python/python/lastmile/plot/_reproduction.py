"""Published figures against simulated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lastmile.plot._style import axes_of, legend, styled
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

if TYPE_CHECKING:
    from lastmile._lastmile import Reproduction

__all__ = ["ReproductionPlots", "published"]

MARKERS = "osD^vP*X<>ph"


def _pairs(table: Mapping[str, Any]) -> Iterator[tuple[float, float, float, bool]]:
    """Published figures other than zero, simulated ones, half the width of their intervals, and whether one is near.

    A figure that is printed as a lower bound is met by every figure above it.
    """
    for row in table["rows"]:
        for name, simulated in row["simulated"].items():
            of = row["published"].get(name)
            if of and all(isinstance(value, int | float) for value in (of, simulated)):
                off = min(simulated - of, 0) if "_above" in name else simulated - of
                is_near = abs(off / of) <= 0.25 + 1e-9
                yield float(of), float(simulated), float(row["ci95"].get(name) or 0.0), is_near


@styled
def published(document: Mapping[str, Any], *, axes: Axes | None = None) -> Figure:
    """Published figures against simulated ones, of a document of ``lastmile reproduce --json``.

    Each point is a figure of a table that was simulated; its bar is the 95 % interval. Both axes are logarithmic, so
    that quantities of any unit fit. The diagonal is equality, and the band 25 % of it. The title counts as the command
    does: all figures but published zeros, also simulated zeros, which have no place on the axes.

    >>> from lastmile import plot
    >>> row = {"published": {"goodput_bps": 1e6}, "simulated": {"goodput_bps": 1.1e6}, "ci95": {"goodput_bps": 3e4}}
    >>> table = {"publication": "someone2001", "id": "1", "rows": [row]}
    >>> plot.published({"tables": [table]}).axes[0].get_title(loc="left")
    '1 of 1 figures within 25 %'
    """
    tables = {f"{table['publication']}/{table['id']}": list(_pairs(table)) for table in document["tables"]}
    every = [pair for pairs in tables.values() for pair in pairs]
    tables = {name: [pair for pair in pairs if min(pair[:2]) > 0] for name, pairs in tables.items()}
    zeros = len(every) - sum(map(len, tables.values()))
    tables = {name: pairs for name, pairs in tables.items() if pairs}
    if not tables:
        raise ValueError("no table of the document has a figure that is both published and simulated, and above zero")
    figure, axes = axes_of(axes, (5.6, 4.2))
    drawn = [value for pairs in tables.values() for of, simulated, *_ in pairs for value in (of, simulated)]
    ends = [min(drawn) / 1.6, max(drawn) * 1.6]
    axes.fill_between(ends, [end * 0.75 for end in ends], [end * 1.25 for end in ends], color="#e4e7eb", linewidth=0)
    axes.plot(ends, ends, color="#59636e", linestyle="-", linewidth=0.8)
    for number, (name, pairs) in enumerate(tables.items()):
        of, simulated, half, _ = zip(*pairs)
        axes.errorbar(
            of, simulated, yerr=half, label=name, marker=MARKERS[number % len(MARKERS)], linestyle="none",
            markersize=5, markeredgecolor="white", markeredgewidth=0.5, elinewidth=0.9,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="published", ylabel="simulated")
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        # Decades alone say little where there are one or two.
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if ends[1] / ends[0] < 200 else (1.0,)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    title = f"{sum(is_near for *_, is_near in every)} of {len(every)} figures within 25 %"
    axes.set_title(f"{title}; not drawn: {zeros} with a zero" if zeros else title)
    legend(axes)
    return figure


class ReproductionPlots:
    """Plots of a reproduction.

    >>> import lastmile as lm
    >>> callable(lm.reproduce("phanse2000/text-3.4").plot.published)
    True
    """

    def __init__(self, reproduction: Reproduction) -> None:
        self._reproduction = reproduction

    def published(self, *, axes: Axes | None = None) -> Figure:
        """Published figures against simulated ones: `lastmile.plot.published`.

        >>> import lastmile as lm
        >>> lm.reproduce("phanse2000/5.2").plot.published().axes[0].get_ylabel()
        'simulated'
        """
        return published(self._reproduction.document, axes=axes)
