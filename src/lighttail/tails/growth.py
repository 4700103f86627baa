"""The chances at T/4, T/2 and T from which `lighttail.outcomes.growth` says how a chance falls.

A chance is exact if an exact value takes a second or two. Otherwise paths are counted, first the same number
of paths as at T, then more; and if hardly any path reaches the loss, weighted paths are played, and stand for
the counted ones where their interval is narrower.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lighttail.course import Course
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.growth import UNKNOWN, Growth, horizons_of
from lighttail.outcomes.losing import Lost
from lighttail.outcomes.outcome import Outcome
from lighttail.policies import Policy
from lighttail.problems import Problem
from lighttail.running.prepare import work_of
from lighttail.tails.known import EXACT_ERROR, exact_at
from lighttail.tails.rare import tail_probability
from lighttail.tails.task import Task

SECONDS = 2.0  # seconds that one exact value may take
MOST_PULLS = 100_000_000  # pulls of the paths of one policy, at all horizons together
MOST_PER_HORIZON = 1_000_000  # paths per horizon
WORTH = 2.0  # paths are played again only if their number grows by this factor
FEW_HITS = 30  # paths that reach the loss at T; if there are fewer, weighted paths are tried
LEVEL = 0.95  # confidence of the intervals
LOOKS = 3  # the paths of the comparison, more paths, weighted paths: each look has its share of the error
PER_LOOK = 1.0 - (1.0 - LEVEL) / LOOKS
SHORTEST = 10  # pulls of the shortest experiment
RARE: dict[str, Any] = {"relative_error": 0.05, "most_pulls": 20_000_000, "level": PER_LOOK}

Chance = tuple[Estimate, str]  # the chance at a horizon, and how it was found


@dataclass(frozen=True)
class RuinQuestion:
    """P(kind >= threshold) after `horizon` pulls, and at shorter horizons with the same threshold per pull.

    play: simulates as the comparison did, given another horizon, paths and keep.
    """

    policy: Policy
    problem: Problem
    horizon: int
    threshold: float
    kind: Lost
    course: Course
    seed: int
    threads: int | None
    play: Callable[..., Outcome]

    def threshold_at(self, horizon: int) -> float:
        return self.threshold * horizon / self.horizon

    def task_at(self, horizon: int) -> Task:
        return Task(self.policy, self.problem, horizon, self.threshold_at(horizon), self.kind)

    @property
    def simple(self) -> bool:
        """Whether exact values and weighted paths may exist."""
        return self.problem.independent and self.course.straight


def growth(question: RuinQuestion, outcome: Outcome) -> Growth | None:
    """How the chance falls as the experiment grows; None if T/4 is too short. outcome: the paths at T."""
    horizons = horizons_of(question.horizon)
    if horizons[0] < max(SHORTEST, len(question.problem.means)) or question.threshold <= 0.0:
        return None
    exact = {horizon: chance for horizon in horizons if (chance := _exact(question, horizon)) is not None}
    missing = [horizon for horizon in horizons if horizon not in exact]
    if not missing:
        return _growth(question, exact)
    known = {question.horizon: outcome}
    counted = {horizon: _counted(question, horizon, outcome.paths, known) for horizon in missing}
    answer = _growth(question, exact | counted)
    if answer.too_short:
        return answer
    more = _more_paths(question, missing)
    if answer.answer == UNKNOWN and more >= WORTH * outcome.paths:
        counted = {horizon: _counted(question, horizon, more, {}) for horizon in missing}
        answer = _growth(question, exact | counted)
    if answer.answer == UNKNOWN and _few(question, counted, max(more, outcome.paths)):
        narrower = {horizon: _narrower(counted[horizon], _weighted(question, horizon)) for horizon in missing}
        answer = _growth(question, exact | narrower)
    return answer


def _growth(question: RuinQuestion, by_horizon: dict[int, Chance]) -> Growth:
    horizons = horizons_of(question.horizon)
    chances, sources = zip(*(by_horizon[horizon] for horizon in horizons), strict=True)
    return Growth(horizons, tuple(map(question.threshold_at, horizons)), chances, sources)


def _exact(question: RuinQuestion, horizon: int) -> Chance | None:
    """The exact value, if it takes at most SECONDS."""
    value = exact_at(question.task_at(horizon), SECONDS) if question.simple else None
    if value is None:
        return None
    return Estimate(value, value * (1.0 - EXACT_ERROR), min(1.0, value * (1.0 + EXACT_ERROR)), LEVEL), "exact"


def _counted(question: RuinQuestion, horizon: int, paths: int, known: dict[int, Outcome]) -> Chance:
    """The chance from simulated paths. known: outcomes that are there already, by horizon."""
    keep = "paths" if paths <= 10_000 else "law"
    outcome = known.get(horizon) or question.play(horizon=horizon, paths=paths, keep=keep)
    chance = outcome.exceedance(question.threshold_at(horizon), question.kind, level=PER_LOOK)
    return replace(chance, level=LEVEL), f"{outcome.paths:,} paths"


def _narrower(counted: Chance, weighted: Chance) -> Chance:
    """The chance whose limits have the smaller ratio. The choice may depend on the intervals, because each
    look has its own share of the error (PER_LOOK). Weighted paths that met no large weight have an interval
    that is narrow and too low: if it contradicts the counted one, the count stands."""
    count, weight = counted[0], weighted[0]
    apart = count.high < weight.low or weight.high < count.low
    return counted if apart else min(counted, weighted, key=_width)


def _width(chance: Chance) -> tuple[float, float]:
    """The ratio of the limits, infinite if the lower one is 0; then the upper limit."""
    low, high = chance[0].low, chance[0].high
    return high / low if low > 0.0 else math.inf, high


def _more_paths(question: RuinQuestion, horizons: list[int]) -> int:
    """The number of paths per horizon that MOST_PULLS allows."""
    work = sum(
        work_of(question.policy, question.problem, horizon) if question.course.straight else float(horizon)
        for horizon in horizons
    )
    return int(min(MOST_PER_HORIZON, MOST_PULLS / (work * question.problem.dear)))


def _few(question: RuinQuestion, counted: dict[int, Chance], paths: int) -> bool:
    """Whether few paths reached the loss at T, and weighted paths are possible."""
    if not question.simple or question.horizon not in counted:
        return False
    hits = counted[question.horizon][0].value * paths
    return hits < FEW_HITS and question.task_at(question.horizon).why_not_tilted() is None


def _weighted(question: RuinQuestion, horizon: int) -> Chance:
    settings = RARE | {"kind": question.kind, "seed": question.seed, "threads": question.threads}
    loss = question.threshold_at(horizon)
    found = tail_probability(question.policy, question.problem, horizon, loss, **settings)
    return Estimate(found.value, found.low, found.high, LEVEL), found.method
