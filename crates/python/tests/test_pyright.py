"""pyright accepts the stubs, the package, its tests and the examples of the documentation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

PACKAGE = ROOT / "crates/python"


def check(*arguments: str, cwd: Path = PACKAGE) -> None:
    program = os.environ.get("LASTMILE_PYRIGHT", "")
    if not os.access(program, os.X_OK):
        pytest.skip("pyright is not there: it needs Node.js and npm (scripts/python-tests.sh)")
    output = subprocess.run(
        [program, "--pythonpath", sys.executable, *arguments], cwd=cwd, capture_output=True, text=True
    )
    assert output.returncode == 0, output.stdout + output.stderr


def test_pyright_accepts_the_package_and_its_tests() -> None:
    check()


def code(path: Path) -> str:
    """The Python of a page or of a notebook."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        return "\n\n".join("".join(cell["source"]) for cell in cells)
    return "import polars\n" + "".join(re.findall(r"```python\n(.*?)```", text, re.S))


def test_pyright_accepts_the_examples_of_guides_and_notebooks(tmp_path: Path) -> None:
    pages = [ROOT / "README.md", PACKAGE / "README.md", ROOT / "docs/guides/python.md"]
    pages += [ROOT / "docs/guides/your-own-queue.md", *sorted((ROOT / "notebooks").glob("*.ipynb"))]
    for number, path in enumerate(pages):
        (tmp_path / f"example_{number}.py").write_text(code(path))
    settings: dict[str, object] = {"pythonVersion": "3.11", "typeCheckingMode": "standard"}
    # A cell ends with what it shows; a name of a loop lives on.
    quiet = {"reportUnusedExpression": False, "reportPossiblyUnboundVariable": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings | quiet))
    check(cwd=tmp_path)
