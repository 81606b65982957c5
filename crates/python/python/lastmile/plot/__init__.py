"""Plots of runs and comparisons, with matplotlib: ``pip install 'lastmile-tcp[plot]'``.

Each function returns a matplotlib figure. ``axes`` draws into axes of your own instead. Colours are Dark2 of
ColorBrewer, which colour-blind readers can distinguish, and lines also differ by their dashes.
"""

from __future__ import annotations

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError("plots need matplotlib: pip install 'lastmile-tcp[plot]'") from error

from lastmile.plot._capture import CapturePlots
from lastmile.plot._comparison import ComparisonPlots
from lastmile.plot._reproduction import ReproductionPlots, published
from lastmile.plot._run import RunPlots
from lastmile.plot._style import Picture
from lastmile.plot._table import TablePlots

__all__ = ["CapturePlots", "ComparisonPlots", "Picture", "ReproductionPlots", "RunPlots", "TablePlots", "published"]
