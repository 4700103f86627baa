"""A look at the chance of one policy, and the walk along a curve, look by look, to its edge.

A look is an exact chance, or a count of many paths. If the allowed chance is so small that hardly any path
loses the limit, counting cannot say where a curve crosses the limit. Weighted paths can
(docs/rare-events.md): one look tells a chance to a tenth or so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lighttail.outcomes.estimates import Estimate
from lighttail.planning.bench import Play, members_of
from lighttail.planning.curves import Candidate, OfCandidate
from lighttail.planning.question import EXACT_SCAN, LEVEL, NO_CHANCE, Question, Score
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.tails.known import EXACT_ERROR, why_no_exact
from lighttail.tails.luck import draws_for_itself
from lighttail.tails.rare import tail_probability
from lighttail.tails.task import Task

if TYPE_CHECKING:
    from lighttail.planning.bench import Bench
    from lighttail.planning.search import Search

LOOKS = 3  # per curve
AIM = 0.85  # of the limit, for weighted paths
NEAR = 1.25  # a chance between AIM / NEAR and AIM is near enough
EXACT_AIM, EXACT_NEAR, EXACT_LOOKS = 0.997, 1.05, 6  # the same if chances are exact, and looks per curve
COUNTED_NEAR = 1.1  # the same if chances are counted
SLOPE, SLOPES = 3.0, (1.0, 12.0)  # - d ln(chance) / d ln(scale): at first, and what it may be
LEAP = 2.0  # ratio of the scales of two looks, at most
PATHS, ERROR = 1024, 0.15  # of a look: weighted paths, and the relative error with which it ends
STAGE = 800  # of the random numbers of the looks
FINE = 2.0**0.25  # ratio of the scales that are tried for a first guess, and of steps beyond an edge
TINY = 1e-300  # a smaller chance counts as this one, so that it has a logarithm


@dataclass(frozen=True)
class Looked(OfCandidate):
    """What a look says of a candidate in a problem, and the pulls that the look took."""

    problem: Bandit
    chance: Estimate
    pulls: int


def look(
    question: Question, bench: Bench, policy: Policy, problem: Bandit, counted: int, seconds: float
) -> tuple[Estimate, int]:
    """The chance of losing the limit, and the pulls that were played: exactly, by counting this number of
    paths or, if it is 0, by weighted paths. If the average over the family is asked for, paths of all
    members are counted. seconds: for an exact chance."""
    if not question.everywhere:
        members = question.family.members
        plays = members_of(policy, members, math.ceil(counted / len(members)), STAGE)
        lost = np.concatenate([bench.losses_here(play) for play in plays])
        return question.chance(lost), lost.size * question.horizon
    exact = question.exact_chance(policy, problem, seconds)
    if exact is not None:
        return exact, 0
    if counted:
        lost = bench.losses_here(Play(policy, problem, counted, STAGE))
        return question.chance(lost), counted * question.horizon
    found = tail_probability(
        policy,
        problem,
        question.horizon,
        question.loss,
        relative_error=ERROR,
        seed=bench.seed_of(problem, STAGE),
        most_pulls=PATHS * question.horizon,
        threads=bench.threads,
    )
    return Estimate(found.value, found.low, found.high, LEVEL), found.pulls


def looked_at(search: Search, candidate: Candidate, problem: Bandit, seconds: float = EXACT_SCAN) -> Looked:
    setting = (search.question, search.bench, candidate.policy, problem, search.counted)
    return Looked(candidate, problem, *look(*setting, seconds))


def has_edge(search: Search, turn: int) -> bool:
    """Whether an exact law, a count of paths or, if chances are rare, weighted paths say quickly where a
    curve crosses the limit."""
    curve = search.curves[turn]
    if not curve.scales or curve.dear > 1:
        return False
    if search.counted or has_exact_edge(search, turn):
        return True
    task = _middle(search, turn)
    return task.why_not_tilted() is None and not draws_for_itself(task.policy, task.problem, task.horizon)


def has_exact_edge(search: Search, turn: int) -> bool:
    """Whether an exact law says quickly where a curve crosses the limit. (If one problem cannot lose the
    limit at all, another one may.)"""
    question = search.question
    return not question.by_counting and not why_no_exact(_middle(search, turn), EXACT_SCAN)


def _middle(search: Search, turn: int) -> Task:
    """The chance of a policy of a curve, on a problem, by which the others are judged."""
    every, asked = search.curves[turn].candidates(turn), search.question
    policy, problem = every[len(every) // 2].policy, asked.family.members[0]
    return Task(policy, problem, asked.horizon, asked.loss, "pseudo_regret")


def sure(chance: Estimate) -> bool:
    """Whether a chance is exact, so that fresh numbers will not be different."""
    return chance.high <= chance.value * (1.0 + 2.0 * EXACT_ERROR)


def aim_of(search: Search, chance: Estimate) -> tuple[float, float]:
    """The chance to aim at if a look gave `chance`, and the ratio of the aim to a chance that is near enough:
    fresh numbers must show that the chance is within the limit."""
    limit = search.question.limit
    if sure(chance):
        return EXACT_AIM * limit, EXACT_NEAR
    return (search.reach, COUNTED_NEAR) if search.counted else (AIM * limit, NEAR)


def allowed_first(search: Search, seen: Sequence[Looked]) -> Looked:
    """The look with the least exploration among those within the limit; otherwise the least chance."""
    within = [one for one in seen if one.chance.value <= enough(search, one.chance)]
    if within:
        return min(within, key=lambda one: one.scale)
    return min(seen, key=lambda one: one.chance.value)


def enough(search: Search, chance: Estimate) -> float:
    """The chance with which a look is within the limit. If it is not exact, this is a little above the aim;
    if it is, the limit itself in a single problem, and the aim where a worse problem may lie beside this one.
    """
    question, (aim, near) = search.question, aim_of(search, chance)
    if not sure(chance):
        return min(question.limit, float(near**0.25) * aim)
    return question.limit / (1.0 + EXACT_ERROR) if question.family.single else aim


def walk(
    search: Search,
    turn: int,
    scale: float,
    problem: Bandit,
    before: Sequence[Looked] = (),
    seconds: float = EXACT_SCAN,
) -> list[Looked]:
    """Looks along a curve, each nearer to its edge. before: looks that were taken already. seconds: for an
    exact chance."""
    seen = list(before)
    curve, least = search.curves[turn], cheapest_at(search, turn)
    if curve.whole and has_exact_edge(search, turn):  # all of its policies are looked at
        known = {one.policy for one in seen}
        new = [one for one in curve.candidates(turn, curve.every()) if one.policy not in known]
        return seen + [looked_at(search, one, problem) for one in new]
    for turns in range(EXACT_LOOKS):
        if turns >= LOOKS and not sure(seen[-1].chance):
            break
        new = curve.candidates(turn, (min(curve.most, max(curve.least, scale)),))
        if not new or new[0].policy in {one.policy for one in seen}:
            break
        seen.append(looked_at(search, new[0], problem, seconds))
        chance = seen[-1].chance
        aim, near = aim_of(search, chance)
        if chance.value <= aim and (chance.value >= aim / near or scale <= least):
            break
        scale = max(least, following(seen, aim / math.sqrt(near)))
    return seen


def following(seen: Sequence[Looked], aim: float) -> float:
    """The scale at which the chance is `aim`, on a straight line of ln(chance) over ln(scale).

    The line goes through the nearest looks above and below the aim; if there are none on one side, through
    the last look, with the slope of the last two.
    """
    points = sorted((math.log(one.scale), math.log(max(TINY, one.chance.value))) for one in seen)
    target = math.log(aim)
    for (x, y), (other, lower) in pairwise(points):
        if y > target >= lower:
            return math.exp(x + (other - x) * (y - target) / (y - lower))
    x, y = last = points[0] if points[0][1] <= target else points[-1]
    slope = SLOPE
    if len(points) > 1:
        (near, high), (far, low) = points[:2] if last is points[0] else points[-2:]
        slope = min(SLOPES[1], max(SLOPES[0], (high - low) / max(1e-9, far - near)))
    step = min(math.log(LEAP), max(-math.log(LEAP), (y - target) / slope))
    return math.exp(x + step)


def guess(search: Search, turn: int) -> float:
    """A scale near the edge, by the hits of all policies of the curve together.

    The chance at the scale s is taken for aim (s / edge)^-SLOPE; the edge with the largest likelihood is the
    guess. A chance may fall much faster than that, but a policy that is seen to keep the limit is not below
    the edge. Policies beyond the safest one are left out, because there the exploration itself loses the
    limit. Below the scale with the least mean loss nothing is to be gained.
    """
    mine, aim = on_curve(search, turn), aim_of(search, NO_CHANCE)[0]
    safest = min(mine, key=lambda score: (score.high, score.mean)).scale
    counted = [score for score in mine if score.scale <= safest and score.paths > 0]
    tried = np.array([score.paths for score in counted], dtype=float)
    hits = tried * np.array([score.chance.value for score in counted])
    scales = np.array([score.scale for score in counted])
    low, high = mine[0].scale / LEAP, LEAP * mine[-1].scale
    count = 1 + round(math.log(high / low, FINE))
    edges = low * FINE ** np.arange(count)
    with np.errstate(over="ignore"):
        chance = np.clip(aim * (scales[None, :] / edges[:, None]) ** -SLOPE, TINY, 0.5)
    likely = (hits * np.log(chance) + (tried - hits) * np.log1p(-chance)).sum(axis=1)
    keeping = [score.scale for score in mine if score.chance.high <= search.question.limit]
    return max(min([float(edges[int(np.argmax(likely))]), *keeping]), cheapest_at(search, turn))


def on_curve(search: Search, turn: int) -> list[Score]:
    """The scores of a curve by scale."""
    mine = [score for score in search.scores.values() if score.curve == turn]
    return sorted(mine, key=lambda score: score.scale)


def cheapest_at(search: Search, turn: int) -> float:
    """The scale with the least mean loss on a curve."""
    return min(on_curve(search, turn), key=lambda score: score.mean).scale
