"""Checks on what a user hands in: one sentence that names the field, its value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any


def refuse(field: str, value: object, allowed: str) -> ValueError:
    """The error for a bad value, worded alike everywhere."""
    return ValueError(f"{field} must be {allowed}, but is {value!r}")


def number(field: str, value: Any, allowed: str = "a finite number") -> float:
    """`value` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
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


def whole(field: str, value: Any, least: int, why: str = "") -> int:
    """`value` as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise refuse(field, value, f"a whole number of at least {least}{why}")
    return int(value)


def accept(settings: object, **checks: Callable[[str, Any], Any]) -> None:
    """Replace fields of a frozen dataclass by their checked values."""
    for field, check in checks.items():
        object.__setattr__(settings, field, check(field, getattr(settings, field)))
