"""From plain scalar functions to a compiled kernel, with an on-disk cache that is never stale.

numba's cache does not notice an edited formula that lives in another file. So the key of a kernel on disk
holds a digest of everything that the kernel calls (`lighttail.kernels.compiled`). The last functions of this
module are what every kernel calls at the end of a path.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
import types
import uuid
from collections.abc import Callable, Iterator
from functools import cache, wraps
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
WRONG_ARM = 2  # the value of the stop flag after a rule chose an arm that does not exist
LIBRARIES = ("math", "numpy", "numba", "builtins")  # modules whose functions numba compiles by itself
PROCESS = uuid.uuid4().hex


def number_apart() -> None:
    """Give the functions that numba compiles from now on names that no other process uses.

    numba numbers the functions from 1 in every process, and the number is part of a function's symbol in a
    kernel on disk. A kernel that was compiled in one process could then call a function that was compiled in
    another process, because the linker takes the first symbol of that name. So every process, also a forked
    process, begins at a random number.
    """
    FunctionIdentity._unique_ids = itertools.count(uuid.uuid4().int >> 68)


number_apart()
if hasattr(os, "register_at_fork"):  # the system can fork processes
    os.register_at_fork(after_in_child=number_apart)
# What decorates the functions that only kernels call; numba would also compile a way to call them from C.
inner = register_jitable(no_cfunc_wrapper=True)
inlined = register_jitable(no_cfunc_wrapper=True, forceinline=True)
BASIC_DRAWS = (streams.standard_normal, streams.uniform)  # compiled by lighttail.kernels.draws


def kernel_maker(make: Callable[..., Formula]) -> Callable[..., Any]:
    """Decorates make(*parts), which returns a kernel in plain Python: the kernel is then compiled.

    parts: what tells the kernels of one maker apart: the formulas that a kernel calls, rules
    (`lighttail.rules.Rule`), booleans, and None.
    """

    @wraps(make)
    def made(*parts: Any) -> Any:
        parts = tuple(map(jitable, parts))
        return compiler(*parts)(make(*parts))

    return made


def compiler(*parts: Any) -> Callable[[Formula], Any]:
    """The decorator that compiles a kernel, which calls no formulas but those in `parts`.

    The cache on disk is for formulas that another process can import, and that are as they were when this
    process first compiled them. Division by zero gives inf in a kernel,
    as in NumPy, because a check would cost a branch per division.
    """
    reached = _functions(parts, set())
    lasting = all(function.__module__ in sys.modules for function in reached) and not reached & _changed
    homes = " ".join(sorted({str(function.__module__) for function in reached}))  # a loader imports them

    def compiled(kernel: Formula) -> Any:
        dispatcher = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(kernel)
        if lasting and not config.DISABLE_JIT:
            version = digest(*parts, kernel)  # with all that the kernel closes over
            keep_compiled(dispatcher, f"{version} {homes}")
        return dispatcher

    return compiled


_first_digest: dict[Formula, str] = {}
_changed: set[Formula] = set()  # copies of formulas whose constants changed in this process


def jitable(part: Any) -> Any:
    """A formula that kernels can call, together with the functions that it calls; or a rule of such formulas.

    numba freezes what a function refers to when numba first compiles the function. So a formula whose
    constants changed since then, as in a notebook, is compiled as a new function.
    """
    if isinstance(part, tuple):
        return part._make(map(jitable, part))  # type: ignore[attr-defined]
    if not callable(part):
        return part
    formula = getattr(part, "py_func", part)
    return _jitable(formula, digest(formula))


@cache
def _jitable(formula: Formula, version: str) -> Formula:
    used = names_used(formula)
    helpers = {
        name: jitable(value)
        for name, value in used.items()
        if isinstance(value, types.FunctionType) and not is_known(value) and value is not formula
    }
    changed = _first_digest.setdefault(formula, version) != version
    if changed or any(helper is not used[name] for name, helper in helpers.items()):
        formula = copied(formula, helpers)
        _changed.add(formula)
    # The formula is inlined, because a call with arrays as arguments would count references. The formula of
    # a user is not trusted to stay within its arrays.
    foreign = not str(formula.__module__).startswith("lighttail.")
    return register_jitable(forceinline=True, boundscheck=foreign, no_cfunc_wrapper=True)(formula)  # type: ignore[no-any-return]


def copied(formula: Formula, changes: dict[str, Any], code: types.CodeType | None = None) -> Formula:
    """A copy of the function in which these names, as of `names_used`, mean something else.

    code: the code of the copy, if this changes, too.
    """
    free = formula.__code__.co_freevars
    cells = zip(free, (cell.cell_contents for cell in formula.__closure__ or ()), strict=True)
    known = formula.__globals__ | dict(cells)
    for path, value in changes.items():
        *modules, name = path.split(".")
        scope = known
        for module in modules:  # in copies of the modules, which other functions share
            copy = types.ModuleType(scope[module].__name__)
            vars(copy).update(vars(scope[module]))
            scope[module] = copy
            scope = vars(copy)
        scope[name] = value
    closure = tuple(types.CellType(known[name]) for name in free)
    return types.FunctionType(
        code or formula.__code__, known, formula.__name__, formula.__defaults__, closure
    )


def digest(*formulas: Any) -> str:
    """A text that changes whenever a formula, what the formula refers to, or the kernels' own sources change.

    An edited docstring or comment of a formula does not change the digest.
    """
    content = _own_sources().copy()
    for formula in formulas:
        for text in _texts(formula, {}):
            content.update(text.encode() + b"\0")
    return content.hexdigest()  # type: ignore[no-any-return]


@cache
def _own_sources() -> Any:
    """A hash of the kernels' own sources, which every digest begins with."""
    folder = Path(__file__).parent
    files = [*sorted(folder.glob("*.py")), Path(streams.__file__)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files))


def _texts(value: Any, seen: dict[int, int]) -> Iterator[str]:
    """Everything that decides what a formula, or a value that a formula uses, computes; as text.

    seen: the functions so far, numbered, so that another use of one of them is told from a use of another.
    """
    if hasattr(value, "py_func"):  # a function that is compiled already
        yield f"{sorted(value.targetoptions.items())} {getattr(value, 'locals', None)}"
        value = value.py_func
    if is_known(value):
        yield f"{value.__module__}.{value.__qualname__}"
    elif isinstance(value, types.FunctionType):
        if id(value) in seen:
            yield f"function {seen[id(value)]}"
            return
        seen[id(value)] = len(seen)
        for code in _codes(value.__code__):
            constants = [constant for constant in code.co_consts if not isinstance(constant, types.CodeType)]
            if constants and constants[0] is value.__doc__:
                constants[0] = None
            yield f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames} {code.co_flags}"
            yield f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}"
            yield code.co_exceptiontable.hex()
        yield from _texts(value.__defaults__, seen)
        for name, used in names_used(value).items():
            yield name
            yield from _texts(used, seen)
    elif isinstance(value, types.ModuleType):
        yield value.__name__
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, (tuple, list)):
        yield f"{type(value).__name__} {len(value)} {getattr(value, '_fields', ())}"
        for entry in value:
            yield from _texts(entry, seen)
    elif isinstance(value, (bool, int, float, complex, str, bytes, type(None), np.generic)):
        yield repr(value)
    else:
        yield PROCESS  # what the value holds is unknown: the kernel is never taken from the cache


def _functions(formula: Any, seen: set[Any]) -> set[Any]:
    """A formula, or the formulas of a tuple, and the plain functions that these call, directly or not."""
    if isinstance(formula, tuple):
        for part in formula:
            _functions(part, seen)
    formula = getattr(formula, "py_func", formula)
    if isinstance(formula, types.FunctionType) and not is_known(formula) and formula not in seen:
        seen.add(formula)
        for used in names_used(formula).values():
            _functions(used, seen)
    return seen


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and the code of the functions and comprehensions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def names_used(formula: Formula, libraries: bool = False) -> dict[str, Any]:
    """The globals, module attributes and closure cells that the formula's code names.

    libraries: also the attributes of the modules in `LIBRARIES`.
    """
    names = [name for code in _codes(formula.__code__) for name in code.co_names]
    used = {name: formula.__globals__[name] for name in names if name in formula.__globals__}
    cells = formula.__closure__ or ()
    used.update(zip(formula.__code__.co_freevars, (cell.cell_contents for cell in cells), strict=True))
    modules = [(name, value) for name, value in used.items() if isinstance(value, types.ModuleType)]
    while modules:
        path, module = modules.pop()
        library = module.__name__.partition(".")[0] in LIBRARIES
        if library and not libraries:
            continue
        for name in names:
            full = f"{path}.{name}"
            if hasattr(module, name) and full not in used:
                used[full] = getattr(module, name)
                if isinstance(used[full], types.ModuleType) and not library:
                    modules.append((full, used[full]))
    return used


def is_known(value: Any) -> bool:
    """Whether numba can compile a function without help, or with the help of `lighttail.kernels.draws`."""
    if any(value is member for member in BASIC_DRAWS):
        return True
    home = str(getattr(value, "__module__", None)).partition(".")[0]
    return hasattr(value, "__qualname__") and home in LIBRARIES


@inlined
def sum_of(sums: Any) -> Any:
    """The reward of a path: the sums of all arms, added in the order of the arms.

    Every kernel and the oracle of the tests add in this order, because another order would round differently.
    """
    total = 0.0
    for arm in range(sums.size):
        total += sums[arm]
    return total


@inner
def largest(values: Any) -> Any:
    """The largest of some numbers. numba compiles this loop much sooner than `values.max()`."""
    most = values[0]
    for place in range(1, values.size):
        most = max(most, values[place])
    return most


@inlined
def close_path(path: Any, sums: Any, counts: Any, rewards: Any, pulls: Any) -> None:
    """Fill in the reward and the pulls of a path. counts: the pulls of the arms, as floats."""
    for arm in range(sums.size):
        pulls[path, arm] = int(counts[arm])
    rewards[path] = sum_of(sums)
