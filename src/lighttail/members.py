"""What the classes of bonuses, noises and policies share: checks of formulas, stated facts, and tuning."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Self

from lighttail.checks import BadInput, number, refuse

FAILURES = (ArithmeticError, LookupError, TypeError, ValueError)  # of a formula where it has no value


def shipped(owner: object) -> bool:
    """Whether lighttail defines the class of a policy, a bonus or a noise."""
    return type(owner).__module__.startswith("lighttail.")


def check_radii(what: str, radii: Iterator[tuple[str, float]]) -> None:
    """Raise BadInput if a radius is not a finite number, or cannot be computed.

    what: the radius in a message. radii: where each radius is, and its value, computed when it is asked for.
    """
    try:
        for where, radius in radii:
            if not math.isfinite(radius):
                raise refuse(f"{what} at {where}", radius, "a finite number")
    except BadInput:
        raise
    except FAILURES as error:
        raise refuse(what, str(error), "a finite number") from None


def check_static(cls: type, names: tuple[str, ...]) -> None:
    """Raise TypeError if a class has one of these formulas, but not as a static method."""
    for name in names:
        member = inspect.getattr_static(cls, name, None)
        if member is not None and not isinstance(member, staticmethod):
            raise TypeError(f"{name} of {cls.__name__} must be a static method: write @staticmethod above it")


@cache
def check_takes(what: str, function: Callable[..., Any], takes: str, count: int | None = None) -> None:
    """Raise BadInput if a function cannot take the arguments that it is given.

    what: the function in a message, such as "index of Mine". takes: the arguments, such as
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
        raise refuse(what, None, allowed, verb="take", found=f"takes {bare}") from None


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


class Tuned(ABC):
    """The members that policies and bonuses share: their name, and their tuning for a noise."""

    @classmethod
    @abstractmethod
    def in_units_of_noise(cls) -> tuple[str, ...]:
        """The names of the fields that grow with the noise."""

    def for_noise(self, noise: Any) -> Self:
        """A copy that is tuned for this noise, if this policy or bonus is tuned for the noise 1.

        Every field that grows with the noise is multiplied by the noise. What assumes no noise level stays
        the same.

        noise: a number above 0, or a problem, which stands for the standard deviation of its rewards.

        >>> import lighttail as lt
        >>> lt.LightTailed(0.2).for_noise(0.5)
        LightTailed(kappa=0.1)
        >>> lt.UCB(lt.LightTailed(0.2)).for_noise(lt.Bandit([0.1, 0.2], lt.Bernoulli()))
        UCB(bonus=LightTailed(kappa=0.08000000000000002))
        """
        sigma = sigma_of(noise)
        fields_ = {name: getattr(self, name) for name in self.in_units_of_noise()}
        scaled = {name: value * sigma for name, value in fields_.items() if value is not None}
        return replace(self, **scaled) if scaled else self  # type: ignore[type-var]

    def __str__(self) -> str:
        values: list[object] = [getattr(self, f.name) for f in fields(self)] if is_dataclass(self) else []
        texts = (f"{value:g}" if isinstance(value, (int, float)) else str(value) for value in values)
        return f"{type(self).__name__}({', '.join(texts)})"


def sigma_of(noise: Any) -> float:
    """The strength of a noise as a float above 0.

    noise: a number, or a problem, whose noise is the standard deviation of a reward of its noisiest arm
        (`Problem.sigma`): sqrt(p (1 - p)) for conversions at the rate p.

    >>> sigma_of(2)
    2.0
    """
    allowed = "a finite number above 0, or a problem whose noise is such a number"
    of_problem = hasattr(noise, "noise") and hasattr(noise, "sigma")
    sigma = number("noise", noise.sigma if of_problem else noise, allowed)
    if sigma <= 0.0:
        raise refuse("noise", sigma, allowed)
    return sigma
