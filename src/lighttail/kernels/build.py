"""From plain scalar functions to a compiled kernel, with an on-disk cache that is never stale.

numba's cache does not notice an edited formula that lives in another file. So a kernel closes over
a digest of everything it calls: closure cells are part of numba's cache key.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.extending import register_jitable

from lighttail import streams

Formula = Callable[..., Any]
BREATH = 1 << 16  # pulls between two looks at the stop flag
FAMILY = (streams.standard_normal, streams.uniform)  # compiled by lighttail.kernels.draws

# Division by zero gives inf in a kernel, as in NumPy: the checks would cost a branch a division.
compiled = njit(cache=True, nogil=True, error_model="numpy")


@cache
def prepare(formula: Formula) -> Formula:
    """Let kernels call `formula`, and the plain functions that it calls."""
    for value in _names_used(formula).values():
        if isinstance(value, types.FunctionType) and value not in FAMILY:
            prepare(value)
    return register_jitable(formula)  # type: ignore[no-any-return]


def digest(*formulas: Formula) -> str:
    """Changes whenever a formula, what it refers to, or the kernels' own sources change."""
    content = hashlib.sha256(_own_sources())
    for formula in formulas:
        for part in _parts(formula, set()):
            content.update(part.encode() + b"\0")
    return content.hexdigest()


@cache
def _own_sources() -> bytes:
    folder = Path(__file__).parent
    files = [*sorted(folder.glob("*.py")), Path(streams.__file__)]
    return b"".join(file.read_bytes() for file in files)


def _parts(formula: types.FunctionType | Formula, seen: set[int]) -> Iterator[str]:
    """Everything that decides what `formula` computes, as text."""
    if id(formula) in seen:
        return
    seen.add(id(formula))
    code = formula.__code__
    yield from (code.co_code.hex(), repr(code.co_consts), repr(code.co_names), repr(code.co_varnames))
    yield repr(getattr(formula, "__defaults__", None))
    for name, value in _names_used(formula).items():
        yield name
        if isinstance(value, types.FunctionType):
            yield from _parts(value, seen)
        else:
            yield value.__name__ if isinstance(value, types.ModuleType) else repr(value)


def _names_used(formula: Formula) -> dict[str, Any]:
    """Globals and closure cells that the formula's code refers to."""
    code = formula.__code__
    used = {name: formula.__globals__[name] for name in code.co_names if name in formula.__globals__}
    cells = formula.__closure__ or ()
    used.update(zip(code.co_freevars, (cell.cell_contents for cell in cells), strict=True))
    return used
