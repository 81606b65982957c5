#!/usr/bin/env python3
"""Writes the licences of the crates in the program `lastmile`: usage: licences.py FILE.

Each licence text occurs once, below the crates that have it. A crate without a file for its licence has its name there.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")


def packages() -> list[dict]:
    """The packages that the program is made of, apart from its own, by name and version."""
    command = [
        "cargo",
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        "x86_64-unknown-linux-musl",
    ]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    by_id = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    wanted = [package["id"] for package in metadata["packages"] if package["name"] == "lastmile-cli"]
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


def main() -> None:
    """Writes the file."""
    texts: dict[str, tuple[str, list[str]]] = {}
    rows, bare = [], []
    for package in packages():
        title = f"{package['name']} {package['version']}"
        rows.append(f"{title}: {package['license'] or package['license_file']}")
        folder = Path(package["manifest_path"]).parent
        files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.upper().startswith(NAMES))
        if not files:
            bare.append(title)
        for path in files:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            key = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
            texts.setdefault(key, (text, []))[1].append(title)
    fonts = Path("crates/picture/fonts")
    notice = (fonts / "README.md").read_text().strip() + "\n\n" + (fonts / "LICENSE-DejaVu").read_text().strip()
    parts = ["lastmile contains code of these crates:\n\n" + "\n".join(rows)]
    if bare:
        parts.append("Packages of these have no text of their licence: " + ", ".join(bare))
    parts += [f"{', '.join(dict.fromkeys(names))}:\n\n{text}" for text, names in texts.values()]
    parts.append(notice)
    rule = "\n\n" + "-" * 100 + "\n\n"
    Path(sys.argv[1]).write_text(rule.join(parts) + "\n")
    print(f"{len(rows)} crates, {len(texts)} texts, {len(bare)} crates without a text", file=sys.stderr)


if __name__ == "__main__":
    main()
