"""Bytes and cells of IP packets on the wire of each encapsulation.

Sizes are numbers, sequences, or arrays: results have the same shape. A number that is no size, such as 0, 1.5 or
70000, is an error, and ``nan`` in a sequence or an array.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lastmile import _lastmile
from lastmile._arrays import Numbers, apply

LARGEST_PACKET = 65_535
"""Bytes of the largest IP packet."""
MOST_CELLS = 4_294_967_295

__all__ = ["Preset", "cells", "efficiency", "largest_ip", "on_wire", "presets"]


class Preset(NamedTuple):
    """An encapsulation.

    >>> from lastmile import linklayer
    >>> linklayer.presets()[0].framing
    'none'
    """

    name: str
    """The name that scenarios and functions take."""
    overhead: int
    """Bytes around each IP packet."""
    framing: str
    """``none``, ``atm`` or ``ptm``."""
    aliases: list[str]
    """Other names."""
    note: str
    """What it is."""


def presets() -> list[Preset]:
    """All encapsulations.

    >>> from lastmile import linklayer
    >>> [preset.name for preset in linklayer.presets() if preset.framing == "ptm"][:2]
    ['bridged-ptm', 'pppoe-ptm']
    """
    return [Preset(*row) for row in _lastmile.presets()]


def _whole(name: str, value: Any, least: int, most: int) -> Any:
    """Refuses a number that is none from ``least`` to ``most``; sequences and arrays pass."""
    if not hasattr(value, "__len__") and hasattr(value, "__float__"):
        number = float(value)
        if not (least <= number <= most and number.is_integer()):
            raise ValueError(f"{name}: {value} is no whole number from {least} to {most}")
    return value


def _packet(size: Numbers) -> Any:
    return _whole("size", size, 1, LARGEST_PACKET)


def on_wire(size: Numbers, link: str) -> Any:
    """Bytes on the wire of IP packets of ``size`` bytes.

    An ACK of 40 bytes over bridged ATM with VC multiplexing has two cells of 53 bytes.

    >>> from lastmile import linklayer
    >>> linklayer.on_wire(40, "bridged-vcmux")
    106.0
    >>> linklayer.on_wire([40, 1500], "bridged-vcmux")
    array('d', [106.0, 1696.0])
    """
    return apply(lambda a, out: _lastmile.on_wire(link, *a, *out), size=_packet(size))


def cells(size: Numbers, link: str) -> Any:
    """Cells of IP packets of ``size`` bytes; ``nan`` over a link without cells.

    >>> from lastmile import linklayer
    >>> linklayer.cells([40, 1500], "bridged-vcmux")
    array('d', [2.0, 32.0])
    """
    return apply(lambda a, out: _lastmile.cells(link, *a, *out), size=_packet(size))


def largest_ip(count: Numbers, link: str) -> Any:
    """The largest IP packet in bytes that fits into ``count`` cells.

    >>> from lastmile import linklayer
    >>> linklayer.largest_ip([1, 2, 32], "bridged-vcmux")
    array('d', [24.0, 72.0, 1512.0])
    """
    return apply(lambda a, out: _lastmile.largest_ip(link, *a, *out), count=_whole("count", count, 0, MOST_CELLS))


def efficiency(size: Numbers, link: str) -> Any:
    """IP bytes for each byte on the wire.

    >>> from lastmile import linklayer
    >>> round(linklayer.efficiency(1500, "bridged-vcmux"), 3)
    0.884
    """
    return apply(lambda a, out: _lastmile.efficiency(link, *a, *out), size=_packet(size))
