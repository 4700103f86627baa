"""Sizes of a tail that a command refuses before any work: what nobody would wait for."""

from __future__ import annotations

from typing import Any

from lighttail.checks import refuse
from lighttail.problems import Bandit

MOST_REGRETS = 100  # of one call, each with an estimate of its own
MOST_TAIL_PULLS = 10**7  # of a path whose tail is estimated: its plan looks at every pull
MOST_TAIL_ARMS = 1000  # whose tail is estimated: its plan looks at every arm


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
