#!/usr/bin/env python3
"""Writes the licences of all foreign code in a package, for some platforms: usage: licences.py FILE PACKAGE PLATFORM...

These are crates, Rust's standard library, the scripts of pages, fonts, and the C library where it is musl. Each text
occurs once, below the names of what has it. A crate without a file for its licence has its name there.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")
FONTS = Path("crates/picture/fonts")
SCRIPTS = Path("crates/results/assets/report.js")
"""The dashboard has no other package than reports have."""


def output(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def crates(top: str, platforms: list[str]) -> list[dict]:
    """The packages that the package `top` is made of, apart from those of this workspace, by name and version."""
    filters = [f"--filter-platform={platform}" for platform in platforms]
    features = ["--features", "lastmile-python/command"] if top == "lastmile-python" else []
    metadata = json.loads(output("cargo", "metadata", "--format-version", "1", "--locked", *features, *filters))
    by_id = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    wanted = [package["id"] for package in metadata["packages"] if package["name"] == top]
    seen: set[str] = set()
    while wanted:
        one = wanted.pop()
        if one in seen:
            continue
        seen.add(one)
        for dependency in nodes[one]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                wanted.append(dependency["pkg"])
    found = (by_id[one] for one in seen)
    return sorted((one for one in found if one["source"]), key=lambda one: (one["name"], one["version"]))


def of_crate(package: dict) -> list[str]:
    """The texts of a crate."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.upper().startswith(NAMES))
    return [path.read_text(encoding="utf-8", errors="replace") for path in files]


def of_rust() -> Iterator[tuple[str, str]]:
    """The texts of the standard library and of the crates in it, from the documentation of the toolchain."""
    folder = Path(output("rustc", "--print", "sysroot").strip()) / "share/doc/rust"
    page = (folder / "COPYRIGHT-library.html").read_text(encoding="utf-8")
    own, *others = page[page.index("In-tree files</h2>") :].split("<h3>")
    plain = html.unescape(re.sub("<[^>]*>", "", own))
    yield "Rust's standard library", re.sub(r"\s*\n\s*", "\n", plain)
    for path in sorted((folder / "licenses").iterdir()):
        if path.stem in plain:
            yield "Rust's standard library", path.read_text(encoding="utf-8")
    for one in others:
        name = one[: one.index("</h3>")].strip("\N{PACKAGE} ")
        for text in re.findall("<pre>(.*?)</pre>", one, re.DOTALL):
            yield f"{name} (in Rust's standard library)", html.unescape(text)


def of_scripts() -> Iterator[tuple[str, str]]:
    """The texts of the scripts in pages, which web/build.mjs has put at their beginning."""
    found = re.findall(r"/\*! ([^:]*):\n(.*?)\*/", SCRIPTS.read_text(encoding="utf-8"), re.DOTALL)
    if not found:
        sys.exit(f"error: {SCRIPTS} begins with no licence")
    for name, text in found:
        yield f"{name} (in pages)", text


def of_musl() -> str:
    """The text of the C library, from the package of zig."""
    import ziglang

    return (Path(ziglang.__file__).parent / "lib/libc/musl/COPYRIGHT").read_text(encoding="utf-8")


def main() -> None:
    """Writes the file."""
    file, top, *platforms = sys.argv[1:]
    texts: dict[str, tuple[str, list[str]]] = {}

    def add(name: str, text: str) -> None:
        """Adds a text, unless it is there but for its spaces."""
        texts.setdefault(" ".join(text.split()), (text.strip("\n"), []))[1].append(name)

    rows, bare = [], []
    for package in crates(top, platforms):
        title = f"{package['name']} {package['version']}"
        rows.append(f"{title}: {package['license'] or package['license_file']}")
        found = of_crate(package)
        if not found:
            bare.append(title)
        for text in found:
            add(title, text)
    others = [*of_rust(), *of_scripts()]
    if any(platform.endswith("-musl") for platform in platforms):
        others.append(("musl", of_musl()))
    for name, text in others:
        add(name, text)
    parts = [f"{top} contains code of these crates:\n\n" + "\n".join(rows)]
    if bare:
        parts.append("Packages of these have no text of their licence: " + ", ".join(bare))
    parts += [f"{', '.join(dict.fromkeys(names))}:\n\n{text}" for text, names in texts.values()]
    parts += [(FONTS / "README.md").read_text().strip() + "\n\n" + (FONTS / "LICENSE-DejaVu").read_text().strip()]
    rule = "\n\n" + "-" * 100 + "\n\n"
    Path(file).write_text(rule.join(parts) + "\n", encoding="utf-8")
    print(f"{len(rows)} crates, {len(texts)} texts, {len(bare)} crates without a text", file=sys.stderr)


if __name__ == "__main__":
    main()
