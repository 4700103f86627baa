"""Fresh random numbers for what a search has chosen, so that what a plan states is honest.

The best of many candidates looks better than it is. So the chosen policy is played again: in the problems of
the family that look worst for it, until the chance is shown to be within the limit, or not. If it is not, the
next candidate is tried. Every look has a part of the whole error, so that the many looks do not add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lighttail.outcomes import estimates
from lighttail.outcomes.estimates import Estimate
from lighttail.planning.bench import Bench, Floats, Play
from lighttail.planning.question import LEVEL, Question, worst_first
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.tails.known import bounds_at
from lighttail.tails.rare import tail_probability

SUSPECTS = 3  # problems in which a choice is confirmed
SCANNED = 256  # paths per problem with which they are found
HITS = 16.0  # expected at the limit in a first look
MOST_PATHS = 1e15  # of a look: far more than any budget
MORE = 4  # times as many paths in the next look
EXACT_SECONDS = 2.0
SCAN = 900  # the stage of the random numbers with which they are found
FRESH = 1_000  # stages from here on are not those of a search


@dataclass(frozen=True)
class Answer:
    """An estimate on fresh random numbers. source: where the chance comes from. worst: its problem.

    paths: how many paths the chance comes from; 0 if it was computed.
    """

    chance: Estimate
    source: str
    worst: Bandit
    paths: int = 0


@dataclass
class Confirmation:
    """Confirms choices one after the other. budget: pulls per choice. looks: taken so far, by all choices."""

    question: Question
    bench: Bench
    budget: float
    looks: int = 0
    scanned: dict[Policy, list[Bandit]] = field(default_factory=dict)

    @property
    def tail(self) -> float:
        """The share of the error that the next look may use, on each side: 0.025 * 6 / (pi^2 j^2) for the
        j-th look, which add up to 0.025 however many looks there are."""
        return (1.0 - LEVEL) / 2.0 * 6.0 / (math.pi * max(1, self.looks)) ** 2

    def suspects(self, policy: Policy, watched: Sequence[Bandit]) -> list[Bandit]:
        """The problems of the family in which the policy looks worst."""
        if policy in self.scanned:
            return self.scanned[policy]
        question, family = self.question, self.question.family
        least_gap = 0.0 if question.asks_for_loss else question.loss / question.horizon
        pool = list(dict.fromkeys([*watched, *family.edges(least_gap), *family.members]))
        if len(pool) > 1:
            pool = self._scan(policy, pool, SCANNED, SCAN)
            beside = [near for near in family.near(pool[0]) if near not in pool]
            again = [*pool[:SUSPECTS], *beside]
            pool = self._scan(policy, again, MORE * SCANNED, SCAN + 1) if beside else again
        self.scanned[policy] = pool[:SUSPECTS]
        return self.scanned[policy]

    def _scan(self, policy: Policy, pool: list[Bandit], paths: int, stage: int) -> list[Bandit]:
        """The problems, the worst first, by the same random numbers for every policy."""
        losses = self.bench.losses(
            [Play(policy, problem, paths, stage) for problem in pool], "looking for the worst problem"
        )
        return worst_first(self.question, pool, losses)

    def chance(self, policy: Policy, watched: Sequence[Bandit], decide: bool = True) -> Answer:
        """The chance in the worst problem, or on average. decide: go on until it is known to be within the
        limit or not, or the budget is spent; otherwise one look is enough."""
        if not self.question.everywhere:
            return self._average(policy, decide)
        suspects, answers = self.suspects(policy, watched), list[Answer]()
        for problem in suspects:
            answers.append(self._in(policy, problem, decide, self.budget / len(suspects)))
            if decide and answers[-1].chance.low > self.question.limit:
                break  # one problem is enough to say no
        worst = max(answers, key=lambda answer: (answer.chance.value, answer.chance.high))
        high = max(answer.chance.high for answer in answers)
        low = min(worst.chance.low, worst.chance.value)
        paths = max(answer.paths for answer in answers)
        return Answer(Estimate(worst.chance.value, low, high, LEVEL), worst.source, worst.worst, paths)

    def _in(self, policy: Policy, problem: Bandit, decide: bool, budget: float) -> Answer:
        question = self.question
        exact = question.exact_chance(policy, problem, EXACT_SECONDS)
        if exact is not None:
            return Answer(exact, "exact", problem)
        if question.straight and self._first() * question.horizon > budget:
            return self._rare(policy, problem, budget)
        return self._counted(policy, [problem], decide, budget)

    def _average(self, policy: Policy, decide: bool) -> Answer:
        return self._counted(policy, list(self.question.family.members), decide, self.budget)

    def _first(self) -> int:
        """Paths of the first look."""
        return math.ceil(min(HITS / self.question.limit, MOST_PATHS))

    def _counted(self, policy: Policy, problems: list[Bandit], decide: bool, budget: float) -> Answer:
        """Count paths, equally many of each problem, in looks of more and more."""
        question, lost = self.question, np.empty(0)
        most = max(32, int(budget / (question.horizon * len(problems))))
        share = min(most, math.ceil(self._first() / len(problems)))
        per_problem: list[list[Floats]] = [[] for _ in problems]
        while True:
            self.looks += 1
            stage = FRESH + self.looks
            plays = [Play(policy, problem, share, stage) for problem in problems]
            for mine, found in zip(per_problem, self.bench.losses(plays, "confirming"), strict=True):
                mine.append(found)
            lost = np.concatenate([part for mine in per_problem for part in mine])
            chance = question.chance(lost, 1.0 - 2.0 * self.tail)
            done = lost.size // len(problems)
            undecided = chance.low <= question.limit < chance.high
            if not (decide and undecided and done < most):
                break
            share = min(most - done, (MORE - 1) * done)
        worst = worst_first(question, problems, [np.concatenate(mine) for mine in per_problem])[0]
        return Answer(chance, "simulated paths", worst, lost.size)

    def _rare(self, policy: Policy, problem: Bandit, budget: float) -> Answer:
        """Chances too small to be counted: a certificate, or rare events."""
        question = self.question
        setting = (policy, problem, question.horizon, question.loss)
        guarantee = bounds_at(*setting, "pseudo_regret").guarantee
        if guarantee is not None and float(guarantee) <= question.limit:
            bound = float(guarantee)
            return Answer(Estimate(bound, 0.0, bound, LEVEL), "certificate: an upper bound", problem)
        self.looks += 1
        found = tail_probability(
            *setting,
            relative_error=0.1,
            level=1.0 - 2.0 * self.tail,
            seed=self.bench.seed_of(problem, FRESH + self.looks),
            most_pulls=max(1, int(budget)),
            threads=self.bench.threads,
        )
        self.bench.count(found.pulls, "confirming")
        chance = Estimate(found.value, found.low, found.high, LEVEL)
        return Answer(chance, f"rare events ({found.method})", problem, found.paths)

    def promise(self, policy: Policy, watched: Sequence[Bandit]) -> tuple[float, Answer]:
        """The smallest loss that can be promised, and the problem that decides."""
        question = self.question
        problems = self.suspects(policy, watched) if question.everywhere else list(question.family.members)
        together = not question.everywhere
        most = max(32, int(self.budget / (question.horizon * len(problems))))
        paths = min(most, math.ceil(4.0 * self._first() / (len(problems) if together else 1)))
        self.looks += 1
        stage, level = FRESH + self.looks, 1.0 - 2.0 * self.tail
        losses = self.bench.losses([Play(policy, one, paths, stage) for one in problems], "confirming")
        samples = [np.concatenate(losses)] if together else losses
        found = [estimates.quantile(np.sort(lost), 1.0 - question.limit, level) for lost in samples]
        place = int(np.argmax([one.high for one in found]))
        worst = worst_first(question, problems, losses)[0]
        high = min(found[place].high, question.family.most_lost(question.horizon))
        return high, Answer(found[place], "simulated paths", worst, samples[place].size)

    def mean(self, policy: Policy, paths: int) -> tuple[Estimate, Floats]:
        """The mean loss over the members on fresh numbers, and the losses of all paths.

        Each member has equally many paths, so the interval for paths of one law holds: their sum is less
        scattered than if the member of each path were drawn, too.
        """
        self.looks += 1
        members = self.question.family.members
        plays = [Play(policy, member, paths, FRESH + self.looks) for member in members]
        losses = np.concatenate(self.bench.losses(plays, "mean loss"))
        most = max(member.most_lost(self.question.horizon) for member in members)
        return estimates.mean(losses, (0.0, most), LEVEL), losses
