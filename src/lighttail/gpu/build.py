"""The kernel of a policy on a problem for the device, made once for each, precision and number of arms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import config, cuda

from lighttail import streams
from lighttail.gpu import draws, kernels
from lighttail.gpu.formulas import in_precision, on_device
from lighttail.kernels.build import Formula, digest
from lighttail.policies import UCB, Exp3IX, Policy, SuccessiveElimination, ThompsonSampling
from lighttail.problems import Bandit

MANY = 8  # arms from which a tree in shared memory is faster than registers
SHARED = 48 * 1024  # bytes of shared memory a block
THREADS = 128  # a block, if there is room


def threads_for(rule: str, arms: int, real: Any) -> int:
    """Threads a block: as many as find room for their trees in shared memory."""
    size = np.dtype(real).itemsize
    each = (2 << (arms - 1).bit_length()) * (size + 2) + arms * 2 * size if rule == "tree" else 0
    threads = THREADS
    while threads * each > SHARED:
        threads //= 2
    return threads


def device_kernel_for(policy: Policy, problem: Bandit, real: Any) -> tuple[Any, int]:
    """The kernel that plays one path a thread, compiled at its first launch, and its threads a block."""
    moving = False
    formulas: tuple[Formula, ...]
    match policy:
        case UCB(bonus):
            moving, formulas = type(bonus).changes_with_time(), (type(bonus).radius, type(bonus).clock)
            rule = "index" if moving or problem.arms < MANY else "tree"
        case SuccessiveElimination(bonus):
            rule, formulas = "elimination", (type(bonus).radius, type(bonus).clock)
        case ThompsonSampling():
            rule, formulas = "posterior", (policy.posterior_mean, policy.posterior_sd)
        case Exp3IX():
            rule, formulas = "weights", (policy.weight, policy.gain)
        case _:
            raise TypeError(f"no device plays {policy!r}")
    noise = type(problem.noise)
    formulas = (*formulas, noise.shock, noise.reward)
    kernel = _made(rule, moving, problem.arms, real, digest(*formulas), *formulas)
    return kernel, threads_for(rule, problem.arms, real)


def _same(function: Formula) -> Formula:
    return function


@cache
def _made(rule: str, moving: bool, arms: int, real: Any, version: str, *formulas: Formula) -> Any:
    """In single precision with approximate division and functions, which are as precise as its sums."""
    fastmath = real is np.float32
    device: Any = cuda.jit(device=True, fastmath=fastmath)
    if config.ENABLE_CUDASIM:  # where a kernel calls plain functions
        device = _same
    normal, uniform = draws.draws_for(real, device)
    known = {streams.standard_normal: normal, streams.uniform: uniform}
    parts = tuple(on_device(formula, real, device, known) for formula in formulas)
    match rule:
        case "index":
            play = kernels.index_rule(arms, real, moving, uniform, parts)
        case "tree":
            play = kernels.tree_rule(arms, real, threads_for(rule, arms, real), uniform, parts)
        case "elimination":
            play = kernels.elimination_rule(arms, real, parts)
        case "posterior":
            play = kernels.posterior_rule(arms, real, normal, parts)
        case _:
            play = kernels.weights_rule(arms, real, uniform, parts)
    begin = device(in_precision(draws.begin, real, device))
    kernel = kernels.path_kernel(real, begin, device(in_precision(play, real, device)))
    return cuda.jit(kernel, fastmath=fastmath)
