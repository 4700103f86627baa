"""A short trial, in plain Python, of the functions of a user's class before numba compiles them.

numba reports a mistake as a page about types. The trial calls the same functions a few times first and
reports each mistake in one sentence that names the class and the function. The generator of the trial
supports only `uniform(rng)` and `standard_normal(rng)`.
"""

from __future__ import annotations

import math
import sys
import types
from numbers import Real
from typing import Any

import numpy as np

from lighttail.checks import BadInput, refuse, shown
from lighttail.members import check_takes
from lighttail.random import streams

DRAWS = 8  # calls per trial of a function that draws random numbers
ALONE = "with uniform(rng) and standard_normal(rng) of lighttail alone"
WORLD = "a tuple of arrays and floats"


class Misused(Exception):
    """A function used a method of the generator directly."""


class TrialGenerator:
    """A generator that only `uniform` and `standard_normal` of `lighttail.random.streams` may use."""

    def __init__(self) -> None:
        self._numbers = streams.block_generator(0, 0)

    def standard_normal(self) -> float:
        if sys._getframe(1).f_code is not streams.standard_normal.__code__:
            raise Misused("standard_normal")
        return self._numbers.standard_normal()

    def random(self) -> float:
        if sys._getframe(1).f_code is not streams.uniform.__code__:
            raise Misused("random")
        return self._numbers.random()

    def __getattr__(self, name: str) -> Any:
        raise Misused(name)


def try_function(place: str, function: Any, takes: str, *args: Any) -> Any:
    """The value that a function returns for these arguments. Raises BadInput if the function is wrong.

    place: the function's name in a message, such as "MyNoise.shock". takes: the arguments that the function
    must take, such as "rng, *world".
    """
    plain = getattr(function, "py_func", function)  # the Python function of a compiled one
    if not isinstance(plain, types.FunctionType):
        raise refuse(place, plain, "a plain Python function, which numba can compile")
    check_takes(place, plain, takes, len(args))
    try:
        with np.errstate(all="ignore"):
            return plain(*args)
    except Misused as error:
        raise refuse(place, None, ALONE, verb="draw", found=f"uses rng.{error}") from None
    except Exception as error:  # a user's function may raise anything
        every = "a value for every draw"
        raise refuse(place, None, every, verb="return", found=_raised(error)) from None


def check_number(place: str, value: Any) -> float:
    """The number that a function returned, possibly infinite. Raises BadInput if it is not a number."""
    if isinstance(value, (Real, np.bool_)) and not math.isnan(value):
        return float(value)
    raise refuse(place, value, "a finite number", verb="return", found=f"returned {shown(value)}")


def try_noise(noise: Any, means: tuple[float, ...]) -> float:
    """Try the functions of a noise. Returns the largest absolute reward of the trial, possibly infinite."""
    kind = type(noise)
    world = _world(f"{kind.__name__}.world", noise, means)

    def shocks() -> list[Any]:
        rng, place = TrialGenerator(), f"{kind.__name__}.shock"
        return [try_function(place, kind.shock, "rng, *world", rng, *world) for _ in range(DRAWS)]

    drawn = shocks()
    if [*map(repr, drawn)] != [*map(repr, shocks())]:  # nan equals nan
        differ = "its draws differ from call to call"
        raise refuse(f"{kind.__name__}.shock", None, ALONE, verb="draw", found=differ)
    place, largest = f"{kind.__name__}.reward", 0.0
    for arm in sorted({0, max(0, len(means) - 1)}):
        for shock in drawn:
            value = try_function(place, kind.reward, "shock, arm, *world", shock, arm, *world)
            largest = max(largest, abs(check_number(place, value)))
    return largest


def check_finite(noise: Any, largest: float) -> None:
    """Raise BadInput if `largest`, which `try_noise` returned, is infinite."""
    if math.isinf(largest):
        place = f"{type(noise).__name__}.reward"
        found = "returned an infinite one"
        raise refuse(place, largest, "a finite number", verb="return", found=found)


def check_formulas(noise: Any) -> None:
    """Raise BadInput if a noise lacks one of its two functions."""
    for name in ("shock", "reward"):
        if not hasattr(type(noise), name):
            kind = type(noise).__name__
            method = f"a static method {name}, as every noise has"
            raise refuse(kind, None, method, verb="have", found="has none")


def _world(place: str, noise: Any, means: tuple[float, ...]) -> tuple[Any, ...]:
    check_formulas(noise)
    try:
        world = noise.world(means)
    except BadInput:
        raise
    except Exception as error:  # a user's function may raise anything
        raise refuse(place, None, WORLD, verb="return", found=_raised(error)) from None
    if not isinstance(world, tuple):
        raise refuse(place, world, WORLD, verb="return", found=f"returned {shown(world)}")
    for part in world:
        number = isinstance(part, (Real, np.bool_))
        if not number and not (isinstance(part, np.ndarray) and part.dtype.kind in "fiub"):
            found, numbers = f"returned one with a {type(part).__name__}", "arrays of numbers"
            raise refuse(place, part, f"a tuple of {numbers} and floats", verb="return", found=found)
    if getattr(noise, "moves", False) and not (
        world and isinstance(world[0], np.ndarray) and np.array_equal(world[0], np.array(means))
    ):
        first = "with the array of the means if moves = True"
        raise refuse(place, None, first, verb="begin", found="does not")
    return world


def _raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {' '.join(str(error).split())}"[:200]
