"""Checks of arguments, whose errors name them. Those that reach the extension module are checked there."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["axes", "floats", "listed", "mapping", "named", "number", "paths", "whole", "wrong"]


def wrong(name: str, expected: str, value: object) -> TypeError:
    """The error for an argument of another type."""
    return TypeError(f"{name}: {expected}, and not of type {type(value).__name__}")


def mapping(name: str, expected: str, value: Any) -> dict[str, Any]:
    """A mapping, as a dict."""
    if not isinstance(value, Mapping):
        raise wrong(name, f"a dict of {expected}", value)
    return dict(value)


def named(name: str, of: str, value: Any) -> dict[str, Any]:
    """Classes by the names of ``of``."""
    classes = mapping(name, f"classes by {of}", value)
    for key in classes:
        if not isinstance(key, str):
            raise wrong(name, f"classes by {of}, which is a text", key)
    return classes


def paths(name: str, value: Any) -> list[tuple[str, str]]:
    """Different paths by name, as pairs."""
    files = mapping(name, "paths by link", value)
    for link, path in files.items():
        if not isinstance(link, str):
            raise wrong(name, 'links are texts such as "up"', link)
        if not isinstance(path, (str, os.PathLike)):
            raise wrong(f"{name}: {link}", "a path", path)
    owners: dict[str | bytes, str] = {}
    for link, path in files.items():
        owner = owners.setdefault(os.path.abspath(path), link)
        if owner != link:
            raise ValueError(f"{name}: {owner} and {link} have one file, {os.fspath(path)!r}")
    return [(link, os.fspath(path)) for link, path in files.items()]


def listed(name: str, values: object) -> list[Any]:
    """A list of values; a text is one value, and not a list of its letters."""
    if isinstance(values, str):
        raise ValueError(f"{name}: a list of values, and not a text: [{values!r}]")
    if not isinstance(values, Iterable):
        raise wrong(name, "a list of values", values)
    return list(values)


def axes(name: str, value: Any) -> dict[str, list[Any]]:
    """Lists of values of keys."""
    keys = mapping(name, "lists of values of keys", value)
    for key in keys:
        if not isinstance(key, str):
            raise wrong(name, 'keys are texts such as "access.up.rate"', key)
    return {key: listed(key, values) for key, values in keys.items()}


def number(name: str, value: Any) -> float:
    """A number."""
    if isinstance(value, (str, bool)) or not hasattr(value, "__float__"):
        raise wrong(name, "a number", value)
    return float(value)


def floats(name: str, values: object) -> list[float]:
    """Numbers."""
    return [number(name, value) for value in listed(name, values)]


def whole(name: str, value: Any) -> int:
    """A whole number."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise wrong(name, "a whole number", value)
