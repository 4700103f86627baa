"""The rules of play, compiled by numba; importing this package imports numba.

A kernel plays the paths of one block:

    kernel(rng, params, world, horizon, rewards, pulls, stop)

`rng` is `stream(generator)`, `params` are the numbers of the policy, and `world` are the numbers of the
problem. The kernel fills in `rewards` and `pulls`. `stop`, an array of one integer, ends the call early once
the integer is not 0. In each round the shock behind the reward is drawn first; then the policy draws.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from lighttail.delays import wait
from lighttail.kernels import accelerations
from lighttail.kernels.branching import SCORES, Score, branching_kernel
from lighttail.kernels.build import digest
from lighttail.kernels.draws import stream as stream
from lighttail.kernels.generic import late_kernel, windowed_kernel
from lighttail.kernels.inverse import inverse_kernel
from lighttail.kernels.linear import changing_linear_kernel, fixed_linear_kernel, linear_posterior_kernel
from lighttail.noises.noise import DRAWS
from lighttail.policies import Policy
from lighttail.problems import Bandit

Kernel = Callable[..., Any]
_made = cache(lambda make, version, *parts: make(*parts))


def _kernel(make: Callable[..., Any], *parts: Any) -> Kernel:
    """The kernel that a maker makes from formulas and rules, once for each version of the formulas."""
    return _made(make, digest(*parts), *parts)  # type: ignore[no-any-return]


def _of_noise(problem: Any, names: tuple[str, ...] = DRAWS) -> tuple[Any, ...]:
    """The functions of the problem's noise with these names."""
    return tuple(getattr(type(problem.noise), name) for name in names)


def kernel_for(policy: Policy, problem: Any) -> Kernel:
    """The kernel of a policy on a problem: one for all hyper-parameters, means and horizons."""
    if problem.linear:
        return _linear_kernel_for(policy, problem)
    make, parts = accelerations.fastest(policy).step
    return _kernel(make, *parts, *_of_noise(problem))


def late_kernel_for(policy: Policy, problem: Any) -> Kernel:
    """The kernel that plays any policy with rewards that come late (`lighttail.kernels.generic`)."""
    return _kernel(late_kernel, policy.rule(), *_of_noise(problem), wait)


def continuing_kernel_for(policy: Policy, problem: Any, skip: bool = False, floors: bool = False) -> Kernel:
    """The kernel of paths that continue from a state (`lighttail.kernels.beginning`). skip: whether to skip
    ahead, if `lighttail.running.continued` says that there is such a kernel."""
    makers = accelerations.fastest(policy)
    if floors or not makers.onward:
        makers = accelerations.generic(policy)
    if skip and makers.skip is not None:
        make, parts, names = makers.skip
        return _kernel(make, *parts, *_of_noise(problem, names), True)
    make, parts = makers.step
    return _kernel(make, *parts, *_of_noise(problem), True, type(problem.noise).total)


def windowed_kernel_for(policy: Policy, problem: Any) -> Kernel:
    """The kernel of paths whose rewards a window keeps back (`lighttail.kernels.generic`)."""
    return _kernel(windowed_kernel, policy.rule(), *_of_noise(problem))


def tilted_kernel_for(policy: Policy, problem: Bandit) -> Kernel:
    """The kernel that plays a policy under tilted laws (`lighttail.kernels.tilted`)."""
    make, parts = accelerations.fastest(policy).tilted
    return _kernel(make, *parts, *_of_noise(problem))


def skip_kernel_for(policy: Policy, problem: Any, tilted: bool = False) -> Kernel:
    """The kernel that skips ahead, if `lighttail.running.prepare` says that there is one.

    tilted: under tilted laws (`lighttail.kernels.tilted_skip`).
    """
    makers = accelerations.fastest(policy)
    entry = makers.tilted_skip if tilted else makers.skip
    if entry is None:
        raise TypeError(f"no kernel skips ahead with {policy!r}")
    make, parts, names = entry
    return _kernel(make, *parts, *_of_noise(problem, names))


def inverse_kernel_for(policy: Any) -> Kernel:
    """The kernel that finds the means of given indices (`lighttail.kernels.inverse`)."""
    return _kernel(inverse_kernel, policy.index_formula())


def score_for(policy: Policy) -> Score:
    """The maker of the score by which a policy's paths are split, its formulas, and the score in words."""
    return SCORES[policy.plays_by](policy)


def branching_kernel_for(policy: Policy, problem: Bandit) -> Kernel:
    """The kernel that splits a policy's paths (`lighttail.kernels.branching`)."""
    score, parts, _ = score_for(policy)
    return _kernel(branching_kernel, policy.rule(), score, parts, *_of_noise(problem))


def programme_kernel_for(policy: Policy) -> Kernel:
    """The kernel of a policy's exact programme (`lighttail.kernels.programme`)."""
    programme = accelerations.fastest(policy).programme
    if programme is None:
        raise TypeError(f"no programme carries the states of {policy!r} forward")
    make, parts = programme
    return _kernel(make, *parts)


def _linear_kernel_for(policy: Any, problem: Any) -> Kernel:
    noise = (*_of_noise(problem), type(problem.actions).fill)
    if policy.draws:
        return _kernel(linear_posterior_kernel, *noise)
    make = fixed_linear_kernel if problem.fixed else changing_linear_kernel
    return _kernel(make, type(policy.bonus).radius, type(policy.bonus).clock, *noise)
