"""Paths that continue from a state while a window keeps rewards back, compiled.

    kernel(rng, params, world, horizon, rewards, pulls, stop,
           first, means, counts, begun, opened, memos, default, waits, ring, floors)

The arguments are those of `stepping_kernel` and `lighttail.kernels.beginning`, and: default, the reward with
which the window closes a trial; waits[0] and waits[1], the delays in pulls of rewards that equal the default
and of other rewards, each of which is equally likely; ring, the longest delay that a path can see, plus 2.

A success that is told at once and a failure that is told when the window is over make an arm that is pulled a
lot look too good. This is why the delay depends on the reward here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lighttail.kernels.beginning import move
from lighttail.kernels.build import BREATH, WRONG_ARM, Formula, inner, kernel_maker
from lighttail.kernels.generic import queue
from lighttail.random.streams import uniform
from lighttail.rules import Rule

PATIENCE = 200  # draws of a reward and its delay until the delay is as long as the trial has been open


@kernel_maker
def windowed_kernel(rule: Rule, shock: Formula, reward: Formula) -> Any:
    """Any rule, pull by pull."""
    choose, learn, notes, memo, _ = rule

    @inner
    def delay_of(rng: Any, value: Any, default: Any, waits: Any) -> Any:
        row = 0 if value == default else 1
        return waits[row, int(uniform(rng) * waits.shape[1])]

    @inner
    def drawn_open(rng: Any, world: Any, arm: Any, age: Any, default: Any, waits: Any) -> Any:
        """The reward of a trial that has been open for `age` pulls and its delay, given that the delay is at
        least `age`: a reward that would have been told is drawn again."""
        for _ in range(PATIENCE):
            value = reward(shock(rng, *world), arm, *world)
            delay = delay_of(rng, value, default, waits)
            if delay >= age:
                return value, delay
        return default, age  # the window is over

    def kernel(
        rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any, first: Any,
        means: Any, counts: Any, begun: Any, opened: Any, memos: Any, default: Any, waits: Any, ring: Any,
        floors: Any = None,
    ) -> None:  # fmt: skip
        arms, older = pulls.shape[1], opened.shape[0]
        tried, heard, total = np.empty(arms), np.empty(arms), np.empty(arms)
        note = np.empty((arms, notes))
        size, one, nobody = np.uint64(ring), np.uint64(1), np.uint64(ring + older)
        head, tail = np.empty(ring, np.uint64), np.empty(ring, np.uint64)
        link, arm_of = np.empty(ring + older, np.uint64), np.empty(ring + older, np.uint64)
        value_of, memo_of = np.empty(ring + older), np.empty((ring + older, memo))
        breath = 0
        for path in range(pulls.shape[0]):
            move(world, means, path)
            for k in range(arms):
                tried[k], heard[k], total[k] = counts[0, k], counts[1, k], counts[2, k]
                for j in range(notes):
                    note[k, j] = begun[k, j]
            for i in range(ring):
                head[i] = nobody
            for i in range(older):
                slot, age = ring + i, float(first - opened[i, 1])
                value, delay = drawn_open(rng, world, opened[i, 0], age, default, waits)
                if delay - age < horizon - first:
                    arm_of[slot], value_of[slot] = opened[i, 0], value
                    for j in range(memo):
                        memo_of[slot, j] = memos[i, j]
                    queue(head, tail, link, np.uint64(delay - age), np.uint64(slot), nobody)
            here = np.uint64(0)  # the place of this round in the ring
            for t in range(first + 1, horizon + 1):
                slot = head[here]
                head[here] = nobody
                while slot != nobody:
                    told, value = arm_of[slot], value_of[slot]
                    for j in range(memo):
                        note[told, notes - memo + j] = memo_of[slot, j]
                    heard[told] += 1.0
                    total[told] += value
                    learn(told, value, tried, heard, total, note, params)
                    slot = link[slot]
                z = shock(rng, *world)
                arm = choose(rng, float(t), tried, heard, total, note, params)
                if arm < 0 or arm >= arms:
                    stop[0] = WRONG_ARM
                    return
                if floors is not None:
                    mark = uniform(rng)
                    for k in range(arms):
                        if mark < floors[k]:
                            arm = k
                            break
                value = reward(z, arm, *world)
                tried[arm] += 1.0
                due = t + 1 + delay_of(rng, value, default, waits)
                if due <= horizon:
                    arm_of[here], value_of[here] = np.uint64(arm), value
                    for j in range(memo):
                        memo_of[here, j] = note[arm, notes - memo + j]
                    place = here + np.uint64(int(due) - t)
                    if place >= size:
                        place -= size
                    queue(head, tail, link, place, here, nobody)
                here = here + one if here + one < size else np.uint64(0)
                breath += 1
                if breath == BREATH:
                    breath = 0
                    if stop[0] != 0:
                        return
            for k in range(arms):
                pulls[path, k] = int(tried[k])

    return kernel
