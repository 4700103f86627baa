"""The edge of a curve: the least exploration with which a policy still keeps the limit.

The hits of all policies of a curve together give a first guess, and a few looks find the edge from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.verdict import even_split
from lighttail.planning.bench import Play
from lighttail.planning.curves import Candidate
from lighttail.planning.looks import (
    FINE,
    LEAP,
    STAGE,
    Looked,
    aim_of,
    allowed_first,
    enough,
    following,
    guess,
    has_exact_edge,
    looked_at,
    on_curve,
    sure,
    walk,
)
from lighttail.planning.question import Score
from lighttail.problems import Bandit
from lighttail.records import Floats

if TYPE_CHECKING:
    from lighttail.planning.search import Search

CURVES = 3  # whose edges are sought by paths, at most; exact chances cost little
WORSE = 1.25  # times the least mean loss at the guessed edge that a curve may have
WIDER = 5.0  # times less exploration at which hits still say which problem is the worst
WIDE, SURE = 256, 0.999  # paths, and the level, with which exploration alone is shown to lose the limit
STEPS = 8  # beyond an edge in one direction, at most


def edges(search: Search) -> list[Score]:
    """The scores of the policies at the edges of the best curves.

    Which curves are the best is a guess at first. Further curves are looked at if no policy so far keeps the
    limit, or if their guess promises a lower mean loss than the best policy so far has."""
    turns = {score.curve for score in search.scores.values()}
    for turn in turns & search.with_edges:
        scale, mine = guess(search, turn), on_curve(search, turn)
        scales, means = [math.log(score.scale) for score in mine], [score.mean for score in mine]
        search.unsought[turn] = scale, float(np.interp(math.log(scale), scales, means))
    found = list[Score]()
    while search.unsought:
        allowed = [score.mean for score in found if score.chance.value <= search.question.limit]
        bar = min(allowed) if allowed else WORSE * min(mean for _, mean in search.unsought.values())
        new = next_edges(search, bar)
        if new is None:
            break
        found += new
    return found


def further_edges(search: Search, mean: float) -> list[Score]:
    """The scores at the edges of those curves that were left out and may lose less than `mean`.

    The edge of a curve moves to more exploration if a worse problem is found for its policy. A curve that
    seemed to lose more may then lose less. A guess is often a tenth too high or too low."""
    found = list[Score]()
    while (new := next_edges(search, WORSE * mean)) is not None:
        found += new
        mean = min([mean, *(score.mean for score in new if score.chance.value <= search.question.limit)])
    return found


def next_edges(search: Search, bar: float) -> list[Score] | None:
    """The scores at the edges of some of the curves that are left, the best first; None if the guesses of all
    of them are above the bar."""
    near = sorted((mean, turn) for turn, (_, mean) in search.unsought.items() if mean <= bar)
    if not near:
        return None
    starts = {}
    for place, (_, turn) in enumerate(near):
        if place < CURVES or has_exact_edge(search, turn):
            scale, _ = search.unsought.pop(turn)
            starts[turn] = scale, worst_at(search, turn, scale)
    new = bearable(search, on_edges(search, starts))
    return [*new, *bearable(search, beyond(search, new))]


def bearable(search: Search, scores: Sequence[Score]) -> list[Score]:
    """The scores but those whose exploration alone loses the limit.

    Where gaps are small, more exploration is always safer, and such problems are the worst ones near an edge.
    Too much of it fails where gaps are wide: each score is tried where an even split loses most.
    """
    question = search.question
    if not question.everywhere:  # the members with wide gaps are part of the average
        return list(scores)
    pool = question.able([*question.edges(), *question.family.members])
    widest = max(pool, key=lambda problem: even_split(problem.means, question.horizon))
    plays = [Play(score.policy, widest, WIDE, STAGE + 1) for score in scores]
    found = []
    for score, lost in zip(scores, search.bench.losses(plays, "search, wide gaps"), strict=True):
        if question.chance(lost, SURE).low <= question.limit:
            found.append(score)
        else:
            watched, chance = (widest, *score.watched), question.chance(lost)
            search.scores[score.candidate] = replace(score, chance=chance, paths=WIDE, watched=watched)
    return found


def on_edges(
    search: Search, starts: dict[int, tuple[float, Bandit]], before: Sequence[Looked] = ()
) -> list[Score]:
    """The scores at the edges of these curves.

    starts: a scale and the problem to look at, for each curve. before: what is known already of one curve.
    """
    seen: dict[int, list[Looked]] = {}

    def work(turn: int) -> list[Looked]:
        return walk(search, turn, *starts[turn], before)

    def done(turn: int, found: list[Looked]) -> None:
        seen[turn] = found
        search.bench.count(sum(one.pulls for one in found), "search, the limit itself")

    search.bench.together(sorted(starts), work, done)
    chosen = []
    for turn in sorted(seen):
        search.known |= {(one.policy, one.problem): one.chance for one in seen[turn]}
        chosen += [allowed_first(search, seen[turn])] if seen[turn] else []
    return _scored(search, chosen)


def _scored(search: Search, chosen: Sequence[Looked]) -> list[Score]:
    """The scores of candidates, each with the problem in which it was looked at as the worst one."""
    for one in chosen:
        order = dict.fromkeys((one.problem, *search.watched[one.curve]))
        search.orders[one.candidate] = tuple(order)
        search.known[one.policy, one.problem] = one.chance
    return search.score_means([one.candidate for one in chosen])


def beyond(search: Search, at_edges: Sequence[Score]) -> list[Score]:
    """The scores of policies on the same curves whose mean losses are lower than those at the edges.

    A limit that is easily kept does not say how much exploration is best. All curves take steps at a time, to
    more exploration and, if the chance leaves room, to less, as long as the mean loss falls; then half a step
    to both sides.
    """
    limit = search.question.limit
    edge = {score.curve: score for score in at_edges if score.chance.value <= limit}
    best = dict(edge)
    for factor, most in ((FINE, STEPS), (1.0 / FINE, STEPS), (FINE**0.5, 1), (FINE**-0.5, 1)):
        going = sorted(best)
        for _ in range(most):
            new = [one for turn in going for one in _stepped(search, edge[turn], best[turn], factor)]
            if not new:
                break
            better = [one for one in search.score_means(new) if one.mean < best[one.curve].mean]
            best |= {one.curve: one for one in better}
            going = [one.curve for one in better]
    moved = [best[turn].candidate for turn in best if best[turn] is not edge[turn]]
    looks = [_looked(search, one, judge_of(search, edge[one.curve])) for one in moved]
    return _scored(search, [one for one in looks if one.chance.value <= enough(search, one.chance)])


def _stepped(search: Search, edge: Score, best: Score, factor: float) -> list[Candidate]:
    """The policy a factor along the curve from the best one, if there is one; with less exploration than at
    the edge, it must be shown to keep the limit."""
    turn, scale = edge.curve, best.scale * factor
    mine, known = {edge.policy, best.policy}, {one.policy: one for one in search.scores}
    new = [known.get(one.policy, one) for one in search.curves[turn].candidates(turn, (scale,))]
    new = [one for one in new if one.policy not in mine]
    if not new or scale >= edge.scale:
        return new
    aim, near = aim_of(search, edge.chance)
    if edge.chance.value > aim / near:
        return []
    chance = _looked(search, new[0], judge_of(search, edge)).chance
    return new if chance.value <= enough(search, chance) else []


def _looked(search: Search, candidate: Candidate, problem: Bandit) -> Looked:
    """A look at a candidate, or what is known of it."""
    known = search.known.get((candidate.policy, problem))
    if known is not None:
        return Looked(candidate, problem, known, 0)
    seen = looked_at(search, candidate, problem)
    search.bench.count(seen.pulls, "search, the limit itself")
    search.known[candidate.policy, problem] = seen.chance
    return seen


def judge_of(search: Search, score: Score) -> Bandit:
    """The problem in which the chance of a policy is looked at; the first one stands for all members if the
    average is asked for."""
    return score.watched[0] if search.question.everywhere else search.members[0]


def worst_at(search: Search, turn: int, scale: float) -> Bandit:
    """The problem in which the policies of a curve, from WIDER times below a scale to LEAP times above, lost
    the limit most often, together: near the edge alone there are too few hits to tell."""
    if not search.question.everywhere:
        return search.members[0]
    mine = on_curve(search, turn)
    near = [one for one in mine if 1.0 / WIDER < one.scale / scale < 1.01 * LEAP] or mine
    total: dict[Bandit, Floats] = {}
    for score in near:
        for problem, counts in search.counts.get(score.candidate, {}).items():
            total[problem] = total.get(problem, np.zeros(2)) + counts
    order = dict.fromkeys(problem for score in reversed(near) for problem in score.watched)

    def hits_per_path(problem: Bandit) -> float:
        hits, paths = total.get(problem, (0.0, 1.0))  # without paths all are alike, so that the order decides
        return float(hits / paths)

    return max(order, key=hits_per_path)


def closer(search: Search, score: Score, problem: Bandit, chance: Estimate, seconds: float) -> list[Score]:
    """The policy of the same curve that comes nearer to the limit, by exact chances that a search has no time
    for; none if the policy comes as near as can be. chance: of the policy, exact."""
    one, (aim, near) = score.candidate, aim_of(search, chance)
    if chance.value >= aim / near:
        return []
    seen = [Looked(one, problem, chance, 0)]
    seen = walk(search, one.curve, following(seen, aim / math.sqrt(near)), problem, seen, seconds)
    search.bench.count(sum(each.pulls for each in seen), "search, the limit itself")
    found = allowed_first(search, [each for each in seen if sure(each.chance)])
    return _scored(search, [found]) if found.candidate != one else []


def again(
    search: Search, score: Score, problem: Bandit, chance: Estimate, failed: bool = False
) -> list[Score]:
    """The edge of the same curve in another problem, in which the chance of a policy turned out higher.
    failed: the chance was not confirmed to be within the limit, so that it counts as one above."""
    one = score.candidate
    problem = problem if search.question.everywhere else judge_of(search, score)
    search.scores[one] = replace(score, chance=chance, watched=(problem, *score.watched))  # for the frontier
    above = max(chance.value, search.question.limit * (1.0 + 1e-6))
    known = replace(chance, value=above, high=max(above, chance.high)) if failed else chance
    seen = [Looked(one, problem, known, 0)]
    aim, near = aim_of(search, chance)
    scale = following(seen, aim / math.sqrt(near))
    found = bearable(search, on_edges(search, {one.curve: (scale, problem)}, seen))
    return [replace(new, watched=(problem, *new.watched)) for new in found if new.candidate != one]
