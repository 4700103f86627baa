"""The exact law of policies that pull the arms in turn equals enumeration, integrals and simulation."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom

import lighttail as lt
from lighttail.tails.known import exact_at
from lighttail.tails.task import Task
from lighttail.tails.turns import committed_to, turns_seconds, turns_tail

Z = 4.0  # standard errors
KIND = "pseudo_regret"


def enumerated(rates: list[float], m: int, ties_shared: bool = True) -> list[float]:
    """The chance of each coin to show the most heads, summed over all combinations of heads."""
    chances = [0.0] * len(rates)
    for heads in product(range(m + 1), repeat=len(rates)):
        chance = math.prod(float(binom.pmf(s, m, p)) for s, p in zip(heads, rates, strict=True))
        best = [k for k, s in enumerate(heads) if s == max(heads)]
        for k in best if ties_shared else best[:1]:
            chances[k] += chance / (len(best) if ties_shared else 1)
    return chances


@pytest.mark.parametrize(
    ("rates", "m"),
    [([0.3, 0.7], 5), ([0.2, 0.5, 0.55], 4), ([0.1, 0.1, 0.7, 0.7], 3), ([0.0, 1.0, 0.5], 2), ([0.4] * 5, 2)],
)
def test_coins_equal_an_enumeration(rates: list[float], m: int) -> None:
    found = committed_to(lt.Bandit(rates, lt.Bernoulli()), m)
    assert found == pytest.approx(enumerated(rates, m), rel=1e-12, abs=1e-300)
    assert found.sum() == pytest.approx(1.0, rel=1e-12)
    if 0.0 not in rates:  # ties that go to the first arm are noticed
        assert found != pytest.approx(enumerated(rates, m, ties_shared=False), rel=1e-6)


def test_two_normal_arms_have_a_formula_down_to_the_smallest_chances() -> None:
    for m in (1, 10, 100, 1000, 3000):
        found = committed_to(lt.Bandit([0.9, 0.2], lt.Gaussian(1.3)), m)
        assert found[1] == pytest.approx(float(ndtr(-0.7 / 1.3 * math.sqrt(m / 2.0))), rel=1e-10)


def test_large_means_do_not_hide_small_gaps() -> None:
    """A mean of 9e11 is known to 1e-4, and sqrt(m) times such a mean to much less."""
    problem = lt.Bandit([9e11, 9e11 + 0.001], lt.Gaussian(1.0))
    found = committed_to(problem, 10**6)
    assert found[0] == pytest.approx(float(ndtr(-max(problem.gaps) * math.sqrt(0.5e6))), rel=1e-9)


def test_several_normal_arms_equal_an_integral() -> None:
    means, sigma, m = [0.1, 0.9, 0.6, 0.6], 0.8, 25
    found = committed_to(lt.Bandit(means, lt.Gaussian(sigma)), m)
    middles = [mean * math.sqrt(m) / sigma for mean in means]
    for k, mine in enumerate(middles):

        def density(y: float, k: int = k, mine: float = mine) -> float:
            others = math.prod(float(ndtr(y - middle)) for j, middle in enumerate(middles) if j != k)
            return math.exp(-0.5 * (y - mine) ** 2) / math.sqrt(2.0 * math.pi) * others

        expected, _ = quad(density, -20.0, 20.0, epsabs=0.0, epsrel=1e-11, limit=500)
        assert found[k] == pytest.approx(expected, rel=1e-9)
    assert found.sum() == pytest.approx(1.0, rel=1e-12)


def test_tails_of_random_problems_equal_simulation() -> None:
    rng, paths = np.random.default_rng(5), 40_000
    for turn in range(12):
        arms, horizon = int(rng.integers(2, 6)), int(rng.integers(20, 80))
        coins = bool(rng.random() < 0.5)
        means = rng.uniform(0.1, 0.9, arms).tolist()
        problem = lt.Bandit(means, lt.Bernoulli() if coins else lt.Gaussian(0.7))
        policy = lt.ExploreThenCommit(int(rng.integers(1, max(2, horizon // arms))))
        loss = float(rng.uniform(0.1, 0.9)) * max(problem.gaps) * horizon
        exact = exact_at(Task(policy, problem, horizon, loss, KIND), 1.0)
        assert exact is not None
        out = lt.simulate(policy, problem, horizon=horizon, paths=paths, seed=turn)
        seen = float(np.mean(out.reaches(loss, KIND)))
        assert abs(seen - exact) <= Z * math.sqrt(exact * (1.0 - exact) / paths) + 1e-12


def test_an_even_split_is_certain() -> None:
    problem = lt.Bandit([0.2, 0.5, 0.8])  # 8 pulls: 3, 3, 2
    for policy in (lt.EvenSplit(), lt.ExploreThenCommit(3), lt.ExploreThenCommit(9)):
        assert exact_at(Task(policy, problem, 8, 2.7, KIND), 1.0) == 1.0
        assert exact_at(Task(policy, problem, 8, 2.71, KIND), 1.0) == 0.0
        assert lt.tail_probability(policy, problem, 8, 2.7).method == "certain"


def test_late_rewards_lengthen_the_exploration_so_that_paths_are_counted() -> None:
    problem = lt.Bandit([0.2, 0.8])
    policy = lt.ExploreThenCommit(20)
    assert exact_at(Task(policy, problem, 60, 23.9, KIND), 1.0) == pytest.approx(
        float(ndtr(-0.6 * math.sqrt(10.0)))
    )
    late = lt.tail_probability(policy, problem, 60, 23.9, delay=40, seed=1, most_pulls=10**6)
    assert late.method == "plain simulation"
    assert late.value == 0.0  # no pulls are left after the commitment


def test_other_policies_and_kinds_have_no_such_law() -> None:
    class Stubborn(lt.ExploreThenCommit):
        @staticmethod
        def choose(rng: object, t: float, *state: object) -> int:
            return 0

    problem = lt.Bandit([0.2, 0.8])
    assert Stubborn(3).turns is None
    assert math.isinf(turns_seconds(Task(lt.ExploreThenCommit(3), problem, 50, 9.0, "regret")))
    laplace = lt.Bandit([0.2, 0.8], lt.Laplace(1.0))
    assert math.isinf(turns_seconds(Task(lt.ExploreThenCommit(3), laplace, 50, 9.0, KIND)))
    assert math.isinf(turns_seconds(Task(lt.UCB(lt.Standard(1.0)), problem, 50, 9.0, KIND)))
    assert turns_tail(Task(lt.ExploreThenCommit(3), problem, 50, 9.0, KIND)) > 0.1


def test_a_chance_below_every_float_is_not_called_impossible() -> None:
    problem = lt.Bandit([0.001, 0.999], lt.Bernoulli())
    found = lt.tail_probability(lt.ExploreThenCommit(150), problem, 400, 200, most_pulls=10**6)
    assert 0.0 < found.value < 1e-300  # 1e-361
    assert found.low == 0.0
    assert found.high > 0.0
