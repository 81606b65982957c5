"""Types: the stubs are those of the extension module, and strict checks accept package and examples."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from lastmile import _lastmile

from conftest import ROOT

HERE = Path(__file__).resolve().parent


def run(*arguments: str) -> None:
    output = subprocess.run([sys.executable, "-m", *arguments], cwd=HERE.parent, capture_output=True, text=True)
    assert output.returncode == 0, output.stdout + output.stderr


def test_the_stubs_are_those_of_the_module(tmp_path: Path) -> None:
    # The wheel of the tests is without the command (scripts/python-tests.sh).
    allowed = tmp_path / "allowed"
    allowed.write_text("" if hasattr(_lastmile, "main") else "lastmile._lastmile.main\n")
    run("mypy.stubtest", "lastmile._lastmile", "--allowlist", str(allowed))


def test_strict_checks_accept_the_package_and_its_tests() -> None:
    run("mypy", "--strict", "--package", "lastmile")
    run("mypy", "--strict", "--disable-error-code", "import-untyped", "tests")


def test_strict_checks_accept_the_lines_of_the_readmes(tmp_path: Path) -> None:
    for number, page in enumerate(("README.md", "crates/python/README.md")):
        lines = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
        assert lines, page
        example = tmp_path / f"example_{number}.py"
        example.write_text("import polars\n" + "".join(lines))
        run("mypy", "--strict", str(example))
