"""The search of a plan: all policies with few paths, then the promising ones with more and more of them.

A candidate stays in the race while its chance may be allowed and its mean loss may be the least. After each
round the curves of those that stay are refined around them. The numbers of the search are selected, so they
choose; what a plan states is estimated anew on fresh random numbers (`confirm.py`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lighttail.checks import number, refuse
from lighttail.outcomes.estimates import Estimate, proportion_limits
from lighttail.planning.bench import Bench, Play
from lighttail.planning.curves import FINEST, Candidate, Curve
from lighttail.planning.edges import edges, further_edges, has_edge, sure
from lighttail.planning.question import HIGH, LEVEL, Question, Score, mean_over, worst_first
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.records import Floats

MEMBERS = 24  # of the family, for mean losses: the same in all rounds, so that all means can be compared
WATCHED = 4  # problems per curve in which the worst is sought
FEWEST = 2  # paths per member: their differences give the standard error
PROBES = 32  # paths with which they are found
EXACT_SECONDS = 0.15  # for the exact chance of one candidate
CLOSE = 2.0  # standard errors within which two means may be equal
BUDGET = 2e9  # pulls of a search, about
CONFIRM = 0.25  # of the budget, to confirm one choice
CONFIRM_COUNTED = 4.0  # times more if chances can only be counted
LATER_LOOK = 4  # the number of the look that mostly confirms a choice, about
HARDLY = 0.1  # of the limit: a smaller chance is not aimed at
FIRST_TAIL = (1.0 - LEVEL) / 2.0 * 6.0 / math.pi**2  # the share of the error of a first look, on each side
LEAST_EFFORT, MOST_EFFORT = 0.001, 1000.0


class SearchRound(NamedTuple):
    """paths: for the mean, of each of MEMBERS problems. watched: problems for the chance, with `hits` paths
    each. kept: candidates that go on to the next round. exact: whether chances are exact if they can be had
    in a moment."""

    paths: int
    watched: int
    hits: int
    kept: int
    exact: bool = False


ROUNDS = (
    SearchRound(4, WATCHED, 64, 24),
    SearchRound(12, WATCHED, 256, 10),
    SearchRound(32, 3, 1024, 5, exact=True),
    SearchRound(64, 2, 4096, 5, exact=True),
)
FEW = 12.0  # hits at the limit in the last round below which chances are not counted
WANTED, AT_MOST = 24.0, 0.125  # hits at the limit in a look that can only count, and its most, of the budget
RARE_PULLS = 8e8  # of all looks of weighted paths, about
BASE = 200_000  # paths of all rounds together, about
COUNTED = 2  # rounds with all policies if the edges of curves are sought
MEANS = SearchRound(128, 1, 64, 0, exact=True)  # for the mean losses at the edges


@dataclass
class Search:
    """The state of a search: the latest score of every candidate, and the problems watched per curve.

    budget: pulls of the search, about. proof: the budget of the plan that confirms what is found; 0 if it is
    the same. known: chances that need not be counted. orders: the problems to look at first, for some
    candidates. counts: the hits and the paths of the latest round in each problem. left: the curves whose
    edges were not sought, with a guess of the edge and of the mean loss there. waiting: the policies without
    an edge that were left out after the first rounds.
    """

    question: Question
    curves: Sequence[Curve]
    bench: Bench
    budget: float = BUDGET
    proof: float = 0.0
    scores: dict[Candidate, Score] = field(default_factory=dict)
    watched: dict[int, tuple[Bandit, ...]] = field(default_factory=dict)
    known: dict[tuple[Policy, Bandit], Estimate] = field(default_factory=dict)
    orders: dict[Candidate, tuple[Bandit, ...]] = field(default_factory=dict)
    counts: dict[Candidate, dict[Bandit, Floats]] = field(default_factory=dict)
    left: dict[int, tuple[float, float]] = field(default_factory=dict)
    waiting: set[Candidate] = field(default_factory=set)

    def run(self) -> list[Score]:
        """The scores of those that may be the answer, the best first."""
        alive = [one for turn, curve in enumerate(self.curves) for one in curve.candidates(turn)]
        if self.question.everywhere:
            self._probe()
        else:  # the first member stands for all of them
            self.watched = dict.fromkeys(range(len(self.curves)), self.members[:1])
        if not self.with_edges:
            return self.ranked(self._rounds(alive, 0, len(ROUNDS)))
        self._rounds(alive, 0, COUNTED)
        self.waiting = {one for one in self.scores if one.curve not in self.with_edges}
        at_edges = edges(self)
        good = [score for score in at_edges if score.likely(self.question.limit)]
        bar = min((score.mean + CLOSE * score.error for score in good), default=math.inf)
        return self.ranked([*at_edges, *self._without_edge(bar)])

    def further(self, best: Score) -> list[Score]:
        """The scores of policies that were left out and may lose less than the best one. When they were left
        out, it or another policy seemed to lose less than it does now."""
        if not self.with_edges:
            return []
        return further_edges(self, best.mean) + self._without_edge(best.mean, doubt=0.0)

    @cached_property
    def with_edges(self) -> frozenset[int]:
        """The curves whose edges can be found."""
        question, rare = self.question, not self.counted
        if question.asks_for_loss or (rare and question.by_counting):
            return frozenset()
        return frozenset(turn for turn in range(len(self.curves)) if has_edge(self, turn, rare))

    @cached_property
    def counted(self) -> int:
        """The paths with which a look counts a chance, more if chances can only be counted; 0 if chances are
        too rare."""
        question, paths = self.question, self.sized(ROUNDS[-1]).hits
        if question.by_counting:
            affordable = self.budget * AT_MOST / question.horizon
            paths = max(paths, int(min(WANTED / question.limit, affordable)))
        return paths if paths * question.limit >= FEW else 0

    @cached_property
    def reach(self) -> float:
        """The chance that fresh paths will probably show to be within the limit, if they are counted: in each
        of the problems that look worst, and after a few looks. With very few paths nothing can be shown."""
        question = self.question
        paths = max(1, int(confirming_paths(question, self.proof or self.budget)))
        return max(HARDLY * question.limit, reachable(question.limit, paths, FIRST_TAIL / LATER_LOOK**2))

    def weighted(self, policy: Policy) -> bool:
        """Whether the chances of a policy came from weighted paths."""
        if self.counted:
            return False
        return any(policy == known and not sure(chance) for (known, _), chance in self.known.items())

    def dear(self, policy: Policy) -> int:
        """How many times longer than usual a pull of a policy takes, about."""
        return max((self.curves[one.curve].dear for one in self.scores if one.policy == policy), default=1)

    def at_edge(self, policy: Policy) -> bool:
        """Whether a policy was found at the edge of its curve."""
        return any(policy == known for known, _ in self.known)

    def seen_less(self, score: Score) -> bool:
        """Whether the chance of a policy comes from fewer paths than those of others, because its pulls take
        long."""
        curve = self.curves[score.candidate.curve]
        few = fewer(self.sized(ROUNDS[-1]).hits, curve)
        return self.question.everywhere and curve.dear > 1 and 0 < score.paths <= few

    def seen_more(self, score: Score) -> Score:
        """The score of such a policy with more and more paths: as many as of others, or until it seems to
        break the limit. To confirm it takes long, and one that is lucky with few paths mostly breaks it."""
        asked, dear = self.sized(ROUNDS[-1]), self.curves[score.candidate.curve].dear
        for turn in range(math.ceil(math.log2(dear))):
            more = asked._replace(hits=min(dear, 2 ** (turn + 1)) * asked.hits)
            (score,) = self.score([score.candidate], more, len(ROUNDS) + 40 + turn, "search, slow policies")
            if score.chance.value > self.question.limit:
                break
        return score

    def _rounds(
        self,
        alive: list[Candidate],
        first: int,
        until: int,
        may: Callable[[Score], bool] = lambda score: True,
    ) -> list[Score]:
        """The scores of round `until`, after rounds in which the best candidates go on. may: whether a
        candidate may still be the answer; if none may, the rounds end without any."""
        latest: list[Score] = []
        for turn in range(first, until):
            asked = ROUNDS[turn]
            label = f"search, round {turn + 1} of {len(ROUNDS)}"
            latest = self.score(alive, self.sized(asked), turn + 1, label)
            if turn + 1 < until:
                latest = [score for score in latest if may(score)]
                if not latest:
                    break
                latest = self.kept(latest, asked.kept)
                alive = [score.candidate for score in latest]
                alive += self._between(latest, 2.0 ** (0.5 ** (turn + 1)))
        return latest

    def _without_edge(self, bar: float, doubt: float = CLOSE) -> list[Score]:
        """The policies whose chances must be counted, if their mean loss may be below the bar. doubt: by how
        many standard errors a mean may be too high; to count the chances of a policy takes long."""
        limit = self.question.limit

        def may(score: Score) -> bool:
            return score.mean - doubt * score.error <= bar and score.chance.low <= limit

        rest = [score for one, score in self.scores.items() if one in self.waiting and may(score)]
        few = [score.candidate for score in self.kept(rest, ROUNDS[COUNTED].kept)] if rest else []
        self.waiting -= set(few)
        return self._rounds(few, COUNTED, len(ROUNDS), may) if few else []

    def score_means(self, candidates: Iterable[Candidate]) -> list[Score]:
        """The scores of candidates whose chances are known already."""
        return self.score(candidates, self.sized(MEANS), len(ROUNDS) + 1, "search, mean losses")

    def sized(self, asked: SearchRound) -> SearchRound:
        """The round with as many paths as the budget allows."""
        factor = factor_of(self.question, self.budget)
        paths = max(FEWEST, round(factor * asked.paths * MEMBERS / len(self.members)))
        return asked._replace(paths=paths, hits=max(32, round(factor * asked.hits)))

    @property
    def members(self) -> tuple[Bandit, ...]:
        """The problems over which mean losses are averaged."""
        return self.question.family.members[:MEMBERS]

    def _probe(self) -> None:
        """Find, for each curve, the problems of the family in which its chance is highest.

        Too little exploration fails in other problems than too much, so two policies of the curve look. The
        problems that are worst for all curves together are watched, too: few paths of one policy err often.
        """
        question = self.question
        family = question.family
        edges = question.edges()
        pool = question.able([*edges, *(family.members[:6] if edges else family.members)])
        if len(pool) <= 2:
            self.watched = dict.fromkeys(range(len(self.curves)), tuple(pool))
            return
        plays, owners = [], []
        for turn, curve in enumerate(self.curves):
            if curve.dear > 1:
                continue
            every = curve.candidates(turn)
            for probe in {every[len(every) // 3], every[2 * len(every) // 3]}:
                plays += [Play(probe.policy, problem, PROBES, 0) for problem in pool]
                owners.append(turn)
        losses = self.bench.losses(plays, "looking for the worst problems")
        seen = [losses[place * len(pool) : (place + 1) * len(pool)] for place in range(len(owners))]
        together = [np.concatenate([mine[turn] for mine in seen]) for turn in range(len(pool))]
        usual = worst_first(question, pool, together)[: WATCHED // 2]
        found: dict[int, dict[Bandit, None]] = defaultdict(dict)
        for turn, mine in zip(owners, seen, strict=True):
            each = WATCHED // 2 // owners.count(turn)
            found[turn] |= dict.fromkeys(worst_first(question, pool, mine)[:each])
        self.watched = {turn: tuple(found[turn] | dict.fromkeys(usual)) for turn in range(len(self.curves))}

    def score(
        self, candidates: Iterable[Candidate], asked: SearchRound, stage: int, label: str
    ) -> list[Score]:
        """Play the candidates; the scores replace those of earlier rounds."""
        candidates = list(candidates)
        members, plays = self.members, list[Play]()
        places: list[tuple[Candidate, tuple[Bandit, ...], int]] = []
        exact: dict[tuple[Candidate, Bandit], Estimate] = {}
        for one in candidates:
            paths, hits = (fewer(count, self.curves[one.curve]) for count in (asked.paths, asked.hits))
            if not self.question.everywhere:  # the paths of the members say the chance, too
                paths = max(paths, math.ceil(asked.watched * hits / len(members)))
            plays += members_of(one.policy, members, paths, stage)
            look = self._look(one, asked.watched)
            for problem in look:
                known = self.known.get((one.policy, problem))
                if known is None and asked.exact:
                    known = self.question.exact_chance(one.policy, problem, EXACT_SECONDS)
                if known is not None:
                    exact[one, problem] = known
            asking = tuple(problem for problem in look if (one, problem) not in exact)
            plays += [Play(one.policy, problem, hits, 100 + stage) for problem in asking]
            places.append((one, look, len(asking)))
        losses = iter(self.bench.losses(plays, label))
        found = []
        for one, look, count in places:
            of_members = [next(losses) for _ in members]
            drawn = [next(losses) for _ in range(count)]
            chances = {problem: exact[one, problem] for problem in look if (one, problem) in exact}
            found.append(self._scored(one, of_members, look, drawn, chances))
        self.scores |= {score.candidate: score for score in found}
        return found

    def _look(self, one: Candidate, count: int) -> tuple[Bandit, ...]:
        """The problems in which the chance of a candidate is looked at; none if the average is asked for."""
        if not self.question.everywhere:
            return ()
        before = self.scores.get(one)
        order = before.watched if before is not None else self._neighbour_order(one)
        order = self.orders.get(one, order)
        return order[:count]

    def _neighbour_order(self, one: Candidate) -> tuple[Bandit, ...]:
        """The worst problems of the nearest policy on the curve that was played, or else those probed."""
        known = [score for other, score in self.scores.items() if other.curve == one.curve]
        if not known or math.isnan(one.scale):
            return self.watched[one.curve]
        nearest = min(known, key=lambda score: abs(math.log(score.candidate.scale / one.scale)))
        return nearest.watched

    def _scored(
        self,
        one: Candidate,
        of_members: list[Floats],
        look: tuple[Bandit, ...],
        drawn: list[Floats],
        known: dict[Bandit, Estimate],
    ) -> Score:
        question = self.question
        mean, error = mean_over(of_members)
        if not question.everywhere:
            pooled = np.concatenate(of_members)
            members = worst_first(question, self.members, of_members)
            looked = self.known.get((one.policy, self.members[0]))
            chance, paths = (question.chance(pooled), pooled.size) if looked is None else (looked, 0)
            promised, high = question.promised(pooled), float(np.quantile(pooled, HIGH))
            return Score(one, mean, error, chance, promised, high, paths, tuple(members[:WATCHED]))
        unknown = [problem for problem in look if problem not in known]
        chances = known | {
            problem: question.chance(lost) for problem, lost in zip(unknown, drawn, strict=True)
        }
        hits = [(float(question.reaches(lost).sum()), float(lost.size)) for lost in drawn]
        self.counts[one] = {problem: np.array(pair) for problem, pair in zip(unknown, hits, strict=True)}
        rest = worst_first(question, unknown, drawn)
        ordered = [*rest, *known]  # a chance of 0 that is known does not stand for one that was counted
        if not question.asks_for_loss:
            ordered.sort(key=lambda problem: -chances[problem].value)  # stable: ties keep their order
        behind = [problem for problem in self.watched[one.curve] if problem not in ordered]
        promised = max((question.promised(lost) for lost in drawn), default=question.loss)
        worst = ordered[0]
        paths = 0 if worst in known else drawn[0].size
        high = max((float(np.quantile(lost, HIGH)) for lost in drawn), default=chances[worst].value)
        return Score(one, mean, error, chances[worst], promised, high, paths, (*ordered, *behind))

    def ranked(self, scores: Iterable[Score]) -> list[Score]:
        """The candidates that may be the answer, the best first; if none may, those that come nearest."""
        scores, question = list(scores), self.question
        if question.asks_for_loss:
            return sorted(scores, key=lambda score: (score.promised, score.mean))
        possible = [score for score in scores if score.chance.low <= question.limit]
        if not possible:
            return sorted(scores, key=lambda score: (score.chance.value, score.promised, score.mean))
        return sorted(possible, key=lambda score: (score.mean, score.chance.value))

    def _may_be_best(self, scores: Iterable[Score]) -> list[Score]:
        """`ranked` without those whose mean loss is clearly above that of one that keeps the limit."""
        ranked, question = self.ranked(scores), self.question
        within = [] if question.asks_for_loss else [one for one in ranked if one.within(question.limit)]
        bar = min((score.mean + CLOSE * score.error for score in within), default=math.inf)
        return [score for score in ranked if score.mean - CLOSE * score.error <= bar]

    def kept(self, scores: Sequence[Score], count: int) -> list[Score]:
        """The candidates that go on: by turns the one with the least mean and the one with the least tail.

        Few paths cannot show that a chance is within the limit, so that the cheapest may all turn out to
        risk too much; those with the least tail are then needed. A policy whose pulls take long goes on only
        if its mean may be the least of all.
        """
        ranked = self._may_be_best(scores)
        bar = min(score.mean + CLOSE * score.error for score in ranked)
        cheap = [
            score
            for score in ranked
            if self.curves[score.candidate.curve].dear == 1 or score.mean - CLOSE * score.error <= bar
        ]
        safe = sorted(cheap, key=lambda score: (score.high, score.mean))
        found = dict.fromkeys(score for pair in zip(cheap, safe, strict=True) for score in pair)
        return list(found)[:count]

    def _between(self, latest: Sequence[Score], step: float) -> list[Candidate]:
        """New candidates beside those that stay, on both sides, a factor `step` away along the curve."""
        if step < FINEST:
            return []
        known = {one.policy for one in self.scores}
        found: dict[Policy, Candidate] = {}
        for score in latest:
            one = score.candidate
            if math.isnan(one.scale):
                continue
            curve = self.curves[one.curve]
            new = curve.candidates(one.curve, (one.scale / step, one.scale * step))
            found |= {fresh.policy: fresh for fresh in new if fresh.policy not in known}
        return list(found.values())


def expected_pulls(question: Question, budget: float) -> int:
    """The pulls that a plan takes, about: a search whose paths are not fewer than the least, and the looks of
    weighted paths if chances are rare, which cost the same however small the effort is."""
    paths = BASE * factor_of(question, budget)
    rare = round(factor_of(question, budget) * ROUNDS[-1].hits) * question.limit < FEW
    if not question.by_counting:
        return int(1.5 * paths * question.horizon + (RARE_PULLS if rare else 0.0))
    return int(2.5 * (paths * question.horizon + confirming(question, CONFIRM * budget)))


def confirming(question: Question, budget: float) -> float:
    """The pulls with which one choice is confirmed, at most."""
    return CONFIRM_COUNTED * budget if question.by_counting else budget


def confirming_paths(question: Question, budget: float) -> float:
    """The paths, in each of its problems, with which one choice is confirmed, at most."""
    return confirming(question, CONFIRM * budget) / (question.confirmed_in * question.horizon)


def factor_of(question: Question, budget: float) -> float:
    """By how much more paths the rounds have than they say: from a quarter to 16 times as many."""
    return min(16.0, max(0.25, budget / (BASE * question.horizon)))


def check_effort(effort: Any) -> float:
    """Refuse an effort with which a plan would find nothing or take days."""
    if not LEAST_EFFORT <= number("effort", effort) <= MOST_EFFORT:
        raise refuse("effort", effort, f"a number from {LEAST_EFFORT:g} to {MOST_EFFORT:,.0f}")
    return float(effort)


def members_of(policy: Policy, members: Sequence[Bandit], paths: int, stage: int) -> list[Play]:
    """The plays of a policy on members whose paths are put together, each with random numbers of its own."""
    return [Play(policy, member, paths, stage, place) for place, member in enumerate(members)]


def fewer(paths: int, curve: Curve) -> int:
    """The paths that a curve is played with where others are played with `paths`."""
    return max(FEWEST, paths // curve.dear)


def boundary(search: Search, best: Score, target: float, steps: int) -> list[Score]:
    """Halve the way, along the curve, from the best policy that is allowed to the next that is not.

    The mean loss mostly grows with exploration, so the policy with the least allowed exploration is the best
    of its curve. target: the chance that still counts as allowed.
    """
    one, found = best.candidate, [best]
    if math.isnan(one.scale) or search.question.asks_for_loss:
        return found
    mine = (score for score in search.scores.values() if score.candidate.curve == one.curve)
    on_curve = sorted(mine, key=lambda score: score.candidate.scale)
    for below, above in pairwise(on_curve):
        if above.candidate == one and below.chance.value > target:
            worse, better = below.candidate.scale, one.scale
            break
    else:
        return found
    last = ROUNDS[-1]
    for turn in range(steps):
        middle = math.sqrt(worse * better)
        new = search.curves[one.curve].candidates(one.curve, (middle,))
        if not new or new[0].policy in {other.policy for other in search.scores}:
            break
        (score,) = search.score(new, search.sized(last), len(ROUNDS) + 1 + turn, "search, the limit itself")
        if score.chance.value <= target:
            better = middle
            found.append(score)
        else:
            worse = middle
    return found


def reachable(limit: float, paths: int, tail: float) -> float:
    """The largest chance that `paths` paths will probably show to be within the limit.

    The upper limit of the chance must not exceed `limit`. k is the largest number of hits with which this is
    so; a chance whose number of hits lies a standard deviation below k passes five times in six.
    """
    none, too_many = -1, int(limit * paths) + 1
    while too_many - none > 1:
        middle = (none + too_many) // 2
        _, high = proportion_limits(np.array([middle]), paths, 1.0 - 2.0 * tail)
        none, too_many = (middle, too_many) if high[0] <= limit else (none, middle)
    return max(0.0, none - math.sqrt(max(0, none))) / paths
