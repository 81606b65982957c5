"""Types: the stubs are those of the extension module, and strict checks accept package and examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lastmile import _lastmile

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
