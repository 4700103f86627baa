"""Simulations that nobody would wait for, refused before any work."""

from __future__ import annotations

from lighttail.checks import refuse
from lighttail.policies import Policy
from lighttail.problems import Problem
from lighttail.running.methods import why_not_skip
from lighttail.running.simulate import check_long

MOST_PLAYED = {"cpu": 10**15, "cuda": 10**18}  # pulls one by one, some months of one processor
PRODUCTS = 100  # products of two numbers that take as long as a pull of an arm, about


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
