"""The edge of a curve: the least exploration with which a policy still keeps the limit.

The hits of all policies of a curve together give a first guess, and a few looks find the edge from there. A
look is an exact chance, or a count of many paths. If the allowed chance is so small that hardly any path
loses the limit, counting cannot say where a curve crosses the limit. Weighted paths can
(docs/rare-events.md): one look tells a chance to a tenth or so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.verdict import even_split
from lighttail.planning.bench import Play
from lighttail.planning.curves import Candidate
from lighttail.planning.question import EXACT_ERROR, EXACT_SCAN, LEVEL, NO_CHANCE, Question, Score
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.records import Floats
from lighttail.tails.known import why_no_exact
from lighttail.tails.luck import draws_for_itself
from lighttail.tails.rare import tail_probability
from lighttail.tails.task import Task

if TYPE_CHECKING:
    from lighttail.planning.bench import Bench
    from lighttail.planning.search import Search

CURVES = 3  # whose edges are sought by paths, at most; exact chances cost little
WORSE = 1.25  # times the least mean loss at the guessed edge that a curve may have
LOOKS = 3  # per curve
AIM = 0.85  # of the limit, for weighted paths
NEAR = 1.25  # a chance between AIM / NEAR and AIM is near enough
EXACT_AIM, EXACT_NEAR, EXACT_LOOKS = 0.997, 1.05, 6  # the same if chances are exact, and looks per curve
COUNTED_NEAR = 1.1  # the same if chances are counted
SLOPE, SLOPES = 3.0, (1.0, 12.0)  # - d ln(chance) / d ln(scale): at first, and what it may be
WIDER = 5.0  # times less exploration at which hits still say which problem is the worst
LEAP = 2.0  # ratio of the scales of two looks, at most
PATHS, ERROR = 1024, 0.15  # of a look: weighted paths, and the relative error with which it ends
STAGE = 800  # of the random numbers of the looks
WIDE, SURE = 256, 0.999  # paths, and the level, with which exploration alone is shown to lose the limit
FINE = 2.0**0.25  # ratio of the scales that are tried for a first guess, and of steps beyond an edge
STEPS = 8  # beyond an edge in one direction, at most
TINY = 1e-300  # a smaller chance counts as this one, so that it has a logarithm


@dataclass(frozen=True)
class Looked:
    """What a look says of a candidate in a problem, and the pulls that the look took."""

    candidate: Candidate
    problem: Bandit
    chance: Estimate
    pulls: int


def look(
    question: Question,
    bench: Bench,
    policy: Policy,
    problem: Bandit,
    counted: int = 0,
    seconds: float = EXACT_SCAN,
) -> tuple[Estimate, int]:
    """The chance of losing the limit, and the pulls that were played: exactly, by counting this number of
    paths or, if it is 0, by weighted paths. If the average over the family is asked for, paths of all
    members are counted. seconds: for an exact chance."""
    if not question.everywhere:
        members = question.family.members
        each = math.ceil(counted / len(members))
        plays = [Play(policy, member, each, STAGE, place) for place, member in enumerate(members)]
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


def has_edge(search: Search, turn: int, rare: bool) -> bool:
    """Whether an exact law, a count of paths or, if chances are rare, weighted paths say quickly where a
    curve crosses the limit."""
    curve = search.curves[turn]
    if not curve.scales or curve.dear > 1:
        return False
    if not rare or has_exact_edge(search, turn):
        return True
    task = _middle(search, turn)
    return task.why_not_tilted() is None and not draws_for_itself(task.policy, task.problem, task.horizon)


def has_exact_edge(search: Search, turn: int) -> bool:
    """Whether an exact law says quickly where a curve crosses the limit. (That one problem cannot lose the
    limit at all says nothing of other problems.)"""
    question = search.question
    return question.everywhere and question.straight and not why_no_exact(_middle(search, turn), EXACT_SCAN)


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


def edges(search: Search) -> list[Score]:
    """The scores of the policies at the edges of the best curves.

    Which curves are the best is a guess at first. Further curves are looked at if no policy so far keeps the
    limit, or if their guess promises a lower mean loss than the best policy so far has."""
    turns = {score.candidate.curve for score in search.scores.values()}
    for turn in turns & search.with_edges:
        scale = guess(search, turn)
        search.left[turn] = scale, mean_at(search, turn, scale)
    found = list[Score]()
    while search.left:
        kept = [score.mean for score in found if score.chance.value <= search.question.limit]
        bar = min(kept) if kept else WORSE * min(mean for _, mean in search.left.values())
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
    near = sorted((mean, turn) for turn, (_, mean) in search.left.items() if mean <= bar)
    if not near:
        return None
    starts = {}
    for place, (_, turn) in enumerate(near):
        if place < CURVES or has_exact_edge(search, turn):
            scale, _ = search.left.pop(turn)
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
    plays = [Play(score.candidate.policy, widest, WIDE, STAGE + 1) for score in scores]
    kept = []
    for score, lost in zip(scores, search.bench.losses(plays, "search, wide gaps"), strict=True):
        if question.chance(lost, SURE).low <= question.limit:
            kept.append(score)
        else:
            watched, chance = (widest, *score.watched), question.chance(lost)
            search.scores[score.candidate] = replace(score, chance=chance, paths=WIDE, watched=watched)
    return kept


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
        search.known |= {(one.candidate.policy, one.problem): one.chance for one in seen[turn]}
        chosen += [allowed_first(search, seen[turn])] if seen[turn] else []
    return _scored(search, chosen)


def _scored(search: Search, chosen: Sequence[Looked]) -> list[Score]:
    """The scores of candidates, each with the problem in which it was looked at as the worst one."""
    for one in chosen:
        rest = (each for each in search.watched[one.candidate.curve] if each != one.problem)
        search.orders[one.candidate] = (one.problem, *rest)
        search.known[one.candidate.policy, one.problem] = one.chance
    return search.score_means([one.candidate for one in chosen])


def beyond(search: Search, at_edges: Sequence[Score]) -> list[Score]:
    """The scores of policies on the same curves whose mean losses are lower than those at the edges.

    A limit that is easily kept does not say how much exploration is best. All curves take steps at a time, to
    more exploration and, if the chance leaves room, to less, as long as the mean loss falls; then half a step
    to both sides.
    """
    limit = search.question.limit
    edge = {score.candidate.curve: score for score in at_edges if score.chance.value <= limit}
    best = dict(edge)
    for factor, most in ((FINE, STEPS), (1.0 / FINE, STEPS), (FINE**0.5, 1), (FINE**-0.5, 1)):
        going = sorted(best)
        for _ in range(most):
            new = [one for turn in going for one in _stepped(search, edge[turn], best[turn], factor)]
            if not new:
                break
            better = [one for one in search.score_means(new) if one.mean < best[one.candidate.curve].mean]
            best |= {one.candidate.curve: one for one in better}
            going = [one.candidate.curve for one in better]
    moved = [best[turn].candidate for turn in best if best[turn] is not edge[turn]]
    looks = [_looked(search, one, judge_of(search, edge[one.curve])) for one in moved]
    return _scored(search, [one for one in looks if one.chance.value <= _enough(search, one.chance)])


def _stepped(search: Search, edge: Score, best: Score, factor: float) -> list[Candidate]:
    """The policy a factor along the curve from the best one, if there is one; with less exploration than at
    the edge, it must be shown to keep the limit."""
    turn, scale = edge.candidate.curve, best.candidate.scale * factor
    mine, known = {edge.candidate.policy, best.candidate.policy}, {one.policy: one for one in search.scores}
    new = [known.get(one.policy, one) for one in search.curves[turn].candidates(turn, (scale,))]
    new = [one for one in new if one.policy not in mine]
    if not new or scale >= edge.candidate.scale:
        return new
    aim, near = aim_of(search, edge.chance)
    if edge.chance.value > aim / near:
        return []
    chance = _looked(search, new[0], judge_of(search, edge)).chance
    return new if chance.value <= _enough(search, chance) else []


def _looked(search: Search, one: Candidate, problem: Bandit) -> Looked:
    """A look at a candidate, or what is known of it."""
    known = search.known.get((one.policy, problem))
    if known is not None:
        return Looked(one, problem, known, 0)
    chance, pulls = look(search.question, search.bench, one.policy, problem, search.counted)
    search.bench.count(pulls, "search, the limit itself")
    search.known[one.policy, problem] = chance
    return Looked(one, problem, chance, pulls)


def allowed_first(search: Search, seen: Sequence[Looked]) -> Looked:
    """The look with the least exploration among those within the limit; otherwise the least chance."""
    within = [one for one in seen if one.chance.value <= _enough(search, one.chance)]
    if within:
        return min(within, key=lambda one: one.candidate.scale)
    return min(seen, key=lambda one: one.chance.value)


def _enough(search: Search, chance: Estimate) -> float:
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
        known = {one.candidate.policy for one in seen}
        new = [one for one in curve.candidates(turn, curve.every()) if one.policy not in known]
        return seen + [
            Looked(one, problem, *look(search.question, search.bench, one.policy, problem, search.counted))
            for one in new
        ]
    for turns in range(EXACT_LOOKS):
        if turns >= LOOKS and not sure(seen[-1].chance):
            break
        new = curve.candidates(turn, (min(curve.most, max(curve.least, scale)),))
        if not new or new[0].policy in {one.candidate.policy for one in seen}:
            break
        chance, pulls = look(search.question, search.bench, new[0].policy, problem, search.counted, seconds)
        seen.append(Looked(new[0], problem, chance, pulls))
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
    places = sorted((math.log(one.candidate.scale), math.log(max(1e-300, one.chance.value))) for one in seen)
    target = math.log(aim)
    for (x, y), (other, lower) in pairwise(places):
        if y > target >= lower:
            return math.exp(x + (other - x) * (y - target) / (y - lower))
    slope = SLOPE
    if len(seen) > 1:
        (x, y), (other, lower) = (
            (places[0], places[1]) if places[0][1] <= target else (places[-2], places[-1])
        )
        slope = min(SLOPES[1], max(SLOPES[0], (y - lower) / max(1e-9, other - x)))
    x, y = places[0] if places[0][1] <= target else places[-1]
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
    safest = min(mine, key=lambda score: (score.high, score.mean)).candidate.scale
    counted = [score for score in mine if score.candidate.scale <= safest and score.paths > 0]
    tried = np.array([score.paths for score in counted], dtype=float)
    hits = tried * np.array([score.chance.value for score in counted])
    scales = np.array([score.candidate.scale for score in counted])
    low, high = mine[0].candidate.scale / LEAP, LEAP * mine[-1].candidate.scale
    count = 1 + round(math.log(high / low, FINE))
    places = low * FINE ** np.arange(count)
    with np.errstate(over="ignore"):
        chance = np.clip(aim * (scales[None, :] / places[:, None]) ** -SLOPE, TINY, 0.5)
    likely = (hits * np.log(chance) + (tried - hits) * np.log1p(-chance)).sum(axis=1)
    keeping = [score.candidate.scale for score in mine if score.chance.high <= search.question.limit]
    return max(min([float(places[int(np.argmax(likely))]), *keeping]), cheapest_at(search, turn))


def judge_of(search: Search, score: Score) -> Bandit:
    """The problem in which the chance of a policy is looked at; the first one stands for all members if the
    average is asked for."""
    return score.watched[0] if search.question.everywhere else search.members[0]


def on_curve(search: Search, turn: int) -> list[Score]:
    """The scores of a curve by scale."""
    mine = [score for score in search.scores.values() if score.candidate.curve == turn]
    return sorted(mine, key=lambda score: score.candidate.scale)


def cheapest_at(search: Search, turn: int) -> float:
    """The scale with the least mean loss on a curve."""
    return min(on_curve(search, turn), key=lambda score: score.mean).candidate.scale


def mean_at(search: Search, turn: int, scale: float) -> float:
    """The mean loss at a scale, between those of the neighbours on the curve."""
    mine = on_curve(search, turn)
    places = [math.log(score.candidate.scale) for score in mine]
    return float(np.interp(math.log(scale), places, [score.mean for score in mine]))


def worst_at(search: Search, turn: int, scale: float) -> Bandit:
    """The problem in which the policies of a curve, from WIDER times below a scale to LEAP times above, lost
    the limit most often, together: near the edge alone there are too few hits to tell."""
    if not search.question.everywhere:
        return search.members[0]
    near = [
        score for score in on_curve(search, turn) if 1.0 / WIDER < score.candidate.scale / scale < 1.01 * LEAP
    ]
    near = near or on_curve(search, turn)
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
