"""The scalar formulas of the noises: shocks, the rewards that are made from shocks, and sums of many rewards.

Each formula is a pure function of floats that is written once: plain Python runs it, and numba compiles it
into the kernels. A shock is drawn with `standard_normal(rng)` and `uniform(rng)` alone.
"""

from __future__ import annotations

import math
from typing import Any

from lighttail.random.binomial import binomial, hypergeometric
from lighttail.random.streams import standard_normal, uniform
from lighttail.records import Floats, Ints

TURN = 2.0 * math.pi  # a full turn, in radians


def normal_shock(rng: Any, *world: Any) -> float:
    return standard_normal(rng)


def uniform_shock(rng: Any, *world: Any) -> float:
    return uniform(rng)


def laplace_shock(rng: Any, *world: Any) -> float:
    """A draw of the Laplace law with standard deviation 1, by the inverse of its distribution function."""
    u = uniform(rng) - 0.5
    magnitude = -math.log(max(1.0 - 2.0 * abs(u), 1e-16)) / math.sqrt(2.0)
    return magnitude if u >= 0.0 else -magnitude


def student_shock(rng: Any, means: Floats, scale: float, df: float) -> float:
    """A draw of Student's t law from two uniform numbers (Bailey 1994, Math. Comp. 62, 779-781)."""
    u = 1.0 - uniform(rng)  # in (0, 1]
    v = uniform(rng)
    radius = math.sqrt(df * math.expm1(-2.0 / df * math.log(u)))
    return radius * math.cos(TURN * v)


def scaled_reward(shock: float, arm: int, means: Floats, scale: float, *more: float) -> float:
    return means[arm] + scale * shock  # type: ignore[no-any-return]


def uniform_reward(shock: float, arm: int, means: Floats, half_width: float) -> float:
    return means[arm] + half_width * (2.0 * shock - 1.0)  # type: ignore[no-any-return]


def bernoulli_reward(shock: float, arm: int, means: Floats) -> float:
    return 1.0 if shock < means[arm] else 0.0


def sample_reward(shock: float, arm: int, values: Floats, starts: Ints) -> float:
    first = starts[arm]
    return values[first + int(shock * (starts[arm + 1] - first))]  # type: ignore[no-any-return]


def normal_total(rng: Any, arm: int, n: float, means: Floats, sigma: float) -> float:
    return n * means[arm] + sigma * math.sqrt(n) * standard_normal(rng)  # type: ignore[no-any-return]


def normal_part(rng: Any, n: float, rest: float, total: float, means: Floats, sigma: float) -> float:
    """The sum of the first n of n + rest normal rewards that add up to `total`.

    It is a point of a Brownian bridge: its mean is total * n / (n + rest), and its variance is
    sigma^2 n rest / (n + rest).
    """
    share = n / (n + rest)
    return total * share + sigma * math.sqrt(share * rest) * standard_normal(rng)


def normal_clear(here: float, there: float, n: float, limit: float, means: Floats, sigma: float) -> bool:
    """A Brownian bridge meets its chord with probability exp(-2 here there / (sigma^2 n))."""
    return there > 0.0 and 2.0 * here * there > limit * sigma * sigma * n


def normal_proxy(means: Floats, sigma: float) -> float:
    return sigma


def bernoulli_total(rng: Any, arm: int, n: float, means: Floats) -> float:
    return binomial(rng, n, means[arm])


def bernoulli_part(rng: Any, n: float, rest: float, total: float, means: Floats) -> float:
    """The sum of the first n of n + rest rewards of 0 or 1 that add up to `total`.

    Every order of the rewards is equally likely, so the first n are drawn without replacement from all n +
    rest.
    """
    return hypergeometric(rng, n, rest, total)


def bernoulli_clear(here: float, there: float, n: float, limit: float, means: Floats) -> bool:
    """The sums meet their chord with probability at most 2 exp(-8 here there (n - 1)(n - 1/2) / n^3)."""
    room = 8.0 * here * there * ((n - 1.0) / n) * ((n - 0.5) / n)
    return there > 0.0 and room > (limit + 0.6931471805599453) * n  # ln 2


def bernoulli_proxy(means: Floats) -> float:
    return 0.5
