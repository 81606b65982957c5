#!/usr/bin/env python3
"""Runs the notebooks of notebooks/ in this interpreter, cell by cell, and saves their pictures.

    scripts/notebooks.py [--small] [--pictures DIR] [NOTEBOOK...]

The package `lastmile` with matplotlib must be installed. A notebook runs in its own folder with names of its own. The
variable `picture` is its picture. `--small` sets LASTMILE_SMALL, by which notebooks choose small sizes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def cells(path: Path) -> Iterator[tuple[int, str]]:
    """The code cells of a notebook, with their numbers among all cells."""
    document = json.loads(path.read_text())
    if document["nbformat"] != 4:
        raise ValueError(f"{path}: a notebook of format 4 is expected")
    for number, cell in enumerate(document["cells"], 1):
        if cell["cell_type"] != "code":
            continue
        if cell["outputs"] or cell["execution_count"] is not None:
            raise ValueError(f"{path}, cell {number}: clear the outputs of the notebook before it is committed")
        yield number, "".join(cell["source"])


def run(path: Path) -> dict[str, Any]:
    """The names of a notebook after its last cell. An error names notebook and cell."""
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        for number, source in cells(path):
            exec(compile(source, f"{path.name}, cell {number}", "exec"), names)
    finally:
        os.chdir(before)
    return names


def save(names: dict[str, Any], target: Path) -> None:
    """Writes the picture as SVG, with equal bytes for equal data."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "lastmile"}):
        names["picture"].savefig(target, metadata={"Date": None, "Creator": None})


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--small", action="store_true", help="small sizes, as the tests run them")
    arguments.add_argument("--pictures", type=Path, metavar="DIR", help="save the pictures in this folder")
    arguments.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK")
    given = arguments.parse_args()
    if given.small:
        os.environ["LASTMILE_SMALL"] = "1"
    os.environ.setdefault("MPLBACKEND", "agg")
    for path in given.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        path, began = path.resolve(), time.monotonic()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            names = run(path)
        print(printed.getvalue(), end="")
        if given.pictures is not None:
            given.pictures.mkdir(parents=True, exist_ok=True)
            save(names, given.pictures / f"{path.stem}.svg")
        print(f"{path.name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
