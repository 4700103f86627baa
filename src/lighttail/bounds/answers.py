"""The questions: each finds the bounds that apply to a policy on a problem and returns the least."""

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
    Kind,
    NoBound,
    check,
    check_kind,
    is_gaussian,
    most_regret,
    no_bound,
    noise_level,
    probability,
    remembered,
    sub_gaussian,
    with_noise,
)
from lighttail.bounds.chances import best_arm_dropped
from lighttail.bounds.proved import chances, has_linear_theorem, tails, theorem_of
from lighttail.bounds.simplified import Simplified
from lighttail.bounds.split import Arm, Split
from lighttail.checks import BadInput, fraction, number, refuse
from lighttail.linear import LinearBandit
from lighttail.policies import Policy
from lighttail.problems import Bandit

WITH_THEOREM = (
    "UCB or SuccessiveElimination with LightTailed or ArmOptimal, UCB with AnyTime, or Exp3IX with the "
    "'loss' estimator and bounded rewards"
)
WITH_CERTIFICATE = "UCB or SuccessiveElimination with a bonus that ignores time, or UCB with AnyTime"
IN_THEOREM = f"{WITH_THEOREM}, for which a theorem bounds the tail"
IN_CERTIFICATE = f"{WITH_CERTIFICATE}, for which there is a certificate"
MEAN_POINTS = 4000
LEAST_RISK = 1e-300  # below it a float holds no bound
MOST_ARMS = 200  # of a certificate, which then takes some seconds
LEAST_GAP = 1e-280  # in units of the largest: the fall of a chance over it is still a float
FASTER = 1024.0  # how far the search for a regret goes down in a step before it bisects


class Question(Protocol):
    """`tail`, `certificate` or `guarantee`."""

    def __call__(self, policy: Policy, problem: Bandit, horizon: int, regret: float, kind: Kind) -> Bound: ...


def tail(policy: Policy, problem: Any, horizon: int, regret: float, kind: Kind = "regret") -> Bound:
    """The theorem's bound on P(kind >= regret), for every problem with gaps of at most 1.

    LightTailed: Thm exp-K-armed or, where less, exp-2-armed. ArmOptimal: Thm exp-K-armed-optimal. AnyTime:
    Thm any-time. Exp3IX: Lattimore & Szepesvari, Thm 12.1. LinearUCB with LinearLightTailed on a linear
    bandit: Thm linear. The theorems bound the regret; their proofs
    without the first term, and with all of x in the others, the pseudo regret.

    >>> import lighttail as lt
    >>> policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    >>> print(lt.bounds.tail(policy, problem, horizon=4000, regret=800))
    at most 1 (Thm exp-K-armed, vacuous: it says nothing here)
    >>> print(lt.bounds.tail(policy, problem, horizon=10**7, regret=2_000_000))
    at most 5.33e-104 (Thm exp-2-armed)
    """
    if getattr(problem, "linear", False):
        return _linear_tail(policy, problem, horizon, regret, kind)
    asked = check(policy, problem, horizon, kind, regret)
    found = _theorems(policy, problem, asked.horizon, asked.sigma, asked.kind)
    bounds = [probability(max(TINY, chance(asked.regret)), source) for source, chance in found.items()]
    return min(bounds, key=lambda bound: bound.value)


def _linear_tail(policy: Any, problem: LinearBandit, horizon: int, regret: float, kind: Any) -> Bound:
    """Thm linear, for what it is for."""
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
    x, kind, sigma = number("regret", regret), check_kind(kind), sub_gaussian(problem)
    terms = theorems.linear(x, horizon, problem.dim, sigma, policy.bonus.kappa)
    value = sum(terms if kind == "regret" else terms[1:])
    return probability(max(TINY, value) if x > 0.0 else 1.0, "Thm linear")


def certificate(
    policy: Policy, problem: Bandit, horizon: int, regret: float, kind: Kind = "pseudo_regret"
) -> Bound:
    """A bound on P(kind >= regret) for this very problem, close to the truth; not in the paper.

    UCB with a bonus that ignores time or AnyTime, and elimination with a bonus that ignores time; any number
    of arms, any gaps. Gaussian noise gets the sharper form. docs/bounds.md derives it.

    >>> import lighttail as lt
    >>> policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    >>> print(lt.bounds.certificate(policy, problem, horizon=4000, regret=801))
    at most 5.54e-18 (certificate)
    """
    asked = check(policy, problem, horizon, kind, regret)
    pseudo = remembered(_certified, policy, problem, asked.horizon)
    if asked.kind == "pseudo_regret":
        return probability(pseudo(asked.regret), "certificate")
    chance = with_noise(pseudo, asked.regret, asked.sigma * asked.horizon**0.5, is_gaussian(problem))
    return probability(chance, "certificate")


def guarantee(
    policy: Policy, problem: Bandit, horizon: int, regret: float, kind: Kind = "pseudo_regret"
) -> Bound:
    """The least bound on P(kind >= regret) that we can vouch for: certificate or theorem, as its source says.

    >>> import lighttail as lt
    >>> policy = lt.SuccessiveElimination(lt.LightTailed(0.1))
    >>> print(lt.bounds.guarantee(policy, lt.Bandit([0.2, 0.8]), horizon=4000, regret=801))
    at most 3.22e-10 (certificate)
    """
    check(policy, problem, horizon, kind, regret)
    found = []
    for question in (certificate, tail):
        try:
            found.append(question(policy, problem, horizon=horizon, regret=regret, kind=kind))
        except BadInput:
            continue
    if not found:
        raise refuse("policy", policy, f"{IN_CERTIFICATE}; or {IN_THEOREM}")
    return min(found, key=lambda bound: bound.value)


def regret(
    policy: Policy,
    problem: Bandit,
    *,
    horizon: int,
    delta: float,
    kind: Kind = "regret",
    of: Question = guarantee,
) -> Bound:
    """With probability at least 1 - delta, the regret (kind) is below this.

    of: the bound that is solved for the regret: `tail`, `certificate` or `guarantee`. It never rises in
    the regret, so bisection finds where it falls to delta; the end that is certain is returned.

    >>> import lighttail as lt
    >>> policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    >>> print(lt.bounds.regret(policy, problem, horizon=4000, delta=1e-6))
    at most 414 (certificate)
    >>> print(lt.bounds.regret(policy, problem, horizon=4000, delta=1e-6, kind="pseudo_regret"))
    at most 104 (certificate)
    """
    asked = check(policy, problem, horizon, kind)
    if not callable(of):
        raise refuse("of", of, "bounds.tail, bounds.certificate or bounds.guarantee")
    if (risk := fraction("delta", delta)) < LEAST_RISK:
        raise refuse("delta", delta, f"at least {LEAST_RISK:g}")

    def ask(x: float) -> Bound:
        found = of(policy, problem, horizon=asked.horizon, regret=x, kind=asked.kind)
        if not isinstance(found, Bound):
            raise refuse("of", of, "bounds.tail, bounds.certificate or bounds.guarantee")
        return found

    known = most_regret(problem, asked.horizon)  # without any theorem
    if asked.kind == "regret":
        known += asked.sigma * asked.horizon**0.5 * noise_level(risk, is_gaussian(problem))
    end = _falls_to(risk, lambda x: ask(x).value, known)
    return Bound(end, ask(end).source, end >= known)


def _falls_to(risk: float, chance: Chance, start: float) -> float:
    """The least x with chance(x) <= risk, up to a share of 1e-9, from above; 0 where every x > 0 will do."""
    if start <= 0.0:
        return 0.0  # nothing can be lost
    high = min(start, sys.float_info.max)
    while not chance(high) <= risk:
        high *= 2.0
        if math.isinf(high):
            raise refuse("delta", risk, "so large that the bound falls to it at a regret that is a float")
    while high > 0.0 and chance(high / FASTER) <= risk:
        high /= FASTER
    low = high / FASTER
    while low < (middle := 0.5 * (low + high)) < high and high - low > 1e-9 * high:
        low, high = (low, middle) if chance(middle) <= risk else (middle, high)
    return high


def mean(policy: Policy, problem: Bandit, *, horizon: int) -> Bound:
    """A bound on the mean regret (the noise has mean 0, so on the mean pseudo regret too).

    The least of: the theorem's own bound, where kappa (for ArmOptimal the floor) is at least 2 sigma; the
    integral of the theorem's tail; and, for this very problem, the sum of the certificate's chances,
    sum_k gap_k (1 + sum_m P(arm k is pulled more than m times)).

    >>> import lighttail as lt
    >>> policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    >>> print(lt.bounds.mean(policy, problem, horizon=4000))
    at most 38.5 (certificate)
    """
    horizon, _, _, sigma = check(policy, problem, horizon)
    most = most_regret(problem, horizon)
    found: dict[str, float] = {}
    with suppress(NoBound):
        found["certificate"] = remembered(_certified, policy, problem, horizon).mean
    try:
        known = _theorems(policy, problem, horizon, sigma, "pseudo_regret")
    except BadInput:
        if not found:
            raise
    else:
        found |= {f"integral of {name}": _integral(chance, most) for name, chance in known.items()}
        found |= _mean_theorems(policy, problem, horizon, sigma)
    source = min(found, key=lambda name: found[name])
    return Bound(min(most, found[source]), source, found[source] >= most)


def simplified(policy: Policy, problem: Bandit, *, horizon: int) -> Simplified:
    """The theorem in the paper's variable y: a shorter, larger bound with an explicit inverse.

    >>> import lighttail as lt
    >>> form = lt.bounds.simplified(lt.UCB(lt.ArmOptimal(1.0, 0.0)), lt.Bandit([0.2, 0.8]), horizon=10_000)
    >>> round(form.regret(delta=1e-6), 2), form.source
    (26106.02, 'Thm exp-K-armed-optimal, in y')
    """
    horizon, _, _, sigma = check(policy, problem, horizon)
    _check_gaps(problem)
    found = theorem_of(policy, problem, horizon, sigma)
    if found is not None and found[0].simplified is not None:
        return found[0].simplified(found[1])
    raise refuse("policy", policy, "UCB or SuccessiveElimination with LightTailed or ArmOptimal")


def _check_gaps(problem: Bandit) -> None:
    if max(problem.gaps) > 1.0 + 1e-12:
        why = "the theorems assume means that are at most 1 apart"
        raise no_bound("means", problem.means, "at most 1 apart, which the theorems assume", why)


def _no_theorem(policy: Policy) -> NoBound:
    why = f"there is none for {policy}, only for {WITH_THEOREM}"
    return no_bound("policy", policy, IN_THEOREM, why)


def _theorems(policy: Policy, problem: Bandit, horizon: int, sigma: float, kind: Kind) -> dict[str, Chance]:
    """Every theorem that bounds this policy's tail, by its name."""
    found = tails(policy, problem, horizon, sigma, kind)
    if found is None:
        raise _no_theorem(policy)
    if theorem_of(policy, problem, horizon, sigma) is not None:
        _check_gaps(problem)
    return found


class _Certified:
    """The certificate of the pseudo regret as a function of it; never rising.

    unit: of the arms' gaps, a power of two, so that nothing is rounded and the tiniest gaps overflow nothing.
    """

    def __init__(self, arms: list[Arm], extra: list[float], most: float, unit: float) -> None:
        self.split, self.unit = Split(arms, extra) if arms else None, unit
        self.least, self.most = unit * sum(arm.gap for arm in arms), most
        worst = max((arm.gap * arm.full for arm in arms), default=0.0)
        self.mean = unit * (sum(arm.gap * arm.mean_pulls() for arm in arms) + min(1.0, extra[0]) * worst)

    def __call__(self, x: float) -> float:
        if x <= self.least * (1.0 + 1e-12):
            return 1.0  # every arm is pulled once
        if self.split is None or x > self.most * (1.0 + 1e-9):
            return 0.0
        return max(TINY, self.split.least(x / self.unit))


@functools.lru_cache(maxsize=16)
def _certified(policy: Policy, problem: Bandit, horizon: int) -> _Certified:
    if problem.arms > MOST_ARMS:
        why = f"the certificate looks at every pair of arms, and there are more than {MOST_ARMS}"
        raise no_bound("the number of arms", problem.arms, f"at most {MOST_ARMS} for a certificate", why)
    known = chances(policy, problem, horizon, sub_gaussian(problem))
    if known is None:
        why = f"there is none for {policy}, only for {WITH_CERTIFICATE}"
        raise no_bound("policy", policy, IN_CERTIFICATE, why)
    full = horizon - problem.arms + 1
    gaps = sorted(problem.gaps)[1:]  # but for one best arm
    losing = [gap for gap in gaps if gap > 0.0]
    unit = math.ldexp(1.0, math.frexp(max(losing))[1] - 1) if losing else 1.0

    def arm(gap: float) -> Arm:
        """Where a gap is too small beside the largest one, a larger one stands in for what is lost by it."""
        return Arm(max(gap / unit, LEAST_GAP), lambda _, pulls: known.of(gap, pulls), known.end, full)

    arms = [arm(gap) for gap in losing]
    ties = len(gaps) - len(losing)
    extra = [0.0] * (len(losing) + 1)
    if known.drop is not None:
        extra = [best_arm_dropped(known.drop, gaps, ties + paid) for paid in range(len(losing) + 1)]
    return _Certified(arms, extra, most_regret(problem, horizon), unit)


def _integral(chance: Chance, most: float) -> float:
    """Integral of min(1, chance) from 0 to most, from above: chance never rises."""
    if most <= 0.0:
        return 0.0
    points = np.linspace(0.0, most, MEAN_POINTS + 1)
    return float(sum(min(1.0, chance(x)) for x in points[:-1].tolist())) * most / MEAN_POINTS


def _mean_theorems(policy: Policy, problem: Bandit, horizon: int, sigma: float) -> dict[str, float]:
    """The theorems' own bounds on the mean regret, where their conditions hold."""
    found = theorem_of(policy, problem, horizon, sigma)
    return {} if found is None else found[0].means(found[1])
