"""A mixture of tilted laws as the kernel takes it, and how routes are put together to a mixture."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lighttail.noises.tilts import Tilts
from lighttail.problems import Bandit
from lighttail.records import Floats

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

    def only(self, kept: Any) -> Routes:
        rows = (self.log_share[kept], self.lam[kept], self.caps[kept], self.log_q[kept], self.later[kept])
        return Routes(*rows, self.log_bound)

    def finite(self) -> Routes | None:
        """The routes whose numbers floats can hold; None if there are none."""
        parts = (self.lam.reshape(self.log_share.size, -1), self.later, self.log_share[:, None])
        kept = np.all([np.isfinite(part).all(axis=1) for part in parts], axis=0)
        return None if not kept.any() else self if kept.all() else self.only(kept)

    def normal(self) -> Routes:
        """The same routes with shares that add up to 1."""
        return replace(self, log_share=self.log_share - log_sum(self.log_share))


def together(parts: list[Routes]) -> Routes:
    """All routes as one. Routes with fewer choices get choices that are never taken. No bound is known."""
    choices = max(part.lam.shape[2] for part in parts)

    def widened(values: Floats, filling: float) -> Floats:
        more = ((0, 0), (0, 0), (0, choices - values.shape[2]))
        return np.pad(values, more, constant_values=filling)

    return Routes(
        np.concatenate([part.log_share for part in parts]),
        np.concatenate([widened(part.lam, 0.0) for part in parts]),
        np.concatenate([widened(part.caps, math.inf) for part in parts]),
        np.concatenate([widened(part.log_q, -math.inf) for part in parts]),
        np.concatenate([part.later for part in parts]),
    )


def mixed(problem: Bandit, family: Tilts, plans: list[Routes], defence: float = DEFENCE) -> Mixture:
    """The mixture of the plans in equal shares. Each plan is a group; untilted paths are the last group."""
    share = math.log((1.0 - defence) / len(plans)) if plans else 0.0
    parts = [replace(part, log_share=part.log_share - log_sum(part.log_share) + share) for part in plans]
    if defence > 0.0:  # a route without tilts
        none, share = np.zeros((1, problem.arms, 1)), math.log(defence) if plans else 0.0
        parts.append(Routes(np.array([share]), none, np.full(none.shape, math.inf), none, none[:, :, 0]))
    found = together(parts)
    true = np.array(problem.means)
    return Mixture(
        log_p=found.log_share,
        log_q=found.log_q,
        means=family.mean(true[:, None], found.lam),
        lam=found.lam,
        psi=family.psi(true[:, None], found.lam),
        caps=found.caps,
        later_means=family.mean(true, found.later),
        later_lam=found.later,
        later_psi=family.psi(true, found.later),
        groups=np.cumsum([0] + [part.log_share.size for part in parts], dtype=np.int64),
    )


def log_sum(values: Floats) -> float:
    return float(np.logaddexp.reduce(values))
