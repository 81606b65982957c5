"""Rates, times and sizes with their units."""

from __future__ import annotations

import decimal
import numbers
from collections.abc import Iterable
from typing import Any, ClassVar, Self, SupportsFloat, overload

from lastmile import _lastmile

__all__ = ["Duration", "Quantity", "Rate", "Size"]

EXACT = decimal.Context(prec=64)
"""More digits than a float below `MOST` has before its point and in picoseconds after it."""
MOST = decimal.Decimal(10**20)
"""Above every quantity, in the unit of its class."""


class Quantity(float):
    """A quantity: a number in the unit of its class, and the text that it was made of."""

    __slots__ = ("_text",)
    _ending: ClassVar[str]
    _unit: ClassVar[str]
    _decimals: ClassVar[int] = 0
    _text: str

    # Numbers of NumPy leave arithmetic with a quantity to it, and arrays do not.
    __array_priority__ = -1.0

    def __new__(cls, value: str | SupportsFloat, /) -> Self:
        is_text = isinstance(value, str) or type(value) is cls
        text = str(value) if is_text else cls._written(value)
        number, exact = _lastmile.quantity(cls._ending, text)
        made = super().__new__(cls, number)
        made._text = text if is_text else exact
        return made

    @classmethod
    def _written(cls, value: Any) -> str:
        """A number with the unit, rounded to the nearest value of the class."""
        # A time of NumPy has a unit of its own, which `float` leaves out.
        is_time = getattr(getattr(value, "dtype", None), "kind", None) in ("m", "M")
        if isinstance(value, (bool, Quantity)) or is_time or not hasattr(value, "__float__"):
            each = f"; map(lastmile.{cls.__name__}, values) makes one of each" if isinstance(value, Iterable) else ""
            raise TypeError(
                f"value: a text with a unit or a number of {cls._unit}, and not of type {type(value).__name__}{each}"
            )
        # The decimals of a float are those that it prints.
        written = decimal.Decimal(value if isinstance(value, int) else float.__repr__(float(value)))
        if not written.is_finite() or abs(written) >= MOST:
            raise ValueError(f"value: {value} {cls._unit} are no {cls.__name__}")
        rounded = written.quantize(decimal.Decimal(1).scaleb(-cls._decimals), context=EXACT).normalize(EXACT)
        # Zero has a sign.
        return f"{abs(rounded) if rounded.is_zero() else rounded:f} {cls._unit}"

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"lastmile.{type(self).__name__}({self._text!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self._text,)

    @overload
    def __add__(self, other: Self, /) -> Self: ...
    @overload
    def __add__(self, other: float, /) -> float: ...
    def __add__(self, other: float, /) -> float:
        if isinstance(other, Quantity) and type(other) is not type(self):
            raise TypeError(f"a {type(self).__name__} and a {type(other).__name__} have no sum")
        total = super().__add__(other)
        return type(self)(total) if isinstance(other, Quantity) else total

    def __radd__(self, other: float, /) -> float:
        # `sum` begins with 0.
        return self if type(other) is int and other == 0 else super().__radd__(other)

    def __sub__(self, other: float, /) -> float:
        if isinstance(other, Quantity) and type(other) is not type(self):
            raise TypeError(f"a {type(self).__name__} and a {type(other).__name__} have no difference")
        return super().__sub__(other)

    @overload
    def __mul__(self, other: Quantity, /) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def __mul__(self, other: float, /) -> Self: ...
    def __mul__(self, other: float, /) -> float:
        return type(self)(float(self) * float(other)) if _is_number(other) else super().__mul__(other)

    def __rmul__(self, other: float, /) -> Self:
        return self * other

    @overload
    def __truediv__(self, other: Quantity, /) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def __truediv__(self, other: float, /) -> Self: ...
    def __truediv__(self, other: float, /) -> float:
        return type(self)(float(self) / float(other)) if _is_number(other) else super().__truediv__(other)


def _is_number(value: object) -> bool:
    """True for numbers without a unit, those of NumPy too; false for arrays and quantities."""
    return isinstance(value, numbers.Real) and not isinstance(value, Quantity)


class Rate(Quantity):
    """A rate: a number of bit/s, made of a text with a unit or of a number of bit/s.

    A number is rounded to whole bit/s. Products and quotients with numbers, and sums of rates, are rates; other results
    are numbers.

    >>> import lastmile as lm
    >>> float(lm.Rate("1.024 Mbit/s")), lm.Rate(5e6)
    (1024000.0, lastmile.Rate('5 Mbit/s'))
    >>> lm.Rate("1 Mbit/s") / 3, lm.Rate("1 Mbit/s") / lm.Rate("250 kbit/s")
    (lastmile.Rate('333.333 kbit/s'), 4.0)

    It is a value of keys, and turns the texts of a column into numbers.

    >>> line = lm.line("adsl2plus-12-1", home="single").set("access.up.rate", lm.Rate("2 Mbit/s"))
    >>> line.overrides
    ['access.up.rate=2 Mbit/s']
    >>> sorted(lm.log("128 kbit/s", "2048 kbit/s", 3), key=lm.Rate)
    ['128 kbit/s', '512 kbit/s', '2.048 Mbit/s']

    Arrays of NumPy and columns of pandas hold numbers, without a unit. ``map`` makes rates of them.

    >>> import numpy
    >>> lm.paired({"access.up.rate": map(lm.Rate, numpy.geomspace(500e3, 2e6, 3))}).points
    [['500 kbit/s'], ['1 Mbit/s'], ['2 Mbit/s']]
    """

    __slots__ = ()
    _ending = "bps"
    _unit = "bit/s"


class Duration(Quantity):
    """A span of time: a number of seconds, made of a text with a unit or of a number of seconds.

    A number is rounded to whole picoseconds. Arithmetic is that of `Rate`.

    >>> import lastmile as lm
    >>> lm.Duration("20 ms") * 2, lm.Duration(0.01)
    (lastmile.Duration('40 ms'), lastmile.Duration('10 ms'))
    """

    __slots__ = ()
    _ending = "s"
    _unit = "s"
    _decimals = 12


class Size(Quantity):
    """A size: a number of bytes, made of a text with a unit or of a number of bytes.

    A number is rounded to whole bytes. Arithmetic is that of `Rate`.

    >>> import lastmile as lm
    >>> lm.Size("64 KiB") == 65536, lm.Size(1500)
    (True, lastmile.Size('1500 bytes'))
    """

    __slots__ = ()
    _ending = "bytes"
    _unit = "bytes"
