"""Splitting: a check that shares nothing with the tilts but the rules, and its negative control."""

from __future__ import annotations

import math
from functools import cache

import pytest
from cases import name
from numba.extending import register_jitable

import lighttail as lt
from lighttail.kernels import _made, branching
from lighttail.tails.programme import programme_tail

TWO, FOUR = lt.Bandit([0.2, 0.8]), lt.Bandit([0.4, 0.2, 0.8, 0.6])
FAR = (lt.UCB(lt.LightTailed(0.5)), lt.Bandit([0.2, 0.8], lt.Gaussian(0.5)), 100, 34.8)  # a chance of 5e-11
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


@pytest.mark.slow
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


def far_out() -> lt.TailEstimate:
    return lt.tail_probability(*FAR, relative_error=0.25, seed=4, method="splitting")


@pytest.mark.slow
def test_far_out_it_still_agrees_with_the_exact_value() -> None:
    exact, split = lt.exact_tail(*FAR), far_out()
    assert exact < 1e-10
    assert split.reached
    assert abs(split.value - exact) < 4.0 * standard_error(split)


def test_a_score_that_counts_bad_pulls_fails_that_test(monkeypatch) -> None:
    """Negative control: the natural score leaves too large an error after all allowed repetitions."""

    @register_jitable
    def count(path, missing, left, most, problem, clock, params):
        return -missing

    monkeypatch.setitem(branching.SCORES, "radius", lambda policy: (lambda: count, (), "pulls"))
    _made.cache_clear()
    split = far_out()
    _made.cache_clear()
    assert not split.reached
    assert split.diagnostics.relative_error > 0.4


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


@pytest.mark.slow
def test_intervals_from_repetitions_cover() -> None:
    policy = lt.UCB(lt.LightTailed(0.2))
    exact = lt.exact_tail(policy, TWO, horizon=12, regret=6.6)
    settings = {"relative_error": 0.8, "method": "splitting"}
    found = [lt.tail_probability(policy, TWO, 12, 6.6, seed=seed, **settings) for seed in range(60)]
    allowed = 8  # 3 expected
    assert sum(not one.low <= exact <= one.high for one in found) <= allowed
    # Negative control: intervals of a third of the width miss too often.
    narrow = [abs(one.value - exact) > (one.high - one.low) / 6.0 for one in found]
    assert sum(narrow) > allowed


# -- The regret with its luck: decided by the last reward.

COINS = lt.Bandit([0.3, 0.7], lt.Bernoulli())
LUCK = [
    (lt.UCB(lt.LightTailed(0.1)), COINS, 30, 20.0, 2.2967e-8),
    (lt.UCB(lt.Standard(0.3)), lt.Bandit([0.05, 0.5], lt.Bernoulli()), 30, 13.0, 9.386e-4),
    (
        lt.SuccessiveElimination(lt.Standard(0.3)),
        lt.Bandit([0.5, 0.9, 0.9], lt.Bernoulli()),
        16,
        12.4,
        8.55e-6,
    ),
    (lt.ThompsonSampling(0.5), COINS, 12, 7.4, None),
]


@cache
def with_luck(policy: lt.Policy, problem: lt.Bandit, horizon: int, regret: float) -> lt.TailEstimate:
    settings = {"kind": "regret", "relative_error": 0.3, "seed": 1, "method": "splitting"}
    return lt.tail_probability(policy, problem, horizon, regret, **settings)


@pytest.mark.parametrize(
    ("policy", "problem", "horizon", "regret", "known"), LUCK, ids=["UCB", "UCB rare", "SE", "TS"]
)
def test_regrets_with_their_luck_agree_with_exact_values(policy, problem, horizon, regret, known) -> None:
    exact = programme_tail(policy, problem, horizon, regret - 1e-9, "regret")
    assert known is None or exact == pytest.approx(known, rel=5e-4)
    split = with_luck(policy, problem, horizon, regret)
    assert (split.method, split.reached) == ("splitting", True)
    assert abs(split.value - exact) < 4.0 * standard_error(split)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [POLICIES[1], *POLICIES[4:]], ids=name)
def test_regrets_of_gaussian_rewards_agree_with_plain_simulation(policy) -> None:
    for problem, regret in ((TWO, 18.0), (FOUR, 16.0)):
        plain = lt.tail_probability(
            policy, problem, 16, regret, kind="regret", seed=3, method="plain", most_pulls=6 * 10**6
        )
        split = lt.tail_probability(
            policy, problem, 16, regret, kind="regret", relative_error=0.3, seed=1, method="splitting"
        )
        assert plain.diagnostics.hits > 50
        assert plain.value < 0.02
        error = math.hypot(standard_error(split), standard_error(plain))
        assert abs(split.value - plain.value) < 4.0 * error


def test_a_regret_that_is_one_reward_off_fails_that_test() -> None:
    """Negative control: a last round that is left out, or counted twice, would be noticed."""
    policy, problem, horizon, regret, _ = LUCK[0]
    split = with_luck(policy, problem, horizon, regret)
    for other in (regret - 1.0, regret + 1.0):
        exact = programme_tail(policy, problem, horizon, other - 1e-9, "regret")
        assert abs(split.value - exact) > 6.0 * standard_error(split)


def test_luck_alone_is_enough() -> None:
    """In two rounds both arms are pulled once: the regret is that of two rewards."""
    problem = lt.Bandit([0.2, 0.8], lt.Gaussian(1.0))
    settings = {"kind": "regret", "relative_error": 0.1, "seed": 1, "method": "splitting"}
    split = lt.tail_probability(lt.UCB(lt.Standard(0.5)), problem, 2, 6.0, **settings)
    exact = 0.5 * math.erfc((6.0 - 0.6) / 2.0)  # 1.6 - reward >= 6, the reward about 1 with variance 2
    assert abs(split.value - exact) < 4.0 * standard_error(split)
