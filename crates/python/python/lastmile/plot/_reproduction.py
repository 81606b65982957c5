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


def _pairs(table: Mapping[str, Any]) -> Iterator[tuple[float, float, float]]:
    """Published and simulated figures above zero with the half width of the simulated one's interval."""
    for row in table["rows"]:
        for name, simulated in row["simulated"].items():
            of = row["published"].get(name)
            if all(isinstance(value, int | float) and value > 0 for value in (of, simulated)):
                yield float(of), float(simulated), float(row["ci95"].get(name) or 0.0)


@styled
def published(document: Mapping[str, Any], *, axes: Axes | None = None) -> Figure:
    """Published figures against simulated ones, of a document of ``lastmile reproduce --json``.

    Each point is a figure of a table that was simulated; its bar is the 95 % interval. Both axes are logarithmic, so
    that quantities of any unit fit. The diagonal is equality, and the band 25 % of it.

    >>> from lastmile import plot
    >>> row = {"published": {"goodput_bps": 1e6}, "simulated": {"goodput_bps": 1.1e6}, "ci95": {"goodput_bps": 3e4}}
    >>> table = {"publication": "someone2001", "id": "1", "rows": [row]}
    >>> plot.published({"tables": [table]}).axes[0].get_title(loc="left")
    '1 of 1 figures within 25 %'
    """
    tables = {f"{table['publication']}/{table['id']}": list(_pairs(table)) for table in document["tables"]}
    tables = {name: pairs for name, pairs in tables.items() if pairs}
    if not tables:
        raise ValueError("no table of the document has a figure that is both published and simulated")
    figure, axes = axes_of(axes, (5.6, 4.2))
    every = [value for pairs in tables.values() for of, simulated, _ in pairs for value in (of, simulated)]
    ends = [min(every) / 1.6, max(every) * 1.6]
    axes.fill_between(ends, [end * 0.75 for end in ends], [end * 1.25 for end in ends], color="#e4e7eb", linewidth=0)
    axes.plot(ends, ends, color="#59636e", linestyle="-", linewidth=0.8)
    near = count = 0
    for number, (name, pairs) in enumerate(tables.items()):
        of, simulated, half = zip(*pairs)
        near += sum(abs(one - other) <= other / 4 for other, one, _ in pairs)
        count += len(pairs)
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
    axes.set_title(f"{near} of {count} figures within 25 %")
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
