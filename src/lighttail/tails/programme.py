"""The exact law of both kinds of regret for Bernoulli rewards: a programme over all states, forwards.

A policy's next choice depends on the state: the arms' pulls and sums of rewards. With K arms there are
C(t + 2K - 1, 2K - 1) states after t rounds, and their chances are carried from one round to the next
(`Layers`), or from phase to phase (`phases.py`). docs/tails.md says how, how exact the result is and which
horizons are possible.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lighttail.checks import BadInput
from lighttail.members import shipped
from lighttail.policies import Policy
from lighttail.problems import Bandit, has_arms
from lighttail.records import Floats, Ints
from lighttail.tails.phases import Phases, phases_cost

ROUNDED = 1e-12  # many times the share of a sum of gaps that rounding may take
MEMORY = 4e9  # bytes that a programme may take
STATE, BLOCK, LAYER = 8e-9, 5e-7, 3e-4  # seconds per state, per arm of a block, and per layer
NORMAL, POINT = 6e-8, 1e-9  # seconds per state for two arms' chances, and per grid point for more arms


def multisets(total: int, parts: int) -> float:
    """C(total + parts, parts), or infinity if this is above 1e18."""
    count = 1.0
    for i in range(1, min(parts, total) + 1):
        count *= (max(parts, total) + i) / i
        if count > 1e18:
            return math.inf
    return count


def compositions(total: int, parts: int) -> Ints:
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
    """The chances of all states after 0, 1, ..., horizon rounds.

    A state is the pulls and sums of rewards of the arms. The states with the same pulls form a block, and
    the blocks with t pulls in all form layer t. `lighttail.kernels.programme` carries one layer to the next.
    """

    policy: Any
    problem: Bandit
    horizon: int
    kind: str

    def tail(self, target: float) -> float:
        """The chance of the event; states are left out as soon as the event is decided."""
        if self.kind == "pseudo_regret":
            return self._forward(target=target)[0]
        reached = int(np.count_nonzero(self._regrets() >= target))
        if reached in (0, self.horizon + 1):
            return float(reached > 0)
        found, blocks, place, mass = self._forward(most=reached - 1)
        return found + float(self._by_reward(blocks, place, mass)[:reached].sum())

    def law(self) -> tuple[Floats, Floats]:
        """The value and the chance of every total of rewards, or of every combination of pulls."""
        _, blocks, place, mass = self._forward()
        if self.kind == "regret":
            return self._regrets(), self._by_reward(blocks, place, mass)
        return blocks @ np.array(self.problem.gaps), np.add.reduceat(mass, place)

    def _regrets(self) -> Floats:
        """The regret of 0, 1, ..., horizon rewards."""
        return max(self.problem.means) * self.horizon - np.arange(self.horizon + 1.0)

    def _by_reward(self, blocks: Ints, place: Ints, mass: Floats) -> Floats:
        from lighttail.kernels.programme import by_reward

        out = np.zeros(self.horizon + 1)
        by_reward(blocks, place, mass, out)
        return out

    def _fates(self, blocks: Ints, t: int, target: float) -> Ints:
        """SURE or NEVER for blocks whose pseudo regret is decided, and 0 for the others."""
        from lighttail.kernels.programme import NEVER, SURE

        gaps = np.array(self.problem.gaps)
        lost = blocks @ gaps
        most = (lost + (self.horizon - t) * gaps.max()) * (1.0 + ROUNDED)
        short = lost < target if t == self.horizon else most < target
        return np.where(lost >= target, SURE, np.where(short, NEVER, 0)).astype(np.int64)

    def _forward(
        self, target: float | None = None, most: int | None = None
    ) -> tuple[float, Ints, Ints, Floats]:
        """The mass on the event, and the blocks of the last layer with their mass.

        target: the pseudo regret of the event, or most: the largest total reward with which it happens.
        """
        from lighttail.kernels import programme_kernel_for
        from lighttail.kernels.programme import SURE

        kernel = programme_kernel_for(self.policy)
        params = self.policy.params(self.horizon, self.problem.arms)
        means = np.array(self.problem.means)
        blocks, place, size = self._layer(0, target)
        if size == 0:
            return float(place[0] == SURE), blocks, place, np.empty(0)
        mass, reached = np.ones(1), 0.0
        for t in range(self.horizon):
            following_blocks, following_place, size = self._layer(t + 1, target)
            following = np.zeros(size)
            open_ = place >= 0
            blocks, place = blocks[open_], place[open_]
            onto = np.column_stack(
                [following_place[self._ranks(blocks, t + 1, arm)] for arm in range(self.problem.arms)]
            )
            sure = -1 if most is None else most - (self.horizon - t)
            limit = self.horizon if most is None else most
            reached += kernel(params, t, means, blocks, place, onto, sure, limit, mass, following)
            blocks, place, mass = following_blocks, following_place, following
        return reached, blocks, place, mass

    def _layer(self, t: int, target: float | None) -> tuple[Ints, Ints, int]:
        """The blocks after t pulls, the place or the fate of each block, and the size of all together."""
        blocks = compositions(t, self.problem.arms)
        fate = np.zeros(len(blocks), np.int64) if target is None else self._fates(blocks, t, target)
        sizes = np.where(fate == 0, np.prod(blocks + 1, axis=1), 0)
        return blocks, np.where(fate == 0, np.cumsum(sizes) - sizes, fate), int(sizes.sum())

    def _ranks(self, blocks: Ints, total: int, arm: int) -> Ints:
        """The place, among all compositions of `total`, of every block after one more pull of the arm."""
        arms = self.problem.arms
        left, rank = np.full(blocks.shape[0], total), np.zeros(blocks.shape[0], dtype=np.int64)
        for k in range(arms - 1):
            after = left - blocks[:, k] - (k == arm)
            ways = np.array([math.comb(rest + arms - 1 - k, arms - 1 - k) for rest in range(total + 1)])
            rank += ways[left] - ways[after]
            left = after
        return rank


class Programme(NamedTuple):
    make: type[Layers] | type[Phases]
    cost: Callable[[Any, int, int, str], tuple[float, float]]  # policy, arms, horizon, kind -> seconds, bytes


def programme_seconds(policy: Any, problem: Any, horizon: int, kind: str) -> float | BadInput:
    """About how many seconds the exact programme takes, from its sizes, or the refusal if there is none."""
    if not has_arms(problem) or not problem.noise.is_coin:
        only = "an exact programme exists only for a Bandit with Bernoulli rewards"
        return BadInput(only, field="problem", value=problem)
    programme = programme_of(policy)
    if programme is None:
        only = f"an exact programme exists only for {KNOWN}, and not for {type(policy).__name__}"
        return BadInput(only, field="policy", value=policy)
    seconds, memory = programme.cost(policy, problem.arms, horizon, kind)
    if memory > MEMORY:
        states = f"{problem.arms} arms and {horizon} rounds"
        room = f"an exact programme for {states} does not fit into {MEMORY / 1e9:g} GB of memory"
        return BadInput(room, field="horizon", value=horizon)
    if math.isinf(seconds):
        beyond = f"the posteriors of {policy!r} are out of the range of an exact programme"
        return BadInput(beyond, field="policy", value=policy)
    return seconds


def programme_tail(policy: Policy, problem: Bandit, horizon: int, target: float, kind: str) -> float:
    """P(kind >= target), where `target` already allows for rounding.

    >>> import lighttail as lt
    >>> problem = lt.Bandit([0.3, 0.7], lt.Bernoulli())
    >>> f"{programme_tail(lt.UCB(lt.LightTailed(0.1)), problem, 30, 19.999, 'regret'):.4e}"
    '2.2967e-08'
    """
    programme = programme_of(policy)
    if programme is None:
        raise TypeError(f"there is no exact programme for {policy!r}")
    return min(1.0, programme.make(policy, problem, horizon, kind).tail(target))


def _layers_cost(policy: Any, arms: int, horizon: int, kind: str) -> tuple[float, float]:
    states, blocks = multisets(horizon, 2 * arms), multisets(horizon, arms)
    return STATE * states + BLOCK * arms * blocks + LAYER * horizon, 16.0 * multisets(horizon, 2 * arms - 1)


def _posterior_cost(policy: Any, arms: int, horizon: int, kind: str) -> tuple[float, float]:
    """As `_layers_cost`, plus the arms' chances in each state, which need a grid from three arms on."""
    seconds, memory = _layers_cost(policy, arms, horizon, kind)
    points = _grid_points(policy, arms, horizon)
    if math.isinf(memory) or math.isinf(points):
        return math.inf, memory
    if arms == 2:
        return seconds + NORMAL * multisets(horizon, 4), memory
    table, states = points * horizon * horizon, multisets(horizon, 2 * arms)
    # The grid points at which arms that were pulled, and arms that were not pulled, are looked at.
    near = 25.0 * math.sqrt(arms) * arms * arms * states
    far = points * arms * min(arms * multisets(horizon, 2 * arms - 2), states)
    return seconds + POINT * (near + far + 10.0 * horizon * table), memory + 8.0 * table


def _grid_points(policy: Any, arms: int, horizon: int) -> float:
    """About how many points the grid of posterior draws has; infinite if the posterior is out of range."""
    params = policy.params(horizon, arms)
    widest, least = policy.posterior_sd(0.0, *params), policy.posterior_sd(float(horizon), *params)
    middles = [
        policy.posterior_mean(n, total, *params)
        for n, total in ((0.0, 0.0), (float(horizon), 0.0), (float(horizon), float(horizon)))
    ]
    if not (1e-150 < least <= widest < 1e150 and all(abs(middle) < 1e150 for middle in middles)):
        return math.inf
    spread = float(max(middles) - min(middles) + 20.0 * widest)
    return 1.4 * spread * math.hypot(1.0 / least, math.sqrt(arms - 1) / widest)


PROGRAMMES: dict[str, Programme] = {  # by the policy's `plays_by`
    "radius": Programme(Layers, _layers_cost),
    "phases": Programme(Phases, phases_cost),
    "posterior": Programme(Layers, _posterior_cost),
}
KNOWN = "UCB, SuccessiveElimination and ThompsonSampling"


def programme_of(policy: Any) -> Programme | None:
    """The programme for the policy. A user's class, even one derived from a shipped class, has no kernel."""
    return PROGRAMMES.get(getattr(policy, "plays_by", "")) if shipped(policy) else None
