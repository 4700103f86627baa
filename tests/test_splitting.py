"""Splitting: a check that shares nothing with the tilts but the rules, and its negative control."""

from __future__ import annotations

import math

import pytest
from cases import name
from numba.extending import register_jitable

import lighttail as lt
from lighttail.kernels import _made, branching

TWO, FOUR = lt.Bandit([0.2, 0.8]), lt.Bandit([0.4, 0.2, 0.8, 0.6])
POLICIES = [
    lt.UCB(lt.Standard(0.8)),
    lt.UCB(lt.LightTailed(0.2)),
    lt.UCB(lt.ArmOptimal(0.3, 0.2)),
    lt.UCB(lt.AnyTime(0.3)),
    lt.SuccessiveElimination(lt.LightTailed(0.1)),
    lt.ThompsonSampling(0.8),
]


def standard_error(found: lt.TailEstimate) -> float:
    return found.diagnostics.relative_error * found.value / 1.96


@pytest.mark.parametrize("problem", [TWO, FOUR], ids=["K=2", "K=4"])
@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_splitting_agrees_with_tilts_and_with_plain_simulation(policy, problem) -> None:
    """Every pair of methods, within 4 standard errors of the difference; the exact law too."""
    horizon, regret = 60, 25.0
    split = lt.tail_probability(
        policy, problem, horizon, regret, relative_error=0.3, seed=1, method="splitting"
    )
    tilted = lt.tail_probability(
        policy, problem, horizon, regret, seed=2, method="importance", most_pulls=10**7
    )
    plain = lt.tail_probability(
        policy, problem, horizon, regret, seed=3, method="plain", most_pulls=6 * 10**6
    )
    found = [split, tilted, plain]
    assert [one.method for one in found] == ["splitting", "importance sampling", "plain simulation"]
    for place, one in enumerate(found):
        for other in found[:place]:
            error = math.hypot(standard_error(one), standard_error(other))
            assert abs(one.value - other.value) < 4.0 * error
    if problem is TWO and isinstance(policy, lt.UCB) and policy.bonus != lt.AnyTime(0.3):
        exact = lt.exact_tail(policy, problem, horizon=horizon, regret=regret)
        assert all(abs(one.value - exact) < 4.0 * standard_error(one) + 1e-4 * exact for one in found)


@pytest.mark.parametrize("noise", [lt.Bernoulli(), lt.Laplace(0.6)], ids=name)
def test_splitting_is_for_every_noise(noise) -> None:
    problem, policy = lt.Bandit([0.2, 0.8], noise), lt.UCB(lt.LightTailed(0.1))
    split = lt.tail_probability(policy, problem, 40, 9.0, relative_error=0.3, seed=1, method="splitting")
    other = lt.tail_probability(policy, problem, 40, 9.0, seed=2, most_pulls=8 * 10**7)
    assert abs(split.value - other.value) < 4.0 * math.hypot(standard_error(split), standard_error(other))


def test_far_out_it_still_agrees_with_the_exact_value() -> None:
    policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8], lt.Gaussian(0.5))
    exact = lt.exact_tail(policy, problem, horizon=200, regret=48.0)
    split = lt.tail_probability(policy, problem, 200, 48.0, relative_error=0.25, seed=4, method="splitting")
    assert exact < 1e-7
    assert abs(split.value - exact) < 4.0 * standard_error(split)


def test_a_score_that_counts_bad_pulls_fails_that_test(monkeypatch) -> None:
    """Negative control: the natural score, at the same effort."""

    @register_jitable
    def count(n, s, note, missing, gaps, clock, left, world, params):
        return -missing

    monkeypatch.setitem(branching.SCORES, lt.UCB, lambda *formulas: count)
    _made.cache_clear()
    policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8], lt.Gaussian(0.5))
    exact = lt.exact_tail(policy, problem, horizon=200, regret=48.0)
    split = lt.tail_probability(
        policy, problem, 200, 48.0, relative_error=0.25, seed=4, method="splitting", most_pulls=10**7
    )
    _made.cache_clear()
    assert not split.reached
    assert split.value < exact / 3.0


def test_the_choice_that_makes_the_event_is_kept() -> None:
    """Thompson sampling draws: a path copied from just before the event must not draw again."""
    policy = lt.ThompsonSampling(1.0)
    split = lt.tail_probability(policy, TWO, 3, 1.8, relative_error=0.05, seed=1, method="splitting")
    plain = lt.tail_probability(policy, TWO, 3, 1.8, relative_error=0.02, seed=2, method="plain")
    assert abs(split.value - plain.value) < 4.0 * math.hypot(standard_error(split), standard_error(plain))


def test_the_same_seed_gives_the_same_bits() -> None:
    found = [
        lt.tail_probability(
            lt.UCB(lt.LightTailed(0.2)),
            TWO,
            40,
            15.0,
            relative_error=0.5,
            seed=1,
            method="splitting",
            threads=n,
        )
        for n in (1, 2)
    ]
    assert found[0] == found[1]


def test_intervals_from_repetitions_cover() -> None:
    policy = lt.UCB(lt.LightTailed(0.2))
    exact = lt.exact_tail(policy, TWO, horizon=30, regret=14.4)
    missed = 0
    for seed in range(60):
        found = lt.tail_probability(policy, TWO, 30, 14.4, relative_error=0.8, seed=seed, method="splitting")
        missed += not found.low <= exact <= found.high
    assert missed <= 8  # 3 expected


def test_what_splitting_is_not_for_is_refused() -> None:
    with pytest.raises(ValueError, match="kind must be 'pseudo_regret' with method 'splitting'"):
        lt.tail_probability(POLICIES[1], TWO, 40, 9.0, kind="regret", method="splitting")
    with pytest.raises(ValueError, match="policy must be UCB, SuccessiveElimination or ThompsonSampling"):
        lt.tail_probability(lt.Exp3IX(), TWO, 40, 9.0, method="splitting")
