"""A measure over two keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lastmile.plot._places import Places, in_order
from lastmile.plot._style import axes_of, unit
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["heatmap", "unit_of", "words"]


def unit_of(path: str, values: Sequence[float]) -> tuple[float, str]:
    """Factor and unit of a measure, by the ending of its name."""
    known = [value for value in values if value == value]
    for ending, base in (("_bps", "bit/s"), ("_bytes", "B"), ("_s", "s")):
        if path.endswith(ending):
            return unit(known, base)
    return 1.0, ""


def words(path: str, unit: str) -> str:
    """The name of a measure for a label: its unit is that of the plot."""
    text = path.replace(".", " ").replace("_", " ")
    for ending in (" bps", " s", " bytes"):
        text = text.removesuffix(ending) if unit else text
    return f"{text}, {unit}" if unit else text


def heatmap(
    path: str, keys: tuple[str, str], means: Mapping[tuple[str, str], float], axes: Axes | None, title: str = ""
) -> Figure:
    """The means by the values of two keys: numbers grow upwards and to the right, words are in order of appearance."""
    ys, xs = (in_order([point[number] for point in means]) for number in (0, 1))
    factor, name = unit_of(path, list(means.values()))
    cells = [[means.get((y, x), float("nan")) / factor for x in xs] for y in ys]
    figure, axes = axes_of(axes, (2.4 + 0.8 * len(xs), 1.4 + 0.4 * len(ys)))
    image = axes.imshow(cells, cmap="cividis", aspect="auto")
    figure.colorbar(image, ax=axes, label=words(path, name))
    low, high = image.get_clim()
    for at_y, line in enumerate(cells):
        for at_x, value in enumerate(line):
            if value == value:
                colour = "black" if value > (low + high) / 2 else "white"
                axes.text(at_x, at_y, f"{value:.3g}", ha="center", va="center", color=colour, fontsize=8)
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
