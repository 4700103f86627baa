"""From plain scalar formulas to device functions of one precision.

A formula's text is compiled as it stands, but for two things. The draws of `lighttail.streams` become the
device's. And its float constants get the precision of the kernel: a double constant would turn a formula
in single precision into one in double, at a fraction of the speed.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from lighttail import streams
from lighttail.kernels.build import Formula, is_known, names_used

DRAWS = (streams.standard_normal, streams.uniform)


def on_device(
    formula: Formula, real: Any, device: Callable[[Formula], Formula], known: dict[Any, Any]
) -> Any:
    """The formula and whatever it calls as device functions; `known` holds those that there are already."""
    formula = getattr(formula, "py_func", formula)
    if formula not in known:
        known[formula] = device(
            in_precision(formula, real, lambda part: on_device(part, real, device, known))
        )
    return known[formula]


def in_precision(formula: Formula, real: Any, called: Callable[[Formula], Any]) -> Formula:
    """The same function with float constants of the type `real`, and called(f) in the place of a function f.

    Globals and cells that hold floats count as constants, as they do for numba.
    """

    def adapted(value: Any) -> Any:
        if isinstance(value, float):
            return real(value)
        foreign = isinstance(value, types.FunctionType) and value is not formula
        return called(value) if foreign and (value in DRAWS or not is_known(value)) else value

    code = formula.__code__
    code = code.replace(co_consts=tuple(adapted(constant) for constant in code.co_consts))
    used = {name: adapted(value) for name, value in names_used(formula).items() if "." not in name}
    cells = tuple(types.CellType(used.pop(name)) for name in code.co_freevars)
    names = formula.__globals__
    changed = {name: value for name, value in used.items() if value is not names[name]}
    return types.FunctionType(
        code, names | changed if changed else names, formula.__name__, formula.__defaults__, cells
    )
