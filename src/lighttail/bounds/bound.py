"""What a bound is, what may be bounded, and how the noise in the rewards is added to a pseudo regret."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from lighttail.checks import BadInput, number, one_of, positive, refuse, whole
from lighttail.policies import Policy
from lighttail.problems import MOST_PULLS, Bandit, Problem, has_arms

Kind = Literal["regret", "pseudo_regret"]
Chance = Callable[[float], float]  # an upper bound on P(something >= x), never rising in x
TINY = sys.float_info.min  # what cannot be told from 0 in a float, and is not 0
STEP, FARTHEST = 1.0 / 32.0, 40 * 32  # where the regret is cut into noise and pseudo regret


@dataclass(frozen=True)
class Bound:
    """An upper bound, on a probability or on a regret, and where it comes from.

    vacuous: it says nothing that was not known beforehand (a probability of 1, a regret as large as
    any can be).
    """

    value: float
    source: str
    vacuous: bool

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        note = ", vacuous: it says nothing here" if self.vacuous else ""
        return f"at most {self.value:.3g} ({self.source}{note})"


class NoBound(BadInput):
    """There is no bound for what was asked; `why` is the reason, as the rest of a sentence."""

    why: str = ""


def no_bound(field: str, value: object, allowed: str, why: str) -> NoBound:
    """The error for what no bound is for, worded like every other, with the plain reason beside it."""
    error = NoBound(field=field, value=value, allowed=allowed)
    error.why = why
    return error


def probability(value: float, source: str) -> Bound:
    """A bound on a probability: never above 1, and 1 where rounding alone keeps it below."""
    nothing = value >= 1.0 - 1e-9
    return Bound(1.0 if nothing else value, source, nothing)


def most_regret(problem: Bandit, horizon: int) -> float:
    """The largest pseudo regret when every arm is pulled once and the worst one ever after."""
    return sum(problem.gaps) + max(problem.gaps) * (horizon - problem.arms)


class Asked(NamedTuple):
    """What was asked, checked, as plain numbers; sigma: the noise's sub-Gaussian parameter."""

    horizon: int
    regret: float
    kind: Kind
    sigma: float


def check(policy: Any, problem: Any, horizon: Any, kind: Any = "regret", regret: Any = 0.0) -> Asked:
    """Refuse what no bound is for."""
    if not isinstance(policy, Policy):
        raise refuse("policy", policy, "a policy such as UCB(LightTailed(kappa=0.2))")
    if policy.linear:
        raise refuse("policy", policy, "for arms, such as UCB(LightTailed(kappa=0.2)), with a Bandit")
    if not has_arms(problem):
        raise refuse("problem", problem, "a problem such as Bandit([0.2, 0.8])")
    pulls = whole("horizon", horizon, max(3, problem.arms), most=MOST_PULLS)
    problem.check_sums(pulls)
    remembered(_check_policy, policy, pulls, problem.arms)
    return Asked(pulls, number("regret", regret), check_kind(kind), sub_gaussian(problem))


@functools.lru_cache(maxsize=16)
def _check_policy(policy: Policy, horizon: int, arms: int) -> None:
    policy.check(horizon, arms)


def remembered(function: Any, *args: Any) -> Any:
    """A call of a function with an `lru_cache`, which does without where an argument has no hash."""
    try:
        hash(args)
    except Exception:  # a policy of somebody else's making
        return function.__wrapped__(*args)
    return function(*args)


def check_kind(kind: Any) -> Kind:
    return one_of("kind", kind, get_args(Kind))  # type: ignore[return-value]


def sub_gaussian(problem: Problem) -> float:
    """The sigma that the author of the noise states: E exp(s e) <= exp(s^2 sigma^2 / 2), every s and arm."""
    stated = problem.noise.sub_gaussian
    if stated is None or isinstance(stated, bool) or stated == 0.0:
        why = "every bound needs noise that is not certain and whose class states a sub-Gaussian sigma"
        raise no_bound("noise", problem.noise, "sub-Gaussian and not certain, as every bound needs", why)
    return positive("the noise's sub_gaussian", stated)


def is_gaussian(problem: Bandit) -> bool:
    """Whether the noise states that it is normal."""
    return problem.noise.normal is not None


def noise_tail(z: float, gaussian: bool) -> float:
    """A bound on P(N >= z sigma sqrt(T)) and on P(N <= -z sigma sqrt(T)), N the noise in T rewards.

    Lemma bound-noise: exp(-z^2 / 2). Whatever the policy does, Gaussian noise adds up to a normal N:
    then it is Phi(-z).
    """
    if gaussian:
        return 0.5 * math.erfc(z / math.sqrt(2.0))
    return math.exp(-0.5 * z * z)


def noise_level(delta: float, gaussian: bool) -> float:
    """The z at which `noise_tail` is delta; for Gaussian noise and delta above 1/2, 0."""
    from scipy.special import ndtri

    return max(0.0, -float(ndtri(delta))) if gaussian else math.sqrt(-2.0 * math.log(delta))


def with_noise(chance: Chance, x: float, spread: float, gaussian: bool) -> float:
    """A bound on P(A - N >= x) from one on P(A >= x): the least of chance(x - y) + P(N <= -y) over y.

    spread: sigma sqrt(T). y runs over fixed multiples of it, so the result never rises in x: chance
    rises in y and the noise's tail falls, so what lies beyond the point where one of them alone
    reaches the best sum need not be looked at.

    >>> f"{with_noise(lambda x: math.exp(-max(0.0, x)), 50.0, 1.0, gaussian=True):.3g}"
    '1.66e-18'
    """
    if math.isinf(spread) or chance(x) >= 1.0:
        return 1.0  # no float is as large as the noise, or what is left says nothing for any y

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
