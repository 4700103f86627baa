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
from itertools import islice

import numpy as np

from lighttail.outcomes.estimates import Estimate
from lighttail.planning.bench import Bench, Play, members_of
from lighttail.planning.curves import FINEST, Candidate, Curve
from lighttail.planning.edges import edges, further_edges
from lighttail.planning.effort import (
    BUDGET,
    FEW,
    FIRST_TAIL,
    ROUNDS,
    WATCHED,
    SearchRound,
    confirming_paths,
    factor_of,
    reachable,
)
from lighttail.planning.looks import has_edge, sure
from lighttail.planning.question import HIGH, Question, Score, mean_over, worst_first
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.records import Floats

MEMBERS = 24  # of the family, for mean losses: the same in all rounds, so that all means can be compared
FEWEST = 2  # paths per member: their differences give the standard error
PROBES = 32  # paths with which they are found
EXACT_SECONDS = 0.15  # for the exact chance of one candidate
CLOSE = 2.0  # standard errors within which two means may be equal
LATER_LOOK = 4  # the number of the look that mostly confirms a choice, about
HARDLY = 0.1  # of the limit: a smaller chance is not aimed at
WANTED, AT_MOST = 24.0, 0.125  # hits at the limit in a look that can only count, and its most, of the budget
COUNTED = 2  # rounds with all policies if the edges of curves are sought
MEANS = SearchRound(128, 1, 64, 0, exact=True)  # for the mean losses at the edges


@dataclass
class Search:
    """The state of a search: the latest score of every candidate, and the problems watched per curve.

    budget: pulls of the search, about. proof: the budget of the plan that confirms what is found; 0 if it is
    the same. known: chances that need not be counted. orders: the problems to look at first, for some
    candidates. counts: the hits and the paths of the latest round in each problem. unsought: the curves
    whose edges were not sought, with a guess of the edge and of the mean loss there. waiting: the policies
    without an edge that were left out after the first rounds.
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
    unsought: dict[int, tuple[float, float]] = field(default_factory=dict)
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
        return further_edges(self, best.mean) + self._without_edge(best.mean, doubt=0.0)

    @cached_property
    def with_edges(self) -> frozenset[int]:
        """The curves whose edges can be found."""
        question = self.question
        if question.asks_for_loss or (question.by_counting and not self.counted):
            return frozenset()
        return frozenset(turn for turn in range(len(self.curves)) if has_edge(self, turn))

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
        pairs = self.known.items()
        return not self.counted and any(policy == known and not sure(chance) for (known, _), chance in pairs)

    def dear(self, policy: Policy) -> int:
        """How many times longer than usual a pull of a policy takes, about."""
        return max((self.curves[one.curve].dear for one in self.scores if one.policy == policy), default=1)

    def at_edge(self, policy: Policy) -> bool:
        """Whether a policy was found at the edge of its curve."""
        return any(policy == known for known, _ in self.known)

    def seen_less(self, score: Score) -> bool:
        """Whether the chance of a policy comes from fewer paths than those of others, because its pulls take
        long."""
        curve = self.curves[score.curve]
        few = fewer(self.sized(ROUNDS[-1]).hits, curve)
        return self.question.everywhere and curve.dear > 1 and 0 < score.paths <= few

    def seen_more(self, score: Score) -> Score:
        """The score of such a policy with more and more paths: as many as of others, or until it seems to
        break the limit. To confirm it takes long, and one that is lucky with few paths mostly breaks it."""
        asked, dear = self.sized(ROUNDS[-1]), self.curves[score.curve].dear
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
                latest = self.going_on(latest, asked.going)
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
        few = [score.candidate for score in self.going_on(rest, ROUNDS[COUNTED].going)] if rest else []
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
        question, members = self.question, self.question.family.members
        edges = question.edges()
        pool = question.able([*edges, *(members[:6] if edges else members)])
        if len(pool) <= 2:
            self.watched = dict.fromkeys(range(len(self.curves)), tuple(pool))
            return
        probes: list[Candidate] = []
        for turn, curve in enumerate(self.curves):
            if curve.dear == 1:
                every = curve.candidates(turn)
                probes += {every[len(every) // 3], every[2 * len(every) // 3]}
        plays = [Play(probe.policy, problem, PROBES, 0) for probe in probes for problem in pool]
        losses = iter(self.bench.losses(plays, "looking for the worst problems"))
        seen = [list(islice(losses, len(pool))) for _ in probes]
        together = [np.concatenate(of_problem) for of_problem in zip(*seen, strict=True)]
        usual = worst_first(question, pool, together)[: WATCHED // 2]
        found: dict[int, dict[Bandit, None]] = defaultdict(dict)
        owners = [probe.curve for probe in probes]
        for turn, mine in zip(owners, seen, strict=True):
            each = WATCHED // 2 // owners.count(turn)
            found[turn] |= dict.fromkeys(worst_first(question, pool, mine)[:each])
        self.watched = {turn: tuple(found[turn] | dict.fromkeys(usual)) for turn in range(len(self.curves))}

    def score(
        self, candidates: Iterable[Candidate], asked: SearchRound, stage: int, label: str
    ) -> list[Score]:
        """Play the candidates; the scores replace those of earlier rounds."""
        plays, parts = list[Play](), []
        for one in candidates:
            problems = self._problems(one, asked.watched)
            known = self._known_in(one.policy, problems, asked.exact)
            unknown = [problem for problem in problems if problem not in known]
            paths, hits = (fewer(count, self.curves[one.curve]) for count in (asked.paths, asked.hits))
            if not self.question.everywhere:  # the paths of the members say the chance, too
                paths = max(paths, math.ceil(asked.watched * hits / len(self.members)))
            plays += members_of(one.policy, self.members, paths, stage)
            plays += [Play(one.policy, problem, hits, 100 + stage) for problem in unknown]
            parts.append((one, unknown, known))
        losses = iter(self.bench.losses(plays, label))
        found = []
        for one, unknown, known in parts:
            of_members = list(islice(losses, len(self.members)))
            found.append(self._scored(one, of_members, unknown, list(islice(losses, len(unknown))), known))
        self.scores |= {score.candidate: score for score in found}
        return found

    def _problems(self, candidate: Candidate, count: int) -> tuple[Bandit, ...]:
        """The problems in which the chance of a candidate is looked at; none if the average is asked for. If
        nothing else is known, those of the nearest policy on the curve that was played, or those probed."""
        if not self.question.everywhere:
            return ()
        if candidate in self.orders:
            return self.orders[candidate][:count]
        if candidate in self.scores:
            return self.scores[candidate].watched[:count]
        played = [score for other, score in self.scores.items() if other.curve == candidate.curve]
        if not played or math.isnan(candidate.scale):
            return self.watched[candidate.curve][:count]
        nearest = min(played, key=lambda score: abs(math.log(score.scale / candidate.scale)))
        return nearest.watched[:count]

    def _known_in(self, policy: Policy, problems: Iterable[Bandit], exact: bool) -> dict[Bandit, Estimate]:
        """The chances that need not be counted. exact: whether exact ones are computed."""
        found = {}
        for problem in problems:
            chance = self.known.get((policy, problem))
            if chance is None and exact:
                chance = self.question.exact_chance(policy, problem, EXACT_SECONDS)
            if chance is not None:
                found[problem] = chance
        return found

    def _scored(
        self,
        candidate: Candidate,
        of_members: list[Floats],
        unknown: list[Bandit],
        drawn: list[Floats],
        known: dict[Bandit, Estimate],
    ) -> Score:
        """The score of a candidate. drawn: the losses in the problems in which its chance is unknown."""
        question = self.question
        mean, error = mean_over(of_members)
        if not question.everywhere:
            pooled = np.concatenate(of_members)
            members = worst_first(question, self.members, of_members)
            looked = self.known.get((candidate.policy, self.members[0]))
            chance, paths = (question.chance(pooled), pooled.size) if looked is None else (looked, 0)
            promised, high = question.promised(pooled), float(np.quantile(pooled, HIGH))
            return Score(candidate, mean, error, chance, promised, high, paths, tuple(members[:WATCHED]))
        counted = dict(zip(unknown, drawn, strict=True))
        chances = known | {problem: question.chance(lost) for problem, lost in counted.items()}
        self.counts[candidate] = {
            problem: np.array([question.reaches(lost).sum(), lost.size], dtype=float)
            for problem, lost in counted.items()
        }
        ordered = [
            *worst_first(question, unknown, drawn),
            *known,
        ]  # a known 0 does not stand for a counted candidate
        if not question.asks_for_loss:
            ordered.sort(key=lambda problem: -chances[problem].value)  # stable: ties keep their order
        behind = [problem for problem in self.watched[candidate.curve] if problem not in ordered]
        promised = max((question.promised(lost) for lost in drawn), default=question.loss)
        worst = ordered[0]
        paths = 0 if worst in known else drawn[0].size
        high = max((float(np.quantile(lost, HIGH)) for lost in drawn), default=chances[worst].value)
        return Score(candidate, mean, error, chances[worst], promised, high, paths, (*ordered, *behind))

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

    def going_on(self, scores: Sequence[Score], count: int) -> list[Score]:
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
            if self.curves[score.curve].dear == 1 or score.mean - CLOSE * score.error <= bar
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


def fewer(paths: int, curve: Curve) -> int:
    """The paths that a curve is played with where others are played with `paths`."""
    return max(FEWEST, paths // curve.dear)
