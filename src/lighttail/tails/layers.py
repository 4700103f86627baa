"""The chances of all states of a bandit with Bernoulli rewards, round by round; see `programme.py`.

A state is the arms' pulls and sums of rewards. The states with the same pulls form a block, and the blocks
with t pulls in all form layer t. The kernels of `lighttail.kernels.programme` carry one layer to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.outcomes.estimates import Floats
from lighttail.problems import Bandit

Integers = npt.NDArray[np.int64]
ROUNDED = 1e-12  # share of a sum of gaps that rounding may take, many times over


def multisets(total: int, parts: int, most: float = 1e18) -> float:
    """C(total + parts, parts), or infinity beyond `most`; at once, however large."""
    count = 1.0
    for i in range(1, min(parts, total) + 1):
        count *= (max(parts, total) + i) / i
        if count > most:
            return math.inf
    return count


def compositions(total: int, parts: int) -> Integers:
    """All ways to write `total` as a sum of `parts` numbers, 0 or more, in lexicographic order."""
    rows, left = np.zeros((1, 0), dtype=np.int64), np.array([total])
    for _ in range(parts - 1):
        choices = left + 1
        origin = np.repeat(np.arange(left.size), choices)
        value = np.arange(origin.size) - np.repeat(np.cumsum(choices) - choices, choices)
        rows, left = np.column_stack([rows[origin], value]), left[origin] - value
    return np.column_stack([rows, left])


@dataclass(frozen=True)
class Layers:
    """The chances of all states after 0, 1, ..., horizon rounds."""

    policy: Any
    problem: Bandit
    horizon: int
    kind: str

    def tail(self, target: float) -> float:
        """The chance of the event; states are left out as soon as the event is decided."""
        if self.kind == "pseudo_regret":
            return self._forward(lambda blocks, t: self._fates(blocks, t, target), None)[0]
        reached = int(np.count_nonzero(self._regrets() >= target))
        if reached in (0, self.horizon + 1):
            return float(reached > 0)
        found, blocks, place, mass = self._forward(None, reached - 1)
        return found + float(self._by_reward(blocks, place, mass)[:reached].sum())

    def law(self) -> tuple[Floats, Floats]:
        """The value and the chance of every total of rewards, or of every combination of pulls."""
        _, blocks, place, mass = self._forward(None, None)
        if self.kind == "regret":
            return self._regrets(), self._by_reward(blocks, place, mass)
        return blocks @ np.array(self.problem.gaps), np.add.reduceat(mass, place)

    def _regrets(self) -> Floats:
        """The regret of 0, 1, ..., horizon rewards."""
        return max(self.problem.means) * self.horizon - np.arange(self.horizon + 1.0)

    def _by_reward(self, blocks: Integers, place: Integers, mass: Floats) -> Floats:
        from lighttail.kernels.programme import by_reward

        out = np.zeros(self.horizon + 1)
        by_reward(blocks, place, mass, out)
        return out

    def _fates(self, blocks: Integers, t: int, target: float) -> Integers:
        """SURE or NEVER for blocks whose pseudo regret is decided, and 0 for the others."""
        from lighttail.kernels.programme import NEVER, SURE

        gaps = np.array(self.problem.gaps)
        lost = blocks @ gaps
        most = (lost + (self.horizon - t) * gaps.max()) * (1.0 + ROUNDED)
        short = lost < target if t == self.horizon else most < target
        return np.where(lost >= target, SURE, np.where(short, NEVER, 0)).astype(np.int64)

    def _forward(
        self, fates: Callable[[Integers, int], Integers] | None, most: int | None
    ) -> tuple[float, Integers, Integers, Floats]:
        """The mass on the event, and the blocks of the last layer with their mass.

        fates: which blocks are decided. most: the most rewards that are on the event.
        """
        from lighttail.kernels import programme_kernel_for
        from lighttail.kernels.programme import SURE

        kernel = programme_kernel_for(self.policy)
        params = self.policy.params(self.horizon, self.problem.arms)
        means = np.array(self.problem.means)
        blocks, place, size = self._layer(0, fates)
        if size == 0:
            return float(place[0] == SURE), blocks, place, np.empty(0)
        mass, found = np.ones(1), 0.0
        for t in range(self.horizon):
            following_blocks, following_place, size = self._layer(t + 1, fates)
            following = np.zeros(size)
            kept = place >= 0
            blocks, place = blocks[kept], place[kept]
            onto = np.column_stack(
                [following_place[self._ranks(blocks, t + 1, arm)] for arm in range(self.problem.arms)]
            )
            sure = -1 if most is None else most - (self.horizon - t)
            limit = self.horizon if most is None else most
            found += kernel(params, t, means, blocks, place, onto, sure, limit, mass, following)
            blocks, place, mass = following_blocks, following_place, following
        return found, blocks, place, mass

    def _layer(
        self, t: int, fates: Callable[[Integers, int], Integers] | None
    ) -> tuple[Integers, Integers, int]:
        """The blocks after t pulls, where each begins or what has become of it, and their size together."""
        blocks = compositions(t, self.problem.arms)
        sizes = np.prod(blocks + 1, axis=1)
        if fates is None:
            return blocks, np.cumsum(sizes) - sizes, int(sizes.sum())
        fate = fates(blocks, t)
        sizes = np.where(fate == 0, sizes, 0)
        return blocks, np.where(fate == 0, np.cumsum(sizes) - sizes, fate), int(sizes.sum())

    def _ranks(self, blocks: Integers, total: int, arm: int) -> Integers:
        """The place of every block's pulls and one more of the arm among all compositions of `total`."""
        arms = self.problem.arms
        left, rank = np.full(blocks.shape[0], total), np.zeros(blocks.shape[0], dtype=np.int64)
        for k in range(arms - 1):
            after = left - blocks[:, k] - (k == arm)
            ways = np.array([math.comb(rest + arms - 1 - k, arms - 1 - k) for rest in range(total + 1)])
            rank += ways[left] - ways[after]
            left = after
        return rank
