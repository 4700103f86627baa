"""Binomial and hypergeometric counts: SciPy's probabilities, a hat that covers them, and their law."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from scipy import stats

from lighttail.kernels import stream
from lighttail.kernels.build import jitable
from lighttail.random.binomial import MARGIN, STRETCH, binomial, deviance, hypergeometric, surprise
from lighttail.random.streams import block_generator

draw_binomial, draw_hypergeometric = jitable(binomial), jitable(hypergeometric)


@numba.njit
def fill_binomial(rng, out, n, p):
    for i in range(out.size):
        out[i] = draw_binomial(rng, n, p)


@numba.njit
def fill_hypergeometric(rng, out, drawn, left, good):
    for i in range(out.size):
        out[i] = draw_hypergeometric(rng, drawn, left, good)


BINOMIALS = [(3, 0.3), (12, 0.5), (13, 0.02), (13, 0.5), (40, 0.97), (500, 0.3), (10**4, 1e-4), (10**6, 0.2)]
HYPERGEOMETRICS = [
    (5, 7, 4),
    (12, 12, 20),
    (13, 13, 1),
    (13, 50, 31),
    (40, 30, 69),
    (500, 500, 300),
    (1000, 9000, 4000),
]
HUGE = 10**12


def sample(fill: Any, *arguments: float, draws: int = 40_000) -> np.ndarray:
    out, generator = np.empty(draws), block_generator(5, 0)
    fill(stream(generator), out, *(float(value) for value in arguments))
    return out


def pvalue(values: np.ndarray, law: Any) -> float:
    """Chi-square in cells of at least 20 expected counts, of the law's own quantiles."""
    cuts = np.unique(law.ppf(np.linspace(0, 1, 42)[1:-1]))
    chances = np.diff([0.0, *law.cdf(cuts), 1.0])
    seen = np.bincount(np.searchsorted(cuts, values), minlength=cuts.size + 1)
    kept = chances * values.size >= 20
    assert np.all(seen[chances == 0.0] == 0)
    rest = (seen[~kept].sum(), chances[~kept].sum() * values.size)
    seen, expected = seen[kept], chances[kept] * values.size
    if rest[1] > 0.0:
        seen, expected = np.append(seen, rest[0]), np.append(expected, rest[1])
    return float(stats.chi2.sf(np.sum((seen - expected) ** 2 / expected), max(1, seen.size - 1)))


@pytest.mark.parametrize(("n", "p"), BINOMIALS)
def test_binomial_counts_follow_scipy(n: int, p: float) -> None:
    values = sample(fill_binomial, n, p)
    assert pvalue(values, stats.binom(n, p)) > 1e-4
    assert pvalue(values, stats.binom(n, p + 0.05 * math.sqrt(p * (1 - p) / n))) < 1e-4  # negative control


@pytest.mark.parametrize(("drawn", "left", "good"), HYPERGEOMETRICS)
def test_hypergeometric_counts_follow_scipy(drawn: int, left: int, good: int) -> None:
    values = sample(fill_hypergeometric, drawn, left, good)
    assert pvalue(values, stats.hypergeom(drawn + left, good, drawn)) > 1e-4
    if values.std() > 1.0:  # negative control: drawn with replacement
        assert pvalue(values, stats.binom(drawn, good / (drawn + left))) < 1e-4


def test_certain_counts() -> None:
    assert set(sample(fill_binomial, 50, 0.0, draws=9)) == {0.0}
    assert set(sample(fill_binomial, 50, 1.0, draws=9)) == {50.0}
    assert set(sample(fill_hypergeometric, 40, 20, 0, draws=9)) == {0.0}
    assert set(sample(fill_hypergeometric, 40, 20, 60, draws=9)) == {40.0}


def test_counts_of_a_million_million_trials_are_normal() -> None:
    values = sample(fill_binomial, HUGE, 0.3)
    z = (values - 0.3 * HUGE) / math.sqrt(0.21 * HUGE)
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert stats.kstest(1.05 * z, "norm").pvalue < 1e-4  # negative control
    values = sample(fill_hypergeometric, HUGE / 2, HUGE / 2, 0.3 * HUGE)
    z = (values - 0.15 * HUGE) / math.sqrt(0.25 * 0.21 * HUGE)
    assert stats.kstest(z, "norm").pvalue > 1e-4


def hat(mean: float, variance: float, chances: np.ndarray, first: int) -> float:
    """How much of the rectangle's half width the region needs at most; 1 is too much."""
    width = STRETCH * math.sqrt(variance + 0.5) + MARGIN
    k = first + np.arange(chances.size)
    furthest = np.maximum(np.abs(k - mean - 0.5), np.abs(k + 0.5 - mean))
    return float(np.max(furthest * np.sqrt(chances / chances.max()))) / (0.5 * width)


def test_the_rectangle_holds_the_whole_region() -> None:
    """For every count, (x - a) sqrt(P(x) / P(mode)) stays within it: what makes the rejection exact."""
    shares = (1e-6, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8, 0.99, 0.9999)
    needs = [
        hat(n * p, n * p * (1 - p), stats.binom.pmf(np.arange(n + 1), n, p), 0)
        for n in (13, 14, 20, 33, 100, 1000, 20_000)
        for p in shares
    ]
    for balls in (26, 31, 64, 200, 1500):
        for drawn in sorted({13, balls // 3, balls // 2, balls - 1}):
            for good in sorted({1, 2, balls // 10, balls // 3, balls // 2, balls - 1}):
                first, last = max(0, good - (balls - drawn)), min(drawn, good)
                chances = stats.hypergeom.pmf(np.arange(first, last + 1), balls, good, drawn)
                mean = drawn * good / balls
                variance = mean * (balls - good) / balls * (balls - drawn) / (balls - 1)
                needs.append(hat(mean, variance, chances, first))
    assert max(needs) <= 1.0 + 1e-12
    assert max(needs) > 0.95  # and it is no larger than it must be


def test_the_probabilities_keep_their_digits() -> None:
    for n, p in [(100, 0.3), (10**6, 0.2)]:
        mean, sd = n * p, math.sqrt(n * p * (1 - p))
        for x in (math.floor(mean), math.floor(mean + 3 * sd)):
            ours = (
                -surprise(float(x), mean) - surprise(float(n - x), n * (1 - p)) + surprise(float(n), float(n))
            )
            assert math.isclose(ours, stats.binom.logpmf(x, n, p), rel_tol=1e-7)
    middle = surprise(1e9, 1e9) - 2.0 * surprise(5e8, 5e8)  # of a thousand million fair coins
    assert middle == pytest.approx(-0.5 * math.log(math.pi * 5e8) - 0.25e-9, rel=1e-14)
    assert deviance(1e12 + 1.0, 1e12) == pytest.approx(0.5e-12, rel=1e-9)
    for x in (1.0, 15.0, 16.0, 40.0):
        assert surprise(x, 20.0) == pytest.approx(-stats.poisson.logpmf(x, 20.0), rel=1e-13)
