"""The course of a path: its first state, when rewards become known, and how many decisions form a batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lighttail.checks import refuse, whole
from lighttail.delays import Delay, FixedDelay, as_delay
from lighttail.policies import Policy

MOST_OPEN = 2 * 10**7  # open rewards per path: a thread keeps all of them in memory
AT_ONCE = FixedDelay(0)


class Beginning(NamedTuple):
    """The state in which a path begins: the state of a rule after `rounds` pulls, and the open trials.

    horizon: the horizon for which the policy was set up; nan if there is none.
    counts: four rows with one entry per arm: `tried`, `heard`, `total`, and the sum of all rewards so far.
    note: the floats that the rule keeps (see `lighttail.rules`).
    opened: (arm, round) of every open trial, in the order of the rounds.
    memos: the floats that the rule keeps for each open trial.
    """

    policy: Policy
    horizon: float
    rounds: int
    counts: Any
    note: Any
    opened: Any
    memos: Any


@dataclass(frozen=True)
class Course:
    """When rewards become known, and where every path begins.

    delay: the delay of every reward. batch: the number of decisions per group; no decision of a group sees a
    reward of the same group. start: the state in which every path begins; None if paths begin at the first
    pull.
    """

    delay: Delay = AT_ONCE
    batch: int = 1
    start: Beginning | None = None

    @property
    def straight(self) -> bool:
        """Whether there is no delay, no batch and no start."""
        return self == STRAIGHT

    def said(self) -> dict[str, Any]:
        """The course in the settings of an outcome; empty if there is no delay, batch or start."""
        found: dict[str, Any] = {} if self.delay == STRAIGHT.delay else {"delay": repr(self.delay)}
        if self.batch > 1:
            found["batch"] = self.batch
        if self.start is not None:
            found["start"] = self.start.rounds
        return found

    @property
    def open(self) -> int:
        """The number of trials that are open at the beginning."""
        return 0 if self.start is None else len(self.start.opened)

    def told(self) -> dict[str, Any]:
        """The course in a file of results: `said()` and `words()`."""
        return {} if self.straight else {**self.said(), "rewards": self.words()}

    def short(self) -> str:
        """The course in a title, such as "delay 2,000, batch 100"; empty without a delay and a batch."""
        never = f"{100 * self.delay.never:g} % never known" if self.delay.never else ""
        batch = f"batch {self.batch:,}" if self.batch > 1 else ""
        return ", ".join(filter(None, (self.delay.short(), never, batch)))

    def words(self) -> str:
        """The course in sentences; empty without a delay and a batch.

        >>> Course(batch=10).words()
        'Decisions are made 10 at a time, before their rewards are known.'
        """
        made = f"Decisions are made {self.batch:,} at a time, before their rewards are known."
        return " ".join(filter(None, (self.delay.words(), made if self.batch > 1 else "")))

    def known_horizon(self, horizon: int) -> float:
        """The horizon that the policy assumes."""
        return horizon if self.start is None else self.start.horizon

    def ring(self, horizon: int) -> int:
        """The number of places for open rewards: the longest delay within a path, the batch, and two more."""
        first = 0 if self.start is None else self.start.rounds
        return int(min(self.delay.longest, horizon - first)) + min(self.batch, horizon) + 2

    def arguments(self, horizon: int, arms: int, notes: int, memo: int) -> tuple[Any, ...]:
        """The arguments of `lighttail.kernels.generic.late_kernel` that describe the course."""
        ways = (self.delay.params(), min(self.batch, horizon), self.ring(horizon))
        start = self.start
        if start is None:
            nobody = np.zeros((0, 2), dtype=np.int64), np.zeros((0, memo))
            return *ways, 0, np.zeros((4, arms)), np.zeros((arms, notes)), *nobody
        return *ways, start.rounds, start.counts, start.note, start.opened, start.memos


STRAIGHT = Course()


def check_course(
    policy: Policy, problem: Any, horizon: int, delay: Any = None, batch: Any = None, start: Any = None
) -> Course:
    """The course for three arguments of `simulate`. Raises BadInput if one of them is wrong."""
    if delay is None and batch is None and start is None:
        return STRAIGHT
    course = Course(
        STRAIGHT.delay if delay is None else as_delay(delay),
        1 if batch is None else whole("batch", batch, 1),
        None if start is None else _beginning(policy, problem, horizon, start),
    )
    if problem.linear and not course.straight:
        raise refuse("problem", problem, "a Bandit if a delay, a batch or a start is given")
    if course.ring(horizon) > MOST_OPEN:
        limit = f"at most {MOST_OPEN} rewards are open at once with this delay and batch"
        raise refuse("horizon", horizon, f"so small that {limit}")
    return course


def _beginning(policy: Policy, problem: Any, horizon: int, start: Any) -> Beginning:
    try:
        begun: Beginning = start.beginning()
    except AttributeError:
        raise refuse("start", start, "an Experiment") from None
    if begun.policy != policy:
        played = f"{policy}, as simulate does"
        raise refuse("start", start, played, verb="play", found=f"plays {begun.policy}")
    if begun.counts.shape[1] != len(problem.means):
        arms = f"{len(problem.means)} arms, as the problem has"
        raise refuse("the number of arms of start", begun.counts.shape[1], arms)
    if begun.rounds > horizon:
        raise refuse("horizon", horizon, f"at least {begun.rounds}, the number of pulls in start")
    if math.isnan(begun.horizon) and policy.needs_horizon:
        raise refuse("start", start, "an Experiment with a horizon")
    return begun
