"""What an effort buys: the paths of each round of a search, and the pulls of a confirmation."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np

from lighttail.checks import number, refuse
from lighttail.outcomes.estimates import proportion_limits
from lighttail.planning.question import LEVEL, SUSPECTS, Question

WATCHED = 4  # problems per curve in which the worst is sought
BUDGET = 2e9  # pulls of a search, about
CONFIRM = 0.25  # of the budget, to confirm one choice
CONFIRM_COUNTED = 4.0  # times more if chances can only be counted
FIRST_TAIL = (1.0 - LEVEL) / 2.0 * 6.0 / math.pi**2  # the share of the error of a first look, on each side
LEAST_EFFORT, MOST_EFFORT = 0.001, 1000.0
FEW = 12.0  # hits at the limit in the last round below which chances are not counted
RARE_PULLS = 8e8  # of all looks of weighted paths, about
BASE = 200_000  # paths of all rounds together, about
PROMISES = 3  # curves whose best policies are asked for the smallest loss that they can promise


class SearchRound(NamedTuple):
    """paths: for the mean, of each of MEMBERS problems. watched: problems for the chance, with `hits` paths
    each. going: candidates that go on to the next round. exact: whether chances are exact if they can be had
    in a moment."""

    paths: int
    watched: int
    hits: int
    going: int
    exact: bool = False


ROUNDS = (
    SearchRound(4, WATCHED, 64, 24),
    SearchRound(12, WATCHED, 256, 10),
    SearchRound(32, 3, 1024, 5, exact=True),
    SearchRound(64, 2, 4096, 5, exact=True),
)


def check_effort(effort: Any) -> float:
    """Refuse an effort with which a plan would find nothing or take days."""
    if not LEAST_EFFORT <= number("effort", effort) <= MOST_EFFORT:
        raise refuse("effort", effort, f"a number from {LEAST_EFFORT:g} to {MOST_EFFORT:,.0f}")
    return float(effort)


def expected_pulls(question: Question, budget: float) -> int:
    """The pulls that a plan takes, about: a search whose paths are not fewer than the least, and the looks of
    weighted paths if chances are rare, which cost the same however small the effort is."""
    paths = BASE * factor_of(question, budget)
    rare = round(factor_of(question, budget) * ROUNDS[-1].hits) * question.limit < FEW
    if not question.by_counting:
        return int(1.5 * paths * question.horizon + (RARE_PULLS if rare else 0.0))
    return int(2.5 * (paths * question.horizon + confirming(question, CONFIRM * budget)))


def factor_of(question: Question, budget: float) -> float:
    """By how much more paths the rounds have than they say: from a quarter to 16 times as many."""
    return min(16.0, max(0.25, budget / (BASE * question.horizon)))


def confirming(question: Question, budget: float) -> float:
    """The pulls with which one choice is confirmed, at most."""
    return CONFIRM_COUNTED * budget if question.by_counting else budget


def confirming_paths(question: Question, budget: float) -> float:
    """The paths, in each of its problems, with which one choice is confirmed, at most; on average, the paths
    of all members count together."""
    problems = SUSPECTS if question.everywhere and not question.family.single else 1
    return confirming(question, CONFIRM * budget) / (problems * question.horizon)


def reachable(limit: float, paths: int, tail: float) -> float:
    """The largest chance that `paths` paths will probably show to be within the limit.

    The upper limit of the chance must not exceed `limit`. k is the largest number of hits with which this is
    so; a chance whose number of hits lies a standard deviation below k passes five times in six.
    """

    def upper(hits: int) -> float:
        return float(proportion_limits(np.array([hits]), paths, 1.0 - 2.0 * tail)[1][0])

    k = bisect_right(range(int(limit * paths) + 1), limit, key=upper) - 1
    return max(0.0, k - math.sqrt(max(0, k))) / paths


def lacking(question: Question, budget: float) -> float:
    """How many times more paths than those of a confirmation are needed to show by counting that a chance is
    within the limit: more than hit the limit by luck."""
    needed = -math.log(FIRST_TAIL / (PROMISES + 1) ** 2) / question.limit
    return needed / confirming_paths(question, budget)


def check_enough(question: Question, budget: float, purpose: str) -> None:
    """Refuse an effort with which no chance could be shown to be within the limit by counting paths."""
    if (times := lacking(question, budget)) > 1.0:
        raise refuse("effort", budget / BUDGET, f"at least {above(budget / BUDGET * times):g} {purpose}")


def above(value: float) -> float:
    """The next larger number with three significant digits.

    >>> above(5.0), above(0.0123), above(99.95)
    (5.01, 0.0124, 100.0)
    """
    step = 10.0 ** (math.floor(math.log10(max(value, 1e-290))) - 2)
    found = float(f"{step * math.ceil(value / step):.3g}")
    return found if found > value else float(f"{found + step:.3g}")
