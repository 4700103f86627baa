"""The prices and premiums of cells of routes against plain nested bisections of all cells at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from lighttail.kernels import multipliers as kernels
from lighttail.tails import routes
from lighttail.tails.routes import MUCH, NOTHING, Table, pulls_tried, settled

HALVINGS = 27


def plain_multipliers(
    table: Table, gaps: Any, ends: Any, horizon: float, loss: Any, to_the_end: bool
) -> tuple[Any, Any]:
    """As `routes.multipliers_of`: every bisection from the widest ends."""
    base, top = table.base, table.top

    def halved(low: Any, high: Any, enough: Callable[[Any], Any]) -> tuple[Any, Any]:
        for _ in range(HALVINGS):
            middle = np.sqrt(low) * np.sqrt(high)
            above = enough(middle)
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return low, high

    def expected(price: Any, premium: Any) -> Any:
        value = base - (price[:, None] - premium[:, None] * gaps)[:, :, None] * table.pulls
        mass = np.exp(value - value.max(axis=2, keepdims=True))
        return (mass * table.pulls).sum(axis=2) / mass.sum(axis=2)

    def fits(price: Any, premium: Any) -> Any:
        return expected(price, premium).sum(axis=1) <= horizon

    def priced(premium: Any) -> Any:
        free = fits(np.zeros(premium.size), premium)
        sign, most = np.where(free, -1.0, 1.0), MUCH * top + premium * gaps.max(axis=1)
        low, high = halved(NOTHING * top, most, lambda price: fits(sign * price, premium) != free)
        return np.where(free, -low if to_the_end else 0.0, high)

    def lossy(premium: Any) -> Any:
        return (expected(priced(premium), premium) * gaps).sum(axis=1) >= loss

    with np.errstate(invalid="ignore"):
        nothing = np.zeros(top.size)
        premium = np.where(lossy(nothing), nothing, halved(*ends, lossy)[1])
        return priced(premium), premium


def cells(rng: np.random.Generator, count: int, arms: int, horizon: int) -> tuple[Table, Any]:
    """Cells with costs that rise or fall, bend or jump, and with numbers of pulls that are impossible."""
    n, each = pulls_tried(horizon)
    shape = (count, arms, 1)
    size = rng.exponential(1.0, shape) * 10.0 ** rng.uniform(-2.0, 2.0, shape)
    cost = size * (n / horizon) ** rng.uniform(-0.5, 2.0, shape) + rng.exponential(0.3, (count, arms, n.size))
    cost[rng.random(cost.shape) < rng.choice([0.0, 0.1, 0.7], shape)] = math.inf
    gaps = rng.uniform(0.0, 1.0, (count, arms)) * 10.0 ** rng.uniform(-3.0, 0.0)
    gaps[np.arange(count), rng.integers(0, arms, count)] = 0.0
    tilt = np.zeros(cost.shape)
    return Table(n, each, cost, tilt, np.zeros(count), np.full(cost.shape, True)), gaps


@cache
def plainly(seed: int) -> tuple[tuple[Any, ...], Any]:
    """What `settled` is asked in a case, and the log shares that it finds with plain bisections."""
    rng = np.random.default_rng([8, seed])
    horizon, arms = int(rng.choice([10, 60, 400, 20_000])), int(rng.integers(2, 5))
    table, gaps = cells(rng, 60, arms, horizon)
    loss = float(rng.uniform(0.02, 1.05)) * horizon * float(gaps.max(axis=1).mean())
    asked = table, gaps, float(horizon), loss, np.zeros(60), bool(seed % 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routes, "multipliers_of", plain_multipliers)
        return asked, settled(*asked)[2]


def both_ways(seed: int) -> Any:
    """(cells that both keep, how many one keeps and the other does not, differences of log shares)."""
    asked, plain = plainly(seed)
    quick = settled(*asked)[2]
    kept = np.isfinite(quick) & np.isfinite(plain)
    return kept.sum(), np.sum(np.isfinite(quick) != np.isfinite(plain)), np.abs(quick[kept] - plain[kept])


def test_multipliers_are_those_of_plain_bisections() -> None:
    found = [both_ways(seed) for seed in range(40)]
    kept, torn = sum(one[0] for one in found), sum(one[1] for one in found)
    off = np.concatenate([one[2] for one in found])
    assert kept > 1500
    assert torn <= 2  # cells whose loss is just possible
    assert off.max() < 1e-4
    assert np.quantile(off, 0.9) < 1e-9


def test_multipliers_that_are_found_roughly_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "multipliers", rough(kernels.multipliers))
    found = [both_ways(seed) for seed in range(40)]
    torn = sum(one[1] for one in found)
    assert torn > 2 or max(one[2].max(initial=0.0) for one in found) > 1e-4


def rough(real: Callable[..., None]) -> Callable[..., None]:
    """The same with a price that is one per cent too low."""

    def wrong(*given: Any) -> None:
        real(*given)
        given[-1][:, 0] *= 0.99

    return wrong
