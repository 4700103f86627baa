"""The one table of unrolled kernels, which are faster for a class of policies than the generic kernel.

Without an entry, or without all of them, the library is slower and gives the same laws; in double precision,
and in numba's simulator of a device, also the same bits. A class is looked up by its exact type, because a
subclass may play by other rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lighttail.gpu import kernels
from lighttail.policies import UCB, Exp3IX, Policy, SuccessiveElimination, ThompsonSampling

MANY = 8  # arms from which a tree in shared memory is faster than registers


class Unrolled(NamedTuple):
    """A maker of paths in `lighttail.gpu.kernels`, the policy's formulas that the maker takes, and the number
    of threads per block."""

    make: Callable[..., Any]
    formulas: tuple[Callable[..., Any], ...]
    threads: int = kernels.THREADS


def _ucb(policy: UCB, arms: int, real: Any) -> Unrolled:
    bonus = type(policy.bonus)
    formulas = (bonus.radius, bonus.clock)
    if bonus.changes_with_time():
        return Unrolled(kernels.moving_index_paths, formulas)
    if arms < MANY:
        return Unrolled(kernels.index_paths, formulas)
    return Unrolled(kernels.tree_paths, formulas, kernels.tree_threads(arms, real))


def _elimination(policy: SuccessiveElimination, arms: int, real: Any) -> Unrolled:
    return Unrolled(kernels.elimination_paths, (type(policy.bonus).radius, type(policy.bonus).clock))


def _thompson(policy: ThompsonSampling, arms: int, real: Any) -> Unrolled:
    return Unrolled(kernels.posterior_paths, (policy.posterior_mean, policy.posterior_sd))


def _weights(policy: Exp3IX, arms: int, real: Any) -> Unrolled:
    return Unrolled(kernels.weights_paths, (policy.weight, policy.gain))


ACCELERATIONS: dict[type[Policy], Callable[[Any, int, Any], Unrolled]] = {
    UCB: _ucb,
    SuccessiveElimination: _elimination,
    ThompsonSampling: _thompson,
    Exp3IX: _weights,
}


def unrolled(policy: Policy, arms: int, real: Any) -> Unrolled | None:
    """The entry of a policy for this number of arms and this precision; None if there is none."""
    make = ACCELERATIONS.get(type(policy))
    return make(policy, arms, real) if make is not None else None
