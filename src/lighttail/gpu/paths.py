"""What every kernel of a device does: one thread plays one path from the beginning of the path's own stream.

`path_kernel` makes the kernel

    kernel[blocks, threads](seed, first, params, world, horizon, rewards, pulls, more)

from play(rng, params, world, horizon, pulls, place, more), which plays the path of the thread number `place`
and returns its reward. `seed` is `seed_state(seed)`, `first` the number of the first path; `params` and
`world` are what the kernels of the CPU take, in the precision of the kernel; `rewards` and `pulls` (one row
per arm) are filled in. `more` is a tuple: the flag of a rule that chose an arm that there is not, and what
late rewards need besides.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np
from numba import config, cuda


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

    if config.ENABLE_CUDASIM:  # which puts its own `cuda` into the globals of a kernel alone
        return types.FunctionType(kernel.__code__, play.__globals__, "kernel", None, kernel.__closure__)
    return kernel


def closing(arms: int, real: Any) -> Any:
    """close(sums, counts, pulls, place): fill in a path's pulls; returns its reward, arm by arm."""
    nothing = real(0.0)

    def close(sums: Any, counts: Any, pulls: Any, place: Any) -> Any:
        total = nothing
        for arm in range(arms):
            total += sums[arm]
            pulls[arm, place] = np.int32(counts[arm])
        return total

    return close
