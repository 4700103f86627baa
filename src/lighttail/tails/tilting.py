"""Tilted laws from which weighted paths are drawn: the routes of one or two plans, put into one mixture."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lighttail.tails.elimination_routes import elimination_routes
from lighttail.tails.index_routes import index_routes
from lighttail.tails.mixture import DEFENCE, Mixture, Routes, mixed
from lighttail.tails.pairs import pair_routes
from lighttail.tails.play import may_skip
from lighttail.tails.task import Task

ROUTES: dict[str, Callable[[Task], Routes | None]] = {  # by the policy's `plays_by`
    "radius": index_routes,
    "index": index_routes,
    "posterior": index_routes,
    "phases": elimination_routes,
}


@dataclass(frozen=True)
class Tilting:
    """A mixture of one or two plans. No weight exceeds exp(log_bound).

    tight: whether the bound comes from the routes and not from untilted paths. rarity: about -ln of
    the event's probability.
    """

    mixture: Mixture
    log_bound: float
    tight: bool
    rarity: float

    @property
    def plans(self) -> int:
        """The number of plans: all groups but the untilted paths."""
        return int(self.mixture.groups.size) - 1 - (not self.tight)


def tilting_of(task: Task, found: list[Routes]) -> Tilting:
    """The routes as one mixture, with untilted paths unless the routes bound every weight."""
    tight = len(found) == 1 and not math.isnan(found[0].log_bound)
    mixture = mixed(task.problem, task.family, found, 0.0 if tight else DEFENCE)
    bound = found[0].log_bound if tight else -math.log(DEFENCE)
    return Tilting(mixture, bound, tight, found[0].rarity)


def derived(task: Task) -> Routes | None:
    """The derived routes; None if there are none. If `every_way_counted` holds, None means that the event
    cannot happen."""
    find = pair_routes if task.every_way_counted else ROUTES.get(task.policy.plays_by)
    with np.errstate(all="ignore"):  # a cost that no float can hold is infinite: no path goes there
        found = find and find(task)
    found = found and found.finite()
    return found and uncapped(task, found)


def uncapped(task: Task, found: Routes) -> Routes:
    """The routes with all rewards of an arm tilted alike, if paths may skip ahead."""
    return replace(found, caps=np.full(found.caps.shape, math.inf)) if may_skip(task) else found
