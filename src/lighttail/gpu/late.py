"""Any rule on a device with rewards that come late, or from a state: the paths, and their queue.

`late_paths` plays as `lighttail.kernels.generic.late_kernel` does. The argument `more` of its kernel is the
flag, the arguments of `wait`, and the results of `begun_on_device` and `queue_on_device`. Rewards that are
not yet known lie in the memory of the device, one column per thread, so that threads in the same round access
neighbouring places.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import cuda

from lighttail.course import Course
from lighttail.gpu.generic import adding, closing, in_real, taking_in
from lighttail.kernels.build import WRONG_ARM
from lighttail.kernels.generic import PATIENCE
from lighttail.rules import Rule


def late_paths(arms: int, notes: int, memo: int, real: Any, device: Any, formulas: Any) -> Any:
    """play(...) for a rule. formulas: choose, learn, shock, reward, and `wait` in double precision."""
    choose, learn, shock, reward, wait = formulas
    put, add, close = device(put_in_queue), adding(arms, real, device), device(closing(arms, real))
    tell = telling(arms, notes, memo, real, device, learn)
    open_again = opening(notes, memo, real, device, (put, add, shock, reward, wait))
    room, lasting = max(1, notes), notes - memo  # the notes that belong to an arm, not to a pull

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, me: Any, more: Any) -> Any:
        stop, waits, begun, queue = more
        tried, heard = cuda.local.array(arms, real), cuda.local.array(arms, real)
        total, earned = cuda.local.array(arms, real), cuda.local.array(arms, real)
        note = cuda.local.array((arms, room), real)
        batch, ring, done, older, counts, noted, _, _ = begun
        head, _, _, arm_of, value_of, memo_of = queue
        for k in range(arms):
            tried[k], heard[k] = counts[0, k], counts[1, k]
            total[k], earned[k] = counts[2, k], counts[3, k]
            for j in range(room):
                note[k, j] = noted[k, j]
        for place in range(ring):
            head[place, me] = -1
        for i in range(older):
            open_again(i, me, rng, world, waits, horizon, earned, begun, queue)
        here, told = 0, 0  # places in the ring: this round, and the first round that is not told yet
        left = (batch - done % batch) % batch  # rounds until the next group
        for t in range(done + 1, horizon + 1):
            following = here + 1 if here + 1 < ring else 0
            if left == 0:
                left = batch
                while told != following:
                    tell(told, me, queue, tried, heard, total, note, params)
                    told = told + 1 if told + 1 < ring else 0
            left -= 1
            z = shock(rng, *world)
            arm = choose(rng, real(t), tried, heard, total, note, params)
            if arm < 0 or arm >= arms:
                stop[0] = WRONG_ARM
                return real(0.0)
            value = reward(z, arm, *world)
            add(tried, arm, real(1.0))
            add(earned, arm, value)
            due = np.float64(t + 1) + wait(rng, *waits)
            if due <= horizon:
                arm_of[here, me], value_of[here, me] = arm, value
                for j in range(memo):
                    memo_of[here, j, me] = note[arm, lasting + j]
                place = here + int(due) - t
                put(place if place < ring else place - ring, here, me, queue)
            here = following
        return close(earned, tried, pulls, me)

    return in_real(real, play, device)


def put_in_queue(place: Any, slot: Any, me: Any, queue: Any) -> None:
    """Put a trial at the end of the trials that are told in one round."""
    head, tail, link, _, _, _ = queue
    link[slot, me] = -1
    if head[place, me] < 0:
        head[place, me] = slot
    else:
        link[tail[place, me], me] = slot
    tail[place, me] = slot


def telling(arms: int, notes: int, memo: int, real: Any, device: Any, learn: Any) -> Any:
    """tell(place, ...): tell all rewards that become known in one round, in the order of the queue."""
    take, lasting = taking_in(arms, real, device, learn), notes - memo

    def tell(
        place: Any, me: Any, queue: Any, tried: Any, heard: Any, total: Any, note: Any, params: Any
    ) -> None:
        head, _, link, arm_of, value_of, memo_of = queue
        slot = head[place, me]
        head[place, me] = -1
        while slot >= 0:
            arm = np.int32(arm_of[slot, me])
            for j in range(memo):
                note[arm, lasting + j] = memo_of[slot, j, me]
            take(arm, value_of[slot, me], tried, heard, total, note, params)
            slot = link[slot, me]

    return in_real(real, tell, device)


def opening(notes: int, memo: int, real: Any, device: Any, formulas: Any) -> Any:
    """open_again(i, ...): draw the reward of a trial that was open at the beginning, and its delay."""
    put, add, shock, reward, wait = formulas

    def open_again(
        i: Any, me: Any, rng: Any, world: Any, waits: Any, horizon: Any, earned: Any, begun: Any, queue: Any
    ) -> None:
        _, ring, done, _, _, _, opened, memos = begun
        _, _, _, arm_of, value_of, memo_of = queue
        arm, slot = opened[i, 0], ring + i
        value = reward(shock(rng, *world), arm, *world)
        add(earned, arm, value)
        age = np.float64(done - opened[i, 1])
        delay = math.inf if waits[0] > 0.0 else age  # a reward that may never come did not come so far
        for _ in range(PATIENCE):  # given that the delay is at least the age of the trial
            drawn = wait(rng, *waits)
            if drawn >= age:
                delay = drawn
                break
        if delay - age < horizon - done:
            arm_of[slot, me], value_of[slot, me] = arm, value
            for j in range(memo):
                memo_of[slot, j, me] = memos[i, j]
            put(int(delay - age), slot, me, queue)

    return in_real(real, open_again, device)


def bytes_per_path(course: Course, horizon: int, memo: int, real: Any) -> int:
    """The memory for the queue of one path: head and tail, link, arm, reward and memo."""
    ring, each = course.ring(horizon), int(np.dtype(real).itemsize)
    return ring * 8 + (ring + course.open) * (5 + each * (1 + memo))


def queue_on_device(course: Course, horizon: int, memo: int, real: Any, paths: int) -> tuple[Any, ...]:
    """Room for the rewards of `paths` paths that are not yet known; the kernel empties its column first."""
    ring = course.ring(horizon)
    slots = ring + course.open
    head, tail = (cuda.device_array((ring, paths), np.int32) for _ in range(2))
    link, arm_of = (cuda.device_array((slots, paths), kind) for kind in (np.int32, np.int8))
    value_of = cuda.device_array((slots, paths), real)
    memo_of = cuda.device_array((slots, memo, paths) if memo else (1, 1, 1), real)
    return head, tail, link, arm_of, value_of, memo_of


def begun_on_device(course: Course, horizon: int, arms: int, rule: Rule, real: Any) -> tuple[Any, ...]:
    """The state in which all paths begin: numbers, then arrays with at least one place each."""
    _, batch, ring, done, counts, note, opened, memos = course.arguments(horizon, arms, rule.notes, rule.memo)
    numbers = tuple(np.int32(value) for value in (batch, ring, done, course.open))
    with np.errstate(over="ignore"):  # a number beyond single precision becomes infinity
        floats = [_padded(part).astype(real) for part in (counts, note, memos)]
    return *numbers, *map(cuda.to_device, (floats[0], floats[1], _padded(opened), floats[2]))


def _padded(array: Any) -> Any:
    """The array with at least one row and one column."""
    return np.pad(array, [(0, max(0, 1 - size)) for size in array.shape])
