"""Samples as Arrow, read by the libraries that researchers use."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb
import lastmile as lm
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

from conftest import frame


@pytest.fixture
def run(download: lm.Scenario) -> lm.Run:
    return lm.run(download)


def test_the_stream_is_series_parquet(run: lm.Run, tmp_path: Path) -> None:
    run.save(tmp_path)
    table = pyarrow.table(run.series)
    written = pyarrow.parquet.read_table(tmp_path / "series.parquet")
    assert table.column_names == written.column_names == ["time_s", "series", "entity", "value"]
    assert table.num_rows == len(run.series) > 500
    for name in table.column_names:
        assert table[name].to_pylist() == written[name].to_pylist(), name


def test_polars_pandas_and_duckdb_read_it(run: lm.Run) -> None:
    rows = frame(run.series)
    assert rows.height == len(run.series)
    rate = rows.filter(polars.col("series").cast(polars.String) == "goodput_bps")["value"].mean()
    known: Any = pandas.DataFrame.from_arrow(run.series)
    assert known[known["series"] == "goodput_bps"]["value"].mean() == pytest.approx(rate)
    samples = run.series  # noqa: F841: DuckDB finds it by its name.
    sql: Any = duckdb.sql
    found = sql("select avg(value) from samples where series = 'goodput_bps'").fetchall()
    assert found[0][0] == pytest.approx(rate)


def test_pandas_gets_a_frame_by_name(run: lm.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = run.series.to_pandas()
    assert isinstance(rows, pandas.DataFrame) and len(rows) == len(run.series)
    assert rows.equals(pandas.DataFrame.from_arrow(run.series))
    monkeypatch.delattr(pandas.DataFrame, "from_arrow")
    assert run.series.to_pandas()["value"].tolist() == rows["value"].tolist(), "as before pandas 3"
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_pandas needs pandas: pip install pandas pyarrow"):
        run.series.to_pandas()


def test_readers_share_the_columns(run: lm.Run) -> None:
    first, second = pyarrow.table(run.series), pyarrow.table(run.series)
    address = [table["value"].chunk(0).buffers()[1].address for table in (first, second)]
    assert address[0] == address[1]


def test_columns_outlive_the_run(download: lm.Scenario) -> None:
    table = pyarrow.table(lm.run(download).series)
    table.validate(full=True)
    assert table["value"].to_pylist()


def test_samples_of_one_series_are_arrays(run: lm.Run) -> None:
    times, values = run.series.samples("goodput_bps", "download")
    assert len(times) == len(values) == 50 and times.typecode == "d"
    assert memoryview(values).format == "d"
    assert ("goodput_bps", "download") in run.series.names
    with pytest.raises(KeyError, match="no series .*`names` lists all"):
        run.series.samples("goodput_bps", "upload")
    with pytest.raises(KeyError, match="of .*download.* there are: .*goodput_bps"):
        run.series.samples("goodput", "download")


def test_a_run_without_series_is_an_empty_stream(download: lm.Scenario) -> None:
    run = lm.run(download.set("record.series", False).set("traffic.ping.stop", "1 ms"))
    table = pyarrow.table(run.series)
    assert table.num_rows == len(run.series) and table.column_names[0] == "time_s"
