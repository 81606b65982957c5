"""Functions of numbers over arrays: of NumPy if an argument is one of its arrays, else of the standard library.

NumPy is not imported here. An argument can only be one of its arrays if the caller has imported it.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

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


def apply(form: _Form, arguments: Sequence[Numbers], results: int = 1) -> Any:
    """Calls ``form`` with buffers of the arguments, and buffers for as many results.

    Numbers are repeated to the shape of the others. The result has that shape; it is a number if all arguments are,
    and a tuple if there are several.
    """
    if any(_is_numpy(argument) for argument in arguments):
        outs = _with_numpy(form, arguments, results)
    else:
        outs = _without(form, arguments, results)
    return outs[0] if results == 1 else tuple(outs)


def _with_numpy(form: _Form, arguments: Sequence[Any], results: int) -> list[Any]:
    numpy = sys.modules["numpy"]
    same = numpy.broadcast_arrays(*(numpy.asarray(argument, dtype=numpy.float64) for argument in arguments))
    shape = same[0].shape
    outs = [numpy.empty(shape, dtype=numpy.float64) for _ in range(results)]
    form([numpy.ascontiguousarray(one).reshape(-1) for one in same], [out.reshape(-1) for out in outs])
    return [out if shape else float(out) for out in outs]


def _without(form: _Form, arguments: Sequence[Any], results: int) -> list[Any]:
    columns = [one if isinstance(one, (int, float)) else array("d", one) for one in arguments]
    lengths = {len(column) for column in columns if isinstance(column, array)}
    if len(lengths) > 1:
        raise ValueError(f"arguments of different lengths: {', '.join(map(str, sorted(lengths)))}")
    count = lengths.pop() if lengths else 1
    same = [column if isinstance(column, array) else array("d", [column]) * count for column in columns]
    outs = [array("d", bytes(8 * count)) for _ in range(results)]
    # A buffer of nothing has no address.
    if count:
        form(same, outs)
    return outs if any(isinstance(column, array) for column in columns) else [out[0] for out in outs]
