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

import numpy as np
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
        if isinstance(value, types.FunctionType) and not _is_known(value):
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


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    """Everything that decides what a formula, or a value that it uses, amounts to; as text."""
    value = getattr(value, "py_func", value)  # a function that is compiled already
    if _is_known(value):
        yield f"{value.__module__}.{value.__qualname__}"
    elif isinstance(value, types.FunctionType):
        if id(value) in seen:
            return
        seen.add(id(value))
        yield from _code_parts(value.__code__)
        yield repr(value.__defaults__)
        for name, used in _names_used(value).items():
            yield name
            yield from _parts(used, seen)
    elif isinstance(value, types.ModuleType):
        yield value.__name__
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    else:
        yield repr(value)


def _code_parts(code: types.CodeType) -> Iterator[str]:
    """What a function does, without where it stands."""
    yield from (code.co_code.hex(), repr(code.co_names), repr(code.co_varnames))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_parts(constant)
        else:
            yield repr(constant)


def _names_used(formula: Formula) -> dict[str, Any]:
    """The globals, module attributes and closure cells that the formula's code names."""
    code = formula.__code__
    used = {name: formula.__globals__[name] for name in code.co_names if name in formula.__globals__}
    cells = formula.__closure__ or ()
    used.update(zip(code.co_freevars, (cell.cell_contents for cell in cells), strict=True))
    modules = {name: value for name, value in used.items() if isinstance(value, types.ModuleType)}
    for name, module in modules.items():
        for attribute in code.co_names:
            if hasattr(module, attribute):
                used[f"{name}.{attribute}"] = getattr(module, attribute)
    return used


def _is_known(value: Any) -> bool:
    """Whether numba knows a function itself, or draws.py teaches it."""
    if any(value is member for member in FAMILY):
        return True
    home = str(getattr(value, "__module__", None)).partition(".")[0]
    return hasattr(value, "__qualname__") and home in ("math", "numpy", "numba", "builtins")
