"""Skip-ahead has the law of playing every pull: two-sample tests for every policy that skips, at 2, 4 and 16
arms and horizons from 500 to 50,000; a wrong variance fails the same test at each of these sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
from cases import BONUSES, MORE_BONUSES, name
from scipy import stats
from test_skip import Moss

import lighttail as lt
from lighttail.noises.formulas import (
    bernoulli_clear,
    bernoulli_part,
    bernoulli_proxy,
    bernoulli_reward,
    bernoulli_total,
    normal_clear,
    normal_part,
    normal_proxy,
    normal_shock,
    normal_total,
    scaled_reward,
    uniform_shock,
)

pytestmark = pytest.mark.slow

POLICIES = [
    *(lt.UCB(bonus) for bonus in [*BONUSES, Moss()]),
    lt.SuccessiveElimination(lt.Standard(0.4)),
    lt.SuccessiveElimination(lt.LightTailed(0.05)),
]
ARMS = (2, 4, 16)
# A path of every pull costs its horizon, one of skip-ahead little more at a long horizon than at a short one.
STEPPED = {500: 4000, 5000: 600, 50_000: 300}
SKIPPED = {500: 4000, 5000: 2000, 50_000: 1500}
SLOW = {500: 4000, 5000: 400, 50_000: 120}  # of skip-ahead where a path takes milliseconds: AnyTime
# Of every single test: some 1,500 of them in this file, so that right kernels fail one with a chance of 2 %.
ALPHA = 1e-5


def pvalues(first: lt.Outcome, second: lt.Outcome) -> list[float]:
    """Chi-square on each arm's pulls, in cells of the pooled sample; Kolmogorov-Smirnov on the reward and on
    the pulls of the favourite, which among equal arms tells most."""
    pairs = [(out.reward, out.pulls.max(axis=1)) for out in (first, second)]
    values = [float(stats.ks_2samp(*pair, method="asymp").pvalue) for pair in zip(*pairs, strict=True)]
    for arm in range(first.pulls.shape[1]):
        pooled = np.concatenate([first.pulls[:, arm], second.pulls[:, arm]])
        cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, 13)[1:-1], method="higher"))
        table = [
            np.bincount(np.searchsorted(cuts, out.pulls[:, arm]), minlength=cuts.size + 1)
            for out in (first, second)
        ]
        used = np.array(table)[:, np.sum(table, axis=0) > 0]
        if used.shape[1] > 1:
            values.append(float(stats.chi2_contingency(used).pvalue))
    return values


@cache
def every_pull(policy: lt.Policy, problem: lt.Bandit, horizon: int, paths: int) -> lt.Outcome:
    return lt.simulate(policy, problem, horizon=horizon, paths=paths, seed=1, method="step")


def both(policy: lt.Policy, problem: lt.Bandit, horizon: int, stepped: int, skipped: int = 0) -> list[float]:
    right = getattr(problem.noise, "right", problem.noise)  # the controls spoil only what skip-ahead draws
    every = every_pull(policy, lt.Bandit(problem.means, right), horizon, stepped)
    some = lt.simulate(policy, problem, horizon=horizon, paths=skipped or stepped, seed=2, method="skip")
    assert np.all(some.pulls.sum(axis=1) == horizon)
    assert np.all(some.pulls >= 1)
    return pvalues(every, some)


def of_size(policy: lt.Policy, means: Any, noise: lt.Noise, horizon: int) -> float:
    """The least p-value at the sizes above."""
    moving = isinstance(policy, lt.UCB) and type(policy.bonus).changes_with_time()
    skipped = SLOW if moving else SKIPPED
    return min(both(policy, lt.Bandit(means, noise), horizon, STEPPED[horizon], skipped[horizon]))


def equal(arms: int) -> list[float]:
    """The leaders change to the end, so that every crossing counts."""
    return [0.5] * arms


def spread(arms: int) -> list[float]:
    return [float(mean) for mean in np.linspace(0.2, 0.8, arms)]


def one_good(arms: int) -> list[float]:
    """Elimination ends soon; of equal arms it drops none, and skips nothing."""
    return [0.2] * (arms - 1) + [0.8]


@pytest.mark.parametrize("horizon", STEPPED)
@pytest.mark.parametrize("noise", [lt.Gaussian(1.0), lt.Bernoulli()], ids=name)
@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_the_law_is_that_of_every_pull(policy: lt.Policy, noise: lt.Noise, horizon: int) -> None:
    index = isinstance(policy, lt.UCB)
    means = (spread if noise == lt.Bernoulli() else equal) if index else one_good
    for arms in ARMS:
        assert of_size(policy, means(arms), noise, horizon) > ALPHA


@pytest.mark.parametrize("bonus", MORE_BONUSES, ids=name)
def test_the_law_of_further_bonuses_is_that_of_every_pull(bonus: lt.Bonus) -> None:
    for arms in ARMS[:2]:
        for noise, means in ((lt.Gaussian(1.0), equal), (lt.Bernoulli(), spread)):
            assert of_size(lt.UCB(bonus), means(arms), noise, 500) > ALPHA


def test_the_law_of_long_paths_with_a_gap() -> None:
    for policy in (lt.UCB(lt.LightTailed(0.2)), lt.UCB(lt.Standard(0.5)), lt.UCB(lt.AnyTime(0.1))):
        assert min(both(policy, lt.Bandit([0.5, 0.8]), 100_000, 600)) > ALPHA


def test_ties_have_the_same_law() -> None:
    """Certain rewards, equal arms and few pulls: decisions that are exact ties, broken at random."""
    for means in ([0.5] * 4, [1.0, 1.0, 0.0], [0.9, 0.9]):
        for horizon in (7, 40):
            for bonus in (lt.LightTailed(0.2), lt.Standard(0.4), lt.AnyTime(0.3)):
                assert min(both(lt.UCB(bonus), lt.Bandit(means, lt.Bernoulli()), horizon, 8000)) > ALPHA


# -- Negative controls. Blocks are planned so well that few bridges matter, so the controls plan blocks that
# -- are far too long: nearly every sum is then drawn by a bridge. The right one passes, a narrow one not.


def spoilt_shock(rng: Any, means: Any, sigma: float, *wrong: float) -> float:
    return normal_shock(rng)


def spoilt_reward(shock: float, arm: int, means: Any, sigma: float, *wrong: float) -> float:
    return scaled_reward(shock, arm, means, sigma)


def spoilt_total(
    rng: Any, arm: int, n: float, means: Any, sigma: float, whole: float, *wrong: float
) -> float:
    return normal_total(rng, arm, n, means, sigma if n == 1.0 else whole * sigma)


def spoilt_part(
    rng: Any,
    n: float,
    rest: float,
    total: float,
    means: Any,
    sigma: float,
    whole: float,
    bridge: float,
    plan: float,
) -> float:
    return normal_part(rng, n, rest, total, means, bridge * sigma)


def spoilt_clear(
    here: float, there: float, n: float, limit: float, means: Any, sigma: float, *wrong: float
) -> bool:
    return normal_clear(here, there, n, limit, means, sigma)


def spoilt_proxy(means: Any, sigma: float, whole: float, bridge: float, plan: float) -> float:
    return plan * normal_proxy(means, sigma)


@dataclass(frozen=True)
class Spoilt(lt.Gaussian):
    """The standard deviations of sums and of bridges, and those by which blocks are planned, times these."""

    right: ClassVar[lt.Noise] = lt.Gaussian(1.0)
    whole: float = 1.0
    bridge: float = 1.0
    plan: float = 0.02
    shock = staticmethod(spoilt_shock)
    reward = staticmethod(spoilt_reward)
    total = staticmethod(spoilt_total)
    part = staticmethod(spoilt_part)
    clear = staticmethod(spoilt_clear)
    proxy = staticmethod(spoilt_proxy)

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), self.sigma, self.whole, self.bridge, self.plan


def coin_shock(rng: Any, means: Any, bridge: float) -> float:
    return uniform_shock(rng)


def coin_reward(shock: float, arm: int, means: Any, bridge: float) -> float:
    return bernoulli_reward(shock, arm, means)


def coin_total(rng: Any, arm: int, n: float, means: Any, bridge: float) -> float:
    return bernoulli_total(rng, arm, n, means)


def coin_part(rng: Any, n: float, rest: float, total: float, means: Any, bridge: float) -> float:
    centre = total * (n / (n + rest))
    drawn = bernoulli_part(rng, n, rest, total, means)
    return drawn if bridge == 1.0 else float(math.floor(centre + bridge * (drawn - centre) + 0.5))


def coin_clear(here: float, there: float, n: float, limit: float, means: Any, bridge: float) -> bool:
    return bernoulli_clear(here, there, n, limit, means)


def coin_proxy(means: Any, bridge: float) -> float:
    return 0.02 * bernoulli_proxy(means)


@dataclass(frozen=True)
class SpoiltCoins(lt.Bernoulli):
    """The same of Bernoulli rewards."""

    right: ClassVar[lt.Noise] = lt.Bernoulli()
    bridge: float = 1.0
    shock = staticmethod(coin_shock)
    reward = staticmethod(coin_reward)
    total = staticmethod(coin_total)
    part = staticmethod(coin_part)
    clear = staticmethod(coin_clear)
    proxy = staticmethod(coin_proxy)

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), self.bridge


@pytest.mark.parametrize("horizon", STEPPED)
@pytest.mark.parametrize("arms", ARMS)
def test_half_the_variance_of_a_bridge_is_caught_at_every_size(arms: int, horizon: int) -> None:
    policy = lt.UCB(lt.Standard(0.4))
    assert of_size(policy, equal(arms), Spoilt(), horizon) > ALPHA
    assert of_size(policy, equal(arms), Spoilt(bridge=0.7), horizon) < ALPHA


@pytest.mark.parametrize("arms", ARMS)
def test_it_is_caught_where_the_radius_grows_and_with_coins(arms: int) -> None:
    growing, coins = lt.UCB(lt.AnyTime(0.3)), lt.UCB(lt.Standard(0.4))
    assert of_size(growing, equal(arms), Spoilt(), 500) > ALPHA
    assert of_size(growing, equal(arms), Spoilt(bridge=0.5), 500) < ALPHA
    assert of_size(coins, equal(arms), SpoiltCoins(), 500) > ALPHA
    assert of_size(coins, equal(arms), SpoiltCoins(bridge=0.7), 500) < ALPHA


def test_a_tenth_is_caught_with_more_paths() -> None:
    policy = lt.UCB(lt.Standard(0.4))
    assert min(both(policy, lt.Bandit(equal(4), Spoilt()), 500, 20_000)) > ALPHA
    assert min(both(policy, lt.Bandit(equal(4), Spoilt(bridge=0.9)), 500, 20_000)) < ALPHA
    assert min(both(policy, lt.Bandit([0.2, 0.8], Spoilt(whole=0.9, plan=1.0)), 500, 20_000)) < ALPHA


@pytest.mark.parametrize("horizon", STEPPED)
@pytest.mark.parametrize("arms", ARMS)
def test_elimination_whose_last_draw_is_too_narrow_is_caught(arms: int, horizon: int) -> None:
    """The sum of the last arm's rewards with a tenth of its variance: at eight seeds always below 1e-8."""
    policy, problem = lt.SuccessiveElimination(lt.Standard(0.3)), lt.Bandit(one_good(arms), Spoilt(whole=0.3))
    assert min(both(policy, problem, horizon, 2 * STEPPED[horizon], SKIPPED[horizon])) < ALPHA


def test_the_exact_law_of_two_arms() -> None:
    """Chi-square of the bad arm's pulls against `exact_law`; 2 % more kappa fails it."""
    problem, horizon, paths = lt.Bandit([0.2, 0.8]), 150, 200_000
    law = lt.exact_law(lt.UCB(lt.LightTailed(0.2)), problem, horizon=horizon)
    survival = np.array([law.tail(0.6 * n) for n in range(horizon)])
    cuts = [0, *range(3, 24, 2), horizon + 1]
    expected = -np.diff([*survival[cuts[:-1]], 0.0]) * paths

    def pvalue(kappa: float) -> float:
        policy = lt.UCB(lt.LightTailed(kappa))
        out = lt.simulate(policy, problem, horizon=horizon, paths=paths, seed=3, method="skip")
        seen = np.histogram(out.pulls[:, 0], bins=cuts)[0]
        return float(stats.chi2.sf(np.sum((seen - expected) ** 2 / expected), seen.size - 1))

    assert pvalue(0.2) > 1e-4
    assert pvalue(0.204) < 1e-4  # negative control
