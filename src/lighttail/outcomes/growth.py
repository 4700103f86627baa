"""How a chance falls as an experiment grows, from the chances at three horizons (docs/verdict.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from lighttail.outcomes.estimates import Estimate, finite
from lighttail.outcomes.format import chance, outward

SHARES = (4, 2, 1)  # the horizons are T/4, T/2 and T
CUT = 1.2  # of the ratio, which is 1 for a power of T and sqrt 2 for exp(-sqrt T)
BULK = 0.1  # a higher chance at T/4 belongs to usual losses, whose chance falls otherwise than that of a tail
STILL = 0.9  # of the chance at T/4: a chance at T that is no lower hardly falls
SHORTEST = 50  # pulls: of shorter experiments at T/4, one answer in five was wrong (docs/verdict.md)
STEPS = [0.01 * step for step in range(401)]  # the ratios among which the limits of a ratio are sought

POWER = "falls like a power of T or more slowly"
ROOT = "falls exponentially in the square root of T"
HARDLY = "hardly falls"
UNKNOWN = "cannot be told from these paths"
# The chance falls ...
SHORT = {POWER: "like T⁻ᵇ or slower", ROOT: "like exp(−√T)", HARDLY: "hardly", UNKNOWN: "not told"}


class _Log(NamedTuple):
    """The logarithm of a chance, and how far its limits are below and above."""

    value: float
    down: float
    up: float


@dataclass(frozen=True)
class Growth:
    """The chance of losing a share of the horizon at T/4, T/2 and T, and what follows from the three.

    thresholds: the same share of each horizon. sources: how each chance was found.

    >>> exact = tuple(Estimate(p, p, p, 0.95) for p in (1.2e-2, 7.5e-3, 5.0e-3))
    >>> Growth((500, 1000, 2000), (100.0, 200.0, 400.0), exact, ("exact",) * 3).answer
    'falls like a power of T or more slowly'
    """

    horizons: tuple[int, ...]
    thresholds: tuple[float, ...]
    chances: tuple[Estimate, ...]
    sources: tuple[str, ...]

    @cached_property
    def exponents(self) -> tuple[float, float]:
        """b1 from T/4 to T/2 and b2 from T/2 to T, where P falls like T^-b."""
        first, middle, last = (log.value for log in self._logs)
        early, late = self._steps
        return (first - middle) / early, (middle - last) / late

    @cached_property
    def ratio(self) -> Estimate:
        """b2 / b1 with its 95 % limits, among the multiples of 0.01 up to 4."""
        b1, b2 = self.exponents
        value = b2 / b1 if b1 > 0.0 else math.nan
        low = max((step for step in STEPS if self._difference(step)[0] > 0.0), default=-math.inf)
        high = min((step for step in STEPS if self._difference(step)[1] < 0.0), default=math.inf)
        return Estimate(value, low, high, self.chances[0].level)

    @cached_property
    def answer(self) -> str:
        """POWER, ROOT, HARDLY or UNKNOWN."""
        first, _, last = self._logs
        if first.value - last.value + math.hypot(first.up, last.down) <= -math.log(STILL):
            return HARDLY
        if self.too_short:
            return UNKNOWN
        low, high = self._difference(CUT)
        if high < 0.0:
            return POWER
        falls = self.exponents[0] > 0.0 and not self.usual
        return ROOT if low > 0.0 and falls else UNKNOWN

    @property
    def too_short(self) -> bool:
        """Whether T/4 is so short that more exact chances would not tell more."""
        return self.horizons[0] < SHORTEST

    @property
    def usual(self) -> bool:
        """Whether the chance at T/4 may be so high that it is not the chance of a tail."""
        return self.chances[0].high > BULK

    @property
    def short(self) -> str:
        """The answer in a column whose heading is "this chance falls"."""
        return SHORT[self.answer]

    @property
    def why_not(self) -> str:
        """Why there is no answer although the ratio seems to give one; empty otherwise."""
        low, high = self._difference(CUT)
        if self.answer != UNKNOWN or not (low > 0.0 or high < 0.0):
            return ""
        if self.too_short:
            return f"{self.horizons[0]} pulls are too few"
        first = self.chances[0]
        most = chance(first.value) if self.sources[0] == "exact" else f"up to {outward(first.high)}"
        return f"{most} is no tail" if self.usual else ""

    def to_dict(self) -> dict[str, Any]:
        """For `results.json`; what is not finite is None."""
        each = zip(self.horizons, self.thresholds, self.chances, self.sources, strict=True)
        return {
            "answer": self.answer,
            "points": [
                {"horizon": horizon, "threshold": loss, "chance": found.to_dict(), "source": source}
                for horizon, loss, found, source in each
            ],
            "exponents": [finite(exponent) for exponent in self.exponents],
            "ratio": {name: finite(getattr(self.ratio, name)) for name in ("value", "low", "high")},
        }

    @cached_property
    def _logs(self) -> tuple[_Log, ...]:
        return tuple(map(_log, self.chances))

    @property
    def _steps(self) -> tuple[float, float]:
        """The logarithms of T/2 : T/4 and of T : T/2."""
        first, middle, last = self.horizons
        return math.log(middle / first), math.log(last / middle)

    def _difference(self, ratio: float) -> tuple[float, float]:
        """95 % limits of b2 - ratio * b1.

        The difference is a sum of logarithms with weights. Each logarithm's distance to its own limit, times
        its weight, is squared and added (Donner and Zou, 2012), so that limits need not be symmetric.
        """
        early, late = self._steps
        weights = (-ratio / early, 1.0 / late + ratio / early, -1.0 / late)
        value = sum(weight * log.value for weight, log in zip(weights, self._logs, strict=True))
        if not math.isfinite(value):
            return -math.inf, math.inf
        down, up = 0.0, 0.0
        for weight, log in zip(weights, self._logs, strict=True):
            below, above = (log.down, log.up) if weight > 0.0 else (log.up, log.down)
            down = math.hypot(down, weight * below if weight else 0.0)
            up = math.hypot(up, weight * above if weight else 0.0)
        return value - down, value + up


def horizons_of(horizon: int) -> tuple[int, ...]:
    """T/4, T/2 and T as whole numbers."""
    return tuple(horizon // share for share in SHARES)


def _log(estimate: Estimate) -> _Log:
    """If no path was counted, the upper limit stands for the chance, which may be any amount lower."""
    if estimate.high <= 0.0:
        return _Log(-math.inf, math.inf, math.inf)
    high = math.log(estimate.high)
    value = math.log(estimate.value) if estimate.value > 0.0 else high
    return _Log(value, value - math.log(estimate.low) if estimate.low > 0.0 else math.inf, high - value)
