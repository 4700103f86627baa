"""Upper bounds on the chance of a large regret: the paper's theorems, and a certificate close to the truth.

The theorems hold for every mean vector with gaps of at most 1; the certificate is for one problem.
Both need the noise to be sub-Gaussian in the sense of its moment generating function,
E exp(s e) <= exp(s^2 sigma^2 / 2): the paper's definition by tails does not give the same sigma
(its Lemma bound-noise uses the former). sigma is taken from the problem, kappa from the policy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lighttail.bonuses import AnyTime, ArmOptimal, LightTailed
from lighttail.policies import UCB, Policy, SuccessiveElimination
from lighttail.problems import Bandit, Bernoulli, Gaussian, Resampled, Uniform
from lighttail.validation import BadInput, number, refuse, whole

Kind = Literal["regret", "pseudo_regret"]


@dataclass(frozen=True)
class Bound:
    """An upper bound on a probability, and where it comes from; `vacuous` if it says nothing."""

    value: float
    source: str
    vacuous: bool

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        note = ", vacuous: it says nothing here" if self.vacuous else ""
        return f"at most {self.value:.3g} ({self.source}{note})"


def tail(policy: Policy, problem: Bandit, *, horizon: int, regret: float, kind: Kind = "regret") -> Bound:
    """The theorem's bound on P(kind >= regret).

    LightTailed: Thm exp-K-armed. ArmOptimal: Thm exp-K-armed-optimal. AnyTime with UCB: Thm any-time.
    The theorems bound the regret; without their first term, which is the noise's, the pseudo regret.

    >>> import lighttail as lt
    >>> policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    >>> print(lt.bounds.tail(policy, problem, horizon=4000, regret=800))
    at most 1 (Thm exp-K-armed, vacuous: it says nothing here)
    >>> print(lt.bounds.tail(policy, problem, horizon=10**7, regret=2_000_000))
    at most 6.57e-07 (Thm exp-K-armed)
    """
    sigma = _check(policy, problem, horizon, regret, kind)
    if max(problem.gaps) > 1.0:
        raise refuse("means", problem.means, "at most 1 apart, which the theorems assume")
    ucb, bonus = isinstance(policy, UCB), getattr(policy, "bonus", None)
    if ucb or isinstance(policy, SuccessiveElimination):
        if isinstance(bonus, LightTailed):
            terms = exp_k_armed(regret, horizon, problem.arms, sigma, bonus.kappa)
            return _bound(terms, kind, "Thm exp-K-armed")
        if isinstance(bonus, ArmOptimal):
            terms = exp_k_armed_optimal(regret, horizon, problem.arms, sigma, bonus.kappa, bonus.floor)
            return _bound(terms, kind, "Thm exp-K-armed-optimal")
        if ucb and isinstance(bonus, AnyTime):
            return _bound(any_time(regret, horizon, problem.arms, sigma, bonus.kappa), kind, "Thm any-time")
    raise BadInput(
        "policy must be UCB or SuccessiveElimination with LightTailed or ArmOptimal, or UCB with AnyTime, "
        f"for which a theorem bounds the tail, but is {policy!r}"
    )


def exp_k_armed(x: float, horizon: int, arms: int, sigma: float, kappa: float) -> tuple[float, ...]:
    """The three terms of Thm exp-K-armed (2), noise first; kappa = sigma sqrt(eta).

    exp(-x^2 / (2 K sigma^2 T)) + 2 K exp(-(x - 2K - 4 K kappa sqrt(T ln T))_+^2 / (32 sigma^2 K^2 T))
    + K^2 T exp(-x kappa sqrt(ln T) / (8 sigma^2 K sqrt T)).

    Corrected: the UCB half of the printed proof has 32 sigma^2 K T in the second term; the statement,
    used here, is right.
    """
    log, root = math.log(horizon), math.sqrt(horizon)
    excess = max(0.0, x - 2 * arms - 4 * arms * kappa * math.sqrt(horizon * log))
    return (
        math.exp(-(x**2) / (2 * arms * sigma**2 * horizon)),
        2 * arms * math.exp(-(excess**2) / (32 * sigma**2 * arms**2 * horizon)),
        arms**2 * horizon * math.exp(-x * kappa * math.sqrt(log) / (8 * sigma**2 * arms * root)),
    )


def exp_k_armed_optimal(
    x: float, horizon: int, arms: int, sigma: float, kappa: float, floor: float
) -> tuple[float, ...]:
    """The three terms of Thm exp-K-armed-optimal (2); kappa = sigma sqrt(eta_1), floor = sigma sqrt(eta_2).

    exp(-x^2 / (8 K sigma^2 T)) + 4 K exp(-(x - 2K - 8 max(kappa, floor) sqrt(K T ln T))_+^2
    / (128 sigma^2 K T)) + 2 K^2 T exp(-(x - 2K)_+ kappa sqrt(ln T) / (16 sigma^2 sqrt(K T))).
    """
    log, spread = math.log(horizon), arms * horizon
    excess = max(0.0, x - 2 * arms - 8 * max(kappa, floor) * math.sqrt(spread * log))
    above = max(0.0, x - 2 * arms)
    return (
        math.exp(-(x**2) / (8 * sigma**2 * spread)),
        4 * arms * math.exp(-(excess**2) / (128 * sigma**2 * spread)),
        2
        * arms**2
        * horizon
        * math.exp(-above * kappa * math.sqrt(log) / (16 * sigma**2 * math.sqrt(spread))),
    )


def any_time(x: float, horizon: int, arms: int, sigma: float, kappa: float) -> tuple[float, ...]:
    """The three terms of Thm any-time; kappa = sigma sqrt(eta).

    exp(-x^2 / (8 K sigma^2 T)) + 2 K T^2 exp(-(x - 2K - 16 kappa sqrt(2 K T ln T))_+^2 / (512 sigma^2 K T))
    + 2 K T^3 exp(-(x - 2K)_+ kappa sqrt(ln T) / (16 sigma^2 sqrt(K T))).
    """
    log, spread = math.log(horizon), arms * horizon
    excess = max(0.0, x - 2 * arms - 16 * kappa * math.sqrt(2 * spread * log))
    above = max(0.0, x - 2 * arms)
    return (
        math.exp(-(x**2) / (8 * sigma**2 * spread)),
        2 * arms * horizon**2 * math.exp(-(excess**2) / (512 * sigma**2 * spread)),
        2
        * arms
        * horizon**3
        * math.exp(-above * kappa * math.sqrt(log) / (16 * sigma**2 * math.sqrt(spread))),
    )


def certificate(policy: Policy, problem: Bandit, *, horizon: int, regret: float) -> Bound:
    """A bound on P(pseudo regret >= regret) for UCB with LightTailed on this very problem.

    Not in the paper; see docs/tails.md. Gaussian noise gets the sharper form.

    >>> import lighttail as lt
    >>> policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    >>> print(lt.bounds.certificate(policy, problem, horizon=4000, regret=801))
    at most 5.54e-18 (certificate)
    """
    sigma = _check(policy, problem, horizon, regret, "pseudo_regret")
    if not isinstance(policy, UCB) or not isinstance(policy.bonus, LightTailed):
        raise refuse("policy", policy, "UCB with LightTailed, for which there is a certificate")
    (scale,) = policy.params(horizon, problem.arms)
    gaps = [gap for gap in problem.gaps if gap > 0.0]
    if regret <= sum(gaps):
        return Bound(1.0, "certificate", True)  # every arm is pulled once
    if regret > max(gaps, default=0.0) * horizon:
        return Bound(0.0, "certificate", False)
    chance = _gaussian_chance if isinstance(problem.noise, Gaussian) else _sub_gaussian_chance
    pulls = np.arange(1.0, horizon + 1.0)
    # P(arm k is pulled more than m times), never rising in m.
    chances = [np.minimum.accumulate(chance(pulls, gap, scale, sigma)) for gap in gaps]
    value = min(1.0, _least_sum(chances, gaps, regret))
    return Bound(value, "certificate", value >= 1.0)


def _gaussian_chance(m: Any, gap: float, scale: float, sigma: float) -> Any:
    """Phi(-g/s) + exp(-lam g + lam^2 s^2 / 2) Phi(g/s - lam s), with g = gap - scale / m,
    lam = 2 scale / sigma^2 and s = sigma / sqrt(m)."""
    from scipy.special import log_ndtr

    g, lam, s = gap - scale / m, 2.0 * scale / sigma**2, sigma / np.sqrt(m)
    crossing = -lam * g + 0.5 * (lam * s) ** 2 + log_ndtr(g / s - lam * s)
    return np.minimum(1.0, np.exp(log_ndtr(-g / s)) + np.exp(np.minimum(crossing, 0.0)))


def _sub_gaussian_chance(m: Any, gap: float, scale: float, sigma: float) -> Any:
    """exp(-m g_+^2 / (2 sigma^2)) while m g <= 2 scale, and after that
    exp(-2 scale gap / sigma^2 + 4 scale^2 / (sigma^2 m)).

    From Markov's inequality on E min(1, exp(-lam (g - X))): P <= E exp(-t (g - X)) for 0 <= t <= lam.
    """
    g = gap - scale / m
    early = -m * np.maximum(g, 0.0) ** 2 / (2.0 * sigma**2)
    late = -2.0 * scale * gap / sigma**2 + 4.0 * scale**2 / (sigma**2 * m)
    return np.exp(np.minimum(0.0, np.where(m * g <= 2.0 * scale, early, late)))


def _least_sum(chances: list[Any], gaps: list[float], regret: float) -> float:
    """The least sum of the arms' chances over ways to split the regret among them.

    If no arm k is pulled more than m_k times and sum gap_k m_k < regret, the regret is not reached.
    Every arm may have one level e: m_k is the least number of pulls whose chance is at most e, and the
    least e whose m_k fit is found by bisection; pulls left over then go where they lower the sum most.
    """
    levels = np.unique(np.concatenate(chances))
    low, high = 0, levels.size - 1

    def pulls_at(level: float) -> list[int]:
        return [
            int(np.argmax(chance <= level)) + 1 if chance[-1] <= level else chance.size for chance in chances
        ]

    def fits(pulls: list[int]) -> bool:
        return sum(gap * m for gap, m in zip(gaps, pulls, strict=True)) < regret * (1 - 1e-12)

    while low < high:
        middle = (low + high) // 2
        if fits(pulls_at(levels[middle])):
            high = middle
        else:
            low = middle + 1
    pulls = pulls_at(levels[low])
    if not fits(pulls):
        return 1.0
    left = regret * (1 - 1e-12) - sum(gap * m for gap, m in zip(gaps, pulls, strict=True))
    for k in sorted(range(len(gaps)), key=lambda k: -chances[k][pulls[k] - 1]):
        more = min(chances[k].size - pulls[k], max(0, math.ceil(left / gaps[k]) - 1))
        pulls[k] += more
        left -= more * gaps[k]
    return float(sum(chance[m - 1] for chance, m in zip(chances, pulls, strict=True)))


def _bound(terms: tuple[float, ...], kind: Kind, source: str) -> Bound:
    value = sum(terms if kind == "regret" else terms[1:])
    return Bound(min(1.0, value), source, value >= 1.0)


def _check(policy: Any, problem: Any, horizon: Any, regret: Any, kind: Any) -> float:
    """Refuse what no bound is for; returns the noise's sub-Gaussian parameter."""
    if not isinstance(policy, Policy):
        raise refuse("policy", policy, "a policy such as UCB(LightTailed(kappa=0.2))")
    if not isinstance(problem, Bandit):
        raise refuse("problem", problem, "a problem such as Bandit([0.2, 0.8])")
    whole("horizon", horizon, max(3, problem.arms))
    number("regret", regret)
    if kind not in ("regret", "pseudo_regret"):
        raise refuse("kind", kind, "'regret' or 'pseudo_regret'")
    match problem.noise:
        case Gaussian(sigma) | Uniform(sigma) if sigma > 0.0:
            return sigma  # both have their variance as the parameter
        case Bernoulli():
            return 0.5  # Hoeffding's lemma
        case Resampled(samples):
            return max(float(np.ptp(values)) for values in samples) / 2 or 1e-300
    raise refuse("noise", problem.noise, "sub-Gaussian and not certain, as the theorems need")
