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

from lighttail.kernels.build import BASIC_DRAWS, Formula, copied, is_known, names_used


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

    def adapted(value: Any) -> Any:
        if isinstance(value, float):
            return real(value)
        if type(value) is tuple:  # a, b = 0.0, 0.0 loads one
            new = tuple(map(adapted, value))
            return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
        foreign = isinstance(value, types.FunctionType) and value is not formula
        return called(value) if foreign and (value in BASIC_DRAWS or not is_known(value)) else value

    used = names_used(formula, libraries=True)
    changes = {name: new for name, value in used.items() if (new := adapted(value)) is not value}
    code = formula.__code__
    return copied(formula, changes, code.replace(co_consts=tuple(map(adapted, code.co_consts))))
