"""The exact law of both kinds of regret for Bernoulli rewards: a programme over all states, forwards.

What a policy does next depends on the arms' pulls and sums of rewards, of which there are finitely many
after t rounds: C(t + 2K - 1, 2K - 1) with K arms. Their chances are carried from one round to the next
(`layers.py`), or from phase to phase (`phases.py`). docs/tails.md says how, how exact the result is and how
far it reaches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lighttail.checks import BadInput, refuse
from lighttail.outcomes.estimates import Floats
from lighttail.policies import Policy
from lighttail.policies.rehearsal import shipped
from lighttail.problems import Bandit, has_arms
from lighttail.tails.groups import COINS
from lighttail.tails.layers import Layers, multisets
from lighttail.tails.phases import Phases, phases_size

KINDS = ("pseudo_regret", "regret")
MEMORY = 4e9  # bytes that a programme may take
MERGED = 1e-12  # values that differ by this share are one
STATE, BLOCK, LAYER = 8e-9, 5e-7, 3e-4  # seconds: of a state, of an arm of a block, of a layer
NORMAL, POINT = 6e-8, 1e-9  # seconds: of two arms' chances, of a point of the grid where there are more arms


class _Entry(NamedTuple):
    make: type[Layers] | type[Phases]
    cost: Callable[[Any, int, int, str], tuple[float, float]]  # policy, arms, horizon, kind -> seconds, bytes


def why_not_programme(policy: Any, problem: Any, horizon: int, kind: str) -> BadInput | None:
    """The refusal if there is no exact programme for this task; None if there is one."""
    if kind not in KINDS:
        return refuse("kind", kind, "'pseudo_regret' or 'regret' for an exact programme")
    if not has_arms(problem) or problem.noise.outcomes != COINS:
        only = "an exact programme exists only for a Bandit with Bernoulli rewards"
        return BadInput(only, field="problem", value=problem)
    entry = _entry(policy)
    if entry is None:
        only = f"an exact programme exists only for {KNOWN}, and not for {type(policy).__name__}"
        return BadInput(only, field="policy", value=policy)
    seconds, memory = entry.cost(policy, problem.arms, horizon, kind)
    if memory > MEMORY:
        size = f"{problem.arms} arms and {horizon} rounds"
        room = f"an exact programme for {size} does not fit into {MEMORY / 1e9:g} GB of memory"
        return BadInput(room, field="horizon", value=horizon)
    if math.isinf(seconds):
        beyond = f"the posteriors of {policy!r} are out of the range of an exact programme"
        return BadInput(beyond, field="policy", value=policy)
    return None


def has_programme(policy: Any) -> bool:
    """Whether there is a programme for this policy, however long it may take."""
    return _entry(policy) is not None


def programme_seconds(policy: Any, problem: Any, horizon: int, kind: str) -> float:
    """About how many seconds the programme takes, computed at once; infinite if no programme fits."""
    entry = _entry(policy)
    if entry is None or not has_arms(problem):
        return math.inf
    seconds, memory = entry.cost(policy, problem.arms, horizon, kind)
    return seconds if memory <= MEMORY else math.inf


def programme_tail(policy: Policy, problem: Bandit, horizon: int, target: float, kind: str) -> float:
    """P(kind >= target), where `target` already allows for rounding.

    >>> import lighttail as lt
    >>> problem = lt.Bandit([0.3, 0.7], lt.Bernoulli())
    >>> f"{programme_tail(lt.UCB(lt.LightTailed(0.1)), problem, 30, 19.999, 'regret'):.4e}"
    '2.2967e-08'
    """
    return min(1.0, _programme(policy, problem, horizon, kind).tail(target))


def programme_law(policy: Policy, problem: Bandit, horizon: int, kind: str) -> tuple[Floats, Floats]:
    """The values that the regret can take, in rising order, and their probabilities."""
    return merged(*_programme(policy, problem, horizon, kind).law())


def merged(values: Floats, chances: Floats) -> tuple[Floats, Floats]:
    """Sorted values without those of chance 0; values that are equal but for rounding count as one."""
    kept = chances > 0.0
    values, chances = values[kept], chances[kept]
    order = np.argsort(values, kind="stable")
    values, chances = values[order], chances[order]
    apart = np.diff(values) > MERGED * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    firsts = np.concatenate([[0], np.flatnonzero(apart) + 1])
    return values[firsts], np.add.reduceat(chances, firsts)


def _programme(policy: Policy, problem: Bandit, horizon: int, kind: str) -> Layers | Phases:
    entry = _entry(policy)
    if entry is None:
        raise TypeError(why_not_programme(policy, problem, horizon, kind))
    return entry.make(policy, problem, horizon, kind)


def _layers_cost(policy: Any, arms: int, horizon: int, kind: str) -> tuple[float, float]:
    states, blocks = multisets(horizon, 2 * arms), multisets(horizon, arms)
    return STATE * states + BLOCK * arms * blocks + LAYER * horizon, 16.0 * multisets(horizon, 2 * arms - 1)


def _posterior_cost(policy: Any, arms: int, horizon: int, kind: str) -> tuple[float, float]:
    """As for layers, and the arms' chances in each state: from a grid if there are three arms or more."""
    seconds, memory = _layers_cost(policy, arms, horizon, kind)
    points = _grid_points(policy, arms, horizon)
    if math.isinf(memory) or math.isinf(points):
        return math.inf, memory
    if arms == 2:
        return seconds + NORMAL * multisets(horizon, 4), memory
    table, states = points * horizon * horizon, multisets(horizon, 2 * arms)
    # The points at which arms that were pulled are looked at, and arms that were not.
    near = 25.0 * math.sqrt(arms) * arms * arms * states
    far = points * arms * min(arms * multisets(horizon, 2 * arms - 2), states)
    return seconds + POINT * (near + far + 10.0 * horizon * table), memory + 8.0 * table


def _grid_points(policy: Any, arms: int, horizon: int) -> float:
    """About how many points the grid of posterior draws has; infinite where their law is no finite number."""
    params = policy.params(horizon, arms)
    widest, least = policy.posterior_sd(0.0, *params), policy.posterior_sd(float(horizon), *params)
    middles = [
        policy.posterior_mean(n, total, *params)
        for n, total in ((0.0, 0.0), (float(horizon), 0.0), (float(horizon), float(horizon)))
    ]
    if not (1e-150 < least <= widest < 1e150 and all(abs(middle) < 1e150 for middle in middles)):
        return math.inf
    spread = float(max(middles) - min(middles) + 20.0 * widest)
    return 1.4 * spread * math.hypot(1.0 / least, math.sqrt(arms - 1) / widest)


def _phases_cost(policy: Any, arms: int, horizon: int, kind: str) -> tuple[float, float]:
    seconds, states = phases_size(arms, horizon, kind)
    return seconds, 40.0 * states


PROGRAMMES: dict[str, _Entry] = {  # by what a policy plays by
    "radius": _Entry(Layers, _layers_cost),
    "phases": _Entry(Phases, _phases_cost),
    "posterior": _Entry(Layers, _posterior_cost),
}
KNOWN = "UCB, SuccessiveElimination and ThompsonSampling"


def _entry(policy: Any) -> _Entry | None:
    """The programme for the policy. A user's class, even one derived from a shipped class, has no kernel."""
    return PROGRAMMES.get(getattr(policy, "plays_by", "")) if shipped(policy) else None
