"""The making of a plan: search, confirm, and put together what is known of the choice."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from lighttail.checks import refuse
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.verdict import even_split
from lighttail.planning.answer import Option, Plan, Point
from lighttail.planning.choosing import confirmed, rivals
from lighttail.planning.confirm import Confirmation, Confirmed
from lighttail.planning.curves import Candidate
from lighttail.planning.effort import BUDGET, CONFIRM, PROMISES, ROUNDS, check_enough, expected_pulls
from lighttail.planning.question import LEVEL, Question, Score
from lighttail.planning.request import Request, check_sight
from lighttail.planning.search import Search
from lighttail.planning.sensitivity import sensitivity
from lighttail.policies import EvenSplit
from lighttail.problems import Bandit
from lighttail.reading.words import policy_words
from lighttail.system.progress import parts_reporter

MEAN_PATHS = 2048  # for the mean loss of a choice
PROMISED_AGAIN = 4.0  # times as many pulls for the promise of the best policy
CHEAPEST = 4  # candidates among which the least mean loss is sought once more


def planned(request: Request, horizon: Any, loss: Any, looks: int = 0) -> tuple[Plan, int]:
    """The plan, and the looks that were taken so far: search, confirm and put the plan together."""
    question, course, curves = request.at(horizon, loss)
    budget = request.budget
    if question.asks_for_loss:
        check_enough(question, budget, "to promise a loss at this chance")
    check_sight(question, course)
    expected = expected_pulls(question, budget)
    with parts_reporter(request.progress, expected, "pulls") as report:
        bench = request.bench(question, course, report)
        bench.expect(expected)
        search = Search(question, curves, bench, budget)
        confirmation = confirmation_of(search, looks)
        ranked = search.run()
        if question.asks_for_loss:
            found = _smallest_loss(search, confirmation, ranked)
        else:
            found = _made(search, confirmation, *confirmed(search, confirmation, ranked))
        return found, confirmation.looks


def confirmation_of(search: Search, looks: int = 0, states: bool = True) -> Confirmation:
    budget = CONFIRM * (search.proof or search.budget)
    settings = (search.question, search.bench, budget, search.weighted, search.counted)
    return Confirmation(*settings, looked=search.known, looks=looks, dear=search.dear, states=states)


def _option(search: Search, confirmation: Confirmation, candidate: Candidate, answer: Confirmed) -> Option:
    policy, members = candidate.policy, len(search.question.family.members)
    paths = max(64, int(min(MEAN_PATHS * 8, search.budget / 32 / search.question.horizon) / members))
    mean, losses = confirmation.mean(policy, paths)
    named = (str(policy), policy, policy_words(policy), candidate.scale, search.curves[candidate.curve].unit)
    source = answer.source + (", nominal limit" if answer.nominal else "")
    where = (answer.worst, losses, answer.confirmed_in, answer.nominal)
    return Option(*named, mean, answer.chance, source, *where)


def _made(
    search: Search, confirmation: Confirmation, score: Score, answer: Confirmed, asks_for_loss: bool = False
) -> Plan:
    """The plan around a choice. A cheaper policy that turns out to be within the limit is the choice."""
    question, bench, points = search.question, search.bench, frontier(search, asks_for_loss)
    choice = _option(search, confirmation, score.candidate, answer)
    cheapest = _cheapest(search, confirmation, choice, score.candidate)
    if _within(cheapest, question.limit) and cheapest.mean_loss.value < choice.mean_loss.value:
        choice = cheapest
    met, even = _within(choice, question.limit), _even(question)
    misjudged = sensitivity(question, choice.policy, choice.worst, bench)
    promised = question.loss
    if not met:
        promised = confirmation.for_any_loss().promise(choice.policy, score.watched).loss
    return Plan(
        family=question.family,
        horizon=question.horizon,
        loss=question.loss,
        limit=question.limit,
        over="everywhere" if question.everywhere else "average",
        met=met,
        choice=choice,
        cheapest=cheapest,
        even=even,
        smallest_loss=promised,
        frontier=points,
        misjudged=misjudged,
        course=bench.course,
        seed=bench.seed,
        pulls=bench.pulls,
        playing=bench.playing,
        asked_for_loss=asks_for_loss,
        rivals=not met and rivals(search, score, answer),
    )


def _within(option: Option, limit: float) -> bool:
    return option.chance.high <= limit * (1.0 + 1e-12)


def _cheapest(search: Search, confirmation: Confirmation, choice: Option, chosen: Candidate) -> Option:
    """The policy with the least mean loss, whatever its chance: the best few of the search and the choice
    once more, on the same members with the same random numbers, and then the best on all members."""
    few = sorted(search.scores.values(), key=lambda score: score.mean + score.error)[:CHEAPEST]
    several = dict.fromkeys([*(score.candidate for score in few), chosen])
    again = search.score(several, search.sized(ROUNDS[2]), len(ROUNDS) + 20, "the least mean loss")
    best = min(again, key=lambda score: score.mean)
    if best.candidate == chosen:
        return choice
    answer = confirmation.chance(best.policy, best.watched, decide=False)
    found = _option(search, confirmation, best.candidate, answer)
    return found if found.mean_loss.value < choice.mean_loss.value else choice


def _even(question: Question) -> Option:
    """The even split, whose loss has no chance in it."""
    policy, family = EvenSplit(), question.family

    def lost(problem: Bandit) -> float:
        return even_split(problem.means, question.horizon)

    worst = max((*question.edges(), *family.members), key=lost)
    losses = np.array([lost(member) for member in family.members])
    judged = np.array([lost(worst)]) if question.everywhere else losses
    sure = (math.fsum(losses) / losses.size, float(question.reaches(judged).mean()))
    mean, chance = (Estimate(value, value, value, LEVEL) for value in sure)
    named = ("EvenSplit", policy, policy_words(policy), math.nan, "")
    return Option(*named, mean, chance, "certain", worst, losses)


def _smallest_loss(search: Search, confirmation: Confirmation, ranked: list[Score]) -> Plan:
    """The plan whose loss limit is the smallest that can be promised.

    A rare error that few paths did not meet makes a policy look good, so the best policies of several curves
    are asked for a promise, and the best of them once more with more paths, since more paths promise a
    smaller loss. Each promise has its own part of the whole error, so that the smaller one of the two holds.
    """
    best = {score.curve: score for score in reversed(ranked)}
    few = sorted(best.values(), key=lambda score: (score.promised, score.mean))[:PROMISES]
    few += [score for score in search.scores.values() if score.policy == EvenSplit()]
    asked_for = [(confirmation.promise(one.policy, one.watched), one) for one in dict.fromkeys(few)]
    first, score = min(asked_for, key=lambda pair: (pair[0].loss, pair[1].mean))
    again = confirmation.promise(score.policy, score.watched, PROMISED_AGAIN)
    loss, _, answer = min(first, again, key=lambda promise: promise.loss)
    if math.isinf(loss):
        allowed = "larger: no loss below the largest possible can be promised at this chance with these paths"
        raise refuse("effort", search.budget / BUDGET, allowed)
    asked = replace(search.question, loss=loss)
    known = replace(confirmation, question=asked, scanned={}, looked={}, played={})
    found = _made(replace(search, question=asked), known, score, answer, asks_for_loss=True)
    likely = again.likely if found.choice.policy == score.policy else math.nan
    return replace(found, smallest_loss=loss, likely_loss=likely)


def frontier(search: Search, asks_for_loss: bool) -> tuple[Point, ...]:
    """Every policy of the search; dominated: another has both a lower mean loss and no higher chance, or no
    larger loss that can be promised if that is asked for."""
    scores = list(search.scores.values())
    seen = (score.chance.value or score.chance.high for score in scores)  # as high as a picture shows them
    risks = [score.promised for score in scores] if asks_for_loss else list(seen)
    found = []
    for score, risk in zip(scores, risks, strict=True):
        beaten = any(
            other.mean < score.mean - score.error - other.error and lower <= risk
            for other, lower in zip(scores, risks, strict=True)
        )
        curve = search.curves[score.curve]
        named = (curve.name, score.scale, curve.unit, score.policy)
        found.append(
            Point(*named, score.mean, score.error, score.chance, beaten, score.promised, score.paths)
        )
    return tuple(sorted(found, key=lambda point: (point.curve, point.scale)))
