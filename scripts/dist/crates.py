#!/usr/bin/env python3
"""Reads `cargo metadata --no-deps`, checks what crates.io asks of each package, and prints their names in the order of
publication."""

from __future__ import annotations

import json
import sys
from graphlib import TopologicalSorter
from pathlib import Path

NEEDED = ("description", "license", "readme", "keywords", "categories", "rust_version")


def main() -> None:
    """Prints the order, or exits with what is missing."""
    packages = {one["name"]: one for one in json.load(sys.stdin)["packages"] if one["publish"] != []}
    faults = []
    for name, package in packages.items():
        faults += [f"{name}: no {field}" for field in NEEDED if not package[field]]
        if len(package["keywords"]) > 5 or any(len(word) > 20 for word in package["keywords"]):
            faults.append(f"{name}: at most 5 keywords of at most 20 letters: {package['keywords']}")
        folder = Path(package["manifest_path"]).parent
        faults += [f"{name}: no {file}" for file in ("LICENSE-MIT", "LICENSE-APACHE") if not (folder / file).is_file()]
        for dependency in package["dependencies"]:
            if dependency.get("path") and dependency["req"] == "*":
                faults.append(f"{name}: {dependency['name']} without a version")
            if dependency.get("path") and dependency["name"] not in packages:
                faults.append(f"{name}: {dependency['name']} is not published")
    if any(not package["repository"] for package in packages.values()):
        print("dist: no crate names a repository: set workspace.package.repository before publishing", file=sys.stderr)
    if faults:
        sys.exit("\n".join(faults))
    below = {name: {d["name"] for d in package["dependencies"] if d.get("path")} for name, package in packages.items()}
    print("\n".join(TopologicalSorter(below).static_order()))


if __name__ == "__main__":
    main()
