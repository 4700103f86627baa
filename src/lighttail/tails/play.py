"""How weighted paths are played: pull by pull, or skipping ahead (docs/rare-events.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lighttail.costs import words_drawn
from lighttail.methods import Played, why_not_skip
from lighttail.policies import UCB, Policy
from lighttail.problems import Bandit
from lighttail.streams import block_generator
from lighttail.tails.plan import Plan

SHORT = 8000  # shorter horizons are always played pull by pull, so that their seeds keep their numbers
PILOTS = 16
NUMBER, PULL = 4.5, 1.7  # costs of a random number of skip-ahead and of a tilted pull, in NumPy draws
MARGIN = 14.0  # by so much the logarithm of a probability may miss the cost of the cheapest route

PlayBlock = Callable[..., None]  # (generator, log_weight, rounds, stop)


def block_of_paths(
    policy: Policy, problem: Bandit, plan: Plan, horizon: int, target: float, whole: bool, played: Played
) -> PlayBlock:
    """A function that fills in the log weights and rounds of a block's paths."""
    from lighttail.kernels import stream, tilted_kernel_for, tilted_skip_kernel_for

    means, *rest = problem.noise.world(problem.means)
    fixed = (policy.params(horizon, problem.arms), means, tuple(rest), plan.mixture, np.array(problem.gaps))
    more: tuple[Any, ...]
    if played == "skip":
        kernel, more = tilted_skip_kernel_for(policy, problem), (plan.rarity + MARGIN,)
    else:
        kernel, more = tilted_kernel_for(policy, problem), (plan.watch, plan.caps)

    def play(generator: np.random.Generator, log_weight: Any, rounds: Any, stop: Any) -> None:
        kernel(stream(generator), *fixed, *more, horizon, target, whole, log_weight, rounds, stop)

    return play


def choose_played(
    policy: Policy, problem: Bandit, plan: Plan, horizon: int, target: float, whole: bool
) -> tuple[Played, float]:
    """The faster way, by a rule that no clock and no seed of the caller enters; and the work of a path,
    in pulls: the horizon at most.

    A few pilot paths skip ahead; their random numbers and rounds are counted.
    """
    if horizon < SHORT or not isinstance(policy, UCB) or type(policy.bonus).changes_with_time():
        return "step", float(horizon)
    if why_not_skip(policy, problem) or not np.isinf(plan.caps).all() or plan.watch.size:
        return "step", float(horizon)
    policy.bonus.check_concave(horizon, problem.arms)
    generator, rounds = block_generator(0, 0), np.empty(PILOTS, dtype=np.int64)
    before = words_drawn(generator)
    play = block_of_paths(policy, problem, plan, horizon, target, whole, "skip")
    play(generator, np.empty(PILOTS), rounds, np.zeros(1, dtype=np.int64))
    work = (words_drawn(generator) - before) * NUMBER / PULL
    return ("skip", max(1.0, work / PILOTS)) if work < int(rounds.sum()) else ("step", float(horizon))
