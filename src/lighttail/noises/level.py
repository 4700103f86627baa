"""The level of a noise, by which a tuning for the noise 1 is multiplied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from lighttail.checks import number, refuse

Tuned = TypeVar("Tuned")


def multiplied(tuned: Tuned, names: Iterable[str], factor: float) -> Tuned:
    """A copy of a dataclass with these fields multiplied. A field that is None stays None."""
    given = {name: getattr(tuned, name) for name in names}
    scaled = {name: value * factor for name, value in given.items() if value is not None}
    return replace(tuned, **scaled) if scaled else tuned  # type: ignore[type-var]


def noise_level(noise: Any) -> float:
    """The level of a noise as a float above 0.

    noise: a number, or a problem, whose noise is the standard deviation of a reward of its noisiest arm
        (`Problem.sigma`): sqrt(p (1 - p)) for conversions at the rate p.

    >>> noise_level(2)
    2.0
    """
    allowed = "a finite number above 0, or a problem whose noise is such a number"
    of_problem = hasattr(noise, "noise") and hasattr(noise, "sigma")
    level = number("noise", noise.sigma if of_problem else noise, allowed)
    if level <= 0.0:
        raise refuse("noise", level, allowed)
    return level
