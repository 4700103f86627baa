"""What is known about a tail without simulation: an exact answer, a certificate and a theorem's bound.

If several exact laws answer the question, the cheapest one is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lighttail import bounds
from lighttail.bounds import Bound, NoBound
from lighttail.bounds.answers import BoundOnTail
from lighttail.bounds.bound import most_regret
from lighttail.checks import BadInput
from lighttail.members import shipped
from lighttail.outcomes.losing import Lost
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.tails.exact import exact_seconds, exact_tail
from lighttail.tails.exact_costs import duration
from lighttail.tails.groups import has_law
from lighttail.tails.luck import sure_chance
from lighttail.tails.programme import programme_of, programme_seconds, programme_tail
from lighttail.tails.task import Task
from lighttail.tails.turns import sure_in_turns, turns_seconds, turns_tail

UCB_ALONE = "an exact law is known only for UCB with a bonus that does not change with time"
EXACT_ERROR = 1e-5  # relative error of an exact law that is integrated


def certain_chance(task: Task) -> float | None:
    """The chance if it is 0 or 1 whatever the luck, if rewards are known at once; otherwise None."""
    ways = (known(task) for known in (Task.certain, sure_in_turns, sure_chance))
    return next((chance for chance in ways if chance is not None), None)


def exact_way(task: Task) -> tuple[float, Callable[[], float]] | BadInput:
    """(seconds, function) of the cheapest exact answer, or the refusal if there is none."""
    settings = (task.policy, task.problem, task.horizon)
    ways: list[tuple[float | BadInput, Callable[[], float]]] = [
        (turns_seconds(task), lambda: turns_tail(task)),
        (programme_seconds(*settings, task.kind), lambda: programme_tail(*settings, task.target, task.kind)),
    ]
    if not task.luck_counts:
        ways.append((exact_seconds(*settings, task.regret), lambda: exact_tail(*settings, task.regret)))
    possible = [(takes, find) for takes, find in ways if isinstance(takes, float) and math.isfinite(takes)]
    return min(possible, key=lambda way: way[0]) if possible else _why_not(task, ways[-1][0])


def _why_not(task: Task, why: float | BadInput) -> BadInput:
    """The reason; if the policy has an exact law with Bernoulli rewards, the reason is the noise."""
    if not isinstance(why, BadInput):  # the seconds are infinite, because the gaps are too small
        return BadInput("there is no exact law for this task", field="policy", value=task.policy)
    if task.luck_counts or has_law(task.policy) or programme_of(task.policy) is None:
        return why
    noise, policy = task.problem.noise, task.policy
    also = f"with Bernoulli rewards at short horizons also for {policy}"
    return BadInput(f"with {noise!r} rewards {UCB_ALONE}; {also}", field="noise", value=noise)


@dataclass(frozen=True)
class KnownBounds:
    """The bounds on P(kind >= regret), and the reason for each bound that does not exist."""

    theorem: Bound | None
    certificate: Bound | None
    why_no_theorem: str = ""
    why_no_certificate: str = ""

    @property
    def guarantee(self) -> Bound | None:
        """The smaller of the two bounds; None if there is none."""
        known = [bound for bound in (self.certificate, self.theorem) if bound is not None]
        return min(known, key=float) if known else None


LATE = KnownBounds(None, None, "rewards come late", "rewards come late")


def bounds_at(policy: Policy, problem: Bandit, horizon: int, regret: float, kind: Lost) -> KnownBounds:
    """The bounds that apply, and the reason for each bound that does not apply."""

    def ask(question: BoundOnTail) -> tuple[Bound | None, str]:
        try:
            return question(policy, problem, horizon, regret, kind), ""
        except BadInput as error:  # why there is no bound, or what is allowed for a field
            return None, error.why if isinstance(error, NoBound) else error.rule

    (theorem, no_theorem), (certificate, no_certificate) = ask(bounds.tail), ask(bounds.certificate)
    return KnownBounds(theorem, certificate, no_theorem, no_certificate)


def bounds_to_dict(known: KnownBounds) -> dict[str, Any]:
    """The bounds for JSON: value, source and whether a bound is vacuous; or why there is no bound."""
    return {
        "certificate": _bound_dict(known.certificate, known.why_no_certificate),
        "theorem": _bound_dict(known.theorem, known.why_no_theorem),
        "guarantee": _bound_dict(known.guarantee, "no bound is known"),
    }


def known_limit(task: Task) -> float:
    """A bound on the chance that is known without simulation; 1 if there is none."""
    if not task.policy.plays_by and not shipped(task.policy):
        return 1.0  # no theorem covers a rule of which nothing is stated, whatever its class is derived from
    try:
        return bounds.guarantee(task.policy, task.problem, task.horizon, task.regret, task.kind).value
    except BadInput:
        return 1.0


def exact_at(task: Task, seconds: float) -> float | None:
    """The exact chance if it takes at most this number of seconds, otherwise None. A chance that is 0 or 1
    whatever the luck needs no law."""
    certain = certain_chance(task)
    if certain is not None:
        return certain
    way = exact_way(task)
    if isinstance(way, BadInput) or way[0] > seconds:
        return None
    try:
        found = way[1]()
    except BadInput:  # the noise is too small for the law
        return None
    possible = task.regret <= most_regret(task.problem, task.horizon)
    return None if found == 0.0 and possible else float(found)  # a chance too small to compute


def why_no_exact(task: Task, seconds: float) -> str:
    """Why there is no exact chance within this number of seconds; empty if there is one."""
    way = exact_way(task)
    if isinstance(way, BadInput):
        return f"none: {way.rule}"
    return f"not computed: takes {duration(way[0])}" if way[0] > seconds else ""


def _bound_dict(bound: Bound | None, why_not: str) -> dict[str, Any]:
    if bound is None:
        return {"value": None, "why_not": why_not}
    return {"value": bound.value, "source": bound.source, "vacuous": bound.vacuous}
