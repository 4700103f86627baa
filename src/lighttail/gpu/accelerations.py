"""The one table of unrolled kernels, which are faster for a class of policies than the generic kernel.

Deleting an entry, or all of them, leaves a slower library with the same laws; in double precision and in
numba's simulator of a device, with the same bits. A class is looked up by its exact type: a subclass may play
by other rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lighttail.gpu import kernels
from lighttail.policies import UCB, Exp3IX, Policy, SuccessiveElimination, ThompsonSampling

MANY = 8  # arms from which a tree in shared memory is faster than registers


class Fast(NamedTuple):
    """The maker of a rule in `lighttail.gpu.kernels`, the formulas of the policy that it takes, and the
    threads a block."""

    make: Callable[..., Any]
    formulas: tuple[Callable[..., Any], ...]
    threads: int = kernels.THREADS


def _ucb(policy: UCB, arms: int, real: Any) -> Fast:
    bonus = type(policy.bonus)
    formulas = (bonus.radius, bonus.clock)
    if bonus.changes_with_time():
        return Fast(kernels.moving_index_rule, formulas)
    if arms < MANY:
        return Fast(kernels.fixed_index_rule, formulas)
    return Fast(kernels.tree_rule, formulas, kernels.tree_threads(arms, real))


def _elimination(policy: SuccessiveElimination, arms: int, real: Any) -> Fast:
    return Fast(kernels.elimination_rule, (type(policy.bonus).radius, type(policy.bonus).clock))


def _thompson(policy: ThompsonSampling, arms: int, real: Any) -> Fast:
    return Fast(kernels.posterior_rule, (policy.posterior_mean, policy.posterior_sd))


def _weights(policy: Exp3IX, arms: int, real: Any) -> Fast:
    return Fast(kernels.weights_rule, (policy.weight, policy.gain))


ACCELERATIONS: dict[type[Policy], Callable[[Any, int, Any], Fast]] = {
    UCB: _ucb,
    SuccessiveElimination: _elimination,
    ThompsonSampling: _thompson,
    Exp3IX: _weights,
}


def fast(policy: Policy, arms: int, real: Any) -> Fast | None:
    """What there is for this policy on so many arms, in this precision."""
    make = ACCELERATIONS.get(type(policy))
    return make(policy, arms, real) if make is not None else None
