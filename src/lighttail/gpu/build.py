"""The kernel of a policy on a problem for the device, made once for each, precision and number of arms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import config, cuda

from lighttail.delays import Delay
from lighttail.gpu import draws
from lighttail.gpu.accelerations import unrolled
from lighttail.gpu.formulas import DRAWS, in_precision, on_device
from lighttail.gpu.generic import stepping_paths
from lighttail.gpu.kernels import THREADS
from lighttail.gpu.late import late_paths
from lighttail.gpu.paths import path_kernel
from lighttail.kernels.build import Formula, digest
from lighttail.policies import Policy
from lighttail.problems import Bandit


def device_kernel_for(policy: Policy, problem: Bandit, real: Any) -> tuple[Any, int]:
    """The kernel that plays one path per thread, compiled at its first launch, and its threads per block."""
    noise = (type(problem.noise).shock, type(problem.noise).reward)
    quick = unrolled(policy, problem.arms, real)
    if quick is not None:
        formulas = (*quick.formulas, *noise)
        return _unrolled(quick.make, problem.arms, real, digest(*formulas), *formulas), quick.threads
    rule = policy.rule()
    formulas = (rule.choose, rule.learn, *noise)
    return _stepping(rule.notes, problem.arms, real, digest(*formulas), *formulas), THREADS


def late_device_kernel_for(policy: Policy, problem: Bandit, delay: Delay, real: Any) -> tuple[Any, int]:
    """The same for rewards that come late, or paths that go on from a state."""
    rule, noise = policy.rule(), type(problem.noise)
    formulas = (rule.choose, rule.learn, noise.shock, noise.reward, type(delay).wait)
    return _late(rule.notes, rule.memo, problem.arms, real, digest(*formulas), *formulas), THREADS


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
        known = dict(zip(DRAWS, self.draws, strict=True))
        return tuple(on_device(formula, self.real, device, known) for formula in formulas)

    def of_rule(self, choose: Formula, learn: Formula, shock: Formula, reward: Formula) -> tuple[Any, ...]:
        """What every generic kernel takes."""
        return *self.functions((choose, learn), self.exact), *self.functions((shock, reward), self.device)

    def wait(self, formula: Formula) -> Any:
        """The formula of a delay, in double precision always: 23 random bits are few for a long one."""
        known = dict(zip(DRAWS, draws.draws_for(np.float64, self.exact), strict=True))
        return on_device(formula, np.float64, self.exact, known)


def _same(function: Formula) -> Formula:
    return function


@cache
def _unrolled(make: Any, arms: int, real: Any, version: str, *formulas: Formula) -> Any:
    """The kernel of a maker in `lighttail.gpu.kernels`."""
    maker = Maker(real)
    play = make(arms, real, maker.draws, maker.functions(formulas, maker.device))
    play = maker.device(in_precision(play, real, maker.device))
    return cuda.jit(path_kernel(real, maker.begin, play), fastmath=maker.fastmath)


@cache
def _stepping(notes: int, arms: int, real: Any, version: str, *formulas: Formula) -> Any:
    """The generic kernel of a rule: choose, learn, and shock and reward of the noise."""
    maker = Maker(real)
    play = stepping_paths(arms, notes, real, maker.exact, maker.of_rule(*formulas))
    return cuda.jit(path_kernel(real, maker.begin, play))


@cache
def _late(notes: int, memo: int, arms: int, real: Any, version: str, *formulas: Formula) -> Any:
    """The kernel of late rewards: the same, and the formula of the delay."""
    maker = Maker(real)
    *rule, wait = formulas
    parts = (*maker.of_rule(*rule), maker.wait(wait))
    play = late_paths(arms, notes, memo, real, maker.exact, parts)
    return cuda.jit(path_kernel(real, maker.begin, play))
