"""The rules of play, compiled by numba; importing this package imports numba.

A kernel plays the paths of one block:

    kernel(rng, params, world, horizon, rewards, pulls, stop)

`rng` is `stream(generator)`, `params` the policy's floats and `world` the problem's, `rewards` and
`pulls` are filled in, and `stop`, an array of one integer, ends the call early once it is not 0.
Each round draws first the shock behind the reward, then whatever the policy draws.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from lighttail.delays import Delay
from lighttail.kernels import accelerations
from lighttail.kernels.branching import SCORES, Score, branching_kernel
from lighttail.kernels.build import digest
from lighttail.kernels.draws import stream
from lighttail.kernels.generic import late_kernel, stepping_kernel
from lighttail.kernels.inverse import inverse_kernel
from lighttail.kernels.linear import changing_linear_kernel, fixed_linear_kernel, linear_posterior_kernel
from lighttail.kernels.tilted import tilted_kernel
from lighttail.policies import Policy
from lighttail.problems import Bandit

__all__ = [
    "branching_kernel_for",
    "inverse_kernel_for",
    "kernel_for",
    "late_kernel_for",
    "programme_kernel_for",
    "score_for",
    "skip_kernel_for",
    "stream",
    "tilted_kernel_for",
    "tilted_skip_kernel_for",
]

Kernel = Callable[..., Any]
_made = cache(lambda factory, version, *parts: factory(*parts))


def kernel_for(policy: Policy, problem: Any) -> Kernel:
    """The kernel of a policy on a problem: one for all hyper-parameters, means and horizons."""
    if problem.linear:
        return _linear_kernel_for(policy, problem)
    noise = accelerations.functions(type(problem.noise), ("shock", "reward"))
    quick = accelerations.fast(policy)
    if quick is None:
        return _with_rule(stepping_kernel, policy, *noise)
    make, parts = quick.step
    return _of(make, *parts, *noise)


def _of(make: Callable[..., Any], *formulas: Callable[..., Any]) -> Kernel:
    return _made(make, digest(*formulas), *formulas)  # type: ignore[no-any-return]


def _with_rule(make: Callable[..., Any], policy: Policy, *formulas: Callable[..., Any]) -> Kernel:
    rule = policy.rule()
    version = digest(rule.choose, rule.learn, rule.settled, *formulas)
    return _made(make, version, rule, *formulas)  # type: ignore[no-any-return]


def late_kernel_for(policy: Policy, problem: Any, delay: Delay) -> Kernel:
    """The kernel that plays any policy with rewards that come late (`lighttail.kernels.generic`)."""
    noise = accelerations.functions(type(problem.noise), ("shock", "reward"))
    return _with_rule(late_kernel, policy, *noise, type(delay).wait)


def tilted_kernel_for(policy: Policy, problem: Bandit) -> Kernel:
    """The kernel that plays a policy under tilted laws (`lighttail.kernels.tilted`)."""
    return _with_rule(tilted_kernel, policy, type(problem.noise).shock, type(problem.noise).reward)


def skip_kernel_for(policy: Policy, problem: Any, tilted: bool = False) -> Kernel:
    """The kernel that skips ahead, where `lighttail.running.methods` says that there is one."""
    quick = accelerations.fast(policy)
    entry = None if quick is None else quick.tilted_skip if tilted else quick.skip
    if entry is None:
        raise TypeError(f"no kernel skips ahead with {policy!r}")
    make, parts, names = entry
    return _of(make, *parts, *accelerations.functions(type(problem.noise), names))


def tilted_skip_kernel_for(policy: Policy, problem: Any) -> Kernel:
    """The same paths in law, skipping ahead (`lighttail.kernels.tilted_skip`)."""
    return skip_kernel_for(policy, problem, tilted=True)


def inverse_kernel_for(policy: Any) -> Kernel:
    """The kernel that finds the means of given indices (`lighttail.kernels.inverse`)."""
    return _of(inverse_kernel, policy.index_formula())


def score_for(policy: Policy) -> Score:
    """The maker of the score by which a policy's paths are split, its formulas, and what it goes by."""
    return SCORES[policy.plays_by](policy)


def branching_kernel_for(policy: Policy, problem: Bandit) -> Kernel:
    """The kernel that splits a policy's paths (`lighttail.kernels.branching`)."""
    rule, (score, parts, _) = policy.rule(), score_for(policy)
    noise = (type(problem.noise).shock, type(problem.noise).reward)
    version = digest(rule.choose, rule.learn, rule.settled, *parts, *noise)
    return _made(branching_kernel, version, rule, score, parts, *noise)  # type: ignore[no-any-return]


def programme_kernel_for(policy: Policy) -> Kernel:
    """What an exact programme compiles of a policy (`lighttail.kernels.programme`)."""
    quick = accelerations.fast(policy)
    if quick is None or quick.programme is None:
        raise TypeError(f"no programme carries the states of {policy!r} forward")
    make, parts = quick.programme
    return _of(make, *parts)


def _linear_kernel_for(policy: Any, problem: Any) -> Kernel:
    noise = (type(problem.noise).shock, type(problem.noise).reward, type(problem.actions).fill)
    if policy.draws:
        return _of(linear_posterior_kernel, *noise)
    make = fixed_linear_kernel if problem.fixed else changing_linear_kernel
    return _of(make, type(policy.bonus).radius, type(policy.bonus).clock, *noise)
