"""The table of what is proved about each policy: theorems of the paper and of others, and certificates.

A policy and its bonus are looked up by their exact types. A subclass of a shipped bonus may have another
radius, and a subclass of a shipped policy may have another rule, so no theorem covers them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lighttail.bonuses import AnyTime, ArmOptimal, LightTailed
from lighttail.bounds import theorems
from lighttail.bounds.bound import Chance, no_bound, with_noise
from lighttail.bounds.chances import Chances, elimination_chances, index_chances
from lighttail.bounds.simplified import Simplified, simplified_k_armed, simplified_k_armed_optimal
from lighttail.bounds.theorems import RuleName, Terms
from lighttail.linear import LinearLightTailed, LinearUCB
from lighttail.outcomes.losing import Lost
from lighttail.policies import UCB, Exp3IX, Policy, SuccessiveElimination
from lighttail.problems import Bandit


class Case(NamedTuple):
    """The theorems that cover a policy, and the question for them. rule: the rule of the paper by which the
    policy plays."""

    theorem: Theorem
    policy: Any
    problem: Bandit
    horizon: int
    sigma: float
    rule: RuleName

    @property
    def arms(self) -> int:
        return self.problem.arms

    @property
    def settings(self) -> tuple[int, int, float, float]:
        """The numbers that most theorems need: horizon, arms, sigma and kappa."""
        return self.horizon, self.arms, self.sigma, self.policy.bonus.kappa


Tails = dict[str, tuple[Callable[[float], Terms], float]]


class Theorem(NamedTuple):
    """The theorems about one bonus.

    tails(case): for each theorem, its terms as a function of x, and the factor by which x is multiplied in
        the proof's bound on the pseudo regret.
    means(case): bounds on the mean regret. simplified(case): the tail in the paper's variable y.
    """

    tails: Callable[[Case], Tails]
    means: Callable[[Case], dict[str, float]] = lambda case: {}
    simplified: Callable[[Case], Simplified] | None = None


class Proved(NamedTuple):
    """What is proved about one rule.

    certificate: returns bounds for each arm alone, or None if there is no certificate. theorems: the theorems
    by the type of the bonus.
    """

    rule: RuleName
    certificate: Callable[..., Chances | None]
    theorems: dict[type, Theorem]


def _light_tails(case: Case) -> Tails:
    horizon, arms, sigma, kappa = case.settings
    whole = 2.0 * arms / (arms - 1)
    found: Tails = {"Thm exp-K-armed": (lambda x: theorems.exp_k_armed(x, *case.settings, case.rule), whole)}
    if arms == 2:
        found["Thm exp-2-armed"] = (lambda x: theorems.exp_2_armed(x, horizon, sigma, kappa), 2.0)
    return found


def _light_means(case: Case) -> dict[str, float]:
    horizon, arms, sigma, kappa = case.settings
    if kappa < 2 * sigma:
        return {}
    found = {"Thm exp-K-armed": theorems.mean_k_armed(horizon, arms, kappa, case.rule)}
    if arms == 2:
        found["Thm exp-2-armed"] = theorems.mean_2_armed(horizon, kappa, case.rule)
    return found


def _optimal_tails(case: Case) -> Tails:
    settings = (*case.settings, case.policy.bonus.floor, case.rule)
    return {"Thm exp-K-armed-optimal": (lambda x: theorems.exp_k_armed_optimal(x, *settings), 2.0)}


def _optimal_means(case: Case) -> dict[str, float]:
    bonus = case.policy.bonus
    if bonus.floor < 2 * case.sigma:
        return {}
    value = theorems.mean_k_armed_optimal(case.horizon, case.arms, bonus.kappa, bonus.floor, case.rule)
    return {"Thm exp-K-armed-optimal": value}


def _any_time_tails(case: Case) -> Tails:
    return {"Thm any-time": (lambda x: theorems.any_time(x, *case.settings), 2.0)}


SHARED: dict[type, Theorem] = {
    LightTailed: Theorem(_light_tails, _light_means, lambda case: simplified_k_armed(*case.settings)),
    ArmOptimal: Theorem(
        _optimal_tails,
        _optimal_means,
        lambda case: simplified_k_armed_optimal(*case.settings, case.policy.bonus.floor),
    ),
}
PROVED: dict[type[Policy], Proved] = {
    UCB: Proved("UCB", index_chances, SHARED | {AnyTime: Theorem(_any_time_tails)}),
    SuccessiveElimination: Proved("SE", elimination_chances, SHARED),
}
LINEAR = {(LinearUCB, LinearLightTailed)}  # the policies and bonuses that Thm linear covers


def has_linear_theorem(policy: Any) -> bool:
    """Whether Thm linear covers this policy."""
    return (type(policy), type(getattr(policy, "bonus", None))) in LINEAR


def case_of(policy: Policy, problem: Bandit, horizon: int, sigma: float) -> Case | None:
    """The theorems that cover a policy, with the question for them; None if there are none."""
    known, bonus = PROVED.get(type(policy)), getattr(policy, "bonus", None)
    theorem = known and known.theorems.get(type(bonus))
    return known and theorem and Case(theorem, policy, problem, horizon, sigma, known.rule)


def chances(policy: Policy, problem: Bandit, horizon: int, sigma: float) -> Chances | None:
    """The bounds of which the certificate of a policy is made; None if there is no certificate."""
    known = PROVED.get(type(policy))
    return None if known is None else known.certificate(policy, problem, horizon, sigma)


def tails(
    policy: Policy, problem: Bandit, horizon: int, sigma: float, kind: Lost
) -> dict[str, Chance] | None:
    """The bounds of the theorems on this policy's tail, by the theorems' names; None if there is none."""
    own = OWN_TAILS.get(type(policy))
    if own is not None:
        return own(policy, problem, horizon, sigma, kind)
    case = case_of(policy, problem, horizon, sigma)
    if case is None:
        return None
    check_gaps(problem)
    return {name: _of_kind(terms, whole, kind) for name, (terms, whole) in case.theorem.tails(case).items()}


def check_gaps(problem: Bandit) -> None:
    if max(problem.gaps) > 1.0 + 1e-12:
        why = "the theorems assume means that are at most 1 apart"
        raise no_bound("means", problem.means, "at most 1 apart, which the theorems assume", why)


def _of_kind(terms: Callable[[float], Terms], whole: float, kind: Lost) -> Chance:
    """The bound on the regret, which is the sum of all terms; or the bound on the pseudo regret, which is the
    sum without the noise's term, at `whole` times x."""
    if kind == "regret":
        return lambda x: sum(terms(x))
    return lambda x: sum(terms(whole * x)[1:])


def _exp3_ix(
    policy: Exp3IX, problem: Bandit, horizon: int, sigma: float, kind: Lost
) -> dict[str, Chance] | None:
    if policy.estimator != "loss":
        return None
    eta, gamma, upper = policy.params(horizon, problem.arms)
    low, high = _range(problem)
    if upper < high - 1e-12 * max(1.0, abs(high)):
        least = f"at least the largest reward, {high:g}"
        why = f"Thm 12.1 assumes that upper is {least}, but upper is {upper:g}"
        raise no_bound("upper", upper, f"{least}, as Thm 12.1 assumes", why)
    span = upper - low

    def regret_chance(x: float) -> float:
        return theorems.exp3_ix(x, horizon, problem.arms, span, eta, gamma)

    def pseudo_chance(x: float) -> float:
        return with_noise(regret_chance, x, sigma * horizon**0.5, gaussian=False)

    return {"Thm 12.1 of Lattimore & Szepesvari": regret_chance if kind == "regret" else pseudo_chance}


OWN_TAILS: dict[type[Policy], Callable[..., dict[str, Chance] | None]] = {Exp3IX: _exp3_ix}


def _range(problem: Bandit) -> tuple[float, float]:
    """The smallest and the largest reward that an arm can give."""
    span = problem.noise.span(problem.means)
    if span is not None:
        return span
    kinds = "bounded (Bernoulli, Uniform, resampled, or a class that states its span)"
    why = f"Thm 12.1 assumes rewards that are {kinds}"
    raise no_bound("noise", problem.noise, f"{kinds}, as Thm 12.1 assumes", why)
