"""Data frames of pandas, which is not imported before one is asked for."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["to_pandas"]


def to_pandas(stream: object) -> Any:
    """The data frame of an object with a stream of Arrow."""
    try:
        pandas: Any = importlib.import_module("pandas")
        arrow: Any = importlib.import_module("pyarrow")
    except ImportError as error:
        raise ImportError(f"to_pandas needs {error.name}: pip install pandas pyarrow", name=error.name) from error
    made = getattr(pandas.DataFrame, "from_arrow", None)
    return arrow.table(stream).to_pandas() if made is None else made(stream)
