"""The question of a plan, and how one policy answers it: its mean loss, and its chance of losing too much."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lighttail.families import Family
from lighttail.outcomes import estimates
from lighttail.outcomes.estimates import Estimate
from lighttail.planning.curves import OfCandidate
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.records import Floats
from lighttail.tails.known import EXACT_ERROR, exact_at
from lighttail.tails.task import Task

LEVEL = 0.95
SUSPECTS = 3  # problems in which a choice is confirmed
HIGH = 0.96  # the quantile by which tails are compared while few paths were played
EXACT_SCAN = 0.3  # seconds for an exact chance in a scan
ROUNDING = 1e-12  # relative, of a gap
NO_CHANCE = Estimate(math.nan, 0.0, 1.0, LEVEL)


@dataclass(frozen=True)
class Question:
    """loss: the loss whose chance is limited, or nan if the smallest loss is asked for that can be promised.
    limit: the chance that is allowed. everywhere: whether in the worst problem of the family or on average.
    late: whether rewards become known late, so that no exact law applies. known: exact chances so far."""

    family: Family
    horizon: int
    loss: float
    limit: float
    everywhere: bool
    late: bool = False
    known: dict[tuple[Policy, Bandit], float] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def by_counting(self) -> bool:
        """Whether chances can only be counted: for late rewards, and for averages, there are no exact laws
        and no weighted paths."""
        return self.late or not self.everywhere

    @property
    def asks_for_loss(self) -> bool:
        return math.isnan(self.loss)

    @cached_property
    def slack(self) -> float:
        """A difference of losses that may come from rounding within a sum of gaps."""
        return 1e-9 * self.family.most_lost(self.horizon)

    @property
    def least_gap(self) -> float:
        """A problem can lose the limit only if its largest gap is at least this number. If no limit is given:
        a tenth of the gap that the horizon can tell from none."""
        if self.asks_for_loss:
            return 0.1 * self.family.sigma / math.sqrt(self.horizon)
        return self.loss / self.horizon

    def edges(self) -> tuple[Bandit, ...]:
        """The edges of the family (`Family.edges`), each with the gap at which its chance is highest."""
        return tuple(dict.fromkeys(map(self.snapped, self.family.edges(self.least_gap))))

    def near(self, problem: Bandit, step: float) -> tuple[Bandit, ...]:
        """The problems beside a problem (`Family.near`), each with the gap at which its chance is highest."""
        return tuple(dict.fromkeys(map(self.snapped, self.family.near(problem, step))))

    def by_a_pull(self, problem: Bandit) -> list[Bandit]:
        """The problems in which one or two pulls more or fewer of the second-best arm lose the limit: its gap
        is x / m for another m (see `snapped`), around the same best arm or around the same second-best arm.
        With rewards of 0 or 1, chances of neighbouring numbers m lie on no smooth curve."""
        family, means, top = self.family, np.array(problem.means), max(problem.means)
        if self.asks_for_loss or family.high is None or not any(problem.gaps):
            return []
        gap, alike = second_best(problem)
        pulls, moved = round(self.loss / gap), list[Floats]()
        for other in range(max(1, pulls - 2), pulls + 3):
            wanted = self._gap_at(other)
            moved += [np.where(alike, top - wanted, means), np.where(means == top, top - gap + wanted, means)]
        inside = [one for one in moved if np.array_equal(one, np.clip(one, family.low, family.high))]
        return [one for point in inside if (one := family.at(*point.tolist())) != problem]

    def like(self, problem: Bandit) -> list[Bandit]:
        """The problems that differ from a problem in the other arms alone (`Family.like`), if the limit can
        be lost in them."""
        return [one for one in self.able([problem, *self.family.like(problem)]) if one != problem]

    def snapped(self, problem: Bandit) -> Bandit:
        """The problem with the least gap of its second-best arm with which the same number of pulls of this
        arm loses the limit.

        A gap g loses x in m = ceil(x / g) pulls. Between x / m and x / (m - 1) this number is the same, and
        the smaller gap is harder to see, so that the chance jumps up at every x / m and falls from there on.
        """
        family = self.family
        if self.asks_for_loss or family.high is None or not any(problem.gaps):
            return problem
        gap, alike = second_best(problem)
        pulls = math.ceil(self.loss / gap * (1.0 - ROUNDING))
        snapped = self._gap_at(pulls)
        means = np.where(alike, max(problem.means) - snapped, problem.means)
        return family.at(*means.tolist()) if snapped < gap and (means <= family.high).all() else problem

    def _gap_at(self, pulls: int) -> float:
        """The least gap with which this number of pulls loses the limit."""
        return self.loss / pulls * (1.0 + ROUNDING)

    def able(self, problems: Iterable[Bandit]) -> list[Bandit]:
        """The problems, each once, in which the limit can be lost at all; all of them if there is none."""
        found = list(dict.fromkeys(problems))
        if self.asks_for_loss:
            return found
        return [one for one in found if one.most_lost(self.horizon) >= self.loss - self.slack] or found[:1]

    def reaches(self, losses: Floats) -> npt.NDArray[np.bool_]:
        """Which losses count as lost: rounding does not decide."""
        return losses >= self.loss - self.slack

    def chance(self, losses: Floats, level: float = LEVEL) -> Estimate:
        """The chance of losing `loss` or more, from simulated losses.

        If the losses come from several problems, equally many from each, the interval is Clopper and
        Pearson's all the same: a sum of independent trials with different chances is less scattered than one
        with equal chances (Hoeffding 1956), so that the upper limit covers the average chance at least as
        often. (The lower limit may be too high by about one part in a hundred if a single path was hit.)
        """
        if self.asks_for_loss:
            return NO_CHANCE
        return estimates.proportion(int(self.reaches(losses).sum()), losses.size, level)

    def promised(self, losses: Floats) -> float:
        """The smallest loss that is reached by at most a share `limit` of these losses."""
        return float(np.quantile(losses, 1.0 - self.limit, method="higher"))

    def exact_chance(self, policy: Policy, problem: Bandit, seconds: float) -> Estimate | None:
        """The exact chance if it can be had in this number of seconds."""
        if self.late or self.asks_for_loss:
            return None
        found = self.known.get((policy, problem))
        if found is None:
            found = exact_at(Task(policy, problem, self.horizon, self.loss, "pseudo_regret"), seconds)
            if found is None:
                return None
            self.known[policy, problem] = found
        low, high = found * (1.0 - EXACT_ERROR), min(1.0, found * (1.0 + EXACT_ERROR))
        return Estimate(found, low, high, LEVEL)


@dataclass(frozen=True)
class Score(OfCandidate):
    """What the paths of the search say of a candidate.

    mean: the average loss over the first members of the family, the same for all scores, with its standard
    error. chance: of losing the limit, in the
    `worst` problem looked at or, if asked so, on average. promised: the loss that is reached with the allowed
    chance. high: a high quantile of the losses in the worst problem. paths: those behind the chance; 0 if it
    is exact. watched: the problems looked at, the worst first.
    """

    mean: float
    error: float
    chance: Estimate
    promised: float
    high: float
    paths: int
    watched: tuple[Bandit, ...] = field(repr=False)

    @property
    def exact(self) -> bool:
        return self.paths == 0

    def likely(self, limit: float) -> bool:
        """Whether the chance is more likely within the limit than not; no hits among few paths say little."""
        if self.exact:
            return self.chance.value <= limit
        return self.chance.value + 0.7 / self.paths <= limit  # the median of the chance, about

    def within(self, limit: float) -> bool:
        """Whether the chance is within the limit with a confidence of 97.5 %, or exactly. Among many policies
        with few paths each, some look as if they were within."""
        return (self.chance.value if self.exact else self.chance.high) <= limit


def second_best(problem: Bandit) -> tuple[float, npt.NDArray[np.bool_]]:
    """The gap of the second-best arm, and which arms have this gap."""
    gaps = np.array(problem.gaps)
    gap = float(gaps[gaps > 0.0].min())
    return gap, np.abs(gaps - gap) <= ROUNDING * gap


def mean_over(per_member: Sequence[Floats]) -> tuple[float, float]:
    """The average of the members' mean losses, and its standard error sqrt(sum_m var_m / n_m) / M for n_m
    paths of each of M members. The members are fixed, so their differences are no error."""
    mean = math.fsum(float(lost.mean()) for lost in per_member) / len(per_member)
    if any(lost.size < 2 for lost in per_member):
        return mean, math.inf
    squares = math.fsum(float(lost.var(ddof=1)) / lost.size for lost in per_member)
    return mean, math.sqrt(squares) / len(per_member)


def worst_first(question: Question, problems: Iterable[Bandit], losses: Iterable[Floats]) -> list[Bandit]:
    """The problems, the one with the highest chance first; if chances are alike, as they are if nothing was
    seen, the one whose losses come nearest to the limit in units of their own spread."""

    def badness(pair: tuple[Bandit, Floats]) -> tuple[float, ...]:
        _, lost = pair
        middle, high = np.quantile(lost, (0.5, HIGH)).tolist()
        if question.asks_for_loss:
            return (question.promised(lost), high)
        spread = max(high - middle, 1e-12 * question.loss)
        return (float(question.reaches(lost).mean()), -(question.loss - middle) / spread)

    ranked = sorted(zip(problems, losses, strict=True), key=badness, reverse=True)
    return [problem for problem, _ in ranked]
