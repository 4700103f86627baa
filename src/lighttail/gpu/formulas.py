"""From plain scalar formulas to device functions of one precision.

A formula's text is compiled as it stands, with two changes. The draws of `lighttail.random` become those of
the device. And float constants get the precision of the kernel, because a double constant would make a
formula in single precision compute in double precision, at a fraction of the speed. Both changes apply to
what a formula names directly, such as `uniform`, and through a module, such as `lt.uniform` or `math.inf`.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from lighttail.kernels.build import Formula, is_known, names_used
from lighttail.random import streams

DRAWS = (streams.standard_normal, streams.uniform)


def on_device(
    formula: Formula, real: Any, device: Callable[[Formula], Formula], known: dict[Any, Any]
) -> Any:
    """The formula and the functions that it calls as device functions; `known` holds those made already."""
    formula = getattr(formula, "py_func", formula)
    if formula not in known:
        known[formula] = device(
            in_precision(formula, real, lambda part: on_device(part, real, device, known))
        )
    return known[formula]


def in_precision(formula: Formula, real: Any, called: Callable[[Formula], Any]) -> Formula:
    """The same function with float constants of the type `real`, and called(f) in the place of a function f.

    Globals, cells and members of modules that hold floats count as constants, as they do for numba.
    """
    names = set(formula.__code__.co_names)

    def adapted(value: Any) -> Any:
        if isinstance(value, float):
            return real(value)
        if type(value) is tuple:  # a, b = 0.0, 0.0 loads one
            new = tuple(map(adapted, value))
            return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
        if isinstance(value, types.ModuleType):
            return _seen_by(value, names, adapted)
        foreign = isinstance(value, types.FunctionType) and value is not formula
        return called(value) if foreign and (value in DRAWS or not is_known(value)) else value

    code = formula.__code__
    code = code.replace(co_consts=tuple(adapted(constant) for constant in code.co_consts))
    used = {name: adapted(value) for name, value in names_used(formula).items() if "." not in name}
    cells = tuple(types.CellType(used.pop(name)) for name in code.co_freevars)
    known = formula.__globals__
    changed = {name: value for name, value in used.items() if value is not known[name]}
    return types.FunctionType(
        code, known | changed if changed else known, formula.__name__, formula.__defaults__, cells
    )


def _seen_by(module: types.ModuleType, names: set[str], adapted: Callable[[Any], Any]) -> types.ModuleType:
    """A module with adapted members of these names; the module itself if nothing changes.

    Modules within a package are adapted, too; other modules that a module imports are not.
    """
    changed = {}
    for name in names:
        value = getattr(module, name, None)
        within = f"{module.__name__}.{name}"
        if isinstance(value, types.ModuleType) and value.__name__ != within:
            continue
        new = adapted(value)
        if new is not value:
            changed[name] = new
    if not changed:
        return module
    shadow = types.ModuleType(module.__name__)
    vars(shadow).update(vars(module) | changed)
    return shadow
