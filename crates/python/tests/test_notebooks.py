"""The notebooks run, at small sizes, and the pages of docs show their pictures."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as tree
from pathlib import Path
from types import ModuleType

import pytest

from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGE = ROOT / "docs/studies/notebooks.md"


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "scripts/notebooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["notebooks"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LASTMILE_SMALL", "1")
    names = runner.run(path)
    runner.save(names, tmp_path / "picture.svg")
    assert tree.parse(tmp_path / "picture.svg").getroot().tag.endswith("svg")


def test_a_failing_cell_is_named_and_outputs_are_refused(runner: ModuleType, tmp_path: Path) -> None:
    text = (ROOT / "notebooks/5-your-own-aqm.ipynb").read_text()
    path = tmp_path / "broken.ipynb"
    path.write_text(text.replace("import lastmile as lm", "import lastmyle as lm"))
    with pytest.raises(ModuleNotFoundError) as caught:
        runner.run(path)
    assert any("broken.ipynb, cell 2" in str(entry.path) for entry in caught.traceback)
    path.write_text(text.replace('"execution_count": null', '"execution_count": 3', 1))
    with pytest.raises(ValueError, match="broken.ipynb, cell 2: clear the outputs"):
        runner.run(path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_and_its_picture_are_on_the_page(path: Path) -> None:
    page = PAGE.read_text()
    assert f"`{path.name}`" in page and f"images/notebooks/{path.stem}.svg" in page
    size = (ROOT / f"docs/images/notebooks/{path.stem}.svg").stat().st_size
    assert 5_000 < size < 250_000
