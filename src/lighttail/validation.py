"""Checks on what a user hands in: one sentence that names the field, its value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

EXACT = 2**53  # up to which every whole number is a float


class BadInput(ValueError):
    """What a user handed in is wrong; the text says what, and what is allowed."""


def refuse(field: str, value: object, allowed: str) -> BadInput:
    """The error for a bad value, worded alike everywhere."""
    text = repr(value)
    return BadInput(f"{field} must be {allowed}, but is {text if len(text) <= 200 else text[:190] + ' ...'}")


def refuse_file(field: str, path: object, allowed: str, error: Exception) -> BadInput:
    """The error for a file that cannot be read, with the reason but not the system's number for it."""
    why = "there is no such file" if isinstance(error, FileNotFoundError) else None
    return BadInput(
        f"{refuse(field, str(path), allowed)}: {why or getattr(error, 'strerror', None) or error}"
    )


def number(field: str, value: Any, allowed: str = "a finite number") -> float:
    """`value` as a finite float."""
    try:
        usable = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        usable = False
    if not usable:
        raise refuse(field, value, allowed)
    return float(value)


def positive(field: str, value: Any) -> float:
    """`value` as a finite float above 0."""
    allowed = "a finite number above 0"
    if number(field, value, allowed) <= 0.0:
        raise refuse(field, value, allowed)
    return float(value)


def non_negative(field: str, value: Any) -> float:
    """`value` as a finite float, 0 or more."""
    allowed = "a finite number, 0 or more"
    if number(field, value, allowed) < 0.0:
        raise refuse(field, value, allowed)
    return float(value)


def fraction(field: str, value: Any) -> float:
    """`value` as a float strictly between 0 and 1."""
    allowed = "a number strictly between 0 and 1"
    if not 0.0 < number(field, value, allowed) < 1.0:
        raise refuse(field, value, allowed)
    return float(value)


def confidence(field: str, value: Any) -> float:
    """`value` as a confidence level."""
    allowed = "a number from 0.5 up to but not including 1"
    if not 0.5 <= number(field, value, allowed) < 1.0:
        raise refuse(field, value, allowed)
    return float(value)


def whole(field: str, value: Any, least: int, why: str = "", most: int | None = None) -> int:
    """`value` as an int of at least `least` and, where given, at most `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise refuse(field, value, f"a whole number of at least {least}{why}")
    if most is not None and int(value) > most:
        raise refuse(field, value, f"a whole number of at most {most}")
    return int(value)


def whole_float(value: Any) -> Any:
    """A float that is a whole number as an int; anything else as it is, for `whole` to judge.

    Above 2**53 a float may stand for another whole number than the one that was written.

    >>> whole_float(1e5), whole_float(1.5), whole_float(1e16)
    (100000, 1.5, 1e+16)
    """
    fits = isinstance(value, float) and abs(value) <= EXACT and value.is_integer()
    return int(value) if fits else value


def accept(settings: object, **checks: Callable[[str, Any], Any]) -> None:
    """Replace fields of a frozen dataclass by their checked values."""
    for field, check in checks.items():
        object.__setattr__(settings, field, check(field, getattr(settings, field)))
