"""Functions of numbers over arrays: of NumPy if an argument is one of its arrays, else of the standard library.

NumPy is not imported here. An argument can only be one of its arrays if the caller has imported it.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lastmile._arguments import wrong

if TYPE_CHECKING:
    from typing_extensions import Buffer

    class _Array(Protocol):
        """An array or a number of NumPy."""

        def __array__(self) -> Any: ...

    Numbers = float | Sequence[float] | Buffer | _Array
else:
    Numbers = object

_Form = Callable[[list[Any], list[Any]], None]


def _is_numpy(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def apply(form: _Form, results: int = 1, /, **named: Numbers) -> Any:
    """Calls ``form`` with buffers of the named arguments, and buffers for as many results.

    Numbers are repeated to the shape of the others. The result has that shape; it is a number if all arguments are,
    and a tuple if there are several.
    """
    made = _with_numpy if any(_is_numpy(argument) for argument in named.values()) else _without
    outs = made(form, named, results)
    return outs[0] if results == 1 else tuple(outs)


def _column(name: str, numbers: Any, make: Callable[[Any], Any]) -> Any:
    """An argument as ``make`` makes it of numbers."""
    try:
        return make(numbers)
    except (TypeError, ValueError) as error:
        raise wrong(name, "a number, or a sequence or an array of numbers", numbers) from error


def _with_numpy(form: _Form, named: Mapping[str, Any], results: int) -> list[Any]:
    numpy = sys.modules["numpy"]
    def numbers_of(values: Any) -> Any:
        made = numpy.asarray(values)
        # A time of NumPy would lose its unit.
        if made.dtype.kind not in "buifO":
            raise TypeError(f"numbers of the type {made.dtype}")
        return made.astype(numpy.float64, copy=False)

    columns = [_column(name, one, numbers_of) for name, one in named.items()]
    same = numpy.broadcast_arrays(*columns)
    shape = same[0].shape
    outs = [numpy.empty(shape, dtype=numpy.float64) for _ in range(results)]
    form([numpy.ascontiguousarray(one).reshape(-1) for one in same], [out.reshape(-1) for out in outs])
    return [out if shape else float(out) for out in outs]


def _without(form: _Form, named: Mapping[str, Any], results: int) -> list[Any]:
    columns = [
        one if isinstance(one, (int, float)) else _column(name, one, lambda numbers: array("d", numbers))
        for name, one in named.items()
    ]
    lengths = {name: len(column) for name, column in zip(named, columns) if isinstance(column, array)}
    if len(set(lengths.values())) > 1:
        each = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"arguments of different lengths: {each}")
    count = max(lengths.values(), default=1)
    same = [column if isinstance(column, array) else array("d", [column]) * count for column in columns]
    outs = [array("d", bytes(8 * count)) for _ in range(results)]
    # A buffer of nothing has no address.
    if count:
        form(same, outs)
    return outs if lengths else [out[0] for out in outs]
