"""The one table of what is faster or sharper for a class of policies than the generic executors.

Deleting an entry, or all of them, leaves a slower library with the same bits (skip-ahead: the same laws). A
class is looked up by its exact type: a subclass may play by other rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lighttail.kernels.elimination import elimination_kernel
from lighttail.kernels.index import fixed_index_kernel, moving_index_kernel
from lighttail.kernels.posterior import posterior_kernel
from lighttail.kernels.programme import index_programme, phase_width, posterior_programme
from lighttail.kernels.skip import lead_kernel, level_kernel
from lighttail.kernels.tilted_skip import tilted_skip_kernel
from lighttail.kernels.weights import weights_kernel
from lighttail.policies import UCB, Exp3IX, Policy, SuccessiveElimination, ThompsonSampling
from lighttail.problems import Noise

Make = Callable[..., Any]
Parts = tuple[Callable[..., Any], ...]


class Fast(NamedTuple):
    """Makers of kernels, each with the formulas of the policy that it takes; None where there is none.

    step: takes shock and reward of a noise, too. skip: all of a noise's functions for sums, or for
    elimination shock, reward and total. tilted_skip: the same under tilted laws. programme: exact laws.
    """

    step: tuple[Make, Parts]
    skip: tuple[Make, Parts, tuple[str, ...]] | None = None
    tilted_skip: tuple[Make, Parts, tuple[str, ...]] | None = None
    programme: tuple[Make, Parts] | None = None


SUMS = ("total", "part", "clear", "proxy")


def _ucb(policy: UCB) -> Fast:
    bonus = type(policy.bonus)
    timed = (bonus.radius, bonus.clock)
    programme = (index_programme, timed)
    if bonus.changes_with_time():
        lead = (lead_kernel, (*timed, bonus.bend), SUMS)
        return Fast((moving_index_kernel, timed), lead, None, programme)
    parts = (bonus.radius, bonus.bend)
    level, tilted = (level_kernel, parts, SUMS), (tilted_skip_kernel, parts, SUMS)
    return Fast((fixed_index_kernel, (bonus.radius,)), level, tilted, programme)


def _elimination(policy: SuccessiveElimination) -> Fast:
    parts = (type(policy.bonus).radius, type(policy.bonus).clock)
    skip = (elimination_kernel, parts, ("shock", "reward", "total"))
    return Fast((elimination_kernel, parts), skip, None, (phase_width, parts))


def _thompson(policy: ThompsonSampling) -> Fast:
    parts = (policy.posterior_mean, policy.posterior_sd)
    step, programme = (posterior_kernel, parts), (posterior_programme, parts)
    return Fast(step, programme=programme)


def _weights(policy: Exp3IX) -> Fast:
    return Fast((weights_kernel, (policy.weight, policy.gain)))


ACCELERATIONS: dict[type[Policy], Callable[[Any], Fast]] = {
    UCB: _ucb,
    SuccessiveElimination: _elimination,
    ThompsonSampling: _thompson,
    Exp3IX: _weights,
}


def fast(policy: Policy) -> Fast | None:
    """What there is for this policy."""
    make = ACCELERATIONS.get(type(policy))
    return make(policy) if make is not None else None


def functions(noise: type[Noise], names: tuple[str, ...]) -> Parts:
    """Static functions of a noise by their names."""
    return tuple(getattr(noise, name) for name in names)
