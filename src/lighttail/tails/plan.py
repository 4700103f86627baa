"""Which routes a policy, a problem and a regret have."""

from __future__ import annotations

from collections.abc import Callable

from lighttail.tails.elimination_routes import elimination_routes
from lighttail.tails.index_routes import Quest, index_routes
from lighttail.tails.mixture import Routes
from lighttail.tails.pairs import pair_routes
from lighttail.tails.task import PAIRED

ROUTES: dict[str, Callable[[Quest], Routes | None]] = {  # by what a policy plays by
    "radius": index_routes,
    "index": index_routes,
    "posterior": index_routes,
    "phases": elimination_routes,
}


def routes(quest: Quest) -> Routes | None:
    """The routes to the event; None where none is found, which for two arms may mean that there is none."""
    policy, problem = quest.policy, quest.problem
    if problem.arms == 2 and not quest.whole and policy.plays_by in PAIRED:
        return pair_routes(policy, problem, quest.family, quest.horizon, quest.target)
    find = ROUTES.get(policy.plays_by)
    return None if find is None else find(quest)
