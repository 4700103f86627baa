"""How a simulation is played: pull by pull, or skipping ahead where the law stays the same.

docs/skip-ahead.md says how skipping works; here is when it is possible and when it pays.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from lighttail.policies import UCB, Policy, SuccessiveElimination
from lighttail.problems import Bandit, Gaussian
from lighttail.validation import BadInput, refuse

Method = Literal["auto", "step", "skip"]


def choose_method(policy: Policy, problem: Bandit, horizon: int, method: Any) -> Literal["step", "skip"]:
    """The method to play with; refuses "skip" where there is none, and a false declaration."""
    if method not in get_args(Method):
        raise refuse("method", method, "'auto', 'step' or 'skip'")
    if method == "step":
        return "step"
    obstacle = why_not_skip(policy, problem)
    if method == "skip" and obstacle:
        raise BadInput(f"method must be 'auto' or 'step' {obstacle}, but is 'skip'")
    if obstacle or (method == "auto" and horizon < worth_skipping(policy, problem)):
        return "step"
    if isinstance(policy, UCB):
        policy.bonus.check_concave(horizon, problem.arms)
    return "skip"


def why_not_skip(policy: Policy, problem: Bandit) -> str:
    """What keeps a policy on a problem from skipping ahead; empty if nothing does."""
    noise = problem.noise
    if not isinstance(policy, (UCB, SuccessiveElimination)):
        return f"with {policy}, whose draws depend on every reward"
    if noise.total is None or (isinstance(policy, UCB) and noise.clear is None):
        return f"with {type(noise).__name__} noise, whose sums are not drawn at once"
    if isinstance(noise, Gaussian) and noise.sigma == 0.0:
        return "with sigma 0, where every decision is a matter of rounding"
    if isinstance(policy, UCB) and not policy.bonus.concave:
        return f"with {policy.bonus}, which does not declare that n * radius(n) is concave"
    return ""


def worth_skipping(policy: Policy, problem: Bandit) -> float:
    """The horizon from which on skipping ahead is faster, by measurement (docs/skip-ahead.md)."""
    return 5000
