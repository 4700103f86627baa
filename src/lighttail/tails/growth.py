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
from lighttail.tails.known import ERROR, exact_at
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

Chances = dict[int, tuple[Estimate, str]]  # the chance at a horizon, and how it was found


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

    @property
    def simple(self) -> bool:
        """Whether exact values and weighted paths may exist."""
        return self.problem.independent and not self.course.late


def growth(question: RuinQuestion, outcome: Outcome) -> Growth | None:
    """How the chance falls as the experiment grows; None if T/4 is too short. outcome: the paths at T."""
    horizons = horizons_of(question.horizon)
    if horizons[0] < max(SHORTEST, len(question.problem.means)) or question.threshold <= 0.0:
        return None
    found: Chances = _exact(question, horizons)
    missing = [horizon for horizon in horizons if horizon not in found]
    if not missing:
        return _growth(question, found)
    known = {question.horizon: outcome} if question.horizon in missing else {}
    counted = _counted(question, missing, outcome.paths, known)
    answer = _growth(question, found | counted)
    if answer.too_short:
        return answer
    more = _more_paths(question, missing)
    if answer.answer == UNKNOWN and more >= WORTH * outcome.paths:
        counted = _counted(question, missing, more, {})
        answer = _growth(question, found | counted)
    if answer.answer == UNKNOWN and _few(question, counted, max(more, outcome.paths)):
        answer = _growth(question, found | _narrower(counted, _weighted(question, missing)))
    return answer


def _growth(question: RuinQuestion, found: Chances) -> Growth:
    horizons = horizons_of(question.horizon)
    chances, sources = zip(*(found[horizon] for horizon in horizons), strict=True)
    return Growth(horizons, tuple(map(question.threshold_at, horizons)), chances, sources)


def _exact(question: RuinQuestion, horizons: tuple[int, ...]) -> Chances:
    """The exact values that take at most SECONDS each."""
    found: Chances = {}
    for horizon in horizons if question.simple else ():
        loss = question.threshold_at(horizon)
        value = exact_at(Task(question.policy, question.problem, horizon, loss, question.kind), SECONDS)
        if value is not None:
            limits = value * (1.0 - ERROR), min(1.0, value * (1.0 + ERROR))
            found[horizon] = Estimate(value, *limits, LEVEL), "exact"
    return found


def _counted(question: RuinQuestion, horizons: list[int], paths: int, known: dict[int, Outcome]) -> Chances:
    """The chances from simulated paths. known: outcomes that are there already, by horizon."""
    found: Chances = {}
    for horizon in horizons:
        keep = "paths" if paths <= 10_000 else "law"
        outcome = known.get(horizon) or question.play(horizon=horizon, paths=paths, keep=keep)
        chance = outcome.exceedance(question.threshold_at(horizon), question.kind, level=PER_LOOK)
        found[horizon] = replace(chance, level=LEVEL), f"{outcome.paths:,} paths"
    return found


def _narrower(counted: Chances, weighted: Chances) -> Chances:
    """At each horizon the chance whose limits have the smaller ratio. The choice may depend on the intervals,
    because each look has its own share of the error (PER_LOOK). Weighted paths that met no large weight have
    an interval that is narrow and too low: if it contradicts the counted one, the count stands."""
    found: Chances = {}
    for horizon, count in counted.items():
        other = weighted[horizon]
        found[horizon] = count if _apart(count[0], other[0]) else min(count, other, key=_width)
    return found


def _apart(one: Estimate, other: Estimate) -> bool:
    return one.high < other.low or other.high < one.low


def _width(found: tuple[Estimate, str]) -> tuple[float, float]:
    """The ratio of the limits, infinite if the lower one is 0; then the upper limit."""
    low, high = found[0].low, found[0].high
    return high / low if low > 0.0 else math.inf, high


def _more_paths(question: RuinQuestion, horizons: list[int]) -> int:
    """The number of paths per horizon that MOST_PULLS allows."""
    work = sum(
        float(horizon) if question.course.late else work_of(question.policy, question.problem, horizon)
        for horizon in horizons
    )
    return int(min(MOST_PER_HORIZON, MOST_PULLS / (work * question.problem.dear)))


def _few(question: RuinQuestion, counted: Chances, paths: int) -> bool:
    """Whether few paths reached the loss at T, and weighted paths are possible."""
    if not question.simple or question.horizon not in counted:
        return False
    hits = counted[question.horizon][0].value * paths
    task = Task(question.policy, question.problem, question.horizon, question.threshold, question.kind)
    return hits < FEW_HITS and task.why_not_tilted() is None


def _weighted(question: RuinQuestion, horizons: list[int]) -> Chances:
    settings = RARE | {"kind": question.kind, "seed": question.seed, "threads": question.threads}
    found: Chances = {}
    for horizon in horizons:
        loss = question.threshold_at(horizon)
        estimate = tail_probability(question.policy, question.problem, horizon, loss, **settings)
        found[horizon] = Estimate(estimate.value, estimate.low, estimate.high, LEVEL), estimate.method
    return found
