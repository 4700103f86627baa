"""The problems of a family in which a policy looks worst, found by scans that are not stated anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lighttail.families import runners_up
from lighttail.outcomes.estimates import Estimate
from lighttail.planning.bench import Bench, Play
from lighttail.planning.jumps import moved_to_jumps, problems_at_jumps
from lighttail.planning.looks import look
from lighttail.planning.question import EXACT_SCAN, SUSPECTS, Question, worst_first
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.records import Floats

SCANNED, LONGER = 256, 1024  # paths per problem of a quick scan, and of a longer one, at least
FINALISTS = 6  # problems of a quick scan that a longer one looks at
CLOSEST = 3  # problems whose gap just suffices, which the longer scan looks at, too
STEPS = (0.25, 0.12, 0.06, 0.03)  # shares by which problems beside the worst differ from it
LOOKED = (2, 0, (0.12,))  # finalists, closest and steps if each look takes weighted paths
SCAN_HITS, MANY = 24.0, 16  # hits at the limit in a longer scan, and the problems that share its budget
SEEN = 8.0  # hits in a scan with which chances are counted
CLIMBS = 4  # steps of one size, at most
EXACT_SECONDS, EXACT_QUICK = 2.0, 0.05  # for an exact chance that is stated, and for one of a quick scan
SCAN = 900  # the stage of the random numbers of a quick scan; those of a longer one are the next stage


@dataclass
class Scans:
    """Seeks the problems in which policies look worst.

    budget: pulls per policy, about. weighted: whether the chances of a policy are too small to be counted.
    counted: the paths with which a look counts; 0 if it weights them. scanned: the problems found so far.
    looked: what looks said. played: the losses of scans of this number of paths.
    """

    question: Question
    bench: Bench
    budget: float
    weighted: Callable[[Policy], bool] = lambda policy: False
    counted: int = 0
    scanned: dict[Policy, list[Bandit]] = field(default_factory=dict)
    looked: dict[tuple[Policy, Bandit], Estimate] = field(default_factory=dict)
    played: dict[tuple[Policy, Bandit, int], Floats] = field(default_factory=dict)

    def suspects(self, policy: Policy, watched: Sequence[Bandit]) -> list[Bandit]:
        """The problems of the family in which the policy looks worst.

        A quick scan of all problems in which the limit can be lost, by exact chances if they cost next to
        nothing, then a longer one of those that came nearest and of problems whose gap just suffices, in
        which a quick scan sees nothing: in the longer scan a chance at the limit shows itself SCAN_HITS
        times, if the budget allows. Then problems beside the worst, in smaller and smaller steps. If chances
        are too small to be counted, weighted paths look at fewer problems.
        """
        if policy in self.scanned:
            return self.scanned[policy]
        question, family = self.question, self.question.family
        edges = question.edges()
        pool = question.able([*watched, *edges, *family.members])
        if jumps := problems_at_jumps(question, policy):
            pool = self._scan(policy, question.able([*pool, *jumps]), LONGER)
        elif len(pool) > 1:
            pool = self._scan(policy, pool, SCANNED)
            common = max(self._share(policy, one) for one in pool[:2]) * SCANNED >= SEEN
            weigh = not common and self.weighted(policy)
            finalists, close, steps = LOOKED if weigh else (FINALISTS, CLOSEST, STEPS)
            closest = sorted(edges, key=lambda problem: max(problem.gaps))[:close]
            again = question.able([*(watched[:finalists] if weigh else ()), *pool[:finalists], *closest])
            share = self.budget / (question.horizon * max(MANY, len(again)))
            seen = math.ceil(min(SCAN_HITS / question.limit, share))
            paths = LONGER if common else max(LONGER, seen)
            pool = self._scan(policy, again, paths, weigh)
            exact = question.exact_chance(policy, pool[0], EXACT_SCAN) is not None
            for step in STEPS[:2] if exact else steps:
                pool = self._climbed(policy, pool, step, paths, weigh, exact)
        self.scanned[policy] = list(dict.fromkeys([*hills(pool), *pool]))[:SUSPECTS]
        return self.scanned[policy]

    def _climbed(
        self, policy: Policy, pool: list[Bandit], step: float, paths: int, weigh: bool, exact: bool
    ) -> list[Bandit]:
        """The problems with those beside the worst of each hill: once or, if chances are exact, beside the
        two worst, too, and again and again while a worse one is found."""
        for _ in range(CLIMBS if exact else 1):
            worst, tops = pool[0], dict.fromkeys([*hills(pool), *(pool[:2] if exact else ())])
            beside = [one for top in tops for one in self._near(policy, top, step)]
            wider = self.question.able([*pool[:SUSPECTS], *tops, *beside])
            if len(wider) <= SUSPECTS:
                break
            pool = self._scan(policy, wider, paths, weigh)
            if pool[0] == worst:
                break
        return pool

    def _near(self, policy: Policy, problem: Bandit, step: float) -> list[Bandit]:
        """The problems beside a problem, also those in which the chance of a policy that commits jumps."""
        beside = self.question.near(problem, step)
        return [*beside, *moved_to_jumps(self.question, policy, [problem, *beside])]

    def _scan(self, policy: Policy, pool: list[Bandit], paths: int, weigh: bool = False) -> list[Bandit]:
        """The problems, the worst first: by exact chances if they can be had in a moment, by weighted paths
        if asked so, and otherwise by the same random numbers for every policy. Problems in which the limit is
        certainly not lost come last."""
        if weigh:
            seen = dict(zip(pool, self.look(policy, pool), strict=True))
            return sorted(pool, key=lambda one: -seen[one].value)
        seconds = min(EXACT_QUICK, EXACT_SECONDS / len(pool)) if paths == SCANNED else EXACT_SCAN
        known = {one: self.question.exact_chance(policy, one, seconds) for one in pool}
        rest = [one for one in pool if known[one] is None]
        ranked = worst_first(self.question, rest, self._losses(policy, rest, paths))
        exact = {one: chance.value for one, chance in known.items() if chance is not None}
        best = sorted(exact, key=lambda one: -exact[one])
        if not best or not ranked or exact[best[0]] == 0.0:
            return [*ranked, *best]
        return [best[0], ranked[0], *best[1:2], *ranked[1:], *best[2:]]

    def _losses(self, policy: Policy, problems: list[Bandit], paths: int) -> list[Floats]:
        """The losses in each problem; what was played before is not played again."""
        keys = [(policy, problem, paths) for problem in problems]
        new = [key for key in keys if key not in self.played]
        plays = [Play(*key, SCAN if paths == SCANNED else SCAN + 1) for key in new]
        losses = self.bench.losses(plays, "looking for the worst problem")
        self.played |= dict(zip(new, losses, strict=True))
        return [self.played[key] for key in keys]

    def _share(self, policy: Policy, problem: Bandit) -> float:
        """The share of the paths of a quick scan that lost the limit, or the exact chance."""
        if (exact := self.question.exact_chance(policy, problem, EXACT_QUICK)) is not None:
            return exact.value
        return float(self.question.reaches(self.played[policy, problem, SCANNED]).mean())

    def glimpse(self, policy: Policy, problem: Bandit) -> Estimate | None:
        """What is known of the chance in one of the suspects: a look, or a scan if it shows that the chance
        is above the limit. (The worst of several scans of few paths often looks worse than it is.)"""
        if (policy, problem) in self.looked:
            return self.looked[policy, problem]
        lost = self.played.get((policy, problem, LONGER))
        seen = None if lost is None else self.question.chance(lost)
        return seen if seen is not None and seen.low > self.question.limit else None

    def look(self, policy: Policy, problems: Sequence[Bandit]) -> list[Estimate]:
        """The chances by looks at those problems that were not looked at before."""
        question, bench = self.question, self.bench

        def work(problem: Bandit) -> tuple[Estimate, int]:
            return look(question, bench, policy, problem, self.counted, EXACT_SCAN)

        def done(problem: Bandit, found: tuple[Estimate, int]) -> None:
            self.looked[policy, problem] = found[0]
            bench.count(found[1], "looking for the worst problem")

        bench.together([one for one in problems if (policy, one) not in self.looked], work, done)
        return [self.looked[policy, problem] for problem in problems]

    def _worst_seen_first(self, policy: Policy, suspects: list[Bandit]) -> list[Bandit]:
        """The suspects in the order of the chances that were seen, so that a no comes soon; those of which
        nothing was seen come last, in their order."""

        def seen(problem: Bandit) -> float:
            if (policy, problem) in self.looked:
                return self.looked[policy, problem].value
            lost = self.played.get((policy, problem, LONGER))
            return -1.0 if lost is None else float(self.question.reaches(lost).mean())

        return sorted(suspects, key=lambda one: -seen(one))

    def _common(self, policy: Policy, problem: Bandit) -> bool:
        """Whether a scan met losses of the limit so often that they can be counted."""
        lost = self.played.get((policy, problem, LONGER))
        return lost is not None and int(self.question.reaches(lost).sum()) >= SEEN


def hills(problems: Sequence[Bandit]) -> list[Bandit]:
    """Of problems, the worst first: the worst with each number of arms that are like the second-best one.

    The chance has a maximum for each such number, at a gap of its own, with lower chances between them. A
    climb from one does not find the others. With many arms, only the worst of these problems count.
    """
    kinds: dict[int, Bandit] = {}
    for problem in problems:
        kinds.setdefault(runners_up(problem), problem)
    return list(kinds.values())[:SUSPECTS]
