"""The exact law of the pseudo regret of UCB with a bonus that ignores time, for any number of arms.

docs/tails.md derives the law. Let I_k(n) be the index of arm k after n pulls, tau_k(l) the first n with
I_k(n) <= l, and J_k(n) the least of I_k(1), ..., I_k(n). Pull T is the m-th pull of arm k, while every other
arm j has n_j pulls, exactly if J_k(m - 1) = l and tau_j(l) = n_j for some level l. Given the level, the arms
are independent, so the law is one integral (Gaussian) or sum (Bernoulli) over the level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from lighttail.checks import BadInput, number
from lighttail.outcomes.outcome import rounding
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.records import Floats
from lighttail.system.progress import compiling, noted
from lighttail.tails import exact_costs as costs
from lighttail.tails.groups import Groups, groups_of
from lighttail.tails.levels import GaussianArms, integrate
from lighttail.tails.sums import Sum, law_sum, tail_sum
from lighttail.tails.ties import add_up

SAID = 60.0  # seconds beyond which the user is told the time beforehand
LEAST = 1e-280  # smaller probabilities are given as 0
LEAST_OF_LAW, DROPPED = 1e-100, 1e-116  # a whole law leaves out smaller chances, and smaller densities
# Shares of the range of regrets: the tails there show which levels matter for a whole law.
SHARES = (0.0, 0.01, 0.03, 0.06, 0.12, 0.25, 0.4, 0.55, 0.7, 0.82, 0.92, 0.98, 1.0)


@dataclass(frozen=True, eq=False)
class ExactLaw:
    """The law of the pseudo regret: its possible values, rising, and P(pseudo regret >= value) of each."""

    regrets: Floats
    survival: Floats
    problem: Bandit
    horizon: int

    def tail(self, regret: float) -> float:
        """P(pseudo regret >= regret)."""
        place = int(np.searchsorted(self.regrets, _reached_from(number("regret", regret), self.problem)))
        return float(self.survival[place]) if place < self.survival.size else 0.0


def exact_tail(policy: Policy, problem: Bandit, horizon: int, regret: float) -> float:
    """P(pseudo regret >= regret) with a relative error of at most 1e-5; a chance below 1e-280 is 0.

    policy: UCB with a bonus that ignores time (Standard, LightTailed, ArmOptimal, or your own).
    problem: any number of arms with Gaussian noise or Bernoulli rewards; up to five different means, or
        more if their gaps are multiples of a common unit.

    >>> import lighttail as lt
    >>> problem = lt.Bandit([0.2, 0.8])
    >>> f"{lt.exact_tail(lt.UCB(lt.LightTailed(0.2)), problem, horizon=500, regret=100.1):.4e}"
    '1.0574e-05'
    """
    regret = number("regret", regret)
    groups = _groups(policy, problem, horizon, regret)
    least = _reached_from(regret, problem)
    if least <= groups.least_regret:
        return 1.0
    if least > groups.most_regret:
        return 0.0
    sure = groups.certain_regret()
    if sure is not None:
        return float(sure >= least)
    target = _tail(groups, least)
    value = float(_summed(groups, regret, target, [target])[-1])
    return min(1.0, value) if value >= LEAST else 0.0


def exact_law(policy: Policy, problem: Bandit, horizon: int) -> ExactLaw:
    """The whole law of the pseudo regret; with Gaussian noise, chances below 1e-100 are given as 0."""
    groups = _groups(policy, problem, horizon, None)
    sure = groups.certain_regret()
    if sure is not None:
        return ExactLaw(np.array([sure]), np.array([1.0]), problem, groups.horizon)
    units = groups.units() if costs.on_lattice(groups, None) else None
    target, regrets = law_sum(groups.scaled_gaps, groups.horizon, units)
    span = groups.most_regret - groups.least_regret
    asked = [groups.least_regret + share * span for share in SHARES]
    mass = _summed(groups, None, target, [_tail(groups, _reached_from(x, problem)) for x in asked])
    return _law(groups, problem, groups.largest_gap * regrets, mass)


def exact_seconds(
    policy: Policy, problem: Bandit, horizon: int, regret: float | None = None
) -> float | BadInput:
    """About how many seconds `exact_tail` takes, or `exact_law` if no regret is given. The refusal if there
    is no exact law, or if the law would take more than an hour."""
    try:
        groups = groups_of(policy, problem, horizon, sizes_only=True)
        costs.check(groups, regret)
    except BadInput as error:
        return error
    return costs.seconds(groups, regret)


def _groups(policy: Policy, problem: Bandit, horizon: int, regret: float | None) -> Groups:
    """The groups of the problem's arms, after a check that the law can be computed."""
    costs.check(groups_of(policy, problem, horizon, sizes_only=True), regret)
    return groups_of(policy, problem, horizon)


def _summed(groups: Groups, regret: float | None, target: Sum, tails: list[Sum]) -> Floats:
    """`target` summed over all levels, for one regret or for the whole law, after saying how long this takes
    if it is more than a minute. For Gaussian rewards `tails` show which levels matter."""
    _compile(groups.counted)
    seconds = costs.seconds(groups, regret)
    with noted(f"the exact law takes {costs.duration(seconds)}", seconds > SAID):
        return _over_levels(groups, target, tails, DROPPED if regret is None else None)


@cache
def _compile(counted: bool) -> None:
    """Compile the kernels on the smallest problem there is, and say so if that takes a while."""
    groups = Groups((1.0, 0.0), (1, 1), math.nan if counted else 1.0, np.array([1.0, 0.5]), 3)
    target = _tail(groups, 1.5)
    with compiling("the exact law", True):
        _over_levels(groups, target, [target], None)


def _over_levels(groups: Groups, target: Sum, tails: list[Sum], least: float | None) -> Floats:
    if groups.counted:
        return add_up(groups, target)
    return integrate(GaussianArms.of(groups), tails, target, least)


def _reached_from(regret: float, problem: Bandit) -> float:
    """The regret minus the most that rounding may take from a path with this regret."""
    return regret - rounding(regret, "pseudo_regret", np.array(problem.means), 0)


def _tail(groups: Groups, least: float) -> Sum:
    """The sum whose integral is P(pseudo regret >= least), in units of the largest gap."""
    least /= groups.largest_gap
    units = groups.units() if costs.on_lattice(groups, least) else None
    return tail_sum(groups.scaled_gaps, least, groups.horizon, units)


def _law(groups: Groups, problem: Bandit, regrets: Floats, mass: Floats) -> ExactLaw:
    """The law, with values that differ only by rounding merged, and tails summed from the largest value."""
    slack = 1e-9 * float(groups.gaps[1])  # the smallest gap
    possible = (regrets >= groups.least_regret * (1.0 - 1e-9) - slack) & (
        regrets <= groups.most_regret * (1.0 + 1e-9) + slack
    )
    order = np.argsort(regrets[possible], kind="stable")
    regrets, mass = regrets[possible][order], mass[possible][order]
    new = np.append(True, np.diff(regrets) > 1e-9 * regrets[1:] + slack)
    mass = np.add.reduceat(mass, np.flatnonzero(new))
    survival = np.minimum(1.0, np.cumsum(mass[::-1])[::-1])
    survival[0] = 1.0
    survival[survival < (0.0 if groups.counted else LEAST_OF_LAW)] = 0.0
    return ExactLaw(regrets[new], survival, problem, groups.horizon)
