"""The command of the wheel."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import lastmile as lm
import pytest
from lastmile import _command, _lastmile

from conftest import ROOT, Command

DISTRIBUTION = "lastmile-tcp"
"""As pyproject.toml names it."""
FILES = (".py", ".pyi", ".rs", ".md", ".ipynb")

of_the_wheel = pytest.mark.skipif(not hasattr(_lastmile, "main"), reason="a wheel without the command")


@of_the_wheel
def test_the_script_is_the_command_with_its_exit_codes(lastmile: Command) -> None:
    assert lastmile("--version").stdout == f"lastmile {lm.__version__}\n"
    wrong = lastmile("run", "missing.toml")
    assert (wrong.returncode, wrong.stdout, wrong.stderr) == (2, "", "error: missing.toml: no such file\n")
    assert "Usage: lastmile run" in lastmile("run", "--help").stdout


@of_the_wheel
def test_python_m_is_the_command() -> None:
    output = subprocess.run([sys.executable, "-m", "lastmile", "--version"], capture_output=True, text=True, check=True)
    assert output.stdout.startswith("lastmile ")


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="an environment has one folder of scripts")
def test_python_m_names_the_script_of_its_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """systemd and supervisors start no ``__main__.py``."""
    started: list[str] = []
    # The command's own answer to Ctrl-C is not that of the tests.
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
    monkeypatch.setattr(_lastmile, "main", lambda script, _: started.append(script), raising=False)
    for path in (Path(lm.__file__).with_name("__main__.py"), tmp_path / "lastmile"):
        monkeypatch.setattr(sys, "argv", [str(path)])
        with pytest.raises(SystemExit):
            _command.main()
    assert started == [str(Path(sys.executable).with_name("lastmile")), str(tmp_path / "lastmile")]


@of_the_wheel
def test_a_pipe_gets_all_of_the_output(lastmile: Command) -> None:
    whole = lastmile("overhead", "--json").stdout
    assert whole.endswith("]\n") and len(whole) > 4096


def listens(process: subprocess.Popen[bytes]) -> bool:
    """Whether the command handles signals: SIGTERM is the 15th of SigCgt in proc_pid_status(5)."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return int(mask, 16) >> 14 & 1 == 1


@of_the_wheel
def test_a_signal_ends_the_command_with_its_number() -> None:
    script = Path(sys.executable).with_name("lastmile")
    arguments = ["run", "scenarios/upload-starves-download.toml", "--duration", "200 h", "--set", "record.series=false"]
    with subprocess.Popen([script, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        while not listens(process) and process.poll() is None:
            time.sleep(0.01)
        # The run is then in the middle.
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130


@of_the_wheel
def test_a_unit_of_systemd_starts_the_script(lastmile: Command) -> None:
    script = Path(sys.executable).with_name("lastmile")
    module = [sys.executable, "-m", "lastmile", "watch", "unit"]
    for unit in (lastmile("watch", "unit"), subprocess.run(module, capture_output=True, text=True)):
        assert unit.returncode == 0 and f"ExecStart={script} watch" in unit.stdout, unit.stdout


def test_the_wheel_needs_no_other_package() -> None:
    needed = metadata.requires(DISTRIBUTION) or []
    assert all("extra ==" in one for one in needed), needed
    assert metadata.version(DISTRIBUTION) == lm.__version__


def test_pages_and_messages_name_the_distribution_and_its_extras() -> None:
    """PyPI's `lastmile` is another project."""
    extras = metadata.metadata(DISTRIBUTION).get_all("Provides-Extra")
    pages = ["README.md", "CHANGELOG.md", *(f"{folder}/**/*" for folder in ("docs", "notebooks", "crates/python"))]
    files = [path for page in pages for path in ROOT.glob(page) if path.suffix in FILES]
    named = [
        (path.name, *found) for path in files for found in re.findall(r"(lastmile[\w-]*)\[(\w+)\]", path.read_text())
    ]
    assert {path for path, *_ in named} >= {"__init__.py", "cluster.py", "python.md", "studies.md", "run.rs"}
    assert all(name == DISTRIBUTION and extra in (extras or []) for _, name, extra in named), named
    assert not any(re.search(r"pip install .*'?lastmile'?$", path.read_text(), re.M) for path in files)


def test_an_empty_environment_imports_it() -> None:
    """scripts/python-tests.sh installs the wheel alone into an environment without pip."""
    empty = Path(os.environ["LASTMILE_EMPTY"])
    code = (
        "import sys, lastmile as lm\n"
        "assert 'numpy' not in sys.modules and 'matplotlib' not in sys.modules\n"
        "run = lm.run(lm.line('adsl2plus-12-1', home='single'), duration='1 s')\n"
        "assert run.svg().startswith('<svg')\n"
        "assert list(lm.linklayer.on_wire([40], 'none')) == [40]\n"
        "try: run.plot\n"
        "except ImportError as error: print(error)\n"
    )
    output = subprocess.run([empty / "bin/python", "-I", "-c", code], capture_output=True, text=True)
    wanted = (0, "plots need matplotlib: pip install 'lastmile-tcp[plot]'\n")
    assert (output.returncode, output.stdout) == wanted, output
