"""Plots of a capture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from lastmile.plot._style import axes_of, legend, styled, unit
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from lastmile._lastmile import Analysis

__all__ = ["CapturePlots"]


class CapturePlots:
    """Plots of a capture whose packets were kept: ``lm.analyse(file, packets=True).plot``.

    ``connection`` is a number of the table; by default the direction with most data is drawn.

    >>> from lastmile.plot import CapturePlots
    >>> [name for name in vars(CapturePlots) if not name.startswith("_")]
    ['time_sequence', 'ack_spacing']
    """

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    def _row(self, connection: SupportsIndex | None, direction: str | None) -> dict[str, Any]:
        rows = self._analysis.document["files"][0]["connections"]
        chosen = [
            row for row in rows if connection in (None, row["connection"]) and direction in (None, row["direction"])
        ]
        if not chosen:
            raise KeyError(f"no data of connection {connection}, direction {direction}")
        return dict(max(chosen, key=lambda row: row["bytes_acknowledged"] or row["bytes_new"]))

    @styled
    def time_sequence(
        self, connection: SupportsIndex | None = None, direction: str | None = None, *, axes: Axes | None = None
    ) -> Figure:
        """Data, retransmissions and ACKs of a connection over time.

        >>> import lastmile as lm
        >>> analysis = lm.analyse("transfer.pcap.zst", packets=True)
        >>> analysis.plot.time_sequence().axes[0].get_xlabel()
        'time, s'
        """
        row = self._row(connection, direction)
        packets, of = self._analysis.packets, (row["connection"], row["direction"])
        times, offsets, _, again = packets.data(*of)
        ack_times, acks = packets.acks(*of)
        figure, axes = axes_of(axes)
        size, name = unit([*offsets, *acks], "B")
        sent = [(at, offset / size, flag) for at, offset, flag in zip(times, offsets, again)]
        points: Sequence[tuple[str, float, str, str]] = (
            ("data", 0.0, ".", "#1b9e77"),
            ("retransmission", 1.0, "x", "#d95f02"),
        )
        for label, wanted, marker, colour in points:
            chosen = [(at, offset) for at, offset, flag in sent if flag == wanted]
            if chosen:
                xs, ys = zip(*chosen)
                axes.plot(xs, ys, marker, color=colour, markersize=3.5, linestyle="none", label=label)
        axes.step(ack_times, [ack / size for ack in acks], where="post", color="#7570b3", linewidth=1.0, label="ACK")
        axes.set(title=f"Connection {of[0]} {of[1]}", xlabel="time, s", ylabel=f"sequence number, {name}")
        legend(axes)
        return figure

    @styled
    def ack_spacing(
        self, connection: SupportsIndex | None = None, direction: str | None = None, *, axes: Axes | None = None
    ) -> Figure:
        """Time between ACKs of a connection, and the data that each acknowledges.

        ACKs that arrive as far apart as the line transmits their data clock the sender; ACKs that arrive together make
        it send a burst.

        >>> import lastmile as lm
        >>> analysis = lm.analyse("transfer.pcap.zst", packets=True)
        >>> analysis.plot.ack_spacing().axes[0].get_xscale()
        'log'
        """
        row = self._row(connection, direction)
        times, acks = self._analysis.packets.acks(row["connection"], row["direction"])
        progress = [
            (later - earlier, ack - before)
            for earlier, later, before, ack in zip(times, times[1:], acks, acks[1:])
            if ack > before and later > earlier
        ]
        figure, axes = axes_of(axes, (4.8, 3.2))
        size, name = unit((octets for _, octets in progress), "B")
        spaces = [space * 1e3 for space, _ in progress]
        axes.plot(spaces, [octets / size for _, octets in progress], ".", color="#1b9e77", markersize=3, alpha=0.5)
        rate = row["goodput_bps"]
        if rate and spaces:
            ends = [min(spaces), max(spaces)]
            axes.plot(
                ends,
                [rate * end / 8e3 / size for end in ends],
                "--",
                color="#1f2328",
                linewidth=1,
                label="at the mean goodput",
            )
            axes.legend(loc="upper left")
            least = min(octets for _, octets in progress) / size
            axes.set_ylim(bottom=least / 2)
        axes.set(xscale="log", yscale="log", title="ACK spacing", xlabel="time since the last ACK, ms")
        axes.set(ylabel=f"data acknowledged, {name}")
        return figure
