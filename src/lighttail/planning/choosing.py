"""From the candidates of a search to the choice: which ones are confirmed, and in which order."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from lighttail.outcomes.estimates import Estimate
from lighttail.planning.confirm import EXACT, Confirmation, Confirmed
from lighttail.planning.edges import again, closer
from lighttail.planning.effort import ROUNDS, expected_pulls
from lighttail.planning.looks import TINY, on_curve, sure
from lighttail.planning.question import SUSPECTS, Score
from lighttail.planning.search import Search
from lighttail.planning.suspects import EXACT_SECONDS
from lighttail.policies import Policy
from lighttail.problems import Bandit

ATTEMPTS = 6  # choices that are confirmed, at most
SAFER = (2.0**0.25, 2.0**0.5, 2.0)  # steps along a curve to more exploration if no choice was confirmed
STEPS = 3  # towards the limit itself
MOVES = 2  # times that the edge of a curve is sought anew, because a worse problem was found
ALIKE = 1.25  # ratio of the scales of two policies of a curve that have the same worst problems, about
MISSES = 3  # choices of a curve without an edge that fail before other curves have their turn
AS_RISKY = 0.8  # times the chance of another policy: a smaller one is clearly safer
RETRIES = 2  # times more, because the policy at the edge was not confirmed
WITHIN = 0.95  # of the limit: a chance above is not likely to be shown to be within the limit
ENDING = 0.25  # of the pulls that a plan is expected to take: for a confirmation and what follows, about
HALVING = (12, 6, 3)  # policies among which the nearest is sought if none keeps the limit
Tried = tuple[Score, Confirmed]


def confirmed(search: Search, confirmation: Confirmation, ranked: list[Score]) -> Tried:
    """The first choice that is shown to be allowed; if there is none, the one that came nearest."""
    question, tried = search.question, list[Tried]()
    order, moved, last, seen = _order(search, ranked), list[int](), set[Policy](), set[Policy]()
    while order and len(tried) < ATTEMPTS:
        search.bench.expect(ENDING * expected_pulls(question, search.budget))  # each time anew
        score = order.pop(0)
        if score.policy not in seen and search.seen_less(score) and _likely(search, [score]):
            seen.add(score.policy)
            order = _by_mean([*_likely(search, [search.seen_more(score)]), *order], tried, last)
            order = order or (_safer(search, tried) if tried else _nearest(search))
            continue
        if better := _by_mean(_likely(search, search.further(score)), tried):
            unlikely = not _likely(search, [score])  # then the order is that of chances
            order = [*better, score, *order] if unlikely else _by_mean([score, *better, *order], tried, last)
            continue
        may = moved.count(score.curve) < MOVES
        if may and (better := _by_mean(_moved(search, confirmation, score), tried)):
            moved.append(score.curve)
            order = _by_mean([*better, *order], tried, last)
            continue
        answer = confirmation.chance(score.policy, score.watched)
        if answer.chance.high <= question.limit:
            return _closer(search, confirmation, score, answer)
        tried.append((score, answer))
        at_edge = search.at_edge(score.policy)
        if at_edge and moved.count(score.curve) < MOVES + RETRIES:
            moved.append(score.curve)
            new = _anew(search, confirmation, score, answer.worst, answer.chance, failed=True)
            order = _by_mean([*new, *order], tried, last)
        elif not at_edge and _likely(search, [score]):
            mine = [one for one in order if one.curve == score.curve]
            many = sum(one.curve == score.curve for one, _ in tried) >= MISSES
            alike = [one for one in mine if many or _fails_alike(one, score, answer, question.limit)]
            last |= {one.policy for one in alike}
            order = sorted(order, key=lambda one: one.policy in last)  # otherwise as before
        if not order and len(tried) < ATTEMPTS:
            order = _safer(search, tried)
    best = min(tried, key=_nearness)
    failed = {score.curve for score, _ in tried}
    if _clearly_nearer(search, best[1], failed):
        for score in _nearest(search, failed):
            answer = confirmation.chance(score.policy, score.watched)
            if answer.chance.high <= question.limit:
                return score, answer
            tried.append((score, answer))
    return _nearest_of(confirmation, tried)


def _closer(search: Search, confirmation: Confirmation, score: Score, answer: Confirmed) -> Tried:
    """The choice or, if the search counted its chance in the one problem there is and the exact chance leaves
    room below the limit, the policy beside it that uses the room, if its mean loss is lower."""
    policy = score.policy
    if answer.source != EXACT or not search.question.family.single or not search.at_edge(policy):
        return score, answer
    if sure(search.known.get((policy, answer.worst), answer.chance)):
        return score, answer
    for new in closer(search, score, answer.worst, answer.chance, EXACT_SECONDS):
        found = confirmation.chance(new.policy, new.watched)
        if new.mean < score.mean and found.chance.high <= search.question.limit:
            return new, found
    return score, answer


def _nearest_of(confirmation: Confirmation, tried: Sequence[Tried]) -> Tried:
    """The policy that comes nearest to the limit of those that broke it. One problem was enough to break it;
    the policy that is named is looked at in its other worst problems, too."""
    answers = {score.policy: (score, answer) for score, answer in tried}
    left = sorted(answers.values(), key=_nearness)
    known = list[Tried]()
    while left and not (known and min(map(_nearness, known)) <= _nearness(left[0])):
        score, answer = left.pop(0)
        known.append((score, confirmation.completed(score.policy, score.watched, answer)))
    return min(known, key=_nearness)


def _by_mean(scores: Sequence[Score], tried: Sequence[Tried], last: Collection[Policy] = ()) -> list[Score]:
    """The scores by their mean losses, each policy once, the first score of it; without those tried. last:
    policies that come after all others."""
    known = {one.policy for one, _ in tried}
    new: dict[Policy, Score] = {}
    for score in scores:
        if score.policy not in known:
            new.setdefault(score.policy, score)
    return sorted(new.values(), key=lambda one: (one.policy in last, one.mean))


def _fails_alike(score: Score, failed: Score, answer: Confirmed, limit: float) -> bool:
    """Whether a policy will probably fail its confirmation as another one of its curve did.

    A curve whose edge was not sought has near copies: what the search missed for one of them, it missed for
    the others, unless they seemed clearly safer. Far from the policy that failed, the search must have been
    wrong by more than luck, and so much that the limit is broken there, too.
    """
    near = 1.0 / ALIKE <= score.scale / failed.scale <= ALIKE
    if near and score.chance.value >= AS_RISKY * failed.chance.value:
        return True
    wrong_by = max(1.0, answer.chance.low / max(TINY, failed.chance.high))
    return score.chance.low * wrong_by > limit


def _nearness(pair: Tried) -> tuple[float, float]:
    return pair[1].chance.value, pair[1].chance.high


def _clearly_nearer(search: Search, answer: Confirmed, failed: set[int]) -> bool:
    """Whether the search saw a policy of another curve that keeps clearly nearer to the limit: it may have
    seen nothing of the problems in which the curves that failed are worst."""
    others = (score for score in search.scores.values() if score.curve not in failed)
    return any(score.chance.high < answer.chance.low for score in others)


def _moved(search: Search, confirmation: Confirmation, score: Score) -> list[Score]:
    """The policy at the edge of the same curve in a worse problem, if there is a worse problem: one that a
    scan found for another policy, or one that the scan for this policy finds."""
    policy, limit = score.policy, search.question.limit
    if not (search.question.everywhere and search.at_edge(policy)):
        return []
    if policy not in confirmation.scanned:
        for problem in dict.fromkeys(found[0] for found in confirmation.scanned.values()):
            seen = confirmation.look(policy, [problem])[0]
            if _beyond(seen, limit):
                return again(search, score, problem, seen)
    suspects = confirmation.suspects(policy, score.watched)
    confirmation.look(policy, [one for one in suspects if confirmation.glimpse(policy, one) is None])
    glimpses = [(one, confirmation.glimpse(policy, one)) for one in suspects]
    worst, glimpse = max(((one, seen) for one, seen in glimpses if seen), key=lambda pair: pair[1].value)
    if not _beyond(glimpse, limit):
        return []
    return _anew(search, confirmation, score, worst, glimpse)


def _anew(
    search: Search,
    confirmation: Confirmation,
    score: Score,
    worst: Bandit,
    chance: Estimate,
    failed: bool = False,
) -> list[Score]:
    """The policy at the edge of the same curve in another problem, in which the chance is `chance`. A policy
    that explores nearly as much is confirmed in the same problems as the policy before."""
    one, found = score.candidate, again(search, score, worst, chance, failed)
    found = [new for new in found if new.chance.value <= search.question.limit]
    if search.curves[one.curve].whole or not search.question.everywhere:
        return found  # the worst problems jump from policy to policy, or there is no worst problem
    suspects = list(dict.fromkeys([worst, *confirmation.suspects(one.policy, score.watched)]))[:SUSPECTS]
    for new in found:
        if 1.0 / ALIKE <= new.scale / one.scale <= ALIKE:
            confirmation.scanned.setdefault(new.policy, suspects)
    return found


def _beyond(chance: Estimate, limit: float) -> bool:
    """Whether fresh numbers will probably not show that a chance is within the limit."""
    return chance.value > (limit if sure(chance) else WITHIN * limit)


def _order(search: Search, ranked: list[Score]) -> list[Score]:
    """The scores in the order in which they are confirmed."""
    good = _likely(search, ranked)
    if not good:
        return _nearest(search)
    best = good[0]
    if not search.at_edge(best.policy):
        good += _halved(search, best)
    return sorted(good, key=lambda score: score.mean)


def _halved(search: Search, best: Score) -> list[Score]:
    """The allowed policies that are found by halving the way, along the curve, from the best policy that is
    allowed to the next that is not.

    The mean loss mostly grows with exploration, so the policy with the least allowed exploration is the best
    of its curve.
    """
    if math.isnan(best.scale) or search.question.asks_for_loss:
        return []
    target, found = _target(search, best), list[Score]()
    below = [score for score in on_curve(search, best.curve) if score.scale < best.scale][-1:]
    if not below or below[0].chance.value <= target:
        return []
    worse, better = below[0].scale, best.scale
    for turn in range(STEPS):
        middle = math.sqrt(worse * better)
        new = search.curves[best.curve].candidates(best.curve, (middle,))
        if not new or new[0].policy in {one.policy for one in search.scores}:
            break
        stage = len(ROUNDS) + 1 + turn
        (score,) = search.score(new, search.sized(ROUNDS[-1]), stage, "search, the limit itself")
        if score.chance.value <= target:
            better = middle
            found.append(score)
        else:
            worse = middle
    return found


def _likely(search: Search, scores: Sequence[Score]) -> list[Score]:
    """Those whose chances fresh numbers will probably show to be within the limit."""
    return [score for score in scores if score.chance.value <= _target(search, score)]


def _target(search: Search, score: Score) -> float:
    return search.question.limit if score.exact else search.reach


def _nearest(search: Search, without: Collection[int] = ()) -> list[Score]:
    """The policies with the least chances of the whole search, looked at with more and more paths.

    without: the curves of which no policy is wanted."""

    def rank(score: Score) -> tuple[float, ...]:
        return score.chance.value, score.promised, score.mean

    known = [score for score in search.scores.values() if score.curve not in without]
    found = sorted(known, key=lambda score: (score.chance.low, *rank(score)))[: HALVING[0]]
    for turn, (asked, count) in enumerate(zip(ROUNDS[2:], HALVING[1:], strict=True)):
        stage, label = len(ROUNDS) + 30 + turn, "search, the nearest policy"
        few = [score.candidate for score in found]
        found = sorted(search.score(few, search.sized(asked), stage, label), key=rank)[:count]
    return found


def _safer(search: Search, tried: Sequence[Tried]) -> list[Score]:
    """Policies of the curve that was tried first that explore more."""
    one, known = tried[0][0].candidate, {score.policy for score, _ in tried}
    if math.isnan(one.scale):
        return []
    new = search.curves[one.curve].candidates(one.curve, [one.scale * step for step in SAFER])
    new = [candidate for candidate in new if candidate.policy not in known]
    if not new:
        return []
    scores = search.score(new, search.sized(ROUNDS[2]), len(ROUNDS) + 9, "search, safer policies")
    return sorted(scores, key=lambda score: score.mean)


def rivals(search: Search, score: Score, answer: Confirmed) -> bool:
    """Whether a policy of another curve may come as near to the limit as the one that came nearest."""
    others = (other for other in search.scores.values() if other.curve != score.curve)
    return any(other.chance.low <= answer.chance.value for other in others)
