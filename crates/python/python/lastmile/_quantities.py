"""Rates, times and sizes with their units."""

from __future__ import annotations

from typing import ClassVar, Self

from lastmile import _lastmile

__all__ = ["Duration", "Quantity", "Rate", "Size"]


class Quantity(float):
    """A quantity: a number in the unit of its class, and the text that it was made of."""

    __slots__ = ("_text",)
    _ending: ClassVar[str]
    _text: str

    def __new__(cls, text: str) -> Self:
        if not isinstance(text, str):
            raise TypeError(f"text: a number with a unit, and not of type {type(text).__name__}")
        made = super().__new__(cls, _lastmile.quantity(cls._ending, text))
        made._text = str(text)
        return made

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"lastmile.{type(self).__name__}({self._text!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self._text,)


class Rate(Quantity):
    """A rate: a number of bit/s.

    >>> import lastmile as lm
    >>> float(lm.Rate("1.024 Mbit/s"))
    1024000.0

    It is a value of keys, and turns the texts of a column into numbers.

    >>> line = lm.line("adsl2plus-12-1", home="single").set("access.up.rate", lm.Rate("2 Mbit/s"))
    >>> line.overrides
    ['access.up.rate=2 Mbit/s']
    >>> sorted(lm.log("128 kbit/s", "2048 kbit/s", 3), key=lm.Rate)
    ['128 kbit/s', '512 kbit/s', '2.048 Mbit/s']
    """

    __slots__ = ()
    _ending = "bps"


class Duration(Quantity):
    """A span of time: a number of seconds.

    >>> import lastmile as lm
    >>> lm.Duration("20 ms") * 2
    0.04
    """

    __slots__ = ()
    _ending = "s"


class Size(Quantity):
    """A size: a number of bytes.

    >>> import lastmile as lm
    >>> lm.Size("64 KiB") == 65536
    True
    """

    __slots__ = ()
    _ending = "bytes"
