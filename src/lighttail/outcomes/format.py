"""Numbers as people read them."""

from __future__ import annotations

import math

from lighttail.outcomes.estimates import Estimate


def number(value: float) -> str:
    """Three or four significant digits; an infinite end is a sign."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def counted(count: int, one: str, many: str = "") -> str:
    """A number of things; many: their name where an s does not make it.

    >>> counted(1, "policy", "policies"), counted(2000, "file")
    ('1 policy', '2,000 files')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def interval(estimate: Estimate) -> tuple[str, str]:
    """The value, and its interval; a quantile without an upper limit is "≥" its lower one."""
    if math.isinf(estimate.high) and math.isinf(estimate.low):
        return "unknown", ""
    if math.isinf(estimate.high):
        return f"≥ {number(estimate.low)}", ""
    return number(estimate.value), f"[{number(estimate.low)}, {number(estimate.high)}]"


def probability(estimate: Estimate) -> tuple[str, str]:
    """A chance, and its interval; with no path there, its upper limit."""
    if estimate.value == 0.0:
        return f"< {chance(estimate.high)}", ""
    low, high = chance(estimate.low), chance(estimate.high)
    if low.endswith(" %") and high.endswith(" %"):
        return chance(estimate.value), f"[{low[:-2]}, {high[:-2]}] %"
    return chance(estimate.value), f"[{low}, {high}]"


def chance(value: float) -> str:
    """As a percentage down to one in a million, then as a power of ten."""
    if value in (0.0, 1.0):
        return f"{value:.0%}"
    if value < 1e-6:
        return f"{value:.1e}"
    return f"{100 * value:.3g} %" if value >= 0.01 else f"{100 * value:.2g} %"


def precise(value: float, like: float | None = None) -> str:
    """Three digits, as a percentage down to one in ten thousand and then as a power of ten.

    like: the value beside which it stands, and whose form it takes.
    """
    if value in (0.0, 1.0):
        return f"{value:.0%}"
    if (value if like is None else like) < 1e-4:
        return f"{value:.2e}"
    return f"{100 * value:.{6 if value > 0.999 else 3}g} %"
