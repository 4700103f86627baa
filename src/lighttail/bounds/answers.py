"""The questions that bounds answer: each function returns the smallest bound for a policy on a problem."""

from __future__ import annotations

import functools
import math
import sys
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from lighttail.bounds import theorems
from lighttail.bounds.bound import (
    TINY,
    Bound,
    Chance,
    NoBound,
    check_question,
    is_gaussian,
    most_regret,
    no_bound,
    noise_quantile,
    probability_bound,
    remembered,
    sub_gaussian,
    with_noise,
)
from lighttail.bounds.chances import LARGE, Arm, Split, best_arm_dropped
from lighttail.bounds.proved import case_of, chances, check_gaps, has_linear_theorem, tails
from lighttail.bounds.simplified import Simplified
from lighttail.checks import BadInput, fraction, number, refuse
from lighttail.linear import LinearBandit
from lighttail.outcomes.losing import Lost, check_lost
from lighttail.policies import Policy
from lighttail.problems import Bandit

WITH_THEOREM = (
    "UCB or SuccessiveElimination with LightTailed or ArmOptimal, UCB with AnyTime, or Exp3IX with the "
    "'loss' estimator and bounded rewards"
)
WITH_CERTIFICATE = "UCB or SuccessiveElimination with a bonus that ignores time, or UCB with AnyTime"
IN_THEOREM = f"{WITH_THEOREM}, for which a theorem bounds the tail"
IN_CERTIFICATE = f"{WITH_CERTIFICATE}, for which there is a certificate"
MEAN_POINTS = 4000  # points per integral of a tail
LEAST_RISK = 1e-300  # the smallest delta: a float holds no smaller bound
MOST_ARMS = 200  # arms of a certificate, which takes some seconds for this number
LEAST_GAP = 1e-280  # in units of the largest gap: the slope of a chance over a smaller gap would overflow
FASTER = 1024.0  # the factor by which the search for a regret goes down before it bisects


class BoundOnTail(Protocol):
    """The type of `tail`, `certificate` and `guarantee`."""

    def __call__(self, policy: Policy, problem: Bandit, horizon: int, regret: float, kind: Lost) -> Bound: ...


def tail(policy: Policy, problem: Any, horizon: int, regret: float, kind: Lost = "pseudo_regret") -> Bound:
    """The theorem's bound on P(kind >= regret), for every problem with gaps of at most 1.

    LightTailed: the smaller of Thm exp-K-armed and Thm exp-2-armed. ArmOptimal: Thm exp-K-armed-optimal.
    AnyTime: Thm any-time. Exp3IX: Lattimore & Szepesvari, Thm 12.1. LinearUCB with LinearLightTailed on a
    linear bandit: Thm linear.

    kind="regret" gives the theorems as printed. Their proofs also bound the pseudo regret: the first term,
    for the noise, is left out, and the other terms use all of x.

    >>> import lighttail as lt
    >>> policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    >>> print(lt.bounds.tail(policy, problem, horizon=4000, regret=800))
    at most 1 (Thm exp-K-armed; this bound tells us nothing)
    >>> print(lt.bounds.tail(policy, problem, horizon=10**7, regret=2_000_000))
    at most 2.84e-214 (Thm exp-2-armed)
    """
    if getattr(problem, "linear", False):
        return _linear_tail(policy, problem, horizon, regret, kind)
    asked = check_question(policy, problem, horizon, kind, regret)
    found = _theorems(policy, problem, asked.horizon, asked.sigma, asked.kind)
    bounds = [probability_bound(max(TINY, chance(asked.regret)), source) for source, chance in found.items()]
    return min(bounds, key=lambda bound: bound.value)


def _linear_tail(policy: Any, problem: LinearBandit, horizon: int, regret: float, kind: Any) -> Bound:
    """The bound of Thm linear. Raises BadInput if its assumptions do not hold."""
    if not has_linear_theorem(policy):
        raise refuse(
            "policy", policy, "LinearUCB with LinearLightTailed, for which a theorem bounds the tail"
        )
    if policy.ridge != 1.0:
        raise refuse("ridge", policy.ridge, "1, which the theorem assumes")
    if problem.dim < 2:
        raise refuse("theta", problem.theta, "of two dimensions or more, which the proof needs")
    if not problem.within_theorem:
        raise refuse("problem", problem, "within the theorem: |a| at most 1, |theta_i| at most 1")
    x, kind, sigma = number("regret", regret), check_lost(kind), sub_gaussian(problem)
    terms = theorems.linear(x, horizon, problem.dim, sigma, policy.bonus.kappa)
    value = sum(terms if kind == "regret" else terms[1:])
    return probability_bound(max(TINY, value) if x > 0.0 else 1.0, "Thm linear")


def certificate(
    policy: Policy, problem: Bandit, horizon: int, regret: float, kind: Lost = "pseudo_regret"
) -> Bound:
    """A bound on P(kind >= regret) for this problem alone, close to the true probability; not in the paper.

    There is a certificate for UCB with AnyTime or with a bonus that ignores time, and for elimination with a
    bonus that ignores time, with any gaps and up to 200 arms. Gaussian noise gives a sharper form.
    docs/bounds.md derives the certificate.

    >>> import lighttail as lt
    >>> policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    >>> print(lt.bounds.certificate(policy, problem, horizon=4000, regret=801))
    at most 5.54e-18 (certificate)
    """
    asked = check_question(policy, problem, horizon, kind, regret)
    pseudo = remembered(_certified, policy, problem, asked.horizon)
    if asked.kind == "pseudo_regret":
        chance = pseudo(asked.regret)
    else:
        chance = with_noise(pseudo, asked.regret, asked.sigma * asked.horizon**0.5, is_gaussian(problem))
    return probability_bound(chance, "certificate")


def guarantee(
    policy: Policy, problem: Bandit, horizon: int, regret: float, kind: Lost = "pseudo_regret"
) -> Bound:
    """The smaller of the certificate and the theorem's bound on P(kind >= regret); `source` says which.

    >>> import lighttail as lt
    >>> policy = lt.SuccessiveElimination(lt.LightTailed(0.1))
    >>> print(lt.bounds.guarantee(policy, lt.Bandit([0.2, 0.8]), horizon=4000, regret=801))
    at most 3.22e-10 (certificate)
    """
    check_question(policy, problem, horizon, kind, regret)
    found = []
    for question in (certificate, tail):
        with suppress(BadInput):
            found.append(question(policy, problem, horizon=horizon, regret=regret, kind=kind))
    if not found:
        raise refuse("policy", policy, f"{IN_CERTIFICATE}; or {IN_THEOREM}")
    return min(found, key=lambda bound: bound.value)


def regret(
    policy: Policy,
    problem: Bandit,
    *,
    horizon: int,
    delta: float,
    kind: Lost = "pseudo_regret",
    of: BoundOnTail = guarantee,
) -> Bound:
    """A bound on the pseudo regret (or the regret, by `kind`) that holds with probability at least 1 - delta.

    of: the question that is solved for the regret: `tail`, `certificate` or `guarantee`. Its bound never
    rises with the regret, so bisection finds the regret at which the bound falls to delta. The larger end of
    the last interval is returned, because the bound is certain to hold there.

    >>> import lighttail as lt
    >>> policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    >>> print(lt.bounds.regret(policy, problem, horizon=4000, delta=1e-6))
    at most 104 (certificate)
    >>> print(lt.bounds.regret(policy, problem, horizon=4000, delta=1e-6, kind="regret"))
    at most 414 (certificate)
    """
    asked = check_question(policy, problem, horizon, kind)
    if not callable(of):
        raise refuse("of", of, "bounds.tail, bounds.certificate or bounds.guarantee")
    if (risk := fraction("delta", delta)) < LEAST_RISK:
        raise refuse("delta", delta, f"at least {LEAST_RISK:g}")

    def ask(x: float) -> Bound:
        found = of(policy, problem, horizon=asked.horizon, regret=x, kind=asked.kind)
        if not isinstance(found, Bound):
            raise refuse("of", of, "bounds.tail, bounds.certificate or bounds.guarantee")
        return found

    known = most_regret(problem, asked.horizon)  # a bound that needs no theorem
    if asked.kind == "regret":
        known += asked.sigma * asked.horizon**0.5 * noise_quantile(risk, is_gaussian(problem))
    end = _falls_to(risk, lambda x: ask(x).value, known)
    return Bound(end, ask(end).source, end >= known)


def _falls_to(risk: float, chance: Chance, start: float) -> float:
    """The smallest x with chance(x) <= risk, at most 1e-9 of x too large; 0 if this holds for every x > 0."""
    if start <= 0.0:
        return 0.0  # no regret is possible
    high = min(start, sys.float_info.max)
    while not chance(high) <= risk:
        high *= 2.0
        if math.isinf(high):
            raise refuse("delta", risk, "so large that the bound on some finite regret is delta or less")
    while high > 0.0 and chance(high / FASTER) <= risk:
        high /= FASTER
    low = high / FASTER
    while low < (middle := 0.5 * (low + high)) < high and high - low > 1e-9 * high:
        low, high = (low, middle) if chance(middle) <= risk else (middle, high)
    return high


def mean(policy: Policy, problem: Bandit, *, horizon: int) -> Bound:
    """A bound on the mean regret, which equals the mean pseudo regret because the noise has mean 0.

    It is the smallest of three bounds: the theorem's bound on the mean, if kappa (for ArmOptimal, floor) is
    at least 2 sigma; the integral of the theorem's tail; and the sum of the certificate's chances for this
    problem, sum_k gap_k (1 + sum_m P(arm k is pulled more than m times)).

    >>> import lighttail as lt
    >>> policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    >>> print(lt.bounds.mean(policy, problem, horizon=4000))
    at most 38.5 (certificate)
    """
    horizon, _, _, sigma = check_question(policy, problem, horizon)
    most = most_regret(problem, horizon)
    values: dict[str, float] = {}
    with suppress(NoBound):
        values["certificate"] = remembered(_certified, policy, problem, horizon).mean
    try:
        known = _theorems(policy, problem, horizon, sigma, "pseudo_regret")
    except BadInput:
        if not values:
            raise
    else:
        values |= {f"integral of {name}": _integral(chance, most) for name, chance in known.items()}
        case = case_of(policy, problem, horizon, sigma)
        values |= {} if case is None else case.theorem.means(case)
    source = min(values, key=lambda name: values[name])
    return Bound(min(most, values[source]), source, values[source] >= most)


def simplified(policy: Policy, problem: Bandit, *, horizon: int) -> Simplified:
    """The theorem in the paper's variable y: a shorter but larger bound that can be solved for the regret.

    >>> import lighttail as lt
    >>> form = lt.bounds.simplified(lt.UCB(lt.ArmOptimal(1.0, 0.0)), lt.Bandit([0.2, 0.8]), horizon=10_000)
    >>> round(form.regret(delta=1e-6), 2), form.source
    (26106.02, 'Thm exp-K-armed-optimal, in y')
    """
    horizon, _, _, sigma = check_question(policy, problem, horizon)
    check_gaps(problem)
    case = case_of(policy, problem, horizon, sigma)
    if case is not None and case.theorem.simplified is not None:
        return case.theorem.simplified(case)
    raise refuse("policy", policy, "UCB or SuccessiveElimination with LightTailed or ArmOptimal")


def _theorems(policy: Policy, problem: Bandit, horizon: int, sigma: float, kind: Lost) -> dict[str, Chance]:
    """The bounds of every theorem for this policy's tail, by the name of the theorem."""
    found = tails(policy, problem, horizon, sigma, kind)
    if found is None:
        why = f"there is none for {policy}, only for {WITH_THEOREM}"
        raise no_bound("policy", policy, IN_THEOREM, why)
    return found


class _Certified:
    """The certificate as a function of the pseudo regret. The function never rises.

    unit: the unit of the arms' gaps. It is a power of two, so that division by it does not round, and it is
    so close to the largest gap that tiny gaps do not overflow.
    """

    def __init__(self, arms: list[Arm], extra: list[float], most: float, unit: float) -> None:
        self.split, self.unit = Split(arms, extra) if arms else None, unit
        self.least, self.most = unit * sum(arm.gap for arm in arms), most
        worst = max((arm.gap * arm.full for arm in arms), default=0.0)
        self.mean = unit * (sum(arm.gap * arm.mean_pulls() for arm in arms) + min(1.0, extra[0]) * worst)

    def __call__(self, x: float) -> float:
        if x <= self.least * (1.0 + 1e-12):
            return 1.0  # every arm is pulled at least once
        if self.split is None or x > self.most * (1.0 + 1e-9):
            return 0.0
        return max(TINY, self.split.least(x / self.unit))


@functools.lru_cache(maxsize=16)
def _certified(policy: Policy, problem: Bandit, horizon: int) -> _Certified:
    if problem.arms > MOST_ARMS:
        why = f"the certificate looks at every pair of arms, and there are more than {MOST_ARMS} arms"
        raise no_bound("the number of arms", problem.arms, f"at most {MOST_ARMS} for a certificate", why)
    sigma = sub_gaussian(problem)
    known = chances(policy, problem, horizon, sigma)
    if known is None:
        why = f"there is none for {policy}, only for {WITH_CERTIFICATE}"
        raise no_bound("policy", policy, IN_CERTIFICATE, why)
    full = horizon - problem.arms + 1
    gaps = sorted(problem.gaps)[1:]  # the gaps of all arms but one best arm
    losing = [gap for gap in gaps if gap > 0.0]
    unit = math.ldexp(1.0, math.frexp(max(losing))[1] - 1) if losing else 1.0
    arms = []
    for gap in losing:  # a loss per pull that is below LEAST_GAP is taken as LEAST_GAP, which is larger
        chance = functools.partial(known.of, min(gap / sigma, LARGE))
        arms.append(Arm(max(gap / unit, LEAST_GAP), chance, known.end, full))
    ties = len(gaps) - len(losing)
    extra = [0.0] * (len(losing) + 1)
    if known.drop is not None:
        extra = [best_arm_dropped(known.drop, gaps, ties + paid) for paid in range(len(losing) + 1)]
    return _Certified(arms, extra, most_regret(problem, horizon), unit)


def _integral(chance: Chance, most: float) -> float:
    """An upper bound on the integral of min(1, chance) from 0 to most: the sum of the values at left ends."""
    if most <= 0.0:
        return 0.0
    points = np.linspace(0.0, most, MEAN_POINTS + 1)
    return float(sum(min(1.0, chance(x)) for x in points[:-1].tolist())) * most / MEAN_POINTS
