"""Every public function has an example, and every example runs."""

from __future__ import annotations

import doctest
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import lastmile
import lastmile.linklayer
import lastmile.plot
import lastmile.theory
import pytest

from conftest import ROOT

MODULES: list[ModuleType] = [lastmile, lastmile.theory, lastmile.linklayer, lastmile.plot]


def is_function(thing: object) -> bool:
    return inspect.isroutine(thing) or inspect.isclass(thing)


def public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Public functions and classes of a module, and the public methods and properties of its classes."""
    for name in module.__all__:
        thing = getattr(module, name)
        if isinstance(thing, ModuleType) or not is_function(thing):
            continue
        yield f"{module.__name__}.{name}", thing
        if inspect.isclass(thing) and thing.__module__.startswith("lastmile"):
            for inner, member in vars(thing).items():
                documented = inspect.isroutine(member) or inspect.isgetsetdescriptor(member)
                # matplotlib adds a method to its subclasses.
                documented = documented and getattr(member, "__module__", None) != "matplotlib.artist"
                if not inner.startswith("_") and documented:
                    yield f"{module.__name__}.{name}.{inner}", member


PUBLIC = dict(one for module in MODULES for one in public(module))


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_an_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = inspect.getdoc(PUBLIC[name])
    assert text, f"{name} has no docstring"
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    if not examples.examples:
        # Properties of classes of Rust are shown by the examples of their class.
        assert inspect.isgetsetdescriptor(PUBLIC[name]), f"{name} has no example"
        return
    os.symlink(ROOT / "crates/cli/tests/captures/bulk-sender.pcap.zst", tmp_path / "transfer.pcap.zst")
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(examples, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_examples_of_modules_run(module: ModuleType) -> None:
    examples = doctest.DocTestParser().get_doctest(module.__doc__ or "", {}, module.__name__, None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner()
    runner.run(examples, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def blocks(path: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.S)


@pytest.mark.parametrize(
    "path", ["README.md", "crates/python/README.md", "docs/guides/python.md", "docs/guides/your-own-queue.md"]
)
def test_the_lines_of_a_page_run(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = blocks(path)
    assert code, f"{path} shows Python"
    for name in ("scenarios", "crates"):
        os.symlink(ROOT / name, tmp_path / name)
    os.symlink(ROOT / "scenarios/upload-starves-download.toml", tmp_path / "upload-starves-download.toml")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in code:
        exec(compile(block, path, "exec"), names)
    pictures = list(tmp_path.glob("*.pdf"))
    assert len(pictures) == "".join(code).count("savefig") and all(one.stat().st_size > 5_000 for one in pictures)
