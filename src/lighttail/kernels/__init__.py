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

from lighttail.kernels import branching
from lighttail.kernels.build import digest
from lighttail.kernels.draws import stream
from lighttail.kernels.elimination import elimination_kernel
from lighttail.kernels.index import fixed_index_kernel, moving_index_kernel
from lighttail.kernels.linear import changing_linear_kernel, fixed_linear_kernel, linear_posterior_kernel
from lighttail.kernels.posterior import posterior_kernel
from lighttail.kernels.programme import index_programme, phase_width, posterior_programme
from lighttail.kernels.rules import rule_of
from lighttail.kernels.skip import lead_kernel, level_kernel
from lighttail.kernels.tilted import tilted_kernel
from lighttail.kernels.tilted_skip import tilted_skip_kernel
from lighttail.kernels.weights import weights_kernel
from lighttail.linear import LinearBandit, LinearThompson, LinearUCB
from lighttail.policies import UCB, Exp3IX, Policy, SuccessiveElimination, ThompsonSampling
from lighttail.problems import Bandit

__all__ = [
    "branching_kernel_for",
    "kernel_for",
    "programme_kernel_for",
    "skip_kernel_for",
    "stream",
    "tilted_kernel_for",
    "tilted_skip_kernel_for",
]

_made = cache(lambda factory, version, *formulas: factory(*formulas))


def kernel_for(policy: Policy, problem: Bandit | LinearBandit) -> Callable[..., None]:
    """The kernel of a policy on a problem: one for all hyper-parameters, means and horizons."""
    if isinstance(problem, LinearBandit):
        return _linear_kernel_for(policy, problem)
    noise = type(problem.noise)
    factory: Any
    formulas: tuple[Callable[..., float], ...]
    match policy:
        case UCB(bonus) if type(bonus).changes_with_time():
            factory, formulas = moving_index_kernel, (type(bonus).radius, type(bonus).clock)
        case UCB(bonus):
            factory, formulas = fixed_index_kernel, (type(bonus).radius,)
        case SuccessiveElimination(bonus):
            factory, formulas = elimination_kernel, (type(bonus).radius, type(bonus).clock)
        case ThompsonSampling():
            factory, formulas = posterior_kernel, (policy.posterior_mean, policy.posterior_sd)
        case Exp3IX():
            factory, formulas = weights_kernel, (policy.weight, policy.gain)
        case _:
            raise TypeError(f"no kernel plays {policy!r}")
    formulas = (*formulas, noise.shock, noise.reward)
    return _made(factory, digest(*formulas), *formulas)  # type: ignore[no-any-return]


def tilted_kernel_for(policy: Policy, problem: Bandit) -> Callable[..., None]:
    """The kernel that plays a policy under tilted laws (`lighttail.kernels.tilted`)."""
    maker, formulas = rule_of(policy)
    formulas = (*formulas, type(problem.noise).shock, type(problem.noise).reward)
    return _made(tilted_kernel, digest(*formulas), maker, *formulas)  # type: ignore[no-any-return]


def tilted_skip_kernel_for(policy: Policy, problem: Any) -> Callable[..., None]:
    """The same paths in law, skipping ahead (`lighttail.kernels.tilted_skip`); UCB, radius without time."""
    noise: Any = type(problem.noise)
    bonus: Any = type(policy.bonus) if isinstance(policy, UCB) else None
    if bonus is None or bonus.changes_with_time():
        raise TypeError(f"no kernel skips ahead under tilted laws with {policy!r}")
    formulas = (bonus.radius, bonus.bend, noise.total, noise.part, noise.clear, noise.proxy)
    return _made(tilted_skip_kernel, digest(*formulas), *formulas)  # type: ignore[no-any-return]


def branching_kernel_for(policy: Policy, problem: Bandit) -> Callable[..., Any]:
    """The kernel that splits a policy's paths (`lighttail.kernels.branching`)."""
    maker, formulas = rule_of(policy)
    score = branching.SCORES[type(policy)]
    every = (*formulas, type(problem.noise).shock, type(problem.noise).reward)
    return _made(branching.branching_kernel, digest(*every), maker, score, len(formulas), *every)  # type: ignore[no-any-return]


def programme_kernel_for(policy: Policy) -> Callable[..., float]:
    """What an exact programme compiles of a policy (`lighttail.kernels.programme`)."""
    factory: Any
    formulas: tuple[Callable[..., float], ...]
    match policy:
        case UCB(bonus):
            factory, formulas = index_programme, (type(bonus).radius, type(bonus).clock)
        case SuccessiveElimination(bonus):
            factory, formulas = phase_width, (type(bonus).radius, type(bonus).clock)
        case ThompsonSampling():
            factory, formulas = posterior_programme, (policy.posterior_mean, policy.posterior_sd)
        case _:
            raise TypeError(f"no programme carries the states of {policy!r} forward")
    return _made(factory, digest(*formulas), *formulas)  # type: ignore[no-any-return]


def skip_kernel_for(policy: Policy, problem: Any) -> Callable[..., None]:
    """The kernel that skips ahead, where `lighttail.methods` says that there is one."""
    noise: Any = type(problem.noise)
    factory: Any
    formulas: tuple[Callable[..., float], ...]
    walk = (noise.total, noise.part, noise.clear, noise.proxy)
    match policy:
        case UCB(bonus) if type(bonus).changes_with_time():
            factory, formulas = lead_kernel, (type(bonus).radius, type(bonus).clock, type(bonus).bend, *walk)
        case UCB(bonus):
            factory, formulas = level_kernel, (type(bonus).radius, type(bonus).bend, *walk)
        case SuccessiveElimination(bonus):
            factory = elimination_kernel
            formulas = (type(bonus).radius, type(bonus).clock, noise.shock, noise.reward, noise.total)
        case _:
            raise TypeError(f"no kernel skips ahead with {policy!r}")
    return _made(factory, digest(*formulas), *formulas)  # type: ignore[no-any-return]


def _linear_kernel_for(policy: Policy, problem: LinearBandit) -> Callable[..., None]:
    noise, fill = type(problem.noise), type(problem.actions).fill
    factory: Any
    formulas: tuple[Callable[..., Any], ...] = (noise.shock, noise.reward, fill)
    match policy:
        case LinearUCB(bonus):
            factory = fixed_linear_kernel if problem.fixed else changing_linear_kernel
            formulas = (type(bonus).radius, type(bonus).clock, *formulas)
        case LinearThompson():
            factory = linear_posterior_kernel
        case _:
            raise TypeError(f"no kernel plays {policy!r}")
    return _made(factory, digest(*formulas), *formulas)  # type: ignore[no-any-return]
