"""What every kernel of a device does, and the kernel that plays any rule.

One thread plays one path, from the beginning of the path's own stream. `path_kernel` makes the kernel

    kernel[blocks, threads](seed, first, params, world, horizon, rewards, pulls, more)

from play(rng, params, world, horizon, pulls, place, more), which plays the path of the thread number `place`
and returns its reward. `seed` is `seed_state(seed)`, and `first` is the number of the first path. `params`
and `world` are the arguments of the CPU's kernels in the precision of the kernel. The kernel fills in
`rewards` and `pulls` (one row per arm). `more` is a tuple: the flag that says that a rule chose an arm that
does not exist, and the further arguments that late rewards need.

`stepping_paths` plays a rule whose rewards are known at once, and `lighttail.gpu.late` one whose rewards come
late. Both draw in the order of `lighttail.kernels.generic`. What a rule knows about its arms lies in local
arrays. If the arms are few, an arm is found by comparing its number with every number in turn: the compiler
unrolls such loops and can then keep the arrays in registers. The functions of the rule are compiled for exact
arithmetic, in which infinity is a number like any other.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np
from numba import config, cuda

from lighttail.gpu.formulas import in_precision
from lighttail.kernels.build import WRONG_ARM, Formula

FEW = 8  # arms up to which an arm is found by comparison


def same(function: Formula) -> Formula:
    """The function as it is."""
    return function


def in_real(real: Any, function: Formula, device: Any = same) -> Any:
    """The function with constants of this precision; what it calls has this precision already."""
    return device(in_precision(function, real, same))


def path_kernel(real: Any, begin: Any, play: Any) -> Any:
    """The kernel around `play`; real: the type of its floats."""
    short, long = np.uint32, np.uint64

    def kernel(
        seed: Any, first: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, more: Any
    ) -> None:
        place = cuda.grid(1)
        if place >= rewards.size:
            return
        state, spare = cuda.local.array(5, short), cuda.local.array(1, real)
        begin(state, seed, long(first + long(place)))
        rewards[place] = play((state, spare), params, world, horizon, pulls, place, more)

    if config.ENABLE_CUDASIM:  # the simulator puts its own `cuda` only into the globals of a kernel
        return types.FunctionType(kernel.__code__, play.__globals__, "kernel", None, kernel.__closure__)
    return kernel


def closing(arms: int, real: Any) -> Any:
    """close(sums, counts, pulls, place): fill in a path's pulls; returns its reward, added arm by arm."""
    nothing = real(0.0)

    def close(sums: Any, counts: Any, pulls: Any, place: Any) -> Any:
        total = nothing
        for arm in range(arms):
            total += sums[arm]
            pulls[arm, place] = np.int32(counts[arm])
        return total

    return close


def taking_in(arms: int, real: Any, device: Any, learn: Any) -> Any:
    """take(arm, value, tried, heard, total, note, params): add a reward to heard and total, then `learn`."""
    few = arms <= FEW

    def take(arm: Any, value: Any, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> None:
        if few:
            for k in range(arms):
                if k == arm:
                    heard[k] += 1.0
                    total[k] += value
                    learn(k, value, tried, heard, total, note, params)
        else:
            heard[arm] += 1.0
            total[arm] += value
            learn(arm, value, tried, heard, total, note, params)

    return in_real(real, take, device)


def adding(arms: int, real: Any, device: Any) -> Any:
    """add(values, arm, amount): add the amount to the value of an arm."""
    few = arms <= FEW

    def add(values: Any, arm: Any, amount: Any) -> None:
        if few:
            for k in range(arms):
                if k == arm:
                    values[k] += amount
        else:
            values[arm] += amount

    return in_real(real, add, device)


def stepping_paths(arms: int, notes: int, real: Any, device: Any, formulas: Any) -> Any:
    """play(...) for a rule whose rewards are known at once: `heard` is `tried`."""
    choose, learn, shock, reward = formulas
    take, close = taking_in(arms, real, device, learn), device(closing(arms, real))
    room = max(1, notes)  # a local array has at least one place

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any, more: Any) -> Any:
        tried, total = cuda.local.array(arms, real), cuda.local.array(arms, real)
        note = cuda.local.array((arms, room), real)
        for k in range(arms):
            tried[k] = total[k] = 0.0
            for j in range(room):
                note[k, j] = 0.0
        for t in range(1, horizon + 1):
            z = shock(rng, *world)
            arm = choose(rng, real(t), tried, tried, total, note, params)
            if arm < 0 or arm >= arms:
                more[0][0] = WRONG_ARM
                return real(0.0)
            take(arm, reward(z, arm, *world), tried, tried, total, note, params)
        return close(total, tried, pulls, place)

    return in_real(real, play, device)
