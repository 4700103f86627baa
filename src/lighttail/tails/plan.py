"""Which routes a policy, a problem and a regret have."""

from __future__ import annotations

from lighttail.policies import UCB, SuccessiveElimination, ThompsonSampling
from lighttail.tails.elimination_routes import elimination_routes
from lighttail.tails.index_routes import Quest, index_routes
from lighttail.tails.mixture import Routes
from lighttail.tails.pairs import pair_routes


def routes(quest: Quest) -> Routes | None:
    """The routes to the event; None where none is found, which for two arms means that there is none."""
    policy, problem = quest.policy, quest.problem
    if problem.arms == 2 and not quest.whole and isinstance(policy, (UCB, SuccessiveElimination)):
        return pair_routes(policy, problem, quest.family, quest.horizon, quest.target)
    if isinstance(policy, SuccessiveElimination):
        return elimination_routes(quest)
    if isinstance(policy, (UCB, ThompsonSampling)):
        return index_routes(quest)
    return None
