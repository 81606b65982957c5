"""Plots of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

from lastmile.plot._style import Picture, axes_of, chosen, legend, styled, unit
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from lastmile._lastmile import Run

__all__ = ["RunPlots", "cdf", "no_samples", "round_trips"]


def no_samples(run: Run, *quantities: str) -> ValueError:
    """The error for a run without samples of some quantities, with the reason."""
    summary, known = run.summary, {name for name, _ in run.series.names}
    if not known:
        why = "it records those of its traffic with record.series = true"
    elif quantities == ("rtt_s",):
        why = "none of its pings was answered" if summary["probes"] else "it has no pings"
    elif quantities == ("queue_delay_s",):
        why = "ports of ATM networks record queue_cells"
    elif summary["flows"] and "goodput_bps" not in known:
        why = f"its {len(summary['flows'])} flows are more than record.flows"
    else:
        why = "no flow of it has them"
    *first, last = quantities
    words = f"{', '.join(first)} or {last}" if first else last
    return ValueError(f"the run has no samples of {words}: {why}")


def cdf(axes: Axes, values: Iterable[float], label: str, size: float) -> None:
    """A cumulative distribution as steps: the share of values up to each."""
    ordered = sorted(value / size for value in values)
    shares = [(rank + 1) / len(ordered) for rank in range(len(ordered))]
    if ordered:
        axes.step([ordered[0], *ordered], [0.0, *shares], where="post", label=label)


def round_trips(run: Run) -> dict[str, list[float]]:
    """Round trips of each ping."""
    return {entity: list(run.series.samples(name, entity)[1]) for name, entity in run.series.names if name == "rtt_s"}


class RunPlots:
    """Plots of a run.

    >>> import lastmile as lm
    >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="3 s")
    >>> run.plot.overview().savefig("overview.pdf")
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def _lines(self, quantity: str, names: tuple[str, ...]) -> list[tuple[str, list[float], list[float]]]:
        """Samples of a quantity, of the chosen flows, links or pings, or of all that have any."""
        series = self._run.series
        entities = [entity for name, entity in series.names if name == quantity]
        if not entities:
            raise no_samples(self._run, quantity)
        for wanted in names:
            if wanted not in entities:
                raise KeyError(f"no {quantity} of {wanted!r}: there are {', '.join(entities)}")
        lines = []
        for entity in names or entities:
            times, values = series.samples(quantity, entity)
            # A flow that gets nothing is worth a line.
            if names or any(values) or quantity in ("goodput_bps", "acked_bytes"):
                lines.append((entity, list(times), list(values)))
        return lines

    def _over_time(
        self,
        quantity: str,
        names: tuple[str, ...],
        axes: Axes | None,
        words: tuple[str, str, str],
        plot: Callable[[Axes], Callable[..., Any]] = lambda axes: axes.plot,
    ) -> Figure:
        title, label, base = words
        lines = self._lines(quantity, names)
        figure, axes = axes_of(axes)
        size, name = unit((value for _, _, values in lines for value in values), base)
        for entity, times, values in lines:
            plot(axes)(times, [value / size for value in values], label=entity)
        self._phases(axes)
        axes.set(title=title, xlabel="time, s", ylabel=f"{label}, {name}", xlim=(0, self._run.summary["duration_s"]))
        axes.set_ylim(bottom=0)
        legend(axes)
        return figure

    def _phases(self, axes: Axes) -> None:
        """Every second phase of the run as a band."""
        for phase in self._run.summary["phases"][1::2]:
            axes.axvspan(phase["from_s"], phase["to_s"], color="#f0f2f5", zorder=0, linewidth=0)

    @styled
    def throughput(self, *flows: str, axes: Axes | None = None) -> Figure:
        """Goodput of flows over time; of all by default.

        >>> import lastmile as lm
        >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="3 s")
        >>> run.plot.throughput().axes[0].get_xlabel()
        'time, s'
        """
        return self._over_time("goodput_bps", flows, axes, ("Goodput", "goodput", "bit/s"))

    @styled
    def queue(self, *links: str, axes: Axes | None = None) -> Figure:
        """Mean wait in the queues of links over time.

        By default links are those whose longest wait is at least 1 % of the longest of all.

        >>> import lastmile as lm
        >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="3 s")
        >>> run.plot.queue("up").axes[0].get_title(loc="left")
        'Delay in queues'
        """
        if not links:
            # Most links of a network never queue.
            longest = {entity: max(values) for entity, _, values in self._lines("queue_delay_s", ())}
            most = max(longest.values(), default=0.0)
            links = tuple(entity for entity, value in longest.items() if value >= most / 100)
        return self._over_time("queue_delay_s", links, axes, ("Delay in queues", "delay", "s"))

    @styled
    def delay(self, *names: str, of: Literal["pings", "flows"] = "pings", axes: Axes | None = None) -> Figure:
        """Round trips of pings over time, or the one-way delay of flows.

        >>> import lastmile as lm
        >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="3 s")
        >>> run.plot.delay(of="flows").axes[0].get_title(loc="left")
        'One-way delay'
        """
        chosen("of", of, ("pings", "flows"))
        if of == "flows":
            return self._over_time("one_way_delay_s", names, axes, ("One-way delay", "delay", "s"))
        return self._over_time("rtt_s", names, axes, ("Round trips", "round trip", "s"))

    @styled
    def delay_cdf(self, *, by: Literal["ping", "class", "flow"] = "ping", axes: Axes | None = None) -> Figure:
        """Distribution of round trips by ping or by the class of the ping, or of one-way delays by flow.

        Delays of flows are means between two samples of the series.

        >>> import lastmile as lm
        >>> run = lm.run(lm.line("adsl2plus-12-1", home="gamers"), duration="3 s")
        >>> run.plot.delay_cdf(by="flow").axes[0].get_ylabel()
        'share of samples'
        """
        chosen("by", by, ("ping", "class", "flow"))
        if by == "flow":
            groups = {entity: values for entity, _, values in self._lines("one_way_delay_s", ())}
        else:
            groups = round_trips(self._run)
        if by == "class":
            classes: dict[str, list[float]] = {}
            for probe in self._run.summary["probes"]:
                classes.setdefault(probe["class"], []).extend(groups.get(probe["name"], []))
            groups = classes
        if not any(groups.values()):
            raise no_samples(self._run, "one_way_delay_s" if by == "flow" else "rtt_s")
        figure, axes = axes_of(axes, (4.6, 3.2))
        size, name = unit((value for values in groups.values() for value in values), "s")
        for label, values in groups.items():
            cdf(axes, values, label, size)
        what = "one-way delay" if by == "flow" else "round trip"
        axes.set(title=f"Distribution of {what}s", xlabel=f"{what}, {name}", ylabel="share of samples", ylim=(0, 1.02))
        axes.set_xlim(left=0)
        legend(axes)
        return figure

    @styled
    def window(self, *flows: str, axes: Axes | None = None) -> Figure:
        """Congestion windows over time, and the slow-start threshold of a single flow.

        >>> import lastmile as lm
        >>> run = lm.run(lm.loads('''
        ... duration = "5 s"
        ... [access]
        ... down = { rate = "8 Mbit/s" }
        ... up = { rate = "1 Mbit/s" }
        ... [[traffic]]
        ... name = "download"
        ... kind = "bulk"
        ... direction = "down"
        ... '''))
        >>> [line.get_label() for line in run.plot.window("download").axes[0].lines]
        ['congestion window', 'slow-start threshold', 'in flight']
        """
        if len(flows) != 1:
            return self._over_time("cwnd_bytes", flows, axes, ("Congestion windows", "window", "B"))
        figure, axes = axes_of(axes)
        names = {
            "cwnd_bytes": "congestion window",
            "ssthresh_bytes": "slow-start threshold",
            "in_flight_bytes": "in flight",
        }
        lines = [(label, *self._lines(quantity, flows)[0][1:]) for quantity, label in names.items()]
        size, name = unit((value for _, _, values in lines[::2] for value in values), "B")
        for label, times, values in lines:
            axes.plot(times, [value / size for value in values], label=label)
        top = max((value / size for _, _, values in lines[::2] for value in values), default=1.0)
        self._phases(axes)
        axes.set(title=f"Congestion window of {flows[0]}", xlabel="time, s", ylabel=f"bytes, {name}")
        # A threshold that has not been set is far above every window.
        axes.set(xlim=(0, self._run.summary["duration_s"]), ylim=(0, 1.08 * top))
        legend(axes)
        return figure

    @styled
    def time_sequence(self, *flows: str, axes: Axes | None = None) -> Figure:
        """Acknowledged data over time: the ACK number of each transfer, from 0.

        >>> import lastmile as lm
        >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="3 s")
        >>> run.plot.time_sequence().axes[0].get_title(loc="left")
        'Acknowledged data'
        """
        return self._over_time("acked_bytes", flows, axes, ("Acknowledged data", "ACK number", "B"))

    @styled
    def fairness(self, direction: str | None = None, *, axes: Axes | None = None) -> Figure:
        """Goodput of each transfer of a direction over its life, with Jain's index.

        Directions are ``down`` and ``up``, or such as ``a to b`` in a network without an access line; ``down`` by
        default, or the first there. Flows from different nodes have different directions, even behind one link:
        ``theory.jain`` has the index of any goodputs. Web pages and videos take what they need, and are no part of it.

        >>> import lastmile as lm
        >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="3 s")
        >>> run.plot.fairness("down").axes[0].get_xlabel().split(",")[0]
        'goodput'
        """
        summary = self._run.summary
        transfers = [
            flow for flow in summary["flows"] if flow["tcp"] is not None and flow["kind"] not in ("web", "video")
        ]
        directions = tuple(dict.fromkeys(flow["direction"] for flow in transfers))
        if not directions:
            raise ValueError("the run has no transfers over TCP")
        if direction is None:
            direction = "down" if "down" in directions else directions[0]
        chosen("direction", direction, directions)
        flows = [flow for flow in transfers if flow["direction"] == direction]
        figure, axes = axes_of(axes, (5.2, 0.9 + 0.26 * max(len(flows), 2)))
        size, name = unit((flow["goodput_bps"] for flow in flows), "bit/s")
        rates = [flow["goodput_bps"] / size for flow in flows]
        axes.barh([flow["name"] for flow in flows], rates, height=0.62, color="#7570b3")
        if rates:
            axes.axvline(sum(rates) / len(rates), color="#1f2328", linewidth=1, linestyle=(0, (6, 3)))
        row = next((row for row in summary["fairness"] if row["direction"] == direction), None)
        words = ""
        if row is not None and row["jain_index"] is not None:
            # The index counts flows that share the line for half of their times.
            of = f" of {row['flows']} of {len(flows)}" if row["flows"] < len(flows) else ""
            words = f", Jain's index {row['jain_index']:.3f}{of}"
        axes.set(title=f"Goodput of flows {direction}{words}", xlabel=f"goodput, {name}; dashed: mean")
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        return figure

    @styled
    def overview(self) -> Picture:
        """Goodput, delay in queues and round trips, one above the other.

        >>> import lastmile as lm
        >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="3 s")
        >>> len(run.plot.overview().axes)
        3
        """
        drawn = [self.throughput, self.queue, self.delay]
        has = {name for name, _ in self._run.series.names}
        drawn = [draw for draw, name in zip(drawn, ("goodput_bps", "queue_delay_s", "rtt_s")) if name in has]
        if not drawn:
            raise no_samples(self._run, "goodput_bps", "queue_delay_s", "rtt_s")
        picture = Picture(figsize=(6.8, 0.8 + 2.0 * len(drawn)), layout="constrained")
        for draw, axes in zip(drawn, picture.subplots(len(drawn), 1, sharex=True, squeeze=False).flat):
            draw(axes=axes)
            axes.label_outer()
        picture.suptitle(self._run.summary["scenario"], x=0.01, ha="left", fontsize=11, fontweight="bold")
        return picture
