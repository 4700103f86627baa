"""Paths that continue from a state: the fast kernels equal the slow one, path by path or in law."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lighttail as lt
from lighttail.course import Beginning
from lighttail.kernels import accelerations
from lighttail.running import continued as module
from lighttail.running.continued import continued, pays

COINS, BELL = lt.Bernoulli(), lt.Gaussian(0.7)
POLICIES = [
    lt.UCB(lt.LightTailed(0.1)),
    lt.UCB(lt.AnyTime(0.1)),
    lt.UCB(lt.ArmOptimal(0.2, 0.1)),
    lt.ThompsonSampling(0.5),
    lt.Exp3IX(),
    lt.SuccessiveElimination(lt.LightTailed(0.2)),
]


def begun(policy: Any, noise: Any, arms: int = 3, pulls: int = 100, opened: int = 0) -> Beginning:
    """The state after some pulls, the last of which are open."""
    rng = np.random.default_rng([arms, pulls, opened])
    experiment = lt.Experiment(policy, list(range(arms)), horizon=4000, seed=1)
    for place in range(pulls):
        trial = experiment.ask()
        mean = 0.3 + 0.1 * int(trial.arm)
        if place < pulls - opened:
            reward = float(rng.random() < mean) if noise == COINS else rng.normal(mean, 0.7)
            experiment.tell(trial.id, reward)
    return experiment.beginning()


def rows(paths: int, arms: int = 3) -> np.ndarray:
    return np.random.default_rng(1).uniform(0.1, 0.9, (paths, arms))


# The kernels of UCB with either kind of bonus, and the generic ones, each with two noises; the other policies
# bring formulas of their own to the same kernels.
CASES = [*((policy, BELL) for policy in POLICIES), *((POLICIES[k], COINS) for k in (0, 1, 3))]


@pytest.mark.parametrize(("policy", "noise"), CASES, ids=str)
@pytest.mark.parametrize(("arms", "pulls", "opened"), [(3, 100, 0), (3, 100, 7), (4, 2, 1), (5, 0, 0)])
def test_every_kernel_has_the_bits_of_the_slow_one(
    policy: Any, noise: Any, arms: int, pulls: int, opened: int, monkeypatch: Any
) -> None:
    start, means = begun(policy, noise, arms, pulls, opened), rows(6, arms)
    slow = continued(start, noise, means, 500, seed=4, delay=0)
    together = continued(start, noise, means, 500, seed=4)
    with monkeypatch.context() as changed:
        changed.setattr(accelerations, "ACCELERATIONS", {})
        assert np.array_equal(continued(start, noise, means, 500, seed=4), together)
    monkeypatch.setattr(module, "TOGETHER", 1)  # a generator per path, as in the slow kernel
    fast = continued(start, noise, means, 500, seed=4)
    assert np.array_equal(fast, slow)
    assert (fast.sum(axis=1) == 500).all()
    assert not np.array_equal(fast, continued(start, noise, means[::-1].copy(), 500, seed=4))  # control


def test_skipping_starts_from_the_state_and_keeps_the_law(monkeypatch: Any) -> None:
    """Mean pulls and their squares agree within z = 4.5 standard errors; from another state they do not."""
    monkeypatch.setattr(module, "choose_method", lambda *_: "skip")
    paths, horizon = 1500, 3000
    for bonus in (lt.LightTailed(0.4), lt.AnyTime(0.4)):
        policy = lt.UCB(bonus)
        start, other = begun(policy, BELL, opened=20), begun(policy, BELL, pulls=900)
        means = np.tile([0.0, 0.4, 0.6], (paths, 1))
        example = lt.Bandit(means[0], BELL)
        assert pays(start, example, horizon)  # otherwise nothing is skipped here
        found = continued(start, BELL, means, horizon, seed=4)
        with monkeypatch.context() as patch:
            patch.setattr(module, "pays", lambda *_: False)
            slow = continued(start, BELL, means, horizon, seed=5)
        wrong = continued(other, BELL, means, horizon, seed=6)
        assert (found.sum(axis=1) == horizon).all()
        assert _apart(found, slow) < 4.5
        assert _apart(wrong, slow) > 4.5  # negative control


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of mean pulls, and of mean squared pulls, in standard errors."""
    found = 0.0
    for power in (1.0, 2.0):
        a, b = one.astype(float) ** power, other.astype(float) ** power
        error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        found = max(found, float((np.abs(a.mean(axis=0) - b.mean(axis=0)) / error).max()))
    return found


def test_skipping_is_left_out_if_it_cannot_be_exact_or_does_not_pay() -> None:
    policy = lt.UCB(lt.LightTailed(0.1))
    start, example = begun(policy, COINS), lt.Bandit([0.3, 0.4, 0.5], COINS)
    assert pays(start, example, 10**7)
    assert not pays(start, example, 500)
    start.counts[2] += 0.25  # rewards between 0 and 1
    assert not pays(start, example, 10**7)
    assert not pays(begun(POLICIES[3], COINS), example, 10**7)


def test_many_open_trials_are_heard_as_sums(monkeypatch: Any) -> None:
    """The pulls have the same law (z = 4.5), and other means give other pulls."""
    policy, paths = lt.UCB(lt.LightTailed(0.1)), 1500
    start, means = begun(policy, COINS, pulls=120, opened=60), np.tile([0.3, 0.4, 0.5], (1500, 1))
    one_by_one = continued(start, COINS, means, 300, seed=4)
    monkeypatch.setattr(module, "MANY_OPEN", 10)
    summed = continued(start, COINS, means, 300, seed=5)
    other = continued(start, COINS, np.tile([0.5, 0.4, 0.5], (paths, 1)), 300, seed=6)
    assert _apart(summed, one_by_one) < 4.5
    assert _apart(other, one_by_one) > 4.5


@pytest.mark.parametrize("policy", [POLICIES[0], POLICIES[3]], ids=str)
def test_floors_have_their_share(policy: Any) -> None:
    """A bad arm with a floor of 20 % is pulled that often, and as often as the policy pulls it beside."""
    start, means = begun(policy, COINS, pulls=60), np.tile([0.05, 0.9, 0.9], (400, 1))
    plain = continued(start, COINS, means, 1060, seed=4)[:, 0] - start.counts[0, 0]
    held = continued(start, COINS, means, 1060, seed=4, floors=[(0, 0.2)])[:, 0] - start.counts[0, 0]
    error = math.sqrt(0.2 * 0.8 * 1000 / 400)
    assert held.mean() > 200 - 4 * error
    assert held.mean() < 200 + plain.mean() + 4 * error
    assert plain.mean() < 100  # control: without a floor


def test_floors_are_refused_where_no_path_would_keep_them() -> None:
    """Late rewards and a noise that does not move are played by a kernel without floors."""
    policy, means = POLICIES[0], np.tile([0.3, 0.4, 0.5], (4, 1))
    floors, start = [(0, 0.2)], begun(policy, BELL, pulls=20)
    with pytest.raises(lt.BadInput, match=r"floors must be left out with a delay, but is \[\(0, 0.2\)\]"):
        continued(start, BELL, means, 60, seed=4, floors=floors, delay=3)
    still = lt.Bandit.from_samples({"A": [0.0, 1.0], "B": [0.2, 0.4], "C": [0.1, 0.3]}).noise
    with pytest.raises(lt.BadInput, match=r"floors must be left out for .*, whose law does not move"):
        continued(start, still, means, 60, seed=4, floors=floors)
    continued(start, BELL, means, 60, seed=4, delay=3)  # control: without floors
    continued(start, BELL, means, 60, seed=4, floors=floors)
