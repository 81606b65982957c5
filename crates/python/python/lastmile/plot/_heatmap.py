"""A measure over two keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lastmile import _lastmile
from lastmile.plot._places import OTHER_UNITS, UNITS, Places, in_order
from lastmile.plot._style import axes_of, unit
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["heatmap", "some_of", "unit_of", "words"]


def some_of(values: int, runs: int) -> str:
    """``3 of 4`` where a mean is of some of its runs."""
    return f"{values} of {runs}" if values < runs else ""


def unit_of(path: str, values: Sequence[float]) -> tuple[float, str]:
    """Factor and unit of a measure, by its name: statistics have the unit of their quantity."""
    ending = _lastmile.unit(path)
    if ending in UNITS:
        return unit([value for value in values if value == value], UNITS[ending])
    return OTHER_UNITS["share"] if ending == "share" else (1.0, "")


def words(path: str, unit: str) -> str:
    """The name of a measure for a label: its unit is that of the plot."""
    ending = f"_{_lastmile.unit(path)}"
    quantity, _, statistic = path.rpartition(".")
    if unit and path.endswith(ending):
        path = path.removesuffix(ending)
    elif unit and quantity.endswith(ending):
        path = f"{quantity.removesuffix(ending)}.{statistic}"
    text = path.replace(".", " ").replace("_", " ")
    return f"{text}, {unit}" if unit else text


def heatmap(
    path: str,
    keys: tuple[str, str],
    means: Mapping[tuple[str, str], tuple[float, str]],
    axes: Axes | None,
    title: str = "",
) -> Figure:
    """The means by the values of two keys: numbers grow upwards and to the right, words are in order of appearance.

    A mean has a text below it, such as ``3 of 4`` for its runs, or none.
    """
    ys, xs = (in_order([point[number] for point in means]) for number in (0, 1))
    factor, name = unit_of(path, [mean for mean, _ in means.values()])
    none = (float("nan"), "")
    cells = [[means.get((y, x), none)[0] / factor for x in xs] for y in ys]
    figure, axes = axes_of(axes, (2.4 + 0.8 * len(xs), 1.4 + 0.4 * len(ys)))
    image = axes.imshow(cells, cmap="cividis", aspect="auto")
    figure.colorbar(image, ax=axes, label=words(path, name))
    low, high = image.get_clim()
    for at_y, line in enumerate(cells):
        for at_x, value in enumerate(line):
            if value == value:
                colour = "black" if value > (low + high) / 2 else "white"
                text = f"{value:.3g}\n{means[ys[at_y], xs[at_x]][1]}".rstrip()
                axes.text(at_x, at_y, text, ha="center", va="center", color=colour, fontsize=8)
    is_wide = max(map(len, xs), default=0) * len(xs) > 11 * len(xs)
    axes.set_xticks(range(len(xs)), xs, rotation=30 if is_wide else 0, ha="right" if is_wide else "center")
    axes.set_yticks(range(len(ys)), ys)
    axes.set(xlabel=keys[1], ylabel=keys[0])
    if title:
        axes.set_title(title)
    if Places(keys[0], ys).has_order:
        axes.invert_yaxis()
    axes.grid(visible=False)
    return figure
