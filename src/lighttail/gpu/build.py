"""The device's kernel of a policy on a problem, made once for each precision and number of arms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import config, cuda

from lighttail.delays import wait
from lighttail.gpu import draws
from lighttail.gpu.accelerations import unrolled
from lighttail.gpu.formulas import in_precision, on_device
from lighttail.gpu.generic import path_kernel, same, stepping_paths
from lighttail.gpu.kernels import THREADS
from lighttail.gpu.late import late_paths
from lighttail.kernels.build import BASIC_DRAWS, Formula, digest
from lighttail.policies import Policy
from lighttail.problems import Bandit


def device_kernel_for(policy: Policy, problem: Bandit, real: Any, late: bool) -> tuple[Any, int]:
    """The kernel that plays one path per thread, compiled at its first launch, and its threads per block.

    late: whether rewards come late, or paths continue from a state.
    """
    arms, noise = problem.arms, (type(problem.noise).shock, type(problem.noise).reward)
    quick = None if late else unrolled(policy, arms, real)
    if quick is not None:
        formulas = (*quick.formulas, *noise)
        return _unrolled(quick.make, arms, real, digest(*formulas), *formulas), quick.threads
    rule = policy.rule()
    formulas = (rule.choose, rule.learn, *noise, wait) if late else (rule.choose, rule.learn, *noise)
    make, sizes = (late_paths, (rule.notes, rule.memo)) if late else (stepping_paths, (rule.notes,))
    return _generic(make, sizes, arms, real, digest(*formulas), *formulas), THREADS


class Maker:
    """Turns plain functions into functions of the device in one precision.

    device: compiles draws and rewards, which are always finite. In single precision, quotients, roots and
    logarithms are then the device's approximations, which are as precise as its sums. exact: compiles rules
    and delays, in which infinity is a number.
    """

    def __init__(self, real: Any) -> None:
        self.real = real
        self.fastmath = real is np.float32
        self.device: Any = cuda.jit(device=True, fastmath=self.fastmath)
        self.exact: Any = cuda.jit(device=True)
        if config.ENABLE_CUDASIM:  # in the simulator a kernel calls plain functions
            self.device = self.exact = same
        self.draws = draws.draws_for(real, self.device)
        self.begin = self.device(in_precision(draws.begin, real, self.device))

    def functions(self, formulas: tuple[Formula, ...], device: Any) -> tuple[Any, ...]:
        """The formulas and the functions that they call, compiled by `device` or `exact`."""
        known = dict(zip(BASIC_DRAWS, self.draws, strict=True))
        return tuple(on_device(formula, self.real, device, known) for formula in formulas)

    def wait(self, formula: Formula) -> Any:
        """The formula of a delay, always in double precision: 23 random bits are too few for a long delay."""
        known = dict(zip(BASIC_DRAWS, draws.draws_for(np.float64, self.exact), strict=True))
        return on_device(formula, np.float64, self.exact, known)


@cache
def _unrolled(make: Any, arms: int, real: Any, version: str, *formulas: Formula) -> Any:
    """The kernel of a maker in `lighttail.gpu.kernels`."""
    maker = Maker(real)
    play = make(arms, real, maker.draws, maker.functions(formulas, maker.device))
    play = maker.device(in_precision(play, real, maker.device))
    return cuda.jit(path_kernel(real, maker.begin, play), fastmath=maker.fastmath)


@cache
def _generic(make: Any, sizes: Any, arms: int, real: Any, version: str, *formulas: Formula) -> Any:
    """The kernel of `stepping_paths` or `late_paths`. formulas: choose, learn, shock, reward (and wait)."""
    maker = Maker(real)
    rule, noise = maker.functions(formulas[:2], maker.exact), maker.functions(formulas[2:4], maker.device)
    parts = (*rule, *noise, *map(maker.wait, formulas[4:]))
    play = make(arms, *sizes, real, maker.exact, parts)
    return cuda.jit(path_kernel(real, maker.begin, play))
