"""A mixture of tilted laws as the kernel takes it, and how routes are put together to a mixture."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lighttail.noises.tilts import Tilts
from lighttail.problems import Bandit
from lighttail.records import Floats
from lighttail.tails.task import Task

DEFENCE = 0.05  # share of paths without a tilt: no weight exceeds 1 / DEFENCE


class Mixture(NamedTuple):
    """The components of a mixture. In a component, the arms choose among their tilts independently.

    The choice `i` tilts the first caps[component, arm, i] rewards of an arm by lam; all later rewards are
    tilted by later_lam and, for a regret with its luck, also the reward of the last round.
    groups: the components groups[g] to groups[g + 1] - 1 form one plan; the last group may be untilted.
    """

    log_p: Floats  # [component]
    log_q: Floats  # [component, arm, choice]
    means: Floats
    lam: Floats
    psi: Floats
    caps: Floats
    later_means: Floats  # [component, arm]
    later_lam: Floats
    later_psi: Floats
    groups: Any  # int64


@dataclass(frozen=True)
class Routes:
    """One entry per route; an arm chooses among its tilts with probabilities exp(log_q).

    log_share: about the logarithm of the chance of the route. later: the tilts of the rewards beyond the
    caps. log_bound: no weight of the event exceeds exp(log_bound) if the routes are drawn in proportion to
    their shares; nan if no bound is known.
    """

    log_share: Floats  # [route]
    lam: Floats  # [route, arm, choice]
    caps: Floats  # [route, arm, choice]
    log_q: Floats  # [route, arm, choice]
    later: Floats  # [route, arm]
    log_bound: float = math.nan

    @property
    def rarity(self) -> float:
        """About -ln of the event's probability."""
        return -log_sum(self.log_share)

    def only(self, chosen: Any) -> Routes:
        lam, caps, log_q = self.lam[chosen], self.caps[chosen], self.log_q[chosen]
        return Routes(self.log_share[chosen], lam, caps, log_q, self.later[chosen], self.log_bound)

    def finite(self) -> Routes | None:
        """The routes whose numbers floats can hold; None if there are none."""
        parts = (self.lam.reshape(self.log_share.size, -1), self.later, self.log_share[:, None])
        finite = np.all([np.isfinite(part).all(axis=1) for part in parts], axis=0)
        return self.only(finite) if finite.any() else None

    def normal(self) -> Routes:
        """The same routes with shares that add up to 1."""
        return replace(self, log_share=self.log_share - log_sum(self.log_share))


def together(several: list[Routes]) -> Routes:
    """All routes as one. Routes with fewer choices get choices that are never taken. No bound is known."""
    choices = max(routes.lam.shape[2] for routes in several)

    def widened(values: Floats, filling: float) -> Floats:
        more = ((0, 0), (0, 0), (0, choices - values.shape[2]))
        return np.pad(values, more, constant_values=filling)

    return Routes(
        np.concatenate([routes.log_share for routes in several]),
        np.concatenate([widened(routes.lam, 0.0) for routes in several]),
        np.concatenate([widened(routes.caps, math.inf) for routes in several]),
        np.concatenate([widened(routes.log_q, -math.inf) for routes in several]),
        np.concatenate([routes.later for routes in several]),
    )


def mixed(problem: Bandit, tilts: Tilts, plans: list[Routes], defence: float = DEFENCE) -> Mixture:
    """The mixture of the plans in equal shares. Each plan is a group; untilted paths are the last group."""
    share = math.log((1.0 - defence) / len(plans)) if plans else 0.0
    groups = [replace(plan, log_share=plan.normal().log_share + share) for plan in plans]
    if defence > 0.0:  # a route without tilts
        none, share = np.zeros((1, problem.arms, 1)), math.log(defence) if plans else 0.0
        groups.append(Routes(np.array([share]), none, np.full(none.shape, math.inf), none, none[:, :, 0]))
    every = together(groups)
    true = np.array(problem.means)
    return Mixture(
        log_p=every.log_share,
        log_q=every.log_q,
        means=tilts.mean(true[:, None], every.lam),
        lam=every.lam,
        psi=tilts.psi(true[:, None], every.lam),
        caps=every.caps,
        later_means=tilts.mean(true, every.later),
        later_lam=every.later,
        later_psi=tilts.psi(true, every.later),
        groups=np.cumsum([0] + [group.log_share.size for group in groups], dtype=np.int64),
    )


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


def tilting_of(task: Task, plans: list[Routes]) -> Tilting:
    """The routes as one mixture, with untilted paths unless the routes bound every weight."""
    tight = len(plans) == 1 and not math.isnan(plans[0].log_bound)
    mixture = mixed(task.problem, task.tilts, plans, 0.0 if tight else DEFENCE)
    bound = plans[0].log_bound if tight else -math.log(DEFENCE)
    return Tilting(mixture, bound, tight, plans[0].rarity)


def log_sum(values: Floats) -> float:
    return float(np.logaddexp.reduce(values))
