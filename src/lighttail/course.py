"""How a path goes: when its rewards become known, how many decisions are made at once, where it begins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lighttail.checks import refuse, whole
from lighttail.delays import Delay, FixedDelay, as_delay
from lighttail.policies import Policy

MOST_OPEN = 2 * 10**7  # rewards that may be on their way at the same time: a thread keeps all of them


AT_ONCE = FixedDelay(0)


class Beginning(NamedTuple):
    """Where a path begins: the state of a rule after `rounds` pulls, and what is open then.

    horizon: that the policy was made for, nan if none. counts: tried, heard, total and the sum of all rewards
    so far by arm. opened: (arm, round) of every open trial in their order, and memos: what the rule keeps
    with each.
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
    """delay: of every reward. batch: decisions per group, which see no reward of their own group. start:
    where
    every path begins, if not at the first pull."""

    delay: Delay = AT_ONCE
    batch: int = 1
    start: Beginning | None = None

    @property
    def late(self) -> bool:
        """Whether there is anything else than rewards that are known at once."""
        return self != STRAIGHT

    def said(self) -> dict[str, Any]:
        """For the settings of an outcome; nothing where paths go straight ahead."""
        found: dict[str, Any] = {} if self.delay == STRAIGHT.delay else {"delay": repr(self.delay)}
        if self.batch > 1:
            found["batch"] = self.batch
        if self.start is not None:
            found["start"] = self.start.rounds
        return found

    @property
    def open(self) -> int:
        """Trials that are open at the beginning."""
        return 0 if self.start is None else len(self.start.opened)

    def told(self) -> dict[str, Any]:
        """The same for a file of results, and in words."""
        return {**self.said(), "rewards": self.words()} if self.late else {}

    def short(self) -> str:
        """For a title: "delay 2,000, batch 100"; empty where paths go straight ahead."""
        never = f"{100 * self.delay.never:g} % never known" if self.delay.never else ""
        batch = f"batch {self.batch:,}" if self.batch > 1 else ""
        return ", ".join(filter(None, (self.delay.short(), never, batch)))

    def words(self) -> str:
        """In sentences; empty where paths go straight ahead.

        >>> Course(batch=10).words()
        'Decisions are made 10 at a time, before their rewards are known.'
        """
        made = f"Decisions are made {self.batch:,} at a time, before their rewards are known."
        return " ".join(filter(None, (self.delay.words(), made if self.batch > 1 else "")))

    def known_horizon(self, horizon: int) -> float:
        """The horizon that the policy reckons with."""
        return horizon if self.start is None else self.start.horizon

    def ring(self, horizon: int) -> int:
        """Places for rewards on their way: the longest delay that a path can see, the batch and two more."""
        first = 0 if self.start is None else self.start.rounds
        return int(min(self.delay.longest, horizon - first)) + min(self.batch, horizon) + 2

    def arguments(self, horizon: int, arms: int, notes: int, memo: int) -> tuple[Any, ...]:
        """What `lighttail.kernels.generic.late_kernel` takes besides."""
        ways = (self.delay.params(), min(self.batch, horizon), self.ring(horizon))
        if self.start is None:
            nobody = np.zeros((0, 2), dtype=np.int64), np.zeros((0, memo))
            return *ways, 0, np.zeros((4, arms)), np.zeros((arms, notes)), *nobody
        return (
            *ways,
            self.start.rounds,
            self.start.counts,
            self.start.note,
            self.start.opened,
            self.start.memos,
        )


STRAIGHT = Course()


def check_course(
    policy: Policy, problem: Any, horizon: int, delay: Any = None, batch: Any = None, start: Any = None
) -> Course:
    """The three settings of `simulate`, checked."""
    course = Course(
        STRAIGHT.delay if delay is None else as_delay(delay),
        1 if batch is None else whole("batch", batch, 1),
        None if start is None else _beginning(policy, problem, horizon, start),
    )
    if course.late and problem.linear:
        raise refuse("problem", problem, "a Bandit where rewards come late or paths begin with a start")
    if course.ring(horizon) > MOST_OPEN:
        longest = f"{MOST_OPEN} pulls or fewer for which rewards can be open"
        raise refuse("horizon", horizon, f"such that delay and batch leave {longest}")
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
        raise refuse("horizon", horizon, f"at least {begun.rounds}, the pulls that start has behind it")
    if math.isnan(begun.horizon) and policy.needs_horizon:
        raise refuse("start", start, "an Experiment with a horizon")
    return begun
