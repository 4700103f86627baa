"""Every interval is the one it claims to be: checked against scipy, brute force and Monte Carlo.

That the intervals also cover the truth as often as they say is the subject of `test_coverage`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import lighttail as lt
from lighttail.outcomes import estimates as statistics

ROUNDING = 1e-9  # relative


@pytest.fixture(scope="module")
def out() -> lt.PathsOutcome:
    """Two-humped and skewed: some paths never find the better arm."""
    problem = lt.Bandit([0.2, 0.8])
    return lt.simulate(lt.UCB(lt.Standard(0.1)), problem, horizon=200, paths=500, seed=1)


# Probabilities


@pytest.mark.parametrize("sample", [1, 2, 20, 500])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_a_proportion_has_clopper_and_pearsons_interval(sample: int, level: float) -> None:
    for hits in range(sample + 1):
        ours = statistics.proportion(hits, sample, level)
        exact = stats.binomtest(hits, sample).proportion_ci(level, method="exact")
        assert (ours.value, ours.level) == (hits / sample, level)
        assert ours.low == pytest.approx(exact.low, rel=1e-8, abs=1e-15)
        assert ours.high == pytest.approx(exact.high, rel=1e-8)


def test_no_hits_still_leave_an_upper_limit(out: lt.Outcome) -> None:
    estimate = out.exceedance(1e6)
    assert (estimate.value, estimate.low) == (0.0, 0.0)
    assert estimate.high == pytest.approx(1 - 0.025 ** (1 / 500), rel=1e-12)


def test_exceedance_counts_paths_at_the_mark_too(out: lt.Outcome) -> None:
    mark = float(np.median(out.pseudo_regret))
    at_least = np.mean(out.pseudo_regret >= mark)
    assert at_least > np.mean(out.pseudo_regret > mark)  # the mark is an outcome of some paths
    assert out.exceedance(mark, "pseudo_regret").value == at_least


# Quantiles


def brute_force_ranks(n: int, q: float, level: float) -> tuple[int, int]:
    """The closest order statistics that miss the quantile with probability (1 - level)/2 at most."""
    tail = (1 - level) / 2
    below = stats.binom(n, q)  # observations up to the quantile
    low = max((rank for rank in range(1, n + 1) if below.cdf(rank - 1) <= tail), default=0)
    high = min((rank for rank in range(1, n + 1) if below.sf(rank - 1) <= tail), default=n + 1)
    return low, high


@pytest.mark.parametrize("n", [1, 7, 59, 500])
@pytest.mark.parametrize("q", [0.01, 0.5, 0.95])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_quantile_limits_are_the_order_statistics_of_the_binomial(n: int, q: float, level: float) -> None:
    ordered = np.arange(1.0, n + 1.0)  # each value is its rank
    low, high = brute_force_ranks(n, q, level)
    estimate = statistics.quantile(ordered, q, level)
    assert estimate.low == (low if low >= 1 else -math.inf)
    assert estimate.high == (high if high <= n else math.inf)
    assert estimate.value == np.quantile(ordered, q, method="inverted_cdf")


def test_a_quantile_out_of_reach_has_an_infinite_end(out: lt.Outcome) -> None:
    estimate = out.quantile(0.999, "regret")
    assert estimate.high == math.inf
    assert estimate.low < estimate.value < math.inf
    assert out.cvar(0.999, "regret").high == math.inf
    assert out.cvar(0.999, "reward").low == -math.inf
    assert out.cvar(0.999, "pseudo_regret").high == pytest.approx(0.6 * 200)  # no path can lose more


# Means


@pytest.mark.parametrize("n", [5, 20, 100, 500])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_the_mean_of_zeros_and_ones_has_nearly_clopper_and_pearsons_limits(n: int, level: float) -> None:
    """Within 0.5 % of the limit's distance from the estimate: what Lugannani and Rice's formula costs."""
    for ones in range(0, n + 1, 1 if n < 500 else 7):
        sample = np.repeat([0.0, 1.0], [n - ones, ones])
        exact = statistics.proportion(ones, n, level)
        low, high = statistics.mean_limits(sample, (0.0, 1.0), level)
        assert abs(low - exact.low) <= 0.005 * (exact.value - exact.low)
        assert abs(high - exact.high) <= 0.005 * (exact.high - exact.value)


SKEWED = np.random.default_rng(1).exponential(1.0, 40) ** 2
SKEWED_ENDS = (0.0, 60.0)


def share_above(limit: float, points: np.ndarray) -> float:
    """How often the mean of `points` under flat Dirichlet weights exceeds `limit`."""
    rng = np.random.default_rng(2)
    above = 0
    for _ in range(10):
        weights = rng.standard_exponential((40_000, points.size))
        above += int(np.sum(weights @ (points - limit) > 0.0))
    return above / 400_000


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_mean_limits_are_quantiles_of_the_dirichlet_mean(level: float) -> None:
    tail = (1 - level) / 2
    tolerance = 4.0 * math.sqrt(tail / 400_000) + 0.01 * tail  # z = 4, and 1 % for the formula
    low, high = statistics.mean_limits(SKEWED, SKEWED_ENDS, level)
    with_top, with_bottom = np.append(SKEWED, SKEWED_ENDS[1]), np.append(SKEWED, SKEWED_ENDS[0])
    assert abs(share_above(high, with_top) - tail) < tolerance
    assert abs(1.0 - share_above(low, with_bottom) - tail) < tolerance
    # Negative controls: the normal limit, and Gaffke's without the extra observation.
    normal = stats.norm.isf(tail, SKEWED.mean(), SKEWED.std(ddof=1) / math.sqrt(SKEWED.size))
    assert abs(share_above(normal, with_top) - tail) > tolerance
    assert abs(share_above(high, SKEWED) - tail) > tolerance


def dirichlet_cvars(ordered: np.ndarray, end: float, q: float, draws: int) -> np.ndarray:
    """CVaR under flat Dirichlet weights on the sample and `end`, by its definition."""
    points = np.sort(np.append(ordered, end))[::-1]
    weights = np.random.default_rng(3).dirichlet(np.ones(points.size), draws)
    before = np.cumsum(weights, axis=1) - weights
    taken = np.clip(1.0 - q - before, 0.0, weights)
    return taken @ points / (1.0 - q)


@pytest.mark.parametrize(("n", "q"), [(40, 0.5), (40, 0.8), (600, 0.2), (3000, 0.9)])
def test_cvar_limits_are_quantiles_of_the_dirichlet_cvar(n: int, q: float) -> None:
    """Shares beyond the limits within z = 5 standard errors of 2,000 and of 4,000 draws."""
    ordered = np.sort(np.random.default_rng(6).exponential(1.0, n) ** 2)
    ends = (0.0, 1.5 * float(ordered[-1]))
    low, high = (dirichlet_cvars(ordered, end, q, 4000) for end in ends)
    tolerance = 5.0 * math.sqrt(0.05 * 0.95 * (1 / 2000 + 1 / 4000))

    def shares_beyond(level: float) -> np.ndarray:
        estimate = statistics.cvar(ordered, q, ends, True, level)
        return np.array([np.mean(low < estimate.low), np.mean(high > estimate.high)])

    assert np.all(np.abs(shares_beyond(0.9) - 0.05) < tolerance)
    assert np.all(np.abs(shares_beyond(0.8) - 0.05) > tolerance)  # negative control: another level


def test_large_samples_have_the_usual_normal_interval() -> None:
    sample = np.random.default_rng(4).normal(3.0, 2.0, 200_000)
    estimate = statistics.mean(sample, (float(sample.min()), float(sample.max())), 0.95)
    half = stats.norm.isf(0.025) * sample.std(ddof=1) / math.sqrt(sample.size)
    assert estimate.low == pytest.approx(sample.mean() - half, abs=0.01 * half)
    assert estimate.high == pytest.approx(sample.mean() + half, abs=0.01 * half)


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 0.0), (2.0, 500.0), (0.5, -1e4)])
def test_limits_move_with_the_unit_and_the_origin(scale: float, shift: float) -> None:
    ordered = np.sort(SKEWED)
    moved = shift + scale * ordered
    ends = (shift + scale * SKEWED_ENDS[0], shift + scale * SKEWED_ENDS[1])
    pairs = [
        (statistics.mean(ordered, SKEWED_ENDS, 0.95), statistics.mean(moved, ends, 0.95)),
        (
            statistics.cvar(ordered, 0.8, SKEWED_ENDS, True, 0.95),
            statistics.cvar(moved, 0.8, ends, True, 0.95),
        ),
        (statistics.quantile(ordered, 0.8, 0.95), statistics.quantile(moved, 0.8, 0.95)),
    ]
    for plain, other in pairs:
        for end in ("value", "low", "high"):
            expected = shift + scale * getattr(plain, end)
            assert getattr(other, end) == pytest.approx(expected, rel=ROUNDING, abs=1e-7 * scale)
    plain, other = statistics.std(ordered, SKEWED_ENDS, 0.95), statistics.std(moved, ends, 0.95)
    for end in ("value", "low", "high"):
        assert getattr(other, end) == pytest.approx(scale * getattr(plain, end), rel=1e-7)


@pytest.mark.parametrize("level", [0.5, 0.7, 0.95, 0.995, 0.9999, 1 - 1e-12])
def test_every_level_is_answered_or_refused_by_name(out: lt.Outcome, level: float) -> None:
    for estimate in (out.mean(level=level), out.std(level=level)):
        assert estimate.level == level
        assert -math.inf < estimate.low <= estimate.value <= estimate.high < math.inf
    if level <= 0.995:
        assert math.isfinite(out.cvar(0.9, level=level).high)
    else:
        with pytest.raises(ValueError, match=r"^level must be at most 0\.995 for a CVaR, but is "):
            out.cvar(0.9, level=level)


def test_one_path_says_little_but_not_nothing() -> None:
    out = lt.simulate(lt.UCB(lt.Standard(0.1)), lt.Bandit([0.2, 0.8]), horizon=200, paths=1, seed=1)
    mean = out.mean("pseudo_regret")
    assert 0.0 <= mean.low <= mean.value <= mean.high <= 0.6 * 200
    assert out.quantile(0.5).low == -math.inf
    assert out.quantile(0.5).high == math.inf


def test_rewards_mirror_regrets(out: lt.Outcome) -> None:
    best = 0.8 * 200
    for regret, reward in [
        (out.mean("regret"), out.mean("reward")),
        (out.cvar(0.9, "regret"), out.cvar(0.9, "reward")),
    ]:
        assert reward.value == pytest.approx(best - regret.value, rel=ROUNDING)
        assert reward.low == pytest.approx(best - regret.high, rel=ROUNDING)
        assert reward.high == pytest.approx(best - regret.low, rel=ROUNDING)
    for end in ("value", "low", "high"):
        assert getattr(out.std("reward"), end) == pytest.approx(getattr(out.std("regret"), end), rel=1e-7)


def test_an_estimate_is_a_function_of_its_sample(out: lt.PathsOutcome) -> None:
    turned = replace(out, record=out.record.rows(slice(None, None, -1)))
    assert out.cvar(0.9) == out.cvar(0.9) == turned.cvar(0.9)
    assert out.quantile(0.9) == turned.quantile(0.9)
    assert out.mean().high == pytest.approx(turned.mean().high, rel=ROUNDING)


# What holds for every sample

values = st.floats(-50.0, 100.0).map(lambda value: round(value, 3))
samples = st.lists(values, min_size=1, max_size=40).map(lambda sample: np.sort(np.array(sample)))
margins = st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 100.0))
fractions = st.floats(0.02, 0.98)


def check_order_and_widening(estimate, ordered, margin, level) -> lt.Estimate:
    """low <= value <= high, and both ends move outwards as the level rises; rounding is allowed for."""
    ends = (float(ordered[0]) - margin[0], float(ordered[-1]) + margin[1])
    slack = 1e-9 * (1.0 + ends[1] - ends[0])
    narrow, wide = estimate(ends, level), estimate(ends, (1.0 + level) / 2)
    assert narrow.low <= narrow.value + slack
    assert narrow.value <= narrow.high + slack
    assert wide.low <= narrow.low + slack
    assert wide.high >= narrow.high - slack
    return narrow


@settings(deadline=None, max_examples=150, derandomize=True)
@given(samples, margins, st.floats(0.5, 0.99))
def test_a_mean_lies_in_its_interval(ordered: np.ndarray, margin: tuple[float, float], level: float) -> None:
    mean = check_order_and_widening(
        lambda ends, level: statistics.mean(ordered, ends, level), ordered, margin, level
    )
    assert mean.low >= ordered[0] - margin[0] - 1e-6
    assert mean.high <= ordered[-1] + margin[1] + 1e-6


@settings(deadline=None, max_examples=150, derandomize=True)
@given(samples, margins, st.floats(0.5, 0.99))
def test_a_standard_deviation_lies_in_its_interval(
    ordered: np.ndarray, margin: tuple[float, float], level: float
) -> None:
    check_order_and_widening(lambda ends, level: statistics.std(ordered, ends, level), ordered, margin, level)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(samples, margins, fractions, st.floats(0.5, 0.99))
def test_a_cvar_lies_in_its_interval_above_quantile_and_mean(
    ordered: np.ndarray, margin: tuple[float, float], q: float, level: float
) -> None:
    quantile = check_order_and_widening(
        lambda ends, level: statistics.quantile(ordered, q, level), ordered, margin, level
    )
    cvar = check_order_and_widening(
        lambda ends, level: statistics.cvar(ordered, q, ends, True, level), ordered, margin, level
    )
    assert cvar.value >= quantile.value - 1e-9
    assert cvar.value >= ordered.mean() - 1e-9
