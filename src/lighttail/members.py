"""What the classes of bonuses, noises and policies share: checks of formulas, and stated facts."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from lighttail.checks import refuse


def check_static(cls: type, names: tuple[str, ...]) -> None:
    """Raise TypeError if a class has one of these formulas, but not as a static method."""
    for name in names:
        member = inspect.getattr_static(cls, name, None)
        if member is not None and not isinstance(member, staticmethod):
            raise TypeError(f"{name} of {cls.__name__} must be a static method: write @staticmethod above it")


@cache
def check_takes(place: str, function: Callable[..., Any], takes: str, count: int | None = None) -> None:
    """Raise BadInput if a function cannot take the arguments that it is given.

    place: the function's name in a message, such as "index of Mine". takes: the arguments, such as
    "n, mean, clock, *params". count: how many arguments these are; None if only the named ones are known.

    >>> check_takes("index of Mine", lambda n: n, "n, clock", 2)
    Traceback (most recent call last):
    lighttail.checks.BadInput: index of Mine must take (n, clock), here 2 arguments, but takes (n)
    """
    signature = inspect.signature(function)
    try:
        if count is None:
            signature.bind_partial(*(name for name in takes.split(", ") if "*" not in name))
        else:
            signature.bind(*range(count))
    except TypeError:
        bare = inspect.Signature([one.replace(annotation=one.empty) for one in signature.parameters.values()])
        allowed = f"({takes})" if count is None else f"({takes}), here {count} arguments"
        raise refuse(place, None, allowed, verb="take", found=f"takes {bare}") from None


@cache
def reads(function: Callable[..., float], place: int) -> bool:
    """Whether the code of a function uses its argument number `place`, which counts from 0."""
    import dis

    code = function.__code__
    name = code.co_varnames[place]
    seen = (step.argval for step in dis.get_instructions(code))
    return any(name in value if isinstance(value, tuple) else name == value for value in seen)


def place_of(cls: type, name: str) -> float:
    """The place, in the method resolution order of a class, of the first class that states `name`."""
    return next((place for place, one in enumerate(cls.__mro__) if name in vars(one)), math.inf)
