"""Any rule on a device: the paths that the unrolled ones of `lighttail.gpu.kernels` are measured against.

`stepping_paths` plays paths whose rewards are known at once, `lighttail.gpu.late` paths whose rewards come
late; `lighttail.gpu.paths` makes kernels of both. Both draw in the order of `lighttail.kernels.generic`. What
a rule knows of its arms lies in local arrays of the kernel's precision. While the arms are few, an arm is
found by comparing it with every number in turn, so that the compiler, which unrolls such loops, can keep all
of it in registers.

The functions of the rule are compiled for exact arithmetic, in which infinity is a number as any other.
"""

from __future__ import annotations

from typing import Any

from numba import cuda

from lighttail.gpu.formulas import in_precision
from lighttail.gpu.paths import closing
from lighttail.kernels.build import WRONG_ARM, Formula

FEW = 8  # arms up to which an arm is found by comparison


def _same(function: Formula) -> Formula:
    return function


def in_real(real: Any, function: Formula, device: Any = _same) -> Any:
    """The function with constants of this precision; what it closes over has it already."""
    return device(in_precision(function, real, _same))


def taking_in(arms: int, real: Any, device: Any, learn: Any) -> Any:
    """take(arm, value, tried, heard, total, note, params): a reward for heard, total and then `learn`."""
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
    """add(values, arm, amount) to one of the values, each of which belongs to an arm."""
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
    """play(...) of a rule whose rewards are known at once: `heard` is `tried`."""
    choose, learn, shock, reward = formulas
    take, close = taking_in(arms, real, device, learn), device(closing(arms, real))
    room = max(1, notes)  # a local array has at least one place

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any, more: Any) -> Any:
        tried, total = cuda.local.array(arms, real), cuda.local.array(arms, real)
        note = cuda.local.array((arms, room), real)
        for k in range(arms):
            tried[k] = 0.0
            total[k] = 0.0
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
