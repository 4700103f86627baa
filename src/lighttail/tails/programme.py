"""The exact law of both kinds of regret for Bernoulli rewards: a programme over all states, forwards.

What a policy does next depends on the arms' pulls and sums of rewards, of which there are finitely many
after t rounds: C(t + 2K - 1, 2K - 1) with K arms. Their chances are carried from one round to the next.
docs/tails.md says how, how exact the result is and how far it reaches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.policies import UCB, Policy
from lighttail.problems import Bandit, Bernoulli
from lighttail.statistics import Floats

Integers = npt.NDArray[np.int64]
KINDS = ("pseudo_regret", "regret")
MEMORY = 4e9  # bytes that the chances of two layers may take
MERGED = 1e-12  # values that differ by this share are one
STATE, BLOCK, LAYER = 6e-9, 4e-7, 1e-3  # seconds


def why_not_programme(policy: Any, problem: Any, horizon: int, kind: str) -> str | None:
    """Why there is no exact programme for this task, in one sentence; None if there is one."""
    if kind not in KINDS:
        return f"kind must be 'pseudo_regret' or 'regret' for an exact programme, but is {kind!r}"
    if not isinstance(problem, Bandit) or type(problem.noise) is not Bernoulli:
        return "an exact programme exists only for a Bandit with Bernoulli rewards"
    if type(policy) not in COSTS:
        names = ", ".join(sorted(known.__name__ for known in COSTS))
        return f"an exact programme exists only for {names}, and not for {type(policy).__name__}"
    if math.isinf(programme_seconds(policy, problem, horizon, kind)):
        return (
            f"an exact programme over {problem.arms} arms and {horizon} rounds has more states than fit into "
            f"{MEMORY / 1e9:g} GB of memory"
        )
    return None


def programme_seconds(policy: Any, problem: Any, horizon: int, kind: str) -> float:
    """About how many seconds the programme takes; infinite if it would not fit into memory."""
    return COSTS[type(policy)](policy, problem.arms, horizon, kind)


def programme_tail(policy: Policy, problem: Bandit, horizon: int, target: float, kind: str) -> float:
    """P(kind >= target), where `target` already allows for rounding."""
    return min(1.0, _Layers(policy, problem, horizon, kind).tail(target))


def programme_law(policy: Policy, problem: Bandit, horizon: int, kind: str) -> tuple[Floats, Floats]:
    """The values that the regret can take, in rising order, and their probabilities."""
    return merged(*_Layers(policy, problem, horizon, kind).law())


def merged(values: Floats, chances: Floats) -> tuple[Floats, Floats]:
    """Sorted values, those that are equal but for rounding as one, and without those of chance 0."""
    kept = chances > 0.0
    values, chances = values[kept], chances[kept]
    order = np.argsort(values, kind="stable")
    values, chances = values[order], chances[order]
    apart = np.diff(values) > MERGED * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    firsts = np.concatenate([[0], np.flatnonzero(apart) + 1])
    return values[firsts], np.add.reduceat(chances, firsts)


def multisets(total: int, parts: int, most: float = 1e18) -> float:
    """C(total + parts, parts), or infinity beyond `most`; at once, however large."""
    count = 1.0
    for i in range(1, min(parts, total) + 1):
        count *= (max(parts, total) + i) / i
        if count > most:
            return math.inf
    return count


def _layers_seconds(policy: Any, arms: int, horizon: int, kind: str) -> float:
    if 16.0 * multisets(horizon, 2 * arms - 1) > MEMORY:
        return math.inf
    states, blocks = multisets(horizon, 2 * arms), multisets(horizon, arms)
    return STATE * states + BLOCK * arms * blocks + LAYER * horizon


COSTS: dict[type, Callable[[Any, int, int, str], float]] = {UCB: _layers_seconds}


def compositions(total: int, parts: int) -> Integers:
    """All ways to write `total` as a sum of so many numbers, 0 or more, in lexicographic order."""
    rows, left = np.zeros((1, 0), dtype=np.int64), np.array([total])
    for _ in range(parts - 1):
        choices = left + 1
        origin = np.repeat(np.arange(left.size), choices)
        value = np.arange(origin.size) - np.repeat(np.cumsum(choices) - choices, choices)
        rows, left = np.column_stack([rows[origin], value]), left[origin] - value
    return np.column_stack([rows, left])


@dataclass(frozen=True)
class _Layers:
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
        most = (lost + (self.horizon - t) * gaps.max()) * (1.0 + MERGED)
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
