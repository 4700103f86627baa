"""What `auto` chooses: one rule, from pilot paths whose random numbers are counted, and no clock."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import lighttail as lt
from lighttail.kernels import skip_kernel_for, stream
from lighttail.random.streams import block_generator
from lighttail.running import prepare
from lighttail.running.prepare import PULLS_PER_NUMBER, SHORT, choose_method, numbers_drawn, work_of

SPREAD = lt.Bandit([0.2, 0.4, 0.6, 0.8])
UCB, ELIMINATION = lt.UCB(lt.LightTailed(0.2)), lt.SuccessiveElimination(lt.Standard(0.4))
POLICIES = [UCB, lt.UCB(lt.AnyTime(0.2)), lt.UCB(lt.Standard(0.8)), ELIMINATION]


def choice(policy: lt.Policy, problem: lt.Bandit, horizon: int) -> str:
    return choose_method(policy, problem, horizon, "auto")


@pytest.mark.parametrize("policy", [UCB, ELIMINATION], ids=str)
def test_the_rule_turns_where_the_random_numbers_cost_as_much_as_the_pulls(
    policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = 5000 / PULLS_PER_NUMBER[policy.plays_by]
    for numbers, chosen, work in [(turn - 1.0, "skip", pytest.approx(5000, abs=4)), (turn, "step", 5000)]:
        monkeypatch.setattr(prepare, "numbers_drawn", lambda *setting, count=numbers: count)
        assert choice(policy, SPREAD, 5000) == chosen
        assert work_of(policy, SPREAD, 5000) == work
        assert choice(policy, SPREAD, SHORT - 1) == "step"


def test_a_method_that_is_asked_for_needs_no_pilots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(prepare, "numbers_drawn")
    assert choose_method(UCB, SPREAD, 5000, "skip") == "skip"
    assert choose_method(UCB, SPREAD, 5000, "step") == "step"
    with pytest.raises(NameError):  # control: this one does need them
        choice(UCB, SPREAD, 5000)


def test_pilots_stay_short_whatever_the_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def few(policy: Any, problem: Any, horizon: int) -> float:
        tried.append(horizon)
        return 0.9 * horizon

    monkeypatch.setattr(prepare, "numbers_drawn", few)
    assert choice(UCB, SPREAD, 10**15) == "step"
    assert choice(ELIMINATION, SPREAD, 10**15) == "skip"
    assert set(tried) == {prepare.LONGEST_TRIED}


def test_the_numbers_are_those_that_paths_draw() -> None:
    """Elimination with Gaussian rewards draws a normal per pull, and one for the sum of the last arm."""
    horizon, paths, generator = 2000, prepare.PILOTS, block_generator(0, 0)
    reward, pulls = np.empty(paths), np.empty((paths, 4), dtype=np.int64)
    kernel: Any = skip_kernel_for(ELIMINATION, SPREAD)
    params, world = ELIMINATION.params(horizon, 4), SPREAD.noise.world(SPREAD.means)
    kernel(stream(generator), params, world, horizon, reward, pulls, np.zeros(1, dtype=np.int64))
    played = horizon - pulls.max(axis=1) + np.sort(pulls, axis=1)[:, -2]  # until one arm is left
    found = numbers_drawn(ELIMINATION, SPREAD, horizon)
    assert played.mean() + 1.0 <= found < 1.05 * (played.mean() + 1.0)  # a normal takes 1.02 words on average
    assert found < 0.9 * numbers_drawn(ELIMINATION, lt.Bandit([0.4, 0.5, 0.5, 0.6]), horizon)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_work_is_at_most_the_horizon_and_the_same_every_time(policy: lt.Policy) -> None:
    for horizon in (500, 20_000, 10**6):
        work = work_of(policy, SPREAD, horizon)
        assert 0.0 < work <= horizon
        assert work == work_of(policy, SPREAD, horizon)
        assert (work < horizon) == (choice(policy, SPREAD, horizon) == "skip")
    assert work_of(policy, SPREAD, 10**6) < 3 * 10**5


@pytest.mark.parametrize("arms", [200, 1000])
def test_many_equal_arms_are_played_pull_by_pull(arms: int) -> None:
    """Equal arms take turns slowly, and pulls are cheap: skipping takes three times as long."""
    for bonus in (lt.Standard(0.8), lt.LightTailed(0.2)):
        assert choice(lt.UCB(bonus), lt.Bandit([0.5] * arms), 60 * arms) == "step"


def test_arms_whose_rewards_are_certain_are_counted_too() -> None:
    sure = lt.Bandit([0.0, 1.0, 0.5], lt.Bernoulli())
    assert 0.0 < numbers_drawn(UCB, sure, 5000) < np.inf


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


def test_ones_own_bonus_and_noise_are_asked_only_what_they_promise() -> None:
    for bonus in (Ending(0.4), lt.LightTailed(0.2)):
        out = lt.simulate(lt.UCB(bonus), lt.Bandit([0.2, 0.8], PerArm(1.0)), horizon=3000, paths=20, seed=1)
        assert out.method in ("step", "skip")
