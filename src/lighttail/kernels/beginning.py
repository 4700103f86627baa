"""How a path begins: with its first pull, or in a state from which it continues, as a forecast's paths do.

The maker of a kernel makes the kernel of paths that continue if `onward` is true. This kernel has two more
arguments (and the generic one, after them, `floors`):

    first: the rounds of the state.
    start: (means, counts, begun, opened, memos, at_once).

means[path]: the means of each path; the first array of `world` holds the means, and every path writes its
own there. counts, begun, opened, memos: as in `late_kernel`; the rewards of open trials come before the first
round. at_once: how many rewards of each arm are added as one sum in place of `opened`, for a policy whose
state is sums; empty if they are not. Kernels that skip ahead read `at_once`, which must not be empty there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lighttail.kernels.build import BREATH, Formula, inner, jitable
from lighttail.rules import learn_nothing


@cache
def pull_by_pull(shock: Formula, reward: Formula) -> Any:
    """The function that adds the rewards of many pulls of one arm to a sum, one by one."""

    @inner
    def add_up(rng: Any, arm: Any, pulls: Any, total: Any, world: Any, stop: Any) -> Any:
        done = 0
        while done < pulls and stop[0] == 0:
            until = min(pulls, done + BREATH)
            for _ in range(done, until):
                total += reward(shock(rng, *world), arm, *world)
            done = until
        return total

    return add_up


@cache
def summed(total_of: Formula) -> Any:
    """As `pull_by_pull`, but the sum of all these rewards is one draw."""

    @inner
    def add_up(rng: Any, arm: Any, pulls: Any, total: Any, world: Any, stop: Any) -> Any:
        return total + total_of(rng, arm, float(pulls), *world) if pulls > 0 else total

    return add_up


@inner
def stay(world: Any, means: Any, path: Any) -> None:
    """All paths have the means of the world."""


@inner
def move(world: Any, means: Any, path: Any) -> None:
    """Write the means of a path into the world."""
    for k in range(means.shape[1]):
        world[0][k] = means[path, k]


@inner
def first_pull(
    rng: Any, params: Any, world: Any, path: Any, start: Any, tried: Any, total: Any, note: Any, stop: Any
) -> None:
    """Begin a path with its first pull."""
    for k in range(tried.size):
        tried[k] = total[k] = 0.0
        for j in range(note.shape[1]):
            note[k, j] = 0.0


@cache
def beginning_of(
    onward: bool, shock: Formula, reward: Formula, total_of: Formula | None,
    learn: Formula = learn_nothing, memo: int = 0,
) -> Any:  # fmt: skip
    """The function with which a path begins. From a state, it tells the rewards of the open trials.

    total_of: draws the sum of many rewards; None if the noise has no such formula. learn, memo: of the rule;
    left out for a policy whose state is sums.
    """
    if not onward:
        return first_pull
    learn = jitable(learn)
    add_up = pull_by_pull(shock, reward) if total_of is None else summed(total_of)

    @inner
    def from_state(
        rng: Any, params: Any, world: Any, path: Any, start: Any, tried: Any, total: Any, note: Any, stop: Any
    ) -> None:
        means, counts, begun, opened, memos, at_once = start
        move(world, means, path)
        heard, notes = np.empty(tried.size), note.shape[1]
        for k in range(tried.size):
            tried[k], heard[k], total[k] = counts[0, k], counts[1, k], counts[2, k]
            for j in range(notes):
                note[k, j] = begun[k, j]
        for k in range(at_once.size):
            total[k] = add_up(rng, k, int(at_once[k]), total[k], world, stop)
            heard[k] += at_once[k]
            if at_once[k] > 0.0:
                learn(k, 0.0, tried, heard, total, note, params)
        if at_once.size == 0:
            for i in range(opened.shape[0]):
                k = opened[i, 0]
                value = reward(shock(rng, *world), k, *world)
                for j in range(memo):
                    note[k, notes - memo + j] = memos[i, j]
                heard[k] += 1.0
                total[k] += value
                learn(k, value, tried, heard, total, note, params)

    return from_state


@cache
def beginning_of_sums(onward: bool, total: Formula) -> Any:
    """The function with which a path of a kernel that skips ahead begins: every arm that was never pulled is
    pulled once. It returns the number of rounds so far."""

    @inner
    def first_rewards(rng: Any, world: Any, path: Any, first: Any, start: Any, counts: Any, sums: Any) -> Any:
        for arm in range(counts.size):
            counts[arm], sums[arm] = 1.0, total(rng, arm, 1.0, *world)
        return float(counts.size)

    @inner
    def from_state(rng: Any, world: Any, path: Any, first: Any, start: Any, counts: Any, sums: Any) -> Any:
        means, state, _, _, _, at_once = start
        move(world, means, path)
        used = float(first)
        for arm in range(counts.size):
            counts[arm], sums[arm] = state[0, arm], state[2, arm]
            if at_once[arm] > 0.0:
                sums[arm] += total(rng, arm, at_once[arm], *world)
            if counts[arm] == 0.0:
                counts[arm], sums[arm] = 1.0, total(rng, arm, 1.0, *world)
                used += 1.0
        return used

    return from_state if onward else first_rewards
