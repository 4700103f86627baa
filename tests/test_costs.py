"""What the two methods are said to cost without a clock: its counts against those of plays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import lighttail as lt
from lighttail import costs
from lighttail.kernels.build import BREATH
from lighttail.running.methods import SHORT, choose_method, work_of

PATHS, HORIZON = 100, 4000
EVEN, SPREAD = (0.5,) * 4, (0.2, 0.4, 0.6, 0.8)
CASES = [
    (bonus, means, noise)
    for bonus in (lt.LightTailed(0.2), lt.LightTailed(0.05), lt.Standard(0.8), lt.ArmOptimal(0.3, 0.3))
    for means in (EVEN, SPREAD, (0.2, 0.8), (0.4,) * 15 + (0.6,))
    for noise in (lt.Gaussian(1.0), lt.Gaussian(0.3), lt.Bernoulli())
]


def counted(bonus: lt.Bonus, problem: lt.Bandit) -> tuple[np.ndarray, float, float]:
    """Pulls of some paths, and their turns and ties at the top on average, all paths pull by pull."""
    rng = np.random.default_rng(3)
    params, means = bonus.params(HORIZON, problem.arms), np.array(problem.means)
    radius = np.array([bonus.radius(float(n), 0.0, *params) for n in range(1, HORIZON + 1)])
    rows = np.arange(PATHS)
    pulls, sums = np.zeros((PATHS, problem.arms), dtype=np.int64), np.zeros((PATHS, problem.arms))
    index = np.full(sums.shape, np.inf)
    last, turns, ties = np.full(PATHS, -1), 0, 0
    for t in range(HORIZON):
        best = index == index.max(axis=1, keepdims=True)
        leader = (best * rng.random(best.shape)).argmax(axis=1)
        turns += int((leader != last).sum())
        ties += int((best.sum(axis=1) > 1).sum()) if t >= problem.arms else 0
        if isinstance(problem.noise, lt.Gaussian):
            reward = means[leader] + problem.noise.sigma * rng.standard_normal(PATHS)
        else:
            reward = rng.random(PATHS) < means[leader]
        pulls[rows, leader] += 1
        sums[rows, leader] += reward
        count = pulls[rows, leader]
        index[rows, leader] = sums[rows, leader] / count + radius[count - 1]
        last = leader
    return pulls, turns / PATHS, ties / PATHS


@pytest.mark.parametrize(("bonus", "means", "noise"), CASES, ids=str)
def test_turns_and_ties_are_about_as_many_as_are_counted(
    bonus: lt.Bonus, means: tuple[float, ...], noise: lt.Noise
) -> None:
    problem = lt.Bandit(means, noise)
    pulls, turns, ties = counted(bonus, problem)
    said_turns, said_ties = costs.turns_and_ties(lt.UCB(bonus), problem, HORIZON, pulls)
    assert 0.86 < said_turns / turns < 1.5
    if isinstance(noise, lt.Bernoulli) and ties > 4:
        assert 0.7 < said_ties / ties < 1.6


def test_turns_for_another_noise_are_told_apart() -> None:
    bonus, problem = lt.LightTailed(0.2), lt.Bandit(EVEN)
    pulls, turns, _ = counted(bonus, problem)
    for sigma in (0.5, 2.0):
        other = lt.Bandit(EVEN, lt.Gaussian(sigma))
        assert not 0.86 < costs.turns_and_ties(lt.UCB(bonus), other, HORIZON, pulls)[0] / turns < 1.5


def test_arms_have_their_own_spread() -> None:
    """Calm arms change the lead often; with the spread of the other one they would not."""
    bonus, problem = lt.LightTailed(0.02), lt.Bandit((0.9,) * 6 + (0.5,), lt.Bernoulli())
    pulls, turns, _ = counted(bonus, problem)
    assert 0.86 < costs.turns_and_ties(lt.UCB(bonus), problem, HORIZON, pulls)[0] / turns < 1.5
    wild = lt.Bandit(problem.means, lt.Gaussian(0.5))
    assert costs.turns_and_ties(lt.UCB(bonus), wild, HORIZON, pulls)[0] / turns < 0.8


def test_many_arms_are_represented_by_some() -> None:
    """Ties among 400 arms, counted among a quarter of them, are those of all."""
    problem = lt.Bandit(np.linspace(0.3, 0.6, 400), lt.Bernoulli())
    pulls = np.full((1, 400), 10)
    some = costs.turns_and_ties(lt.UCB(lt.LightTailed(0.2)), problem, HORIZON, pulls)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs, "MOST_TIED", 400)
        every = costs.turns_and_ties(lt.UCB(lt.LightTailed(0.2)), problem, HORIZON, pulls)
    assert some == pytest.approx(every, rel=0.05)
    assert every[1] > 100


def test_sums_reach_just_as_far_as_the_pulls() -> None:
    grid, rates = np.array([1.0, 2.0, 4.0, 8.0]), np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 0.1, 0.3, 0.7]])
    last = np.array([[1, 1], [3, 2], [8, 8], [9, 9]])
    assert np.allclose(costs._sum_to(last, grid, rates), [[1, 0], [3, 0.05], [8, 2.45], [8, 2.45]])


@pytest.mark.parametrize("arms", [200, 1000])
def test_the_start_of_many_arms_does_not_decide_for_long_horizons(arms: int) -> None:
    """Equal arms take turns slowly, and pulls are cheap: skipping took three times as long."""
    for bonus in (lt.Standard(0.8), lt.LightTailed(0.2)):
        problem = lt.Bandit([0.5] * arms)
        assert choose_method(lt.UCB(bonus), problem, 60 * arms, "auto") == "step"


@dataclass(frozen=True)
class Ending(lt.Bonus):
    """Defined up to the horizon and no further."""

    kappa: float
    concave: ClassVar[bool] = True

    @staticmethod
    def radius(n: float, clock: float, scale: float, horizon: float) -> float:
        return scale * math.sqrt(math.log(horizon / n) / n)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return self.kappa, horizon


@dataclass(frozen=True)
class PerArm(lt.Gaussian):
    """Has a number for each arm, and so no world for one arm alone."""

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        if len(means) != 2:
            raise ValueError("two arms are wanted")
        return super().world(means)

    def sd(self, means: tuple[float, ...]) -> float:
        return lt.Noise.sd(self, means)


def test_ones_own_bonus_and_noise_are_asked_only_what_they_promise() -> None:
    for bonus in (Ending(0.4), lt.LightTailed(0.2)):
        out = lt.simulate(lt.UCB(bonus), lt.Bandit([0.2, 0.8], PerArm(1.0)), horizon=3000, paths=20, seed=1)
        assert out.method in ("step", "skip")


def test_the_last_pull_of_a_sure_arm_is_no_division_by_zero() -> None:
    sure = lt.Bandit([0.0, 1.0, 0.5], lt.Bernoulli())
    step, skip = costs.costs_of(lt.UCB(lt.LightTailed(0.2)), sure, 5000)
    assert 0.0 < skip < np.inf
    assert 0.0 < step < np.inf


@pytest.mark.parametrize(
    "policy",
    [
        lt.UCB(lt.LightTailed(0.2)),
        lt.UCB(lt.AnyTime(0.2)),
        lt.UCB(lt.Standard(0.8)),
        lt.SuccessiveElimination(lt.Standard(0.4)),
    ],
    ids=str,
)
def test_work_is_a_share_of_the_horizon_and_the_same_every_time(policy: lt.Policy) -> None:
    problem = lt.Bandit(SPREAD)
    for horizon in (500, 20_000, 10**6):
        work = work_of(policy, problem, horizon)
        assert 0.0 < work <= horizon
        assert work == work_of(policy, problem, horizon)
        assert (work < horizon) == (choose_method(policy, problem, horizon, "auto") == "skip")
    assert work_of(policy, problem, 10**6) < 2 * 10**5
    assert work_of(policy, problem, SHORT - 1) == SHORT - 1


def test_the_clock_is_tabulated_as_far_as_the_kernel_does() -> None:
    assert costs.TABLE == BREATH
