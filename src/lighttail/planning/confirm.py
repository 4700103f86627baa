"""Fresh random numbers for what a search has chosen, so that what a plan states is honest.

The best of many candidates looks better than it is. So the chosen policy is played again: in the problems of
the family that look worst for it, until the chance is shown to be within the limit, or not. If it is not, the
next candidate is tried. Every look has a part of the whole error, so that the many looks do not add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from lighttail.outcomes import estimates
from lighttail.outcomes.estimates import Estimate
from lighttail.planning.bench import members_of
from lighttail.planning.effort import FIRST_TAIL, above, confirming
from lighttail.planning.question import LEVEL, worst_first
from lighttail.planning.suspects import EXACT_QUICK, EXACT_SECONDS, Scans, hills
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.records import Floats
from lighttail.tails.known import bounds_at
from lighttail.tails.rare import tail_probability
from lighttail.tails.task import TailEstimate
from lighttail.tails.weighted import FIRST, MOST_WEIGHTS

SOON = 1024  # weighted paths of a first look
FIRMER = 2.0  # times as wide as the interval of a scan is that of a first look, whose level is higher
GLANCE = 4096  # paths if a chance need not be held against the limit
HITS = 16.0  # expected at the limit in a first look
MOST_PATHS = 1e15  # of a look: far more than any budget
MORE = 4  # times as many paths in the next look
POLISHED = 80  # exact chances, at most, in problems beside the worst one
TALL = 0.25  # of the highest exact chance: beside a problem whose chance is lower, no worse one is sought
FINE_STEPS = (0.12, 0.06, 0.03, 0.015, 0.0075)  # shares by which these problems differ from the worst one
BETWEEN = 1e-3  # relative: what the chance may be higher by between two such problems (docs/planning.md)
DOUBLED = 1 + math.ceil(math.log2(MOST_WEIGHTS / FIRST))  # looks within a run, whose paths double, at most
INNER = 2 * DOUBLED  # the same if plain paths replace the weighted ones
EXACT = "exact"  # the source of an answer
FRESH = 1_000  # stages from here on are not those of a search


@dataclass(frozen=True)
class Confirmed:
    """An estimate on fresh random numbers. source: where the chance comes from. worst: its problem.
    confirmed_in: the number of problems whose chances the estimate covers. nominal: whether a limit comes
    from weighted paths and assumes that no path weighs more than three times the largest weight seen."""

    chance: Estimate
    source: str
    worst: Bandit
    confirmed_in: int = 1
    nominal: bool = False


class Promise(NamedTuple):
    """loss: the smallest loss that can be promised. likely: the loss that is reached with the allowed chance,
    by our estimate. answer: the chance of the loss that is promised."""

    loss: float
    likely: float
    answer: Confirmed


@dataclass
class Confirmation(Scans):
    """Confirms choices one after the other.

    budget: pulls per choice, if they are not slow and rewards are known at once (`confirming`). looks: taken
    so far, by all choices. dear: how many times longer a pull takes. states: whether answers will be stated,
    so that exact chances are sought beside the worst problem, too, which may take minutes.
    """

    looks: int = 0
    dear: Callable[[Policy], int] = lambda policy: 1
    states: bool = True

    @property
    def tail(self) -> float:
        """The share of the error that the next look may use, on each side: 0.025 * 6 / (pi^2 j^2) for the
        j-th look, which add up to 0.025 however many looks there are."""
        return FIRST_TAIL / max(1, self.looks) ** 2

    def pulls(self, policy: Policy) -> float:
        """The pulls with which a choice is confirmed, at most."""
        return confirming(self.question, self.budget) / self.dear(policy)

    def chance(self, policy: Policy, watched: Sequence[Bandit], decide: bool = True) -> Confirmed:
        """The chance in the worst problem, or on average. decide: go on until it is known to be within the
        limit or not, or the budget is spent; otherwise one look is enough."""
        if not self.question.everywhere:
            return self._counted(policy, list(self.question.family.members), decide, self.pulls(policy))
        suspects, answers = self._worst_seen_first(policy, self.suspects(policy, watched)), list[Confirmed]()
        budget = self.pulls(policy) / len(suspects)
        for problem in suspects:
            answers.append(self._in(policy, problem, decide, budget))
            if decide and answers[-1].chance.high > self.question.limit:
                break  # one problem is enough to say no, or that nothing can be said
        return self._together(policy, answers, decide, budget)

    def completed(self, policy: Policy, watched: Sequence[Bandit], answer: Confirmed) -> Confirmed:
        """The answer of a policy that broke the limit in one problem, after a look in its other suspects."""
        if not self.question.everywhere:
            return answer
        suspects = self.suspects(policy, watched)
        budget = self.pulls(policy) / len(suspects)
        others = [self._in(policy, one, False, budget) for one in suspects if one != answer.worst]
        found = self._together(policy, [answer, *others], False, budget)
        return replace(found, confirmed_in=max(found.confirmed_in, len(suspects)))

    def _together(self, policy: Policy, answers: list[Confirmed], decide: bool, budget: float) -> Confirmed:
        """The answers in several problems as one, whose limit holds for all of them. An exact chance that is
        going to be stated is sought beside the worst problem, too."""
        worst = max(answers, key=lambda answer: (answer.chance.value, answer.chance.high))
        within = worst.chance.high <= self.question.limit
        if self.states and worst.source == EXACT and (within or not decide):
            exact = {answer.worst: answer for answer in answers if answer.source == EXACT}
            known = sorted(exact, key=lambda problem: -exact[problem].chance.value)
            seconds = EXACT_SECONDS if within else EXACT_QUICK
            tall = [top for top in hills(known) if exact[top].chance.value >= TALL * worst.chance.value]
            tops = [self._polished(policy, exact[top], seconds) for top in tall]
            worst = max(tops, key=lambda answer: answer.chance.value)
            if within:
                answers = [*answers, *self._beside_exact(policy, worst.worst, decide, budget)]
            worst = max(worst, *answers, key=lambda answer: answer.chance.value)
        every = (worst, *answers)
        widest = max(every, key=lambda answer: answer.chance.high)
        low = min(worst.chance.value, max(answer.chance.low for answer in every))
        chance = Estimate(worst.chance.value, low, widest.chance.high, LEVEL)
        nominal = any(answer.nominal for answer in answers)
        source = worst.source if widest.source == worst.source else f"{worst.source} and {widest.source}"
        return Confirmed(chance, source, worst.worst, len(answers), nominal)

    def _polished(self, policy: Policy, worst: Confirmed, seconds: float) -> Confirmed:
        """The answer in a worse problem beside the worst one of a hill, if exact chances find any.

        A scan by paths cannot tell two chances that differ by less than its error, and an exact chance is
        stated without an error, so that the scan's error must not be left in it.
        """
        question, tried, steps = self.question, {worst.worst}, list(FINE_STEPS)
        while steps and len(tried) <= POLISHED:
            before = worst
            last = question.by_a_pull(worst.worst) if len(steps) == 1 else ()
            beside = question.able([*self._near(policy, worst.worst, steps[0]), *last])
            new = [one for one in beside if one not in tried]
            tried |= set(new)
            for problem in new:
                chance = question.exact_chance(policy, problem, seconds)
                if chance is not None and chance.value > worst.chance.value:
                    worst = Confirmed(chance, EXACT, problem)
            if worst is before or (len(steps) > 1 and 2 * len(tried) > POLISHED):
                steps.pop(0)  # half of the problems are left for the last steps
        if len(tried) == 1:
            return worst  # the family has no problems beside this one
        high = min(1.0, worst.chance.high * (1.0 + BETWEEN))
        return replace(worst, chance=replace(worst.chance, high=high))

    def _beside_exact(self, policy: Policy, worst: Bandit, decide: bool, budget: float) -> list[Confirmed]:
        """The answers in the problems like the worst one whose exact chances take too long: an exact chance
        is stated without an error, and must not stand for problems of which too little was seen."""
        question = self.question
        alike = question.like(worst)
        unknown = [one for one in alike if question.exact_chance(policy, one, EXACT_SECONDS) is None]
        return [self._in(policy, problem, decide, budget) for problem in unknown]

    def _in(self, policy: Policy, problem: Bandit, decide: bool, budget: float) -> Confirmed:
        question = self.question
        exact = question.exact_chance(policy, problem, EXACT_SECONDS)
        if exact is not None:
            return Confirmed(exact, EXACT, problem)
        if not decide and self._common(policy, self.suspects(policy, ())[0]):
            return self._counted(policy, [problem], decide, min(budget, GLANCE * question.horizon))
        if not question.late and self._first() * question.horizon > budget:
            return self._rare(policy, problem, decide, budget)
        return self._counted(policy, [problem], decide, budget)

    def _first(self) -> int:
        """Paths of the first look."""
        return math.ceil(min(HITS / self.question.limit, MOST_PATHS))

    def _counted(self, policy: Policy, problems: list[Bandit], decide: bool, budget: float) -> Confirmed:
        """Count paths, equally many of each problem, in looks of more and more."""
        question, losses = self.question, [np.empty(0) for _ in problems]
        most = max(32, int(budget / (question.horizon * len(problems))))
        share = min(most, math.ceil(self._first() / len(problems)))
        while True:
            self.looks += 1
            plays = members_of(policy, problems, share, FRESH + self.looks)
            fresh = self.bench.losses(plays, "confirming")
            losses = [np.concatenate(pair) for pair in zip(losses, fresh, strict=True)]
            chance = question.chance(np.concatenate(losses), 1.0 - 2.0 * self.tail)
            done = losses[0].size
            undecided = chance.low <= question.limit < chance.high
            if not (decide and undecided and done < most):
                break
            share = min(most - done, (MORE - 1) * done)
        worst = worst_first(question, problems, losses)[0]
        return Confirmed(chance, "simulated paths", worst, len(problems))

    def _rare(self, policy: Policy, problem: Bandit, decide: bool, budget: float) -> Confirmed:
        """Chances too small to be counted: a certificate, or rare events, at first with few paths.

        A run for a rare event looks at its own results up to INNER times and stops when they seem good, so
        each of these looks has an equal part of the error.
        """
        question = self.question
        setting = (policy, problem, question.horizon, question.loss)
        guarantee = bounds_at(*setting, "pseudo_regret").guarantee
        if guarantee is not None and float(guarantee) <= question.limit:
            bound = float(guarantee)
            return Confirmed(Estimate(bound, 0.0, bound, LEVEL), "certificate: an upper bound", problem)
        close = decide and self._too_close(policy, problem)
        soon = [] if close else [min(budget, SOON * question.horizon)]
        for pulls in (*soon, budget):
            self.looks += 1
            found = tail_probability(
                *setting,
                relative_error=0.1,
                level=1.0 - 2.0 * self.tail / INNER,
                seed=self.bench.seed_of(problem, FRESH + self.looks),
                most_pulls=max(1, int(pulls)),
                threads=self.bench.threads,
            )
            self.bench.count(found.pulls, "confirming")
            if not decide or not found.low <= question.limit < found.high:
                break
        chance, nominal = stated(found, question.limit)
        return Confirmed(chance, f"rare events ({found.method})", problem, nominal=nominal)

    def _too_close(self, policy: Policy, problem: Bandit) -> bool:
        """Whether a first look would probably not tell if the chance is within the limit: a scan took as many
        weighted paths."""
        seen = self.looked.get((policy, problem))
        if seen is None:
            return False
        low, high = (seen.value + FIRMER * (end - seen.value) for end in (seen.low, seen.high))
        return low <= self.question.limit < high

    def for_any_loss(self) -> Confirmation:
        """A confirmation that asks for the smallest loss that can be promised, after the same looks. The
        problems that are worst for one loss are often not the worst ones for a larger loss. Weighted paths
        need a loss to look at, so that they are not used."""
        question = replace(self.question, loss=math.nan)
        return Confirmation(question, self.bench, self.budget, looks=self.looks, dear=self.dear)

    def promise(self, policy: Policy, watched: Sequence[Bandit], times: float = 1.0) -> Promise:
        """The smallest loss that can be promised, in three digits, and its chance; infinite if the paths are
        too few to promise anything. More paths promise a smaller loss. The promise is for the suspects or, if
        asked so, for the average over the members. times: as many pulls as usual.

        The upper limit of the quantile is an order statistic that is exceeded with the allowed chance at
        most; the loss is the next number above it, so that reaching the loss is exceeding the limit.
        """
        question = self.question
        problems = self.suspects(policy, watched) if question.everywhere else list(question.family.members)
        together = not question.everywhere
        most = max(32, int(times * self.pulls(policy) / (question.horizon * len(problems))))
        paths = min(most, math.ceil(times * 4.0 * self._first() / (len(problems) if together else 1)))
        self.looks += 1
        stage, level = FRESH + self.looks, 1.0 - 2.0 * self.tail
        losses = self.bench.losses(members_of(policy, problems, paths, stage), "confirming")
        samples = [np.concatenate(losses)] if together else losses
        limits = [estimates.quantile(np.sort(lost), 1.0 - question.limit, level) for lost in samples]
        high = max(limit.high for limit in limits)
        loss = above(high + 2.0 * question.slack) if math.isfinite(high) else math.inf
        if loss > question.family.most_lost(question.horizon):
            loss = math.inf  # these paths can promise only what is certain
        asked = replace(question, loss=loss)
        chances = [asked.chance(lost, level) for lost in samples]
        place = int(np.argmax([chance.high for chance in chances]))
        worst = worst_first(asked, problems, losses)[0] if together else problems[place]
        answer = Confirmed(replace(chances[place], level=LEVEL), "simulated paths", worst, len(problems))
        return Promise(loss, max(limit.value for limit in limits), answer)

    def mean(self, policy: Policy, paths: int) -> tuple[Estimate, Floats]:
        """The mean loss over the members on fresh numbers, and the losses of all paths.

        Each member has equally many paths, so the interval for paths of one law holds: their sum is less
        scattered than if the member of each path were drawn, too.
        """
        self.looks += 1
        members = self.question.family.members
        plays = members_of(policy, members, paths, FRESH + self.looks)
        losses = np.concatenate(self.bench.losses(plays, "mean loss"))
        most = max(member.most_lost(self.question.horizon) for member in members)
        return estimates.mean(losses, (0.0, most), LEVEL), losses


def stated(found: TailEstimate, limit: float) -> tuple[Estimate, bool]:
    """The interval that a plan states for a rare event, and whether this interval is nominal.

    The sure limits of weighted paths hold for every law of the weights. They are stated if they keep the
    limit. With three arms and more they are mostly too wide to confirm anything; the interval of the estimate
    is then stated, which takes three times the largest weight seen for the bound of the weights.
    """
    about = found.diagnostics
    if about.sure_high <= limit:
        return Estimate(found.value, about.sure_low, about.sure_high, LEVEL), False
    nominal = found.method == "importance sampling" and found.high < about.sure_high
    return Estimate(found.value, found.low, found.high, LEVEL), nominal
