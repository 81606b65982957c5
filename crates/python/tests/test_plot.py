"""Plots: what they show, and that they are drawn in every format."""

from __future__ import annotations

from pathlib import Path

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
    with pytest.raises(ValueError, match="two keys"):
        lm.compare(download, vary={"seed": [1, 2]}).plot.heatmap("download_bps")
    with pytest.raises(KeyError, match="no 'speed'"):
        compared.plot.measures("speed")
