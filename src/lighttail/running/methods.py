"""How a simulation is played: pull by pull, or skipping ahead where the law stays the same.

docs/skip-ahead.md says how skipping works; here is when it is possible and when it pays.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from lighttail.checks import one_of, refuse
from lighttail.costs import costs_of
from lighttail.policies import Policy
from lighttail.policies.rehearsal import shipped
from lighttail.problems import Bandit, Problem

Method = Literal["auto", "step", "skip"]
Played = Literal["step", "skip"]
SKIPPING = ("radius", "phases")  # what policies that skip ahead play by
SHORT = 1000  # below this horizon a path takes microseconds either way: always pull by pull
LEAST_EACH = 16  # pulls of an arm at the shortest horizon that is tried first
LONGEST_TRIED = 10**9  # pulls of a pilot path: where skipping does not pay there, a pilot takes long
CLEARLY = 0.7  # of the cost pull by pull: skipping that costs less will do so at longer horizons, too


def check_method(policy: Any, problem: Any, horizon: int, method: Any, late: bool = False) -> Method:
    """Refuse a method that there is not, and a bonus that is not what it declares."""
    method = one_of("method", method, get_args(Method))
    if method == "step" or (late and method == "auto"):
        return "step"
    obstacle = "with rewards that come late, or a start" if late else why_not_skip(policy, problem)
    if method == "skip" and obstacle:
        raise refuse("method", method, f"'auto' or 'step' {obstacle}")
    if not obstacle and policy.plays_by == "radius":
        policy.bonus.check_concave(horizon, problem.arms)
    return method  # type: ignore[no-any-return]


def choose_method(policy: Policy, problem: Any, horizon: int, method: Method) -> Played:
    """The method to play with: the faster one for "auto", by a rule that no clock and no seed enters."""
    if method != "auto":
        return method
    if horizon < SHORT or why_not_skip(policy, problem):
        return "step"
    return "skip" if pays(policy, problem, horizon) else "step"


def work_of(policy: Policy, problem: Any, horizon: int) -> float:
    """What a path costs with the faster method, in pulls: the horizon at most."""
    if choose_method(policy, problem, horizon, "auto") == "step":
        return float(horizon)
    step, skip = costs_of(policy, problem, horizon)
    return horizon * min(1.0, skip / step)


def why_not_skip(policy: Any, problem: Problem) -> str:
    """What keeps a policy on a problem from skipping ahead; empty if nothing does."""
    noise = problem.noise
    if policy.plays_by not in SKIPPING or not shipped(policy):
        return f"with {policy}, which draws or learns anew at every pull"
    if noise.total is None or (policy.plays_by == "radius" and noise.clear is None):
        return f"with {type(noise).__name__} noise, whose sums are not drawn at once"
    if noise.certain:
        return "with sigma 0, where every decision is a matter of rounding"
    if policy.plays_by == "radius" and not policy.bonus.concave:
        return f"with {policy.bonus}, which does not declare that n * radius(n) is concave"
    return ""


def pays(policy: Policy, problem: Bandit, horizon: int) -> bool:
    """Whether skipping ahead costs less, here or clearly at a shorter horizon, where pilots cost less."""
    shorter = max(SHORT, LEAST_EACH * problem.arms)
    while shorter < min(horizon, LONGEST_TRIED):
        step, skip = costs_of(policy, problem, shorter, start=shorter / horizon)
        if skip < CLEARLY * step:
            return True
        shorter *= 4
    if horizon > LONGEST_TRIED:
        return False
    step, skip = costs_of(policy, problem, horizon)
    return skip < step
