"""The formulas are those of the paper and the book, written here a second time, as they stand there."""

from __future__ import annotations

import math
from math import log, sqrt

import numpy as np
import pytest
from cases import name

import lighttail as lt

T, K = 500, 4
GRID = [(n, t) for n in (1, 2, 7, 400) for t in (1, 3, 50, 500)]


def radius(bonus: lt.Bonus, n: int, t: int) -> float:
    params = bonus.params(T, K)
    return bonus.radius(float(n), bonus.clock(float(t), *params), *params)


BONUSES = [
    (lt.Standard(0.8), lambda n, t: 0.8 * sqrt(log(T) / n)),  # eq. rad:standard
    (lt.LightTailed(0.2), lambda n, t: 0.2 * sqrt(T * log(T)) / n),  # eq. rad:new
    (lt.ArmOptimal(0.4, 0.3), lambda n, t: sqrt(log(T) / n) * max(0.4 * sqrt(T / (n * K)), 0.3)),
    (lt.ArmOptimal(0.4, 1.5), lambda n, t: sqrt(log(T) / n) * max(0.4 * sqrt(T / (n * K)), 1.5)),
    (lt.AnyTime(0.2), lambda n, t: 0.2 * sqrt(t * max(1, log(K * t))) / (n * sqrt(K))),  # Thm any-time
]


@pytest.mark.parametrize(("bonus", "formula"), BONUSES, ids=name)
def test_a_radius_is_the_papers(bonus: lt.Bonus, formula) -> None:
    for n, t in GRID:
        assert radius(bonus, n, t) == pytest.approx(formula(n, t), rel=1e-13)


def test_both_sides_of_every_max_were_seen() -> None:
    sides = {0.4 * sqrt(T / (n * K)) > 0.3 for n, _ in GRID}
    assert sides == {True, False}
    assert {log(arms * t) > 1 for arms in (2, K) for t in (1, 3)} == {True, False}
    any_time = lt.AnyTime(0.2)  # at K = 2, t = 1 the logarithm is below 1
    params = any_time.params(math.nan, 2)
    assert any_time.radius(1.0, any_time.clock(1.0, *params), *params) == pytest.approx(
        0.2 / sqrt(2), rel=1e-13
    )


def test_arm_optimal_with_no_floor_is_light_tailed_divided_by_root_k() -> None:
    for n, t in GRID:
        ours = radius(lt.ArmOptimal(0.4, 0.0), n, t)
        assert ours == pytest.approx(radius(lt.LightTailed(0.4), n, t) / sqrt(K), rel=1e-13)


@pytest.mark.parametrize("policy", [lt.ThompsonSampling(0.8), lt.ThompsonSampling(0.3, 1.5, 2.0)], ids=str)
def test_the_posterior_is_bayes_rule_on_a_grid(policy: lt.ThompsonSampling) -> None:
    """prior density x likelihoods of three rewards, normalised numerically."""
    rewards = np.array([0.4, -1.1, 0.9])
    theta = np.linspace(-15.0, 15.0, 200_001)
    log_density = -((theta - policy.prior_mean) ** 2) / (2 * policy.prior_sd**2)
    log_density -= ((rewards[:, None] - theta) ** 2).sum(axis=0) / (2 * policy.kappa**2)
    weight = np.exp(log_density - log_density.max())
    mean = np.average(theta, weights=weight)
    sd = sqrt(np.average((theta - mean) ** 2, weights=weight))
    params = policy.params(math.nan, 2)
    assert policy.posterior_mean(3.0, float(rewards.sum()), *params) == pytest.approx(mean, rel=1e-9)
    assert policy.posterior_sd(3.0, *params) == pytest.approx(sd, rel=1e-9)
    assert policy.posterior_mean(0.0, 0.0, *params) == pytest.approx(policy.prior_mean)
    assert policy.posterior_sd(0.0, *params) == pytest.approx(policy.prior_sd)


def test_exp3_ix_is_the_books() -> None:
    """Lattimore & Szepesvari, Alg. 10: exp(-eta * L), L the sum of (C - reward)/(p + gamma); Thm 12.1."""
    policy = lt.Exp3IX("loss", upper=2.0)
    eta, gamma, _ = params = policy.params(T, K)
    assert eta == pytest.approx(sqrt(2 * log(K + 1) / (T * K)), rel=1e-13)
    assert gamma == eta / 2
    scores = [
        policy.gain(0.5, 0.1, *params) + policy.gain(-1.0, 0.3, *params),
        policy.gain(1.7, 0.6, *params),
    ]
    losses = [(2.0 - 0.5) / (0.1 + gamma) + (2.0 + 1.0) / (0.3 + gamma), (2.0 - 1.7) / (0.6 + gamma)]
    weights = [policy.weight(score, max(scores), *params) for score in scores]
    assert weights[0] / weights[1] == pytest.approx(math.exp(-eta * (losses[0] - losses[1])), rel=1e-12)


def test_the_reward_estimator_adds_the_rewards_as_they_are() -> None:
    params = lt.Exp3IX("reward", eta=0.1, gamma=0.05).params(math.nan, 2)
    assert lt.Exp3IX.gain(0.7, 0.2, *params) == pytest.approx(0.7 / 0.25, rel=1e-13)
    assert lt.Exp3IX.weight(3.0, 5.0, *params) == pytest.approx(math.exp(-0.2), rel=1e-13)
