"""The one table of kernels that are faster for a class of policies than the generic kernels, or exact.

Without an entry, or without the whole table, the library is slower and gives the same bits (skip-ahead: the
same laws). A class is looked up by its exact type, because a subclass may play by other rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lighttail.kernels.lead import lead_kernel
from lighttail.kernels.programme import index_programme, phase_width, posterior_programme
from lighttail.kernels.skip import level_kernel
from lighttail.kernels.stepping import (
    elimination_kernel,
    fixed_index_kernel,
    moving_index_kernel,
    posterior_kernel,
)
from lighttail.kernels.tilted_run import tilted_run_kernel
from lighttail.kernels.tilted_skip import tilted_skip_kernel
from lighttail.policies import UCB, Policy, SuccessiveElimination, ThompsonSampling

Make = Callable[..., Any]
Parts = tuple[Any, ...]  # formulas, and whether they change with time


class Fast(NamedTuple):
    """Makers of kernels, each with the policy's formulas that the maker takes; None if there is no maker.

    step: plays every pull; the maker also takes `shock` and `reward` of the noise. skip: skips ahead; the
    maker also takes the functions of the noise that are named. tilted, tilted_skip: as step and skip, under
    tilted laws. programme: finds exact laws. onward: whether step and skip can begin in a state
    (`lighttail.kernels.beginning`).
    """

    step: tuple[Make, Parts]
    skip: tuple[Make, Parts, tuple[str, ...]] | None = None
    tilted_skip: tuple[Make, Parts, tuple[str, ...]] | None = None
    programme: tuple[Make, Parts] | None = None
    tilted: tuple[Make, Parts] | None = None
    onward: bool = False


SUMS = ("total", "part", "clear", "proxy")


def _ucb(policy: UCB) -> Fast:
    bonus = type(policy.bonus)
    timed = (bonus.radius, bonus.clock)
    programme = (index_programme, timed)
    tilted = (tilted_run_kernel, (*timed, bonus.changes_with_time()))
    if bonus.changes_with_time():
        lead = (lead_kernel, (*timed, bonus.bend), SUMS)
        return Fast((moving_index_kernel, timed), lead, None, programme, tilted, True)
    parts, step = (bonus.radius, bonus.bend), (fixed_index_kernel, (bonus.radius,))
    level, leaping = (level_kernel, parts, SUMS), (tilted_skip_kernel, parts, SUMS)
    return Fast(step, level, leaping, programme, tilted, True)


def _elimination(policy: SuccessiveElimination) -> Fast:
    parts = (type(policy.bonus).radius, type(policy.bonus).clock)
    skip = (elimination_kernel, parts, ("shock", "reward", "total"))
    return Fast((elimination_kernel, parts), skip, None, (phase_width, parts))


def _thompson(policy: ThompsonSampling) -> Fast:
    parts = (policy.posterior_mean, policy.posterior_sd)
    return Fast((posterior_kernel, parts), programme=(posterior_programme, parts))


ACCELERATIONS: dict[type[Policy], Callable[[Any], Fast]] = {
    UCB: _ucb,
    SuccessiveElimination: _elimination,
    ThompsonSampling: _thompson,
}


def fast(policy: Policy) -> Fast | None:
    """The entry of a policy; None if there is none."""
    make = ACCELERATIONS.get(type(policy))
    return make(policy) if make is not None else None
