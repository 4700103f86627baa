"""A tally finds every value's bin without rounding, adds without rounding, and says no more than it knows."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cases import NOISES
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import lighttail as lt
from lighttail.kernels.build import jitable
from lighttail.outcomes import estimates as statistics
from lighttail.outcomes import tally
from lighttail.outcomes.tally import BINS, FINE, SIDE, Sample, Tally, bin_of, edges, exact, power_below

numbers = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30)
units = st.integers(-40, 20).map(lambda power: 2.0**power)


# Bins


def misplaced(placed: Any, x: float, unit: float) -> bool:
    """Whether x is not in its bin, or the bin is wider than promised."""
    low, high = edges(placed(x, unit), unit)
    outermost = abs(x) / unit >= tally.END
    return not (low <= x <= high and (outermost or high - low <= max(unit, abs(x) / FINE)))


@settings(deadline=None, max_examples=300, derandomize=True)
@given(numbers, units)
def test_a_value_is_in_its_bin_and_the_bin_is_as_narrow_as_promised(x: float, unit: float) -> None:
    assert 0 <= bin_of(x, unit) < BINS
    for value in (x, math.nextafter(x, math.inf), float(round(x / unit)) * unit):
        assert not misplaced(bin_of, value, unit)


def test_a_bin_by_logarithms_would_be_noticed() -> None:
    """Negative control: the same bins by log2, which rounds."""

    def by_logarithm(x: float, unit: float) -> int:
        power = math.floor(math.log2(x / unit))
        return SIDE + int(FINE * (power - 9 + (x / unit / 2.0**power - 1.0)))

    edge = math.nextafter(2.0**30, 0.0)
    assert not misplaced(bin_of, edge, 1.0)
    assert misplaced(by_logarithm, edge, 1.0)


def test_bins_follow_each_other_without_gaps() -> None:
    ends = [edges(bin_, 0.5) for bin_ in range(BINS)]
    assert ends[0][0] == -math.inf
    assert ends[-1][1] == math.inf
    assert all(before[1] == after[0] for before, after in pairwise(ends))
    middles = [0.5 * (low + high) for low, high in ends[1:-1]]
    assert [bin_of(x, 0.5) for x in middles] == list(range(1, BINS - 1))


EXTREMES = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1e308,
    -1e308,
    math.inf,
    -math.inf,
    tally.END,
    -tally.END,
    1024.0,
    -1024.0,
]


def test_the_compiled_bin_is_the_plain_one_in_both_precisions() -> None:
    from numba import njit

    compiled = njit(jitable(bin_of))
    rng = np.random.default_rng(1)
    sizes = 2.0 ** rng.uniform(-20.0, 60.0, 3000) * rng.choice([-1.0, 1.0], 3000)
    for x in [*sizes.tolist(), *EXTREMES]:
        assert compiled(x, 0.25) == bin_of(x, 0.25)
    for x in sizes.astype(np.float32):
        assert compiled(x, np.float32(0.25)) == bin_of(x, np.float32(0.25)) == bin_of(float(x), 0.25)


@pytest.mark.parametrize("x", [1.0, 0.75, 3.9, 1e-3, 1e300, 2.0**-60])
def test_a_unit_is_a_power_of_two_up_to_what_is_asked(x: float) -> None:
    unit = power_below(x)
    assert unit <= x < 2.0 * unit
    assert math.frexp(unit)[0] == 0.5
    assert power_below(0.0) == 1.0
    assert power_below(1e-320) / 1024 > 0.0


# Sums


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.lists(st.floats(-1e200, 1e200), min_size=1, max_size=12), st.randoms())
def test_sums_are_exact_in_any_order(values: list[float], random: Any) -> None:
    total = sum(map(exact, values))
    random.shuffle(values)
    assert total == sum(map(exact, values))
    assert total / 2**1074 == math.fsum(values)


def test_sums_of_floats_would_depend_on_the_order() -> None:
    """Negative control for the test above."""
    values = [1e16, 1.0, -1e16]
    assert (values[0] + values[1]) + values[2] != (values[0] + values[2]) + values[1] == math.fsum(values)


def test_a_small_scatter_around_a_large_mean_keeps_its_digits() -> None:
    values = 1e6 + 1e-4 * np.random.default_rng(2).standard_normal(5000)
    counted = counted_in_blocks(values, 1.0)
    sample = counted.sample()
    assert sample.mean == pytest.approx(np.mean(values), rel=1e-15)
    assert sample.std == pytest.approx(np.std(values), rel=1e-9)
    about_zero = math.sqrt(max(0.0, np.mean(values**2) - np.mean(values) ** 2))  # the control
    assert about_zero != pytest.approx(np.std(values), rel=0.1)


def counted_in_blocks(values: np.ndarray, unit: float, size: int = 700) -> Tally:
    result = Tally(unit)
    for first in range(0, values.size, size):
        result.add(values[first : first + size])
    return result


# Samples


@pytest.mark.parametrize("top", [1, 50, 4096])
def test_the_largest_values_are_kept_as_they_are(top: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "TOP", top)
    values = np.round(np.random.default_rng(3).standard_t(2.5, 3000), 2)  # with ties
    counted = counted_in_blocks(values, 2.0**-4)
    sample = counted.sample()
    assert np.array_equal(counted.top, np.sort(values)[-top:])
    assert sample.size == values.size
    assert np.all(np.diff(sample.low) >= 0)
    assert np.all(np.diff(sample.high) >= 0)
    assert np.all((sample.low <= sample.value) & (sample.value <= sample.high))
    assert (sample.low[0], sample.high[-1]) == (values.min(), values.max())
    up_to = np.cumsum(sample.counts)
    ordered = np.sort(values)
    assert np.all(ordered[up_to - 1] <= sample.high)
    assert np.all(ordered[up_to - sample.counts] >= sample.low)


def test_values_far_apart_lose_nothing() -> None:
    """Of a law of atoms every bin holds one: each is known exactly."""
    values = np.random.default_rng(4).binomial(500, 0.3, 20_000) - 150.3
    sample = counted_in_blocks(values, 2.0**-6).sample()
    assert np.array_equal(sample.low, sample.high)
    assert statistics.exceedance(sample, 9.7, 0.95) == statistics.exceedance(values, 9.7, 0.95)
    assert statistics.quantile(sample, 0.9, 0.95) == statistics.quantile(np.sort(values), 0.9, 0.95)


def test_outcomes_that_overflow_are_refused() -> None:
    for value in (math.inf, math.nan, 1e200):
        with pytest.raises(ValueError, match="overflow"):
            Tally(1.0).add(np.array([0.0, value, 1.0]))


# Estimates from counts


repeated = st.lists(st.tuples(st.integers(-20, 50), st.integers(1, 40)), min_size=1, max_size=12)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(repeated, st.floats(0.05, 0.95), st.floats(0.5, 0.99))
def test_counts_give_what_the_observations_would(
    pairs: list[tuple[int, int]], q: float, level: float
) -> None:
    values, counts = np.array(sorted(dict(pairs).items())).T
    values = values.astype(float)
    sample, plain = Sample(values, values, values, counts), np.repeat(values, counts)
    ends = (-30.0, 60.0)
    for ours, theirs in [
        (statistics.mean(sample, ends, level), statistics.mean(plain, ends, level)),
        (statistics.std(sample, ends, level), statistics.std(plain, ends, level)),
        (statistics.quantile(sample, q, level), statistics.quantile(plain, q, level)),
        (statistics.cvar(sample, q, ends, True, level), statistics.cvar(plain, q, ends, True, level)),
        (statistics.exceedance(sample, 7.0, level), statistics.exceedance(plain, 7.0, level)),
        (
            statistics.cvar(sample.mirrored(), q, (-60, 30), True, level),
            statistics.cvar(-plain[::-1], q, (-60, 30), True, level),
        ),
    ]:
        for end in ("value", "low", "high"):
            assert getattr(ours, end) == pytest.approx(getattr(theirs, end), rel=1e-9, abs=1e-9)
    assert sample.interpolated(q) == pytest.approx(np.quantile(plain, q), rel=1e-12, abs=1e-12)


def test_a_bin_that_x_cuts_counts_by_its_share_and_widens_the_interval() -> None:
    low, high = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    sample = Sample(0.5 * (low + high), low, high, np.array([50, 30, 20]))
    found = statistics.exceedance(sample, 1.25, 0.95)
    assert found.value == pytest.approx((0.75 * 30 + 20) / 100)
    assert found.low == statistics.proportion(20, 100, 0.95).low
    assert found.high == statistics.proportion(50, 100, 0.95).high
    assert sample.at(51) == pytest.approx(1.0 + 0.5 / 30)


@pytest.mark.parametrize("n", [10**6, 10**8, 10**10, 10**12])
def test_limits_hold_for_huge_samples(n: int) -> None:
    """Against Poisson's exact limits for few hits, and the normal ones for many."""

    def limits(hits: int) -> np.ndarray:
        return n * np.array([end[0] for end in statistics.proportion_limits(np.array([hits]), n, 0.95)])

    for hits in (1, 5, 100):
        poisson = stats.chi2.ppf([0.025, 0.975], [2 * hits, 2 * hits + 2]) / 2
        assert limits(hits) == pytest.approx(poisson, rel=(2 + hits) / n + 1e-6)
    for hits in (n // 100, n // 2):
        sd = math.sqrt(hits * (1 - hits / n))
        assert limits(hits) == pytest.approx([hits - 1.96 * sd, hits + 1.96 * sd], abs=0.03 * sd)
    values = np.array([-1.0, 0.0, 3.0])
    sample = Sample(values, values, values, np.array([n // 2, n - n // 2 - n // 100, n // 100]))
    mean, exact_mean = statistics.mean(sample, (-5.0, 5.0), 0.95), -0.5 + 0.03
    half = 1.96 * math.sqrt(0.5 + 0.09 - exact_mean**2) / math.sqrt(n)
    assert mean.value == pytest.approx(exact_mean, rel=1e-12)
    assert [mean.low, mean.high] == pytest.approx([mean.value - half, mean.value + half], abs=0.05 * half)
    ranks = Sample(
        *3 * [np.array([0.0, 1.0])],
        counts=np.array([n // 2 - int(0.99 * math.sqrt(n)), n // 2 + int(0.99 * math.sqrt(n))]),
    )
    assert statistics.quantile(ranks, 0.5, 0.95).low == 1.0  # just beyond 1.96 standard errors, so above
    assert statistics.quantile(ranks, 0.5, 0.97).low == 0.0  # the control: another level


def test_every_noise_knows_its_standard_deviation() -> None:
    data = lt.Bandit.from_samples({"A": [0.0, 1.0, 5.0], "B": [2.0, 2.0]}).noise
    for noise, of in [*((noise, (0.3, 0.5, 0.8)) for noise in NOISES), (data, (2.0, 2.0))]:
        assert noise.sd(of) == pytest.approx(lt.Noise.sd(noise, of), rel=0.2)  # z = 4 of 1,000 draws
        assert noise.sd(of) != pytest.approx(1.5 * lt.Noise.sd(noise, of), rel=0.2)  # negative control
