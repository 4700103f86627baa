"""The one table of kernels that are faster for a class of policies than the generic kernels, or exact.

Without an entry, or without the whole table, the library is slower and gives the same bits (skip-ahead: the
same laws). A class is looked up by its exact type, because a subclass may play by other rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lighttail.kernels.generic import generic_kernel
from lighttail.kernels.lead import lead_kernel
from lighttail.kernels.programme import index_programme, phase_width, posterior_programme
from lighttail.kernels.skip import level_kernel
from lighttail.kernels.stepping import (
    elimination_kernel,
    fixed_index_kernel,
    moving_index_kernel,
    posterior_kernel,
)
from lighttail.kernels.tilted import tilted_kernel, tilted_run_kernel
from lighttail.kernels.tilted_skip import tilted_skip_kernel
from lighttail.noises.noise import DRAWS, SUMS
from lighttail.policies import UCB, Policy, SuccessiveElimination, ThompsonSampling

Make = Callable[..., Any]
Parts = tuple[Any, ...]  # formulas, and whether they change with time


class Makers(NamedTuple):
    """Makers of kernels, each with the policy's formulas that the maker takes; None if there is no maker.

    step, tilted: play every pull, under the true laws and under tilted ones; the maker also takes `shock` and
    `reward` of the noise. skip, tilted_skip: skip ahead; the maker also takes the functions of the noise that
    are named. programme: finds exact laws. onward: whether step and skip can begin in a state
    (`lighttail.kernels.beginning`).
    """

    step: tuple[Make, Parts]
    tilted: tuple[Make, Parts]
    skip: tuple[Make, Parts, tuple[str, ...]] | None = None
    tilted_skip: tuple[Make, Parts, tuple[str, ...]] | None = None
    programme: tuple[Make, Parts] | None = None
    onward: bool = False


def _ucb(policy: UCB) -> Makers:
    bonus = type(policy.bonus)
    timed = (bonus.radius, bonus.clock)
    programme = (index_programme, timed)
    tilted = (tilted_run_kernel, (*timed, bonus.changes_with_time()))
    if bonus.changes_with_time():
        lead = (lead_kernel, (*timed, bonus.bend), SUMS)
        return Makers((moving_index_kernel, timed), tilted, lead, None, programme, True)
    parts, step = (bonus.radius, bonus.bend), (fixed_index_kernel, (bonus.radius,))
    level, leaping = (level_kernel, parts, SUMS), (tilted_skip_kernel, parts, SUMS)
    return Makers(step, tilted, level, leaping, programme, True)


def _elimination(policy: SuccessiveElimination) -> Makers:
    parts = (type(policy.bonus).radius, type(policy.bonus).clock)
    skip = (elimination_kernel, parts, (*DRAWS, "total"))
    tilted = generic(policy).tilted
    return Makers((elimination_kernel, parts), tilted, skip, programme=(phase_width, parts))


def _thompson(policy: ThompsonSampling) -> Makers:
    parts = (policy.posterior_mean, policy.posterior_sd)
    tilted = generic(policy).tilted
    return Makers((posterior_kernel, parts), tilted, programme=(posterior_programme, parts))


ACCELERATIONS: dict[type[Policy], Callable[[Any], Makers]] = {
    UCB: _ucb,
    SuccessiveElimination: _elimination,
    ThompsonSampling: _thompson,
}


def generic(policy: Policy) -> Makers:
    """The kernels that play any rule."""
    rule = (policy.rule(),)
    return Makers((generic_kernel, rule), (tilted_kernel, rule), onward=True)


def fastest(policy: Policy) -> Makers:
    """The entry of a policy, or the generic kernels if there is none."""
    return ACCELERATIONS.get(type(policy), generic)(policy)
