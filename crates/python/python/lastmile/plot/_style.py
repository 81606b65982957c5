"""The one style of all plots."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

import matplotlib
from cycler import cycler
from lastmile._arguments import wrong
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["COLOURS", "MARKERS", "Picture", "axes_of", "chosen", "legend", "styled", "unit"]

COLOURS = ["#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#b8860b", "#a6761d", "#666666"]
"""Dark2 of ColorBrewer, with a darker yellow: the colours of the report."""
DASHES: list[Any] = ["-", (0, (7, 3)), (0, (3, 3)), (0, (10, 3, 2, 3)), (0, (1, 2))]
MARKERS = "os^Dv"
"""Shapes of points: a colour that repeats has the next one."""
MOST_NAMED = 12
"""Lines that a legend names."""

STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#59636e",
    "axes.grid": True,
    "axes.labelsize": 9,
    # Every colour with the first dash, then with the second: two neighbours differ in colour.
    "axes.prop_cycle": cycler(linestyle=DASHES) * cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "figure.dpi": 110,
    "font.size": 9,
    "grid.color": "#e4e7eb",
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    # Text stays text: a reader can search it, and a journal accepts the fonts.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "savefig.dpi": 300,
    "svg.fonttype": "none",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}

P = ParamSpec("P")
R = TypeVar("R")


class Picture(Figure):
    """A figure that shows itself in a notebook, and is saved in print quality.

    >>> from lastmile.plot import Picture
    >>> Picture(figsize=(1, 1))._repr_png_()[1:4]
    b'PNG'
    """

    def savefig(self, fname: Any, **options: Any) -> None:
        """Writes the figure: PDF, SVG or PNG by the ending of its name.

        >>> from lastmile.plot import Picture
        >>> Picture(figsize=(1, 1)).savefig("empty.svg")
        """
        with matplotlib.rc_context(STYLE):
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=144)
        return out.getvalue()


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Draws in the one style, whatever the caller's settings are."""

    def inner(*arguments: P.args, **named: P.kwargs) -> R:
        with matplotlib.rc_context(STYLE):
            return draw(*arguments, **named)

    inner.__doc__ = draw.__doc__
    inner.__name__ = draw.__name__
    inner.__qualname__ = draw.__qualname__
    inner.__wrapped__ = draw  # type: ignore[attr-defined]
    return inner


def chosen(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuses a value that is none of the choices of an argument."""
    if value not in choices:
        raise ValueError(f"{name}: {value!r} is none of {', '.join(choices)}")


def axes_of(axes: Axes | None, size: tuple[float, float] = (6.4, 3.2)) -> tuple[Figure, Axes]:
    """The caller's axes with their figure, or new ones."""
    if axes is not None:
        if not isinstance(axes, Axes):
            raise wrong("axes", "Axes of matplotlib", axes)
        figure = axes.get_figure(root=True)
        assert figure is not None, "axes are part of a figure"
        return figure, axes
    picture = Picture(figsize=size, layout="constrained")
    return picture, picture.add_subplot()


def unit(values: Iterable[float], base: str) -> tuple[float, str]:
    """A factor and a unit in which the largest value has one to three digits before the point."""
    largest = max((abs(value) for value in values), default=0.0)
    steps: dict[str, Sequence[tuple[float, str]]] = {
        "bit/s": [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")],
        "B": [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")],
        "s": [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
    }
    for size, name in steps[base]:
        if largest >= size:
            return size, name
    return (1.0, base) if base != "s" else (1e-6, "µs")


def legend(axes: Axes, title: str = "") -> None:
    """Names of lines below a title, next to the axes so that they hide nothing. One line needs no legend."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) < 2:
        return
    more = len(labels) - MOST_NAMED
    if more > 0:
        handles, labels = handles[:MOST_NAMED], labels[:MOST_NAMED]
        title = f"{title}\nthe first {MOST_NAMED} of {MOST_NAMED + more}".strip()
    axes.legend(
        handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.03), borderaxespad=0.2, title=title or None,
        title_fontsize=8, alignment="left",
    )  # fmt: skip
