"""From plain scalar functions to a compiled kernel, with an on-disk cache that is never stale.

numba's cache does not notice an edited formula that lives in another file. So the key of a kernel on disk
holds a digest of everything that the kernel calls (`lighttail.kernels.compiled`).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
import types
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.core import config
from numba.core.bytecode import FunctionIdentity
from numba.extending import register_jitable

from lighttail.kernels.compiled import keep_compiled
from lighttail.random import streams

Formula = Callable[..., Any]
BREATH = 1 << 16  # pulls between two looks at the stop flag
WRONG_ARM = 2  # what that flag says of a rule that chose an arm that there is not
LIBRARIES = ("math", "numpy", "numba", "builtins")  # what numba compiles by itself
PROCESS = uuid.uuid4().hex


def number_apart() -> None:
    """Give the functions that numba compiles from now on names that no other process gives.

    numba numbers them from 1 in every process, and the number is part of a function's symbol in a kernel on
    disk. A kernel that was compiled in one process could then call the helper of one from another process, as
    the linker takes the first symbol of that name. So the numbers begin at random, in a forked process anew.
    """
    FunctionIdentity._unique_ids = itertools.count(uuid.uuid4().int >> 68)


number_apart()
if hasattr(os, "register_at_fork"):  # where processes can fork
    os.register_at_fork(after_in_child=number_apart)
FAMILY = (streams.standard_normal, streams.uniform)  # compiled by lighttail.kernels.draws


def compiler(*formulas: Formula) -> Callable[[Formula], Any]:
    """The decorator that compiles a kernel around these formulas, which are all that it calls of others.

    The cache on disk is for formulas that another process can import. Division by zero gives inf
    in a kernel, as in NumPy: the checks would cost a branch a division.
    """
    reached = {function for formula in formulas for function in _functions(formula, set())}
    lasting = all(function.__module__ in sys.modules for function in reached)

    def compiled(kernel: Formula) -> Any:
        dispatcher = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(kernel)
        if lasting and not config.DISABLE_JIT:
            keep_compiled(dispatcher, digest(*formulas))
        return dispatcher

    return compiled


_first_digest: dict[Formula, str] = {}


def prepared(*formulas: Formula) -> tuple[Formula, ...]:
    """Each of the formulas as `prepare` makes it."""
    return tuple(prepare(formula) for formula in formulas)


def prepare(formula: Formula) -> Formula:
    """Let kernels call `formula`, and the plain functions that it calls.

    numba freezes what a function refers to when it first compiles it. So a formula whose constants
    changed since then, as in a notebook, is compiled as a new function.
    """
    formula = getattr(formula, "py_func", formula)
    return _prepared(formula, digest(formula))


@cache
def _prepared(formula: Formula, version: str) -> Formula:
    helpers = {
        name: prepare(value)
        for name, value in names_used(formula).items()
        if isinstance(value, types.FunctionType) and not is_known(value) and value is not formula
    }
    if _first_digest.setdefault(formula, version) != version:
        formula = _again(formula, helpers)
    # Inlined, since a call that hands over arrays would count references; a foreign formula is not trusted
    # to stay within its arrays.
    foreign = not str(formula.__module__).startswith("lighttail.")
    return register_jitable(forceinline=True, boundscheck=foreign, no_cfunc_wrapper=True)(formula)  # type: ignore[no-any-return]


def _again(formula: Formula, helpers: dict[str, Formula]) -> Formula:
    """The same function as a new one, with these functions in the place of those of the same names."""
    names = formula.__globals__ | {name: helper for name, helper in helpers.items() if "." not in name}
    cells = zip(formula.__code__.co_freevars, formula.__closure__ or (), strict=True)
    closure = tuple(types.CellType(helpers[name]) if name in helpers else cell for name, cell in cells)
    return types.FunctionType(formula.__code__, names, formula.__name__, formula.__defaults__, closure)


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
    if is_known(value):
        yield f"{value.__module__}.{value.__qualname__}"
    elif isinstance(value, types.FunctionType):
        if id(value) in seen:
            return
        seen.add(id(value))
        for code in _codes(value.__code__):
            constants = [constant for constant in code.co_consts if not isinstance(constant, types.CodeType)]
            yield f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames}"
        yield from _parts(value.__defaults__, seen)
        for name, used in names_used(value).items():
            yield name
            yield from _parts(used, seen)
    elif isinstance(value, types.ModuleType):
        yield value.__name__
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, (tuple, list)):
        yield f"{type(value).__name__} {len(value)}"
        for entry in value:
            yield from _parts(entry, seen)
    elif isinstance(value, (bool, int, float, complex, str, bytes, type(None), np.generic)):
        yield repr(value)
    else:
        yield PROCESS  # nobody knows what it holds: never from the cache


def _functions(formula: Any, seen: set[Any]) -> set[Any]:
    """A formula and the plain functions that it calls, however far."""
    formula = getattr(formula, "py_func", formula)
    if isinstance(formula, types.FunctionType) and not is_known(formula) and formula not in seen:
        seen.add(formula)
        for used in names_used(formula).values():
            _functions(used, seen)
    return seen


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of the functions and comprehensions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def names_used(formula: Formula) -> dict[str, Any]:
    """The globals, module attributes and closure cells that the formula's code names."""
    names = [name for code in _codes(formula.__code__) for name in code.co_names]
    used = {name: formula.__globals__[name] for name in names if name in formula.__globals__}
    cells = formula.__closure__ or ()
    used.update(zip(formula.__code__.co_freevars, (cell.cell_contents for cell in cells), strict=True))
    modules = [(name, value) for name, value in used.items() if isinstance(value, types.ModuleType)]
    while modules:
        path, module = modules.pop()
        if module.__name__.partition(".")[0] in LIBRARIES:
            continue
        for name in names:
            full = f"{path}.{name}"
            if hasattr(module, name) and full not in used:
                used[full] = getattr(module, name)
                if isinstance(used[full], types.ModuleType):
                    modules.append((full, used[full]))
    return used


def is_known(value: Any) -> bool:
    """Whether numba knows a function itself, or draws.py teaches it."""
    if any(value is member for member in FAMILY):
        return True
    home = str(getattr(value, "__module__", None)).partition(".")[0]
    return hasattr(value, "__qualname__") and home in LIBRARIES
