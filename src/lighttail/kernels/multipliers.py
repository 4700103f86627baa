"""The price per pull and the premium per loss of each cell of routes, found by nested bisections.

docs/rare-events.md defines the words. An arm of a cell pulls n times with a chance in proportion to

    exp(base[n] - (price - premium gap) n),

independently of the other arms. So all expected pulls fall with the price and rise with the premium.
"""

from __future__ import annotations

import math
from typing import Any

from lighttail.kernels.build import compiler, inner, largest

PRECISION, HALVINGS = 1e-6, 60  # a bisection ends when its interval is this share of its lower end, or here
NEGLIGIBLE = -45.0  # ln of a share of the likeliest number of pulls, far below the precision


@inner
def expected(cell: Any, price: Any, premium: Any) -> tuple[Any, Any]:
    """(expected pulls, expected loss) of all arms; nan if some arm has no possible number of pulls."""
    base, pulls, gaps = cell
    used, lost = 0.0, 0.0
    for k in range(gaps.size):
        each = price - premium * gaps[k]
        most = -math.inf
        for j in range(pulls.size):
            most = max(most, base[k, j] - each * pulls[j])
        total, weighted = 0.0, 0.0
        for j in range(pulls.size):
            value = base[k, j] - each * pulls[j] - most
            if value > NEGLIGIBLE:
                mass = math.exp(value)
                total += mass
                weighted += mass * pulls[j]
        used += weighted / total
        lost += weighted / total * gaps[k]
    return used, lost


@inner
def fitting_price(
    cell: Any, premium: Any, horizon: Any, exactly: Any, nothing: Any, much: Any, least: Any, most: Any
) -> Any:
    """The least price with which the expected pulls are at most the horizon, if it lies in [least, most].

    A price below 0 is sought only with `exactly`. At the price that is found, the pulls fit the horizon.
    """
    used, _ = expected(cell, 0.0, premium)
    free = not used > horizon  # also where nothing is possible
    if free and not exactly:
        return 0.0
    enough, wider = much + premium * largest(cell[2]), 1.0 + 2.0 * PRECISION
    if free:
        sign, low, high = -1.0, max(nothing, -most), min(enough, -least * wider)
    else:
        sign, low, high = 1.0, max(nothing, least / wider), min(enough, most)
    for _ in range(HALVINGS):
        if not high > low * (1.0 + PRECISION):
            break
        middle = math.sqrt(low) * math.sqrt(high)
        used, _ = expected(cell, sign * middle, premium)
        if (used <= horizon) == free:
            low = middle
        else:
            high = middle
    return -low if free else high


@compiler()
def multipliers(
    cells: Any, horizon: Any, exactly: Any, losses: Any, prices: Any, premiums: Any, out: Any
) -> None:
    """out[cell] = (price, premium): the least with which the expected pulls are at most the horizon and
    lose at least losses[cell]; with `exactly`, they are as many as the horizon.

    cells: (base, pulls, gaps) with base[cell, arm, number of pulls] and gaps[cell, arm], what a pull loses.
    prices, premiums: [cell, 2], the sizes between which a price without premium, and a premium, are sought,
    unless 0 is enough. If the horizon is infinite, the price is 0; only then may gaps be negative.
    """
    base, pulls, gaps = cells
    for c in range(losses.size):
        cell = base[c], pulls, gaps[c]
        limits = horizon, exactly, prices[c, 0], prices[c, 1]
        price, premium = fitting_price(cell, 0.0, *limits, -math.inf, math.inf), 0.0
        _, lost = expected(cell, price, premium)
        if lost < losses[c]:
            low, high = premiums[c, 0], premiums[c, 1]
            least, most = price, math.inf  # the prices at both ends: a larger premium has a larger price
            for _ in range(HALVINGS):
                if not high > low * (1.0 + PRECISION):
                    break
                middle = math.sqrt(low) * math.sqrt(high)
                price = fitting_price(cell, middle, *limits, least, most)
                _, lost = expected(cell, price, middle)
                if lost >= losses[c]:
                    high, most = middle, price
                else:
                    low, least = middle, price
            price, premium = fitting_price(cell, high, *limits, least, most), high
        out[c, 0], out[c, 1] = price, premium
