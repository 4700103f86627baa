"""The kernel of a policy on a problem for the device, made once for each, precision and number of arms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import config, cuda

from lighttail import streams
from lighttail.gpu import draws
from lighttail.gpu.accelerations import fast
from lighttail.gpu.formulas import in_precision, on_device
from lighttail.gpu.generic import stepping_kernel
from lighttail.gpu.kernels import THREADS, path_kernel
from lighttail.kernels.build import Formula, digest
from lighttail.policies import Policy
from lighttail.problems import Bandit


def device_kernel_for(policy: Policy, problem: Bandit, real: Any) -> tuple[Any, int]:
    """The kernel that plays one path a thread, compiled at its first launch, and its threads a block."""
    noise = (type(problem.noise).shock, type(problem.noise).reward)
    quick = fast(policy, problem.arms, real)
    if quick is not None:
        formulas = (*quick.formulas, *noise)
        return _unrolled(quick.make, problem.arms, real, digest(*formulas), *formulas), quick.threads
    rule = policy.rule()
    formulas = (rule.choose, rule.learn, *noise)
    return _stepping(rule.notes, problem.arms, real, digest(*formulas), *formulas), THREADS


class Maker:
    """What turns plain functions into functions of the device in one precision.

    device: for what is a number whatever happens: draws and rewards. In single precision it divides, takes
    roots and logarithms by the device's approximations, which are as precise as its sums. exact: for rules
    and delays, in which infinity is a number.
    """

    def __init__(self, real: Any) -> None:
        self.real = real
        self.fastmath = real is np.float32
        self.device: Any = cuda.jit(device=True, fastmath=self.fastmath)
        self.exact: Any = cuda.jit(device=True)
        if config.ENABLE_CUDASIM:  # where a kernel calls plain functions
            self.device = self.exact = _same
        self.draws = draws.draws_for(real, self.device)
        self.begin = self.device(in_precision(draws.begin, real, self.device))

    def functions(self, formulas: tuple[Formula, ...], device: Any) -> tuple[Any, ...]:
        """The formulas, and whatever they call, by `device` or `exact`."""
        known = dict(zip((streams.standard_normal, streams.uniform), self.draws, strict=True))
        return tuple(on_device(formula, self.real, device, known) for formula in formulas)


def _same(function: Formula) -> Formula:
    return function


@cache
def _unrolled(make: Any, arms: int, real: Any, version: str, *formulas: Formula) -> Any:
    """The kernel of a rule in `lighttail.gpu.kernels`."""
    maker = Maker(real)
    play = make(arms, real, maker.draws, maker.functions(formulas, maker.device))
    kernel = path_kernel(real, maker.begin, maker.device(in_precision(play, real, maker.device)))
    return cuda.jit(kernel, fastmath=maker.fastmath)


@cache
def _stepping(notes: int, arms: int, real: Any, version: str, *formulas: Formula) -> Any:
    """The generic kernel of a rule: choose, learn, and shock and reward of the noise."""
    maker = Maker(real)
    parts = (*maker.functions(formulas[:2], maker.exact), *maker.functions(formulas[2:], maker.device))
    return cuda.jit(stepping_kernel(arms, notes, real, maker.exact, maker.begin, parts))
