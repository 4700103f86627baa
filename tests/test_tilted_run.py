"""The faster kernels of weighted paths: bit for bit what the generic kernel plays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from cases import name

import lighttail as lt
from lighttail.kernels import accelerations, tilted_kernel_for
from lighttail.kernels.tilted import tilted_kernel
from lighttail.tails.ladder import alike
from lighttail.tails.mixture import Mixture, mixed
from lighttail.tails.play import Paths, play_paths
from lighttail.tails.task import Effort, Task
from lighttail.tails.weighted import derived

BONUSES = [lt.Standard(0.5), lt.LightTailed(0.1), lt.ArmOptimal(0.2, 0.1), lt.Moss(0.6), lt.AnyTime(0.2)]
SETTINGS = [("pseudo_regret", False), ("pseudo_regret", True), ("regret", False)]  # the kind, and `full`


def drawn(number: int) -> tuple[lt.Bandit, int, float]:
    """A problem, a horizon and a regret that nobody chose; coins have many ties."""
    rng = np.random.default_rng([11, number])
    noise: Any = lt.Bernoulli() if number % 2 else lt.Gaussian(float(rng.uniform(0.2, 2.0)))
    means, horizon = rng.uniform(0.05, 0.95, int(rng.integers(2, 6))), int(rng.integers(20, 200))
    return lt.Bandit(means, noise), horizon, float(rng.uniform(0.1, 0.5) * np.ptp(means) * horizon)


@cache
def planned(policy: lt.Policy, number: int, kind: Any) -> tuple[Task, Mixture]:
    """Tilts of all rewards of an arm and of its first 1, 4, 16, ... rewards: no kernel has a part in them."""
    problem, horizon, regret = drawn(number)
    task = Task(policy, problem, horizon, regret, kind)
    found = [part for part in (derived(task), alike(task)) if part is not None]
    return task, mixed(problem, task.tilts, found)


def played(policy: lt.Policy, number: int, kind: Any, full: bool) -> Paths:
    """Paths under these tilts, by the kernel that the table names."""
    task, mixture = planned(policy, number, kind)
    effort = Effort(0.1, 0.95, number, 10**9, 1, False)
    return play_paths(task, mixture, effort, 64, full=full, marks=4)


def same(one: Paths, other: Paths) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("kind", "full"), SETTINGS)
@pytest.mark.parametrize("bonus", BONUSES, ids=name)
def test_a_faster_kernel_plays_the_same_bits(bonus, kind, full, monkeypatch) -> None:
    policy, hits = lt.UCB(bonus), 0
    for number in range(6):
        fast = played(policy, number, kind, full)
        with monkeypatch.context() as patch:
            patch.setattr(accelerations, "ACCELERATIONS", {})
            slow = played(policy, number, kind, full)
        assert same(fast, slow)
        hits += int(np.isfinite(fast.log_parts).any(axis=1).sum())
    assert hits > 20


def test_these_policies_have_a_kernel_of_their_own(monkeypatch) -> None:
    """Otherwise the comparison above would compare the generic kernel with itself."""
    problem = lt.Bandit([0.2, 0.8])
    fast = [tilted_kernel_for(lt.UCB(bonus), problem) for bonus in BONUSES]
    monkeypatch.setattr(accelerations, "ACCELERATIONS", {})
    slow = [tilted_kernel_for(lt.UCB(bonus), problem) for bonus in BONUSES]
    assert not set(fast) & set(slow)
    assert {kernel.__qualname__.partition(".")[0] for kernel in slow} == {tilted_kernel.__qualname__}


@dataclass(frozen=True)
class Smaller(lt.Bonus):
    """LightTailed with a radius that is smaller by one per cent."""

    kappa: float

    @staticmethod
    def radius(n: float, clock: float, scale: float) -> float:
        return 0.99 * scale / n

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa * math.sqrt(horizon * math.log(horizon)),)


def test_the_comparison_would_notice_another_radius(monkeypatch) -> None:
    """Negative control: the table names the kernel of a radius that is smaller by one per cent."""
    policy = lt.UCB(lt.LightTailed(0.1))
    coins = [1, 3, 5]
    true = [played(policy, number, "regret", False) for number in coins]
    monkeypatch.setitem(
        accelerations.ACCELERATIONS, lt.UCB, lambda given: accelerations._ucb(lt.UCB(Smaller(0.1)))
    )
    wrong = [played(policy, number, "regret", False) for number in coins]
    assert not all(same(one, other) for one, other in zip(true, wrong, strict=True))
