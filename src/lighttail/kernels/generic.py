"""Any rule, compiled: the kernels with which every faster kernel is compared.

`generic_kernel` plays paths whose rewards are known at once. It is fast because the functions of the rule
are inlined, and because the arm of a round is compared with the arm of the round before by a branch, so that
the processor runs ahead on the guess that the arm stays. `late_kernel` plays paths whose rewards come late,
or that continue from a state, and `windowed_kernel` those whose rewards a window keeps back. Their places are
unsigned numbers, because numba checks the sign of every other kind of index.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.beginning import beginning_of, move, stay
from lighttail.kernels.build import BREATH, WRONG_ARM, Formula, close_path, inlined, inner, kernel_maker
from lighttail.random.streams import uniform
from lighttail.rules import Rule

ONE = np.uint64(1)
PATIENCE = 1000  # draws at most until a delay is as long as a trial has been open
WINDOWED_PATIENCE = 200  # draws at most of a reward and its delay, for the same


@inlined
def held(rng: Any, arm: Any, floors: Any) -> Any:
    """The arm that is pulled where the rule chooses `arm`."""
    mark = uniform(rng)
    for k in range(floors.size):
        if mark < floors[k]:
            return k
    return arm


@kernel_maker
def generic_kernel(
    rule: Rule, shock: Formula, reward: Formula, onward: bool = False, total_of: Formula | None = None
) -> Any:
    """kernel(rng, params, world, horizon, rewards, pulls, stop), as of all kernels that play every pull.

    floors: the chance with which each arm is pulled whatever the rule chooses, added up from the first arm
    on; None if there are none.
    """
    choose, learn, notes, memo, _ = rule
    begin = beginning_of(onward, shock, reward, total_of, learn, memo)

    def kernel(
        rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any,
        first: Any = 0, start: Any = (), floors: Any = None,
    ) -> None:  # fmt: skip
        arms = pulls.shape[1]
        tried, total, note = np.empty(arms), np.empty(arms), np.empty((arms, notes))
        breath = 0
        for path in range(rewards.size):
            begin(rng, params, world, path, start, tried, total, note, stop)
            leader, n, s = np.uint64(arms), 0.0, 0.0
            for t in range(first + 1, horizon + 1):
                z = shock(rng, *world)
                arm = choose(rng, float(t), tried, tried, total, note, params)
                if arm < 0 or arm >= arms:
                    stop[0] = WRONG_ARM
                    return
                if floors is not None:
                    arm = held(rng, arm, floors)
                if np.uint64(arm) != leader:
                    leader = np.uint64(arm)
                    n, s = tried[leader], total[leader]
                value = reward(z, leader, *world)
                n += 1.0
                s += value
                tried[leader] = n
                total[leader] = s
                learn(leader, value, tried, tried, total, note, params)
                breath += 1
                if breath == BREATH:
                    breath = 0
                    if stop[0] != 0:
                        return
            close_path(path, total, tried, rewards, pulls)

    return kernel


@inlined
def queue(head: Any, tail: Any, link: Any, place: Any, slot: Any, nobody: Any) -> None:
    """Put a trial at the end of the trials that are told in one round. `nobody` stands for no trial."""
    link[slot] = nobody
    if head[place] == nobody:
        head[place] = slot
    else:
        link[tail[place]] = slot
    tail[place] = slot


@kernel_maker
def late_kernel(rule: Rule, shock: Formula, reward: Formula, wait: Formula) -> Any:
    """Paths whose rewards come late, or that continue from a state. waits: the arguments of `wait`."""

    @inlined
    def delay_of(rng: Any, value: Any, waits: Any) -> Any:
        return wait(rng, *waits)

    @inner
    def drawn_open(rng: Any, world: Any, arm: Any, age: Any, waits: Any) -> Any:
        value = reward(shock(rng, *world), arm, *world)
        for _ in range(PATIENCE):
            delay = wait(rng, *waits)
            if delay >= age:
                return value, delay
        return value, math.inf if waits[0] > 0.0 else age  # the reward may never come

    return late_paths(rule, shock, reward, delay_of, drawn_open, stay)


@kernel_maker
def windowed_kernel(rule: Rule, shock: Formula, reward: Formula) -> Any:
    """Paths that continue from a state while a window keeps rewards back: the delay depends on the reward.

    A success that is told at once and a failure that is told when the window is over make an arm that is
    pulled a lot look too good. waits: the reward with which the window closes a trial, and two rows of delays
    in pulls, for rewards that equal this reward and for other rewards. Each delay of a row is equally likely.
    """

    @inlined
    def delay_of(rng: Any, value: Any, waits: Any) -> Any:
        default, rows = waits
        return rows[0 if value == default else 1, int(uniform(rng) * rows.shape[1])]

    @inner
    def drawn_open(rng: Any, world: Any, arm: Any, age: Any, waits: Any) -> Any:
        """A reward that would have been told is drawn again."""
        for _ in range(WINDOWED_PATIENCE):
            value = reward(shock(rng, *world), arm, *world)
            delay = delay_of(rng, value, waits)
            if delay >= age:
                return value, delay
        return waits[0], age  # the window is over

    return late_paths(rule, shock, reward, delay_of, drawn_open, move)


def late_paths(
    rule: Rule, shock: Formula, reward: Formula, delay_of: Any, drawn_open: Any, enter: Any
) -> Any:
    """The kernel of paths whose rewards come late.

    delay_of(rng, value, waits): draws the delay of a reward. drawn_open(rng, world, arm, age, waits): draws
    the reward and the delay of a trial that has been open for `age` pulls, given that the delay is at least
    `age`. enter: `stay`, or `move` if each path has the means of its row of `means`.

    batch: decisions per group; the rewards that became known during a group are told before the first
    decision of the next group. ring: the longest delay that a path can see, plus the batch, plus 2. first:
    the rounds of the state from which the paths continue. counts: tried, heard, total and the sum of all
    rewards of each arm in this state. begun: the notes in this state. opened[i]: (arm, round) of a trial that
    is open in this state; memos[i]: its memo. floors: as in `generic_kernel`.

    In each round the rewards that are due are told first, in the order in which they became known. Then the
    shock behind the reward, the draws of the rule and the delay follow.
    """
    choose, learn, notes, memo, _ = rule

    def kernel(
        rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any,
        waits: Any, batch: Any, ring: Any, first: Any, counts: Any, begun: Any, opened: Any, memos: Any,
        means: Any = (), floors: Any = None,
    ) -> None:  # fmt: skip
        arms, older = pulls.shape[1], opened.shape[0]
        tried, heard, total, earned = np.empty(arms), np.empty(arms), np.empty(arms), np.empty(arms)
        note = np.empty((arms, notes))
        size, nobody = np.uint64(ring), np.uint64(ring + older)
        head, tail = np.empty(ring, np.uint64), np.empty(ring, np.uint64)
        link, arm_of = np.empty(ring + older, np.uint64), np.empty(ring + older, np.uint64)
        value_of, memo_of = np.empty(ring + older), np.empty((ring + older, memo))
        breath = 0
        for path in range(rewards.size):
            enter(world, means, path)
            for k in range(arms):
                tried[k], heard[k] = counts[0, k], counts[1, k]
                total[k], earned[k] = counts[2, k], counts[3, k]
                for j in range(notes):
                    note[k, j] = begun[k, j]
            for i in range(ring):
                head[i] = nobody
            for i in range(older):
                arm, slot = opened[i, 0], ring + i
                age = float(first - opened[i, 1])
                value, delay = drawn_open(rng, world, arm, age, waits)
                earned[arm] += value
                ahead = delay - age
                if ahead < horizon - first:
                    arm_of[slot], value_of[slot] = arm, value
                    for j in range(memo):
                        memo_of[slot, j] = memos[i, j]
                    queue(head, tail, link, np.uint64(ahead), np.uint64(slot), nobody)
            here = told = np.uint64(0)  # places in the ring: this round, and the first round not told yet
            left = (batch - first % batch) % batch  # rounds until the next group
            leader, n, s = np.uint64(0), tried[0], earned[0]
            for t in range(first + 1, horizon + 1):
                following = here + ONE if here + ONE < size else np.uint64(0)
                if left == 0:
                    left = batch
                    while told != following:
                        slot = head[told]
                        if slot != nobody:
                            head[told] = nobody
                        while slot != nobody:
                            arm, value = np.uint64(arm_of[slot]), value_of[slot]
                            for j in range(memo):
                                note[arm, notes - memo + j] = memo_of[slot, j]
                            heard[arm] += 1.0
                            total[arm] += value
                            learn(arm, value, tried, heard, total, note, params)
                            slot = link[slot]
                        told = told + ONE if told + ONE < size else np.uint64(0)
                left -= 1
                z = shock(rng, *world)
                chosen = choose(rng, float(t), tried, heard, total, note, params)
                if chosen < 0 or chosen >= arms:
                    stop[0] = WRONG_ARM
                    return
                if floors is not None:
                    chosen = held(rng, chosen, floors)
                if np.uint64(chosen) != leader:
                    earned[leader] = s
                    leader = np.uint64(chosen)
                    n, s = tried[leader], earned[leader]
                value = reward(z, leader, *world)
                n += 1.0
                s += value
                tried[leader] = n
                due = t + 1 + delay_of(rng, value, waits)
                if due <= horizon:
                    arm_of[here], value_of[here] = chosen, value
                    for j in range(memo):
                        memo_of[here, j] = note[leader, notes - memo + j]
                    place = here + np.uint64(int(due) - t)
                    if place >= size:
                        place -= size
                    link[here] = nobody  # `queue` by hand: a call of it would count references to its arrays
                    if head[place] == nobody:
                        head[place] = here
                    else:
                        link[tail[place]] = here
                    tail[place] = here
                here = following
                breath += 1
                if breath == BREATH:
                    breath = 0
                    if stop[0] != 0:
                        return
            earned[leader] = s
            close_path(path, earned, tried, rewards, pulls)

    return kernel
