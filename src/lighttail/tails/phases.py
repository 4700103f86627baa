"""The exact law of successive elimination on Bernoulli rewards: the programme of `programme.py` in phases.

At the end of a phase every active arm has the same number of pulls, and an arm that was dropped matters only
through the loss on this arm. So a block of states is an array with one axis for the sum of each active arm,
and a last axis for the rewards of all dropped arms together. The last axis has a single entry for the pseudo
regret, which does not depend on rewards. A block is known by its active arms and by the pulls of the dropped
arms: the pulls of each arm for the pseudo regret, and their sum for the regret.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from lighttail.problems import Bandit
from lighttail.records import Floats

Key = tuple[tuple[int, ...], tuple[int, ...]]  # active arms, pulls of the dropped arms
STATE, BLOCK = 2e-8, 6e-5  # seconds per active arm of a state, and of a block
BYTES = 40.0  # of a state


class Phases:
    """The chances of all states after 1, 2, ... phases."""

    def __init__(self, policy: Any, problem: Bandit, horizon: int, kind: str) -> None:
        from lighttail.kernels import programme_kernel_for

        self.width = programme_kernel_for(policy)
        self.params = policy.params(horizon, problem.arms)
        self.means, self.gaps = problem.means, problem.gaps
        self.horizon, self.with_rewards = horizon, kind == "regret"
        self.by_pulls: dict[tuple[int, ...], float] = {}
        self.by_rest: dict[tuple[int, int], Floats] = {}  # (arm, its pulls to come) -> chances by rewards

    def law(self) -> tuple[Floats, Floats]:
        """The value and the chance of every total of rewards, or of every combination of pulls."""
        arms = len(self.means)
        past = (0,) if self.with_rewards else (0,) * arms
        blocks: dict[Key, Floats] = {(tuple(range(arms)), past): np.ones((1,) * (arms + 1))}
        phase = 0
        while blocks:
            phase += 1
            following: dict[Key, Floats] = {}
            for (active, past), before in blocks.items():
                mass = before
                left = self.horizon - sum(past) - len(active) * (phase - 1)
                for axis, arm in enumerate(active[:left]):
                    mass = pulled(mass, axis, self.means[arm])
                if left > len(active):
                    self._drop(active, past, phase, mass, following)
                else:  # the horizon ends this phase
                    pulls = {arm: phase - (place >= left) for place, arm in enumerate(active)}
                    self._end(pulls, past, active[0], 0, mass)
            blocks = following
        if not self.with_rewards:
            combinations = np.array(list(self.by_pulls))
            return combinations @ np.array(self.gaps), np.array(list(self.by_pulls.values()))
        regrets = max(self.means) * self.horizon - np.arange(self.horizon + 1.0)
        return regrets, sum((self._played_out(arm) for arm in range(arms)), np.zeros(self.horizon + 1))

    def tail(self, target: float) -> float:
        """The chance of a value of at least `target`."""
        values, chances = self.law()
        return float(chances[values >= target].sum())

    def _drop(
        self, active: tuple[int, ...], past: tuple[int, ...], phase: int, mass: Floats, following: Any
    ) -> None:
        """Drop the dominated arms of every state, and put the states into the blocks that follow."""
        time = sum(past) + len(active) * phase
        width = self.width(self.params, float(phase), float(time))
        means = np.arange(phase + 1.0) / float(phase)
        grids = np.meshgrid(*[means] * len(active), indexing="ij", sparse=True)
        best = reduce(np.maximum, grids)
        gone = sum((best - width > grid + width).astype(np.int64) << i for i, grid in enumerate(grids))
        for code in np.unique(gone):
            states = np.where((gone == code)[..., None], mass, 0.0)
            if not states.any():
                continue
            dropped = [i for i in range(len(active)) if code >> i & 1]
            remaining = tuple(arm for i, arm in enumerate(active) if i not in dropped)
            for axis in reversed(dropped):
                states = folded(states, axis) if self.with_rewards else states.sum(axis=axis)
            pulls = self._past(past, phase, [active[i] for i in dropped])
            if len(remaining) == 1:
                left = self.horizon - time
                self._end({remaining[0]: phase + left}, pulls, remaining[0], left, states)
            else:
                key = (remaining, pulls)
                following[key] = following[key] + states if key in following else states

    def _past(self, past: tuple[int, ...], phase: int, dropped: list[int]) -> tuple[int, ...]:
        """The pulls of all dropped arms after these arms are dropped in this phase, too."""
        if self.with_rewards:
            return (past[0] + phase * len(dropped),)
        return tuple(phase if arm in dropped else n for arm, n in enumerate(past))

    def _end(self, pulls: dict[int, int], past: tuple[int, ...], arm: int, left: int, mass: Floats) -> None:
        """Keep states whose pulls are decided: `pulls` of the active arms; `arm` has `left` to come."""
        if self.with_rewards:
            totals = reduce(np.add.outer, [np.arange(size) for size in mass.shape])
            chances = np.zeros(self.horizon + 1)
            chances += np.bincount(totals.ravel(), weights=mass.ravel(), minlength=chances.size)
            known = self.by_rest.get((arm, left))
            self.by_rest[arm, left] = chances if known is None else known + chances
        else:
            key = tuple(pulls.get(k, n) for k, n in enumerate(past))
            self.by_pulls[key] = self.by_pulls.get(key, 0.0) + float(mass.sum())

    def _played_out(self, arm: int) -> Floats:
        """The law of the total reward of all paths that end with this arm, with its pulls to come."""
        total = np.zeros(self.horizon + 1)
        for left in range(self.horizon, -1, -1):
            total += self.by_rest.get((arm, left), 0.0)
            if left > 0:  # the chances of more rewards than there were rounds are 0
                total = pulled(total, 0, self.means[arm])[:-1]
        return total


def pulled(mass: Floats, axis: int, mean: float) -> Floats:
    """The chances after one more pull of the arm whose sum is on this axis."""
    shape = list(mass.shape)
    shape[axis] += 1
    out = np.zeros(shape)
    before, after = [slice(None)] * mass.ndim, [slice(None)] * mass.ndim
    before[axis], after[axis] = slice(None, -1), slice(1, None)
    out[tuple(before)] = mass * (1.0 - mean)
    out[tuple(after)] += mass * mean
    return out


def folded(mass: Floats, axis: int) -> Floats:
    """The same chances with the sum on this axis added to the sum on the last axis."""
    moved = np.moveaxis(mass, axis, 0)
    out = np.zeros((*moved.shape[1:-1], moved.shape[-1] + moved.shape[0] - 1))
    for total, part in enumerate(moved):
        out[..., total : total + moved.shape[-1]] += part
    return out


def phases_cost(policy: Any, arms: int, horizon: int, kind: str) -> tuple[float, float]:
    """About how many seconds the phases take, and how many bytes; infinite if there are too many states."""
    seconds, most = 0.0, 0.0
    for phase in range(1, horizon // 2 + 2):
        states = 0.0
        for active in range(arms, 1, -1):
            dropped = arms - active
            room = min(dropped * (phase - 1), horizon - active * (phase - 1) - 1)  # pulls of the dropped
            if room < dropped or active * (phase - 1) >= horizon:
                continue
            if active * math.log2(phase + 1) > 40.0 or dropped > 60:
                return math.inf, math.inf
            blocks = float(room - dropped + 1)
            size = (phase + 1.0) ** active * (room / 2.0 + 1.0)
            if kind != "regret":
                blocks = min(float(phase - 1) ** dropped, float(math.comb(room, dropped)))
                size = (phase + 1.0) ** active
            blocks *= math.comb(arms, active)
            states += blocks * size
            seconds += active * blocks * (BLOCK + STATE * size)
        if states > 1e8:
            return math.inf, math.inf
        most = max(most, states)
    return seconds, BYTES * most
