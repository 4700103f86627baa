"""The shortest experiment in which a limit on the loss per pull can be met."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

from lighttail.checks import positive, refuse
from lighttail.families import Family, family_of
from lighttail.planning.answer import Plan
from lighttail.planning.choosing import confirmed
from lighttail.planning.effort import check_enough, expected_pulls, lacking
from lighttail.planning.making import confirmation_of, planned
from lighttail.planning.request import LONGEST, Request, informed
from lighttail.planning.search import Search
from lighttail.system.progress import parts_reporter

SHORT = 0.05  # of the budget, for each horizon that is tried
NEAR = 1.1  # ratio of two horizons that are not told apart
HARDLY = 0.25  # of the paths of a confirmation: if no fewer show a chance without hits, few chances pass
LONGER = 6  # plans for longer and longer horizons, at most


def shortest(request: Request, horizon: Any, loss: Any, per_pull: Any) -> Plan:
    """The plan for the shortest horizon at which the limit can be met.

    The plan for the horizon that short searches find is made with the whole effort and fresh random numbers,
    and for a tenth more if it fails. All plans that are made share one error: the looks of one plan count for
    the next.
    """
    if horizon is not None:
        raise refuse("loss_per_pull", per_pull, "left out if a horizon is given")
    if per_pull is None or loss is not None:
        raise refuse("loss_per_pull", per_pull, "given if the horizon is None, in place of loss")
    family, share = family_of(request.family), positive("loss_per_pull", per_pull)
    most = family.most_lost(1)
    if not share < most * (1.0 - 1e-9):
        raise refuse("loss_per_pull", per_pull, f"below {most:g}, the largest gap")
    pulls, looks = _least_horizon(request, family, share), 0
    if pulls > LONGEST:
        allowed = f"larger: no policy was found that meets it within {LONGEST:,} pulls"
        raise refuse("loss_per_pull", per_pull, allowed)
    for _ in range(LONGER):
        found, looks = planned(request, pulls, share * pulls, looks)
        if found.met or NEAR * pulls > LONGEST:
            break
        pulls = math.ceil(NEAR * pulls)
    return replace(found, asked_for_horizon=True)


def _least_horizon(request: Request, family: Family, share: float) -> int:
    """The shortest horizon, to about a tenth, at which a short search confirms a policy within the limit; a
    horizon above LONGEST if there is none.

    The horizon is doubled until one policy is confirmed, and then the way back is halved. It begins with the
    pulls of an arm until a gap of the size `share` is as large as the error.
    """
    budget, fewest = request.budget, 2 * family.arms

    def too_long(pulls: int) -> bool:
        """Whether the effort is hardly enough to confirm a chance with this number of pulls."""
        question, *_ = request.at(pulls, share * pulls)
        return question.by_counting and lacking(question, budget) > HARDLY

    @cache
    def enough(pulls: int) -> bool:
        return _is_enough(request, pulls, share * pulls)

    low, high = 0, round(min(LONGEST / 2, max(8 * family.arms, 32, (family.sigma / share) ** 2)))
    halves = (high >> turn for turn in range(high.bit_length()) if high >> turn >= fewest)
    high = next((pulls for pulls in halves if not too_long(pulls)), high)
    while enough(high) and high > fewest:
        low, high = 0, max(fewest, high // 2)
    while not enough(high):
        low, high = high, 2 * high
        if high > LONGEST:
            return high
    while high > NEAR * low > 0:
        middle = round(math.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _is_enough(request: Request, pulls: int, loss: float) -> bool:
    """Whether a short search confirms a policy at this horizon. Slow policies are left to the plan."""
    question, course, curves = request.at(pulls, loss)
    if informed(course) > pulls:
        return False
    if question.by_counting:
        check_enough(question, request.budget, f"to confirm this chance with {pulls:,} pulls")
    expected = expected_pulls(question, SHORT * request.budget)
    with parts_reporter(request.progress, expected, "pulls") as report:
        told = report and (lambda part, *counts: report(f"are {pulls:,} pulls enough? {part}", *counts))
        bench = request.bench(question, course, told).apart(pulls)
        bench.expect(expected)
        quick = [curve for curve in curves if curve.dear == 1]
        search = Search(question, quick or curves, bench, SHORT * request.budget, request.budget)
        ranked = search.run()
        if not any(score.likely(question.limit) for score in ranked):
            return False
        _, answer = confirmed(search, confirmation_of(search, states=False), ranked)
        return answer.chance.high <= question.limit
