"""Plots: what they show, and that they are drawn in every format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lastmile as lm
import matplotlib
import matplotlib.pyplot
import pytest

matplotlib.use("agg")


@pytest.fixture(scope="module")
def run() -> lm.Run:
    return lm.run(lm.line("adsl2plus-12-1", home="gamers"), duration="6 s")


def test_lines_are_the_samples_in_the_unit_of_the_label(run: lm.Run) -> None:
    axes = run.plot.throughput().axes[0]
    assert axes.get_ylabel() == "goodput, Mbit/s"
    line = axes.lines[0]
    times, values = run.series.samples("goodput_bps", str(line.get_label()))
    assert list(line.get_xdata()) == list(times)  # type: ignore[arg-type]
    assert list(line.get_ydata()) == pytest.approx([value / 1e6 for value in values])  # type: ignore[arg-type]


def test_neighbouring_lines_differ_in_colour_and_dashes_repeat_late() -> None:
    from lastmile.plot._style import STYLE

    styles = [(one["color"], str(one["linestyle"])) for one in STYLE["axes.prop_cycle"]]
    assert len(set(styles)) == len(styles) == 40
    assert all(one[0] != other[0] for one, other in zip(styles, styles[1:]))


def test_a_distribution_ends_at_one(run: lm.Run) -> None:
    for by in ("ping", "class", "flow"):
        axes = run.plot.delay_cdf(by=by).axes[0]
        assert axes.lines
        for line in axes.lines:
            assert max(line.get_ydata()) == pytest.approx(1.0)  # type: ignore[type-var,arg-type]


def test_an_unknown_flow_is_refused_with_the_names(run: lm.Run) -> None:
    with pytest.raises(KeyError, match="no goodput_bps of 'nobody': there are"):
        run.plot.throughput("nobody")


def test_wrong_arguments_are_named_with_the_choices(run: lm.Run) -> None:
    wrong: list[tuple[Callable[..., object], dict[str, Any], str]] = [
        (run.plot.fairness, {"direction": "sideways"}, "direction: 'sideways' is none of down, up"),
        (run.plot.delay, {"of": "flow"}, "of: 'flow' is none of pings, flows"),
        (run.plot.delay_cdf, {"by": "flows"}, "by: 'flows' is none of ping, class, flow"),
    ]
    for draw, arguments, message in wrong:
        with pytest.raises(ValueError) as caught:
            draw(**arguments)
        assert str(caught.value) == message


def test_a_run_without_samples_is_refused(download: lm.Scenario) -> None:
    silent = lm.run(download.set("record.series", False), duration="1 s")
    plots = silent.plot
    for draw in (plots.overview, plots.throughput, plots.queue, plots.window, plots.time_sequence, plots.delay_cdf):
        with pytest.raises(ValueError, match="the run has no samples of .*record.series = true"):
            draw()
    with pytest.raises(ValueError, match="no samples over time to draw: a run records them with record.series = true"):
        silent.svg()
    compared = lm.compare(download, policy=[None, "cake"], duration="1 s")
    with pytest.raises(KeyError, match="no ping is called 'pong': there are ping"):
        compared.plot.delay_cdf("pong")
    with pytest.raises(ValueError, match="the run has no samples of rtt_s"):
        lm.compare(download.set("record.series", False), policy=[None, "cake"], duration="1 s").plot.delay_cdf()


def test_a_picture_without_samples_has_the_true_reason(download: lm.Scenario, at_root: Path) -> None:
    many = lm.run(download.set("traffic.download.count", 70), duration="1 s").plot
    network = 'duration = "1 s"\n[[link]]\nfrom = "a"\nto = "b"\nrate = "1 Mbit/s"\n'
    web = lm.run(lm.loads(network + '[[traffic]]\nkind = "poisson"\nfrom = "a"\nto = "b"\nrate = "1 kbit/s"\n')).plot
    cells = lm.run("scenarios/atm/sun-epd.toml", duration="1 s").plot
    reasons: list[tuple[Callable[..., object], str]] = [
        (many.throughput, "goodput_bps: its 70 flows are more than record.flows"),
        (many.window, "cwnd_bytes: its 70 flows are more than record.flows"),
        (web.delay, "rtt_s: it has no pings"),
        (web.delay_cdf, "rtt_s: it has no pings"),
        (web.window, "cwnd_bytes: no flow of it has them"),
        (cells.queue, "queue_delay_s: ports of ATM networks record queue_cells"),
    ]
    for draw, reason in reasons:
        with pytest.raises(ValueError) as caught:
            draw()
        assert str(caught.value) == f"the run has no samples of {reason}"


def test_numbers_have_their_place_by_size_or_ratio_and_words_at_even_distances(
    download: lm.Scenario, tmp_path: Path
) -> None:
    def drawn(space: Any, **arguments: Any) -> Any:
        # A study of other keys is another one, in a folder of its own.
        folder = tmp_path / ",".join(space if isinstance(space, dict) else space.keys)
        return lm.study(download, space, seeds=2, duration="1 s").run(folder).plot.means("upload_bps", **arguments)

    by_ratio = {"access.up.rate": ["2.048 Mbit/s", "128 kbit/s", "512 kbit/s"], "access.policy": [None, "cake"]}
    [axes] = drawn(by_ratio).axes
    assert (axes.get_xlabel(), axes.get_xscale()) == ("access.up.rate, Mbit/s", "log")
    assert list(axes.get_xticks()) == [0.128, 0.512, 2.048]
    for line in axes.lines[::3]:
        assert list(line.get_xdata()) == [0.128, 0.512, 2.048] and line.get_linestyle() != "None"
    legend = axes.get_legend()
    assert legend.get_title().get_text() == "access.policy"
    assert [text.get_text() for text in legend.get_texts()] == ["none", "cake"]

    # Words that come first yield the axis to three numbers, as on the page of the study.
    [axes] = drawn(dict(reversed(by_ratio.items()))).axes
    assert axes.get_xlabel() == "access.up.rate, Mbit/s"
    [axes] = drawn(by_ratio, x="access.policy").axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["none", "cake"]
    assert axes.get_legend().get_title().get_text() == "access.up.rate"
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["128 kbit/s", "512 kbit/s", "2.048 Mbit/s"]
    assert {line.get_linestyle() for line in axes.lines[::3]} == {"None"}, "no order joins words"

    [axes] = drawn({"access.backbone.delay": ["30 ms", "10 ms", "20 ms"]}).axes
    assert (axes.get_xlabel(), axes.get_xscale()) == ("access.backbone.delay, ms", "linear")
    assert list(axes.lines[0].get_xdata()) == pytest.approx([10, 20, 30])

    hypercube = lm.latin(
        12, {"access.up.rate": ("128 kbit/s", "2 Mbit/s", "log"), "access.backbone.delay": ("2 ms", "40 ms")}
    )
    [axes] = drawn(hypercube * lm.paired({"access.policy": [None, "cake"]})).axes
    assert axes.get_xscale() == "log" and len(axes.containers) == 2, "a colour for each policy"
    for line in (axes.lines[0], axes.lines[3]):
        assert list(line.get_xdata()) == sorted(line.get_xdata()) and line.get_linestyle() == "None"
    assert axes.get_legend().get_title().get_text() == "access.policy"

    with pytest.raises(ValueError, match="x: 'speed' is no key of the study: there are access.backbone.delay"):
        drawn({"access.backbone.delay": ["10 ms"]}, x="speed")


@pytest.mark.parametrize("x", [None, "traffic.download.transport", "tcp.variant", "access.policy"])
@pytest.mark.parametrize("policies", [[None], [None, "cake", "fq-codel-sqm", "sad-priority"]])
def test_points_never_look_alike(
    download: lm.Scenario, tmp_path: Path, x: str | None, policies: list[str | None]
) -> None:
    transports, variants = ["tcp", "tcp", "quic"], ["cubic", "bbr", "cubic"]
    senders = lm.paired({"traffic.download.transport": transports, "tcp.variant": variants})
    space = senders * lm.paired({"access.policy": policies})
    [axes] = lm.study(download, space, duration="1 s").run(tmp_path).plot.means("download_bps", x=x).axes
    looks = [
        (round(place, 6), line.get_color(), line.get_marker())
        for line, *_ in axes.containers
        for place in line.get_xdata()
    ]
    assert len(set(looks)) == len(looks) == 3 * len(policies)
    if x is None:
        assert [text.get_text() for text in axes.get_xticklabels()] == ["tcp", "quic"]
        legend: Any = axes.get_legend()
        title, names = legend.get_title().get_text(), [text.get_text() for text in legend.get_texts()]
        if len(policies) == 1:
            assert (title, names) == ("tcp.variant", ["cubic", "bbr"])
        else:
            assert title == "tcp.variant, access.policy" and names[:2] == ["cubic, none", "cubic, cake"]


def test_a_heat_map_has_numbers_in_their_order(download: lm.Scenario, tmp_path: Path) -> None:
    space = {"access.backbone.delay": ["20 ms", "5 ms", "10 ms"], "access.up.rate": ["1 Mbit/s", "512 kbit/s"]}
    table = lm.study(download, space, duration="1 s").run(tmp_path)
    axes = table.plot.heatmap("download_bps").axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["512 kbit/s", "1 Mbit/s"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["5 ms", "10 ms", "20 ms"]
    bottom, top = axes.get_ylim()
    assert bottom < top, "numbers grow upwards"
    means = {tuple(point): mean / 1e6 for point, mean, _, _ in table.means("download_bps")}
    for text in axes.texts:
        column, row = (round(place) for place in text.get_position())
        point = (["5 ms", "10 ms", "20 ms"][row], ["512 kbit/s", "1 Mbit/s"][column])
        assert float(text.get_text()) == pytest.approx(means[point], rel=0.01)


def test_further_keys_are_fixed(download: lm.Scenario, tmp_path: Path) -> None:
    space: dict[str, list[object]] = {
        "access.up.rate": ["1 Mbit/s", "512 kbit/s"],
        "access.policy": [None, "cake"],
        "access.backbone.delay": ["5 ms", "10 ms"],
    }
    table = lm.study(download, space, duration="1 s").run(tmp_path)
    with pytest.raises(ValueError, match="access.backbone.delay: where={key: value} fixes others"):
        table.plot.heatmap("download_bps")
    fixed = {"access.backbone.delay": lm.Duration(0.01)}
    means = [mean for point, mean, _, _ in table.means("download_bps") if point[2] == "10 ms"]
    assert [mean for _, mean, _, _ in table.means("download_bps", where=fixed)] == means and len(means) == 4
    axes = table.plot.heatmap("download_bps", x="access.up.rate", where=fixed).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("access.up.rate", "access.policy")
    assert axes.get_title(loc="left") == "access.backbone.delay 10 ms"
    shown = [float(text.get_text()) for text in axes.texts]
    assert sorted(shown) == pytest.approx(sorted(mean / 1e6 for mean in means), rel=0.01)
    [axes] = table.plot.means("download_bps", x="access.up.rate", where={**fixed, "access.policy": None}).axes
    assert [len(container[0].get_xdata()) for container in axes.containers] == [2]
    with pytest.raises(ValueError, match="the study does not vary"):
        table.plot.means("download_bps", where={"speed": 1})


def test_axes_of_the_caller_are_drawn_into_and_settings_stay(run: lm.Run) -> None:
    before = dict(matplotlib.rcParams)
    figure, axes = matplotlib.pyplot.subplots()
    assert run.plot.queue(axes=axes) is figure and axes.lines
    matplotlib.pyplot.close(figure)
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_pictures_are_saved(run: lm.Run, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"picture.{ending}"
    run.plot.overview().savefig(path)
    assert path.stat().st_size > 5_000


def test_a_notebook_shows_the_picture(run: lm.Run) -> None:
    from lastmile.plot import Picture

    picture = run.plot.overview()
    assert isinstance(picture, Picture) and picture._repr_png_().startswith(b"\x89PNG")


def test_a_heat_map_has_the_means_of_the_cells(download: lm.Scenario) -> None:
    compared = lm.compare(
        download, vary={"access.up.rate": ["128 kbit/s", "1 Mbit/s"], "access.down.rate": ["4 Mbit/s", "8 Mbit/s"]}
    )
    axes = compared.plot.heatmap("download_bps").axes[0]
    means = [run["download_bps"] for run in compared.document["runs"]]
    shown = [float(text.get_text()) for text in axes.texts]
    assert shown == pytest.approx([mean / 1e6 for mean in means], rel=0.01)
    given = compared.plot.heatmap("download_bps", x="access.up.rate"), compared.plot.heatmap(
        "download_bps", y="access.down.rate"
    )
    for picture in given:
        axes = picture.axes[0]
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("access.up.rate", "access.down.rate")
    with pytest.raises(ValueError, match="two keys"):
        lm.compare(download, vary={"seed": [1, 2]}).plot.heatmap("download_bps")
    with pytest.raises(KeyError, match="no 'speed'"):
        compared.plot.measures("speed")
    with pytest.raises(KeyError, match="'probe' is a group of measures: probe.lost_share, probe.max_s"):
        compared.plot.measures("probe")
    with pytest.raises(KeyError, match="no 'x' in 'download_bps.x': the part before it is no group"):
        compared.plot.measures("download_bps.x")


class Documented:
    """A comparison of two rows with three seeds each, of which each lacks one value or all."""

    varied = ["policy", "rate"]
    rows = [["none", "1"], ["cake", "1"]]
    document = {"runs": [{"probe": {"p99_s": value}} for value in (0.01, None, 0.03, None, None, None)]}

    def __len__(self) -> int:
        return len(self.rows)


def test_a_mean_of_fewer_seeds_is_of_those_that_have_it_and_says_so() -> None:
    from lastmile.plot import ComparisonPlots

    comparison: Any = Documented()
    plots = ComparisonPlots(comparison)
    axes: Any = plots.measures("probe.p99_s").axes[0]
    assert axes.get_xlabel() == "probe p99, ms"
    assert axes.patches[0].get_width() == pytest.approx(20)
    assert [text.get_text() for text in axes.texts] == ["2 of 3", ""], "no bar, no number"
    assert [text.get_text() for text in plots.heatmap("probe.p99_s").axes[0].texts] == ["20\n2 of 3"]


def test_means_of_a_study_say_how_many_seeds_they_have(download: lm.Scenario, tmp_path: Path) -> None:
    class Lacking:
        """A table with a mean of two seeds of three."""

        keys = ["access.policy", "access.up.rate"]

        def column(self, name: str) -> list[str]:
            return {"access.policy": ["none"] * 4, "access.up.rate": ["1 Mbit/s"] * 3 + ["2 Mbit/s"]}[name]

        def means(self, measure: str, *, where: object) -> list[tuple[list[str], float, float, int]]:
            return [(["none", "1 Mbit/s"], 0.02, 0.001, 2), (["none", "2 Mbit/s"], 0.03, float("nan"), 1)]

    from lastmile.plot import TablePlots

    table: Any = Lacking()
    plots = TablePlots(table)
    [axes] = plots.means("flows.download.delay_s.p95").axes
    assert axes.get_ylabel() == "flows download delay p95, ms"
    assert [text.get_text() for text in axes.texts] == ["2 of 3"]
    texts = [text.get_text() for text in plots.heatmap("ping.p50_s").axes[0].texts]
    assert texts == ["20\n2 of 3", "30"]


@pytest.mark.parametrize(
    ("measure", "values", "label", "size"),
    [
        ("download_bps", [2e6], "download, Mbit/s", 1e6),
        ("ping.p50_s", [0.02], "ping p50, ms", 1e-3),
        ("flows.download.delay_s.p95", [0.02], "flows download delay p95, ms", 1e-3),
        ("links.up.queue_delay_s.count", [20], "links up queue delay s count", 1),
        ("links.up.max_backlog_bytes", [2e3], "links up max backlog, kB", 1e3),
        ("links.up.utilisation", [0.5], "links up utilisation, %", 0.01),
        ("flows.download.limited_by.receive_window", [0.5], "flows download limited by receive window, %", 0.01),
        ("during it: ping: RTT p50_s", [2.0], "during it: ping: RTT p50, s", 1),
        ("drops", [3], "drops", 1),
    ],
)
def test_labels_have_the_unit_of_the_measure(measure: str, values: list[float], label: str, size: float) -> None:
    from lastmile.plot._heatmap import unit_of, words

    factor, unit = unit_of(measure, values)
    assert (words(measure, unit), factor) == (label, size)


def test_published_figures_are_counted_as_by_the_command(at_root: Path) -> None:
    from lastmile import plot

    reproduction = lm.reproduce("phanse2000/5.2")
    of = [table["agreement"] for table in reproduction.document["tables"]]
    title = reproduction.plot.published().axes[0].get_title(loc="left")
    near, figures = (sum(table[key] for table in of) for key in ("within_25_pct", "figures"))
    assert title == f"{near} of {figures} figures within 25 %"

    def row(published: float, simulated: float, name: str = "goodput_bps") -> dict[str, Any]:
        return {"published": {name: published}, "simulated": {name: simulated}, "ci95": {}}

    rows = [row(1e6, 1.25e6), row(1e6, 0.0), row(0.0, 0.0), row(1e6, 9e6, "goodput_above_bps")]
    axes = plot.published({"tables": [{"publication": "someone2001", "id": "1", "rows": rows}]}).axes[0]
    assert axes.get_title(loc="left") == "2 of 3 figures within 25 %; not drawn: 1 with a zero"
    with pytest.raises(ValueError, match="and above zero"):
        plot.published({"tables": [{"publication": "someone2001", "id": "1", "rows": rows[1:3]}]})


def test_a_flow_that_gets_nothing_has_a_line(download: lm.Scenario) -> None:
    late = '[[traffic]]\nname = "late"\nkind = "bulk"\ndirection = "up"\nstart = "4.99 s"\n'
    starved = lm.loads(download.text + late)
    run = lm.run(starved.set("access.up.loss", "100 %"))
    assert {line.get_label() for line in run.plot.throughput().axes[0].lines} == {"download", "late"}


def test_fairness_of_a_network_has_its_own_directions() -> None:
    network = """
duration = "2 s"
[[link]]
name = "bottleneck"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "20 ms"
[[traffic]]
kind = "bulk"
from = "a"
to = "b"
count = 3
"""
    run = lm.run(lm.loads(network))
    axes = run.plot.fairness().axes[0]
    assert len(axes.patches) == 3 and axes.get_title(loc="left").startswith("Goodput of flows a to b, Jain's index ")
    assert len(run.plot.fairness("a to b").axes[0].patches) == 3
    with pytest.raises(ValueError, match="direction: 'down' is none of a to b"):
        run.plot.fairness("down")


def test_fairness_says_of_how_many_flows_it_is() -> None:
    line = """
duration = "20 s"
[access]
down = { rate = "8 Mbit/s", delay = "10 ms" }
up = { rate = "1 Mbit/s", delay = "10 ms" }
[[traffic]]
kind = "bulk"
direction = "down"
name = "first"
bytes = "2 MB"
[[traffic]]
kind = "bulk"
direction = "down"
name = "later"
count = 2
start = "8 s"
"""
    run = lm.run(lm.loads(line))
    assert run.summary["fairness"][0]["flows"] == 2
    assert run.plot.fairness("down").axes[0].get_title(loc="left").endswith(" of 2 of 3")
