"""Numbers written as text: whole numbers, shares in percent, and multiples of the noise."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from lighttail.checks import EXACT, refuse

UNITS = re.compile(r"\s*[-+.\d][^:]*s\s*")  # a number in units of the noise, such as 0.2s


def parse_number(field: str, text: str) -> float:
    """A number written as text."""
    try:
        return float(text)
    except ValueError:
        raise refuse(field, text, "a number") from None


def parse_share(field: str, text: str) -> float:
    """A share written as text: a number, or a number with a percent sign. The range is not checked here.

    >>> parse_share("rate", "4%"), parse_share("rate", "4 %"), parse_share("rate", "0.04")
    (0.04, 0.04, 0.04)
    """
    number = text.strip().removesuffix("%")
    if number == text.strip():
        return parse_number(field, text)
    try:
        return float(Decimal(number.strip()).scaleb(-2))  # as near to 0.01 times the number as a float can be
    except ArithmeticError:
        raise refuse(field, text, "a number, or a number of percent such as 4%") from None


def parse_range(field: str, text: str) -> tuple[float, float]:
    """Two shares or numbers with two dots between them, the lower one first.

    >>> parse_range("rates", "3%..5%"), parse_range("gaps", "0.1 .. 0.5")
    ((0.03, 0.05), (0.1, 0.5))
    """
    first, dots, last = text.partition("..")
    if not dots or not first.strip() or not last.strip():
        raise refuse(field, text, "of the form LOW..HIGH, such as 0.03..0.05 or 3%..5%")
    low, high = parse_share(field, first), parse_share(field, last)
    if low > high:
        lacking = "%" in last and "%" not in first
        more = f"; {first.strip()} percent is written as {first.strip()}%" if lacking else ""
        raise refuse(field, text, "of the form LOW..HIGH with a LOW that is at most HIGH", more=more)
    return low, high


def parse_in_units(field: str, text: str, sigma: float | None) -> float:
    """A number written as text, which may be in units of the noise: 0.2s is 0.2 sigma.

    sigma: the noise of the problem; None if no problem is known.

    >>> parse_in_units("kappa", "0.2s", 0.5), parse_in_units("kappa", "0.2", 0.5)
    (0.1, 0.2)
    """
    if not UNITS.fullmatch(text):
        return parse_number(field, text)
    factor = parse_number(field, text.rstrip()[:-1])
    if sigma is not None and 0.0 < sigma < math.inf:
        return factor * sigma
    none = " where no problem says how large the noise s is"
    why = none if sigma is None else f", because the noise s of the problem is {sigma:g}"
    raise refuse(field, text, f"a number without the unit s{why}")


def parse_whole(field: str, text: str) -> int:
    """A whole number written as text: digits or, up to 2**53, in the form of a float.

    >>> parse_whole("paths", "100_000"), parse_whole("paths", "1e5"), parse_whole("paths", "2.5e3")
    (100000, 100000, 2500)
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = Decimal(text)  # a Decimal is exact; a float may round to a whole number
    except ArithmeticError:
        value = Decimal("nan")
    if not value.is_finite() or value.copy_abs() > EXACT or value != value.to_integral_value():
        grouped = re.fullmatch(r"\s*\d{1,3}([, ']\d{3})+\s*", text)
        plainly = ", written without signs between digits" if grouped else ""
        raise refuse(field, text, f"a whole number{plainly}")
    return int(float(value))  # exact up to 2**53, and fast for an exponent of any size


def parse_numbers(field: str, text: str) -> list[float]:
    """The numbers in a text that separates them by commas."""
    return [parse_number(field, part.strip()) for part in text.split(",")]
