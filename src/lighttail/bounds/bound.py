"""The type of a bound, the checks of a question, and the step from the pseudo regret to the regret."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from lighttail.checks import BadInput, number, positive, refuse, whole
from lighttail.outcomes.losing import Lost, check_lost
from lighttail.policies import Policy
from lighttail.problems import MOST_PULLS, Bandit, Problem, has_arms

Chance = Callable[[float], float]  # an upper bound on P(regret >= x) as a function of x, which never rises
TINY = sys.float_info.min  # the smallest chance and the smallest bound that is given, if it is not 0
# The regret is split into noise and pseudo regret at multiples of STEP standard deviations, up to FARTHEST
# steps.
STEP, FARTHEST = 1.0 / 32.0, 40 * 32


@dataclass(frozen=True)
class Bound:
    """An upper bound on a probability or on a regret.

    source: the theorem or the certificate that gives the bound. vacuous: whether the bound tells us nothing,
    because it is a probability of 1 or the largest possible regret.
    """

    value: float
    source: str
    vacuous: bool

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        note = "; this bound tells us nothing" if self.vacuous else ""
        return f"at most {self.value:.3g} ({self.source}{note})"


class NoBound(BadInput):
    """No bound answers the question. `why` is the reason as a clause, for the end of a sentence."""

    why: str = ""


def no_bound(field: str, value: object, allowed: str, why: str) -> NoBound:
    """The error for a question that no bound answers: the usual message, and the reason `why`."""
    error = NoBound(field=field, value=value, allowed=allowed)
    error.why = why
    return error


def probability_bound(value: float, source: str) -> Bound:
    """A bound on a probability, at most 1. A value that is below 1 only by rounding counts as 1."""
    nothing = value >= 1.0 - 1e-9
    return Bound(1.0 if nothing else value, source, nothing)


def most_regret(problem: Bandit, horizon: int) -> float:
    """The largest pseudo regret: every arm is pulled once, and all other pulls are of the worst arm."""
    return sum(problem.gaps) + max(problem.gaps) * (horizon - problem.arms)


class Asked(NamedTuple):
    """The arguments of a question as plain numbers. sigma: the sub-Gaussian parameter of the noise."""

    horizon: int
    regret: float
    kind: Lost
    sigma: float


def check_question(
    policy: Any, problem: Any, horizon: Any, kind: Any = "pseudo_regret", regret: Any = 0.0
) -> Asked:
    """The arguments of a question. Raises BadInput if no bound can answer the question."""
    if not isinstance(policy, Policy):
        raise refuse("policy", policy, "a policy such as UCB(LightTailed(kappa=0.2))")
    if policy.linear:
        raise refuse("policy", policy, Bandit.policies)
    if not has_arms(problem):
        raise refuse("problem", problem, "a problem such as Bandit([0.2, 0.8])")
    pulls = whole("horizon", horizon, max(3, problem.arms), most=MOST_PULLS)
    problem.check_sums(pulls)
    remembered(_check_policy, policy, pulls, problem.arms)
    return Asked(pulls, number("regret", regret), check_lost(kind), sub_gaussian(problem))


@functools.lru_cache(maxsize=16)
def _check_policy(policy: Policy, horizon: int, arms: int) -> None:
    policy.check(horizon, arms)


def remembered(function: Any, *args: Any) -> Any:
    """Call a function that has an `lru_cache`. If an argument has no hash, the call bypasses the cache."""
    try:
        hash(args)
    except Exception:  # a user's policy may have no hash
        return function.__wrapped__(*args)
    return function(*args)


def sub_gaussian(problem: Problem) -> float:
    """The sigma that the noise states: E exp(s e) <= exp(s^2 sigma^2 / 2) for every s and arm."""
    stated = problem.noise.sub_gaussian
    if stated is None or isinstance(stated, bool) or stated == 0.0:
        why = "every bound needs noise that is not certain and whose class states a sub-Gaussian sigma"
        raise no_bound("noise", problem.noise, "sub-Gaussian and not certain, as every bound needs", why)
    return positive("the noise's sub_gaussian", stated)


def is_gaussian(problem: Bandit) -> bool:
    """Whether the class of the noise states that rewards are normal."""
    return problem.noise.normal is not None


def noise_tail(z: float, gaussian: bool) -> float:
    """A bound on P(N >= z sigma sqrt(T)) and on P(N <= -z sigma sqrt(T)), where N is the sum of the noise in
    T rewards.

    Lemma bound-noise gives exp(-z^2 / 2). Gaussian noise adds up to a normal N, whatever the policy does, so
    the bound is then Phi(-z).
    """
    if gaussian:
        return 0.5 * math.erfc(z / math.sqrt(2.0))
    return math.exp(-0.5 * z * z)


def noise_quantile(delta: float, gaussian: bool) -> float:
    """The z at which `noise_tail` is delta; 0 for Gaussian noise and a delta above 1/2."""
    from scipy.special import ndtri

    return max(0.0, -float(ndtri(delta))) if gaussian else math.sqrt(-2.0 * math.log(delta))


def with_noise(chance: Chance, x: float, spread: float, gaussian: bool) -> float:
    """A bound on P(A - N >= x), for a pseudo regret A and the noise N, from a bound `chance` on P(A >= x).

    The bound is the smallest chance(x - y) + P(N <= -y) over y. spread: sigma sqrt(T). y runs over fixed
    multiples of spread, so the result never rises with x. The first term rises with y and the second falls,
    so the search ends where one term alone reaches the best sum.

    >>> f"{with_noise(lambda x: math.exp(-max(0.0, x)), 50.0, 1.0, gaussian=True):.3g}"
    '1.66e-18'
    """
    if math.isinf(spread) or chance(x) >= 1.0:
        return 1.0  # the noise is too large for a float, or the first term is 1 for every y

    def both(place: int) -> tuple[float, float]:
        return chance(x - place * STEP * spread), noise_tail(place * STEP, gaussian)

    low, high = 0, FARTHEST
    while low < high:
        middle = (low + high) // 2
        pseudo, noise = both(middle)
        low, high = (low, middle) if pseudo >= noise else (middle + 1, high)
    best = sum(both(low))
    for step in (1, -1):
        place = low + step
        while 0 <= place <= FARTHEST:
            pseudo, noise = both(place)
            best = min(best, pseudo + noise)
            if (pseudo if step > 0 else noise) >= best:
                break
            place += step
    return best
