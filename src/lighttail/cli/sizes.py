"""Sizes that a command refuses before any work: what no memory holds, and what nobody would wait for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lighttail.checks import refuse
from lighttail.policies import Policy
from lighttail.problems import Bandit, Problem
from lighttail.running.methods import why_not_skip
from lighttail.running.prepare import check_long

MOST_POLICIES = 500  # of one comparison, whose page shows each of them
MOST_REGRETS = 100  # of one call, each with an estimate of its own
MOST_TAIL_PULLS = 10**7  # of a path whose tail is estimated: its plan looks at every pull
MOST_TAIL_ARMS = 1000  # whose tail is estimated: its plan looks at every arm
MOST_PLAYED = {"cpu": 10**15, "cuda": 10**18}  # pulls one by one, some months of one processor
PRODUCTS = 100  # products of two numbers that take as long as a pull of an arm, about


def check_policies(policies: Iterable[Policy]) -> None:
    """Refuse more policies than a page can show."""
    count = len(list(policies))
    if count > MOST_POLICIES:
        raise refuse("the number of policies", count, f"at most {MOST_POLICIES} in one comparison")


def check_played(
    policy: Policy, problem: Problem, horizon: int, paths: int, device: str, late: bool = False
) -> None:
    """Refuse a simulation that would take months, where every pull is played. late: so are the rewards."""
    if device == "cpu" and not late and not why_not_skip(policy, problem):
        return
    check_long(problem, horizon, "step")
    most = MOST_PLAYED[device] * PRODUCTS // max(PRODUCTS, problem.products)
    if paths * horizon > most:
        raise refuse(
            "paths * horizon",
            paths * horizon,
            f"at most {most:,} where every pull is played, as with {policy}",
        )


def check_tail(problem: Bandit, horizon: int) -> None:
    """Refuse what the plan for a rare event cannot look at pull by pull and arm by arm."""
    if horizon > MOST_TAIL_PULLS:
        raise refuse("horizon", horizon, f"at most {MOST_TAIL_PULLS:,} for a tail")
    if problem.arms > MOST_TAIL_ARMS:
        raise refuse("the number of arms", problem.arms, f"at most {MOST_TAIL_ARMS:,} for a tail")


def check_regrets(regrets: list[Any]) -> None:
    """Refuse more regrets than one call can answer."""
    if len(regrets) > MOST_REGRETS:
        raise refuse("the number of regrets", len(regrets), f"at most {MOST_REGRETS}")
