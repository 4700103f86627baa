"""The mixture for a policy, a problem and a regret: which laws to tilt to, and how often.

Any mixture gives an unbiased estimate; a good one visits every route to the event about as often as
the event comes by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.statistics import Floats
from lighttail.tails.routes import Routes, routes, together
from lighttail.tails.tilts import Family, divergence

DEFENCE = 0.05  # share of untilted paths where nothing else bounds the weights
STAGES = 9  # pseudo regrets at which a path to a large regret may turn to bad luck alone


class Mixture(NamedTuple):
    """The components: [component, arm, choice] before the switch, [component, arm] after it.

    Given the component, the arms choose among their tilts independently.
    """

    log_p: Floats  # [component]
    log_q: Floats  # [component, arm, choice]
    means: Floats
    lam: Floats
    psi: Floats
    later_means: Floats
    later_lam: Floats
    later_psi: Floats
    stage: Any  # [component], int64: the place of its switch in `losses`
    losses: Floats  # rising


@dataclass(frozen=True)
class Plan:
    """A mixture; no weight exceeds exp(log_bound). `tight`: the bound is of the event's own order.

    rarity: the cost of the cheapest route, about -ln of the event's probability.
    """

    mixture: Mixture
    log_bound: float
    tight: bool
    watch: Any
    caps: Floats
    rarity: float = 0.0


def loss_plan(policy: Policy, problem: Bandit, family: Family, horizon: int, loss: float) -> Plan | None:
    """For P(pseudo regret >= loss)."""
    found = routes(policy, problem, family, horizon, loss)
    if found is None or not np.isfinite(found.cost).any():
        return None
    found = _only(found, np.isfinite(found.cost))
    tight, rarity = not math.isnan(found.log_bound), float(found.cost.min())
    log_p = -found.cost - _log_sum(-found.cost)
    if not tight:
        found, log_p = _defended(found, log_p)
    log_bound = found.log_bound if tight else -math.log(DEFENCE)
    mixture = _mixture(found, log_p, problem, family, np.zeros(log_p.size), [loss], np.zeros(log_p.size))
    return Plan(mixture, log_bound, tight, found.watch, found.caps, rarity)


def regret_plan(policy: Policy, problem: Bandit, family: Family, horizon: int, regret: float) -> Plan | None:
    """For P(regret >= regret): a route to part of it as loss, bad luck with the rewards for the rest.

    A route to the loss y costs what it costs; then all arms are lowered by what is missing at the
    end, (regret - y - what the route's tilts add) / (rounds left), for the rounds that are left.
    """
    worst = max(problem.gaps) * (horizon - problem.arms)
    losses = np.unique(np.linspace(0.0, min(max(0.0, regret), worst), STAGES))
    best = max(problem.means)
    parts, lowered, stage = [], [], []
    for place, loss in enumerate(losses):
        part = _no_route(problem) if loss <= sum(problem.gaps) else None
        part = part or routes(policy, problem, family, horizon, float(loss))
        if part is None:
            return None
        moved = np.sum(np.exp(part.log_q) * family.mean(np.array(problem.means)[:, None], part.lam), axis=2)
        added = np.sum(part.pulls * (np.array(problem.means) - moved), axis=1)
        left = np.maximum(1.0, horizon - part.pulls.sum(axis=1))
        shift = np.maximum(0.0, (regret - loss - added) / left)
        cost = part.cost + left * divergence(family, best, best - shift)
        parts.append(_with_cost(part, cost))
        lowered.append(shift)
        stage.append(np.full(cost.size, place))
    found = together(parts)
    if not np.isfinite(found.cost).any():
        return None
    rarity = float(found.cost.min())
    log_p = -found.cost - _log_sum(-found.cost)
    kept = np.flatnonzero(log_p >= log_p.max() - 10.0)
    shift, places = np.concatenate(lowered)[kept], np.concatenate(stage)[kept]
    found, log_p = _defended(_only(found, kept), log_p[kept] - _log_sum(log_p[kept]))
    mixture = _mixture(found, log_p, problem, family, np.append(places, 0), losses, np.append(shift, 0.0))
    return Plan(mixture, -math.log(DEFENCE), False, found.watch, found.caps, rarity)


def _mixture(
    found: Routes, log_p: Floats, problem: Bandit, family: Family, stage: Any, losses: Any, shift: Floats
) -> Mixture:
    true = np.array(problem.means)
    later = family.lam(true, true - shift[:, None]) * (shift[:, None] > 0.0)
    return Mixture(
        log_p=log_p,
        log_q=found.log_q,
        means=family.mean(true[:, None], found.lam),
        lam=found.lam,
        psi=family.psi(true[:, None], found.lam),
        later_means=family.mean(true, later),
        later_lam=later,
        later_psi=family.psi(true, later),
        stage=np.asarray(stage, dtype=np.int64),
        losses=np.asarray(losses, dtype=np.float64) * (1.0 - 1e-12),
    )


def _defended(found: Routes, log_p: Floats) -> tuple[Routes, Floats]:
    """One more route, without a tilt."""
    arms, choices = found.lam.shape[1:]
    none = Routes(
        np.zeros(1),
        np.zeros((1, arms, choices)),
        np.full((1, arms, choices), -math.log(choices)),
        np.zeros((1, arms)),
        found.log_bound,
        found.watch,
        found.caps,
    )
    return together([found, none]), np.append(log_p + math.log1p(-DEFENCE), math.log(DEFENCE))


def _no_route(problem: Bandit) -> Routes:
    """No tilt at all: for a loss that every path has."""
    arms = problem.arms
    shape = (1, arms, 1)
    none = np.array([], dtype=np.int64)
    return Routes(
        np.zeros(1),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros((1, arms)),
        math.nan,
        none,
        np.full(arms, math.inf),
    )


def _with_cost(found: Routes, cost: Floats) -> Routes:
    """Other costs, and no caps: what follows the switch is tilted, too."""
    caps = np.full(found.caps.size, math.inf)
    return Routes(cost, found.lam, found.log_q, found.pulls, math.nan, found.watch, caps)


def _only(found: Routes, kept: Any) -> Routes:
    rows = (found.cost[kept], found.lam[kept], found.log_q[kept], found.pulls[kept])
    return Routes(*rows, found.log_bound, found.watch, found.caps)


def _log_sum(values: Floats) -> float:
    return float(np.logaddexp.reduce(values))
