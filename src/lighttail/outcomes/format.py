"""Numbers as people read them."""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence

from lighttail.outcomes.estimates import Estimate

POWERS = 1e-6  # a chance below is written as a power of ten
NAUGHT = 1e-8  # a lower limit below is written as 0 beside a percentage


def rounded(value: float) -> str:
    """Three or four significant digits, or the sign for infinity.

    >>> rounded(8602.4), rounded(999.96), rounded(41.23), rounded(0.0123456), rounded(math.inf)
    ('8,602', '1,000', '41.2', '0.0123', '∞')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.0f}" if abs(value) >= 999.95 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def amount(loss: float) -> str:
    """A loss that somebody asked about, in units of reward: thousands are parted by commas.

    >>> amount(80000.0), amount(80.0 / 3.0), amount(1234567.0), amount(999999.7), amount(-2.5)
    ('80,000', '26.6667', '1,234,567', '999,999.7', '-2.5')
    """
    return f"{loss:,.6g}" if abs(loss) < 999_999.5 else f"{loss:,.15g}"


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number of things. plural: if it is not the singular with an s.

    >>> counted(1, "policy", "policies"), counted(2000, "file")
    ('1 policy', '2,000 files')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def aligned(rows: Sequence[Sequence[str]], texts: bool = False) -> list[str]:
    """Lines in which the first column begins at the same place; the others end there, or begin if they are
    texts.

    >>> aligned([("arm", "pulls"), ("blue", "7")])
    ['arm   pulls', 'blue      7']
    """
    first, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        pad = str.ljust if texts else str.rjust
        ends = (pad(cell, width) for cell, width in zip(cells, widths, strict=True))
        lines.append("  ".join([name.ljust(first), *ends]).rstrip())
    return lines


def interval(estimate: Estimate) -> tuple[str, str]:
    """The value and its interval; without an upper limit, "≥" and the lower limit."""
    if math.isinf(estimate.high) and math.isinf(estimate.low):
        return "unknown", ""
    if math.isinf(estimate.high):
        return f"≥ {rounded(estimate.low)}", ""
    return rounded(estimate.value), f"[{rounded(estimate.low)}, {rounded(estimate.high)}]"


def probability(estimate: Estimate) -> tuple[str, str]:
    """A chance and its interval; if no path was counted, "<" and the upper limit.

    >>> probability(Estimate(0.00012, 4.5e-7, 0.00093, 0.95))  # three chances in one form
    ('0.012 %', '[0.000045, 0.093] %')
    >>> probability(Estimate(4e-7, 0.0, 1.21e-6, 0.95))
    ('4.0e-07', '[0, 1.3e-06]')
    >>> probability(Estimate(0.0, 0.0, 0.001, 0.95)), probability(Estimate(0.0, 0.0, 0.0, 0.95))
    (('< 0.1 %', ''), ('0 %', ''))
    """
    value = estimate.value
    if value == 0.0:
        return (f"< {outward(estimate.high)}" if estimate.high > 0.0 else chance(0.0)), ""
    low, high = outward(estimate.low, up=False, like=value), outward(estimate.high, like=value)
    if value < POWERS:
        return chance(value), f"[{low}, {high}]"
    return chance(value), f"[{low[:-2]}, {high[:-2]}] %"


def chance(value: float, like: float | None = None) -> str:
    """A chance as a percentage, or as a power of ten below one in a million.

    like: another chance, whose form is used.

    >>> chance(0.00012), chance(4e-7), chance(4e-7, like=0.00012), chance(0.00012, like=4e-7)
    ('0.012 %', '4.0e-07', '0.00004 %', '1.2e-04')
    """
    if like is not None and 0.0 < like < POWERS:
        return f"{value:.0f}" if value in (0.0, 1.0) else f"{value:.1e}"
    if value in (0.0, 1.0):
        return f"{value * 100:.0f} %"
    if value < POWERS:
        return f"{value:.1e}" if like is None else f"{decimal.Decimal(f'{100 * value:.2g}'):f} %"
    return f"{100 * value:.3g} %" if value >= 0.01 else f"{100 * value:.2g} %"


def outward(value: float, up: bool = True, like: float | None = None) -> str:
    """A limit of a chance: an upper limit is rounded up and a lower limit is rounded down.

    like: the chance, whose form is used; a lower limit that would be a long row of zeros is then 0.

    >>> chance(0.001049), outward(0.001049), outward(0.001049, up=False)
    ('0.1 %', '0.11 %', '0.1 %')
    >>> outward(0.001), outward(0.00085, up=False)  # by their shortest decimal form, not by their bits
    ('0.1 %', '0.085 %')
    >>> outward(4.5e-7, up=False, like=0.0001), outward(4.5e-12, up=False, like=0.0001)
    ('0.000045 %', '0 %')
    >>> outward(0.0234, like=5e-7), outward(1.0, like=5e-7)
    ('2.4e-02', '1')
    """
    if not up and like is not None and like >= POWERS and value < NAUGHT:
        value = 0.0
    power = like is not None and 0.0 < like < POWERS
    digits, rounding = 2 if power or value < 0.01 else 3, decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    return chance(float(decimal.Context(digits, rounding).create_decimal(repr(float(value)))), like)


def chance_limits(value: float, low: float, high: float) -> str:
    """The limits of a chance in words, in the form of the chance.

    >>> chance_limits(0.00012, 4.5e-7, 0.00093)
    'between 0.000045 % and 0.093 %'
    """
    return f"between {outward(low, up=False, like=value)} and {outward(high, like=value)}"


def precise(value: float, like: float | None = None) -> str:
    """A chance with three digits, as a percentage, or as a power of ten below one in ten thousand.

    like: another chance, whose form is used.
    """
    if value in (0.0, 1.0):
        return f"{value * 100:.0f} %"
    if (value if like is None else like) < 1e-4:
        return f"{value:.2e}"
    return f"{100 * value:.{6 if value > 0.999 else 3}g} %"
