"""From what is known of a problem to a decision: the policy to run, and what is risked by running it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from lighttail.checks import number, one_of, positive, refuse
from lighttail.course import Course, check_course
from lighttail.delays import DelayLike
from lighttail.families import Family, family_of
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.losing import check_loss
from lighttail.outcomes.verdict import even_split
from lighttail.planning.answer import Option, Over, Plan, Point
from lighttail.planning.bench import Bench
from lighttail.planning.choosing import confirmed, rivals
from lighttail.planning.confirm import Confirmation, Confirmed, above
from lighttail.planning.curves import Candidate, Curve, own_curves, shipped_curves
from lighttail.planning.question import LEVEL, Question, Score
from lighttail.planning.search import (
    BUDGET,
    CONFIRM,
    FIRST_TAIL,
    ROUNDS,
    Search,
    check_effort,
    confirming_paths,
    expected_pulls,
)
from lighttail.planning.sensitivity import sensitivity
from lighttail.policies import EvenSplit, Policy
from lighttail.problems import Bandit
from lighttail.reading.words import policy_words
from lighttail.running.prepare import check_seed, check_settings, check_threads
from lighttail.system.progress import parts_reporter

MEAN_PATHS = 2048  # for the mean loss of a choice
SHORT = 0.05  # of the budget, for each horizon that is tried
LONGEST = 10**7  # pulls of an experiment: a plan plays some ten thousand paths
NEAR = 1.1  # ratio of two horizons that are not told apart
HARDLY_ENOUGH = (
    0.25  # of the paths of a confirmation: if no fewer show a chance without hits, few chances pass
)
LONGER = 6  # plans for longer and longer horizons, at most
PROMISED_AGAIN = 4.0  # times as many pulls for the promise of the best policy
PROMISES = 3  # curves whose best policies are asked for the smallest loss that they can promise
CHEAPEST = 4  # candidates among which the least mean loss is sought once more
Asked = tuple[Question, Course, list[Curve]]


def plan(
    family: Family | Bandit | Sequence[Bandit],
    *,
    horizon: int | None,
    loss: float | None = None,
    loss_per_pull: float | None = None,
    chance: float = 0.001,
    over: Over = "everywhere",
    policies: Sequence[Policy] | Mapping[str, Policy] | None = None,
    also: Sequence[Policy] | Mapping[str, Policy] = (),
    delay: DelayLike = None,
    batch: int | None = None,
    seed: int | None = None,
    effort: float = 1.0,
    threads: int | None = None,
    progress: bool | Callable[[str, int], None] = False,
) -> Plan:
    """The policy with the least mean loss among those whose chance of losing `loss` or more is small enough.

    family: what is known of the problem: a `Family`, one problem, or a list of problems.
    horizon: pulls of the experiment. None asks how long it must be: the shortest horizon, to about a tenth,
        at which some policy loses `loss_per_pull` * horizon or more with the allowed chance at most.
    loss: the loss (pseudo regret) that must be rare. None asks for the smallest loss that can be promised,
        which is smaller if the effort is larger.
    chance: how rare.
    over: "everywhere" looks for the problems of the family in which the chance is highest and confirms, in
        the three that look worst, that the chance is within the limit; it does not prove this for the whole
        family. "average" holds the average chance over the members to the limit. The mean loss is always the
        average over the members.
    policies: those to choose from, each over its tuning; the shipped ones unless given. also: further ones.
    delay, batch: when rewards become known, as in `simulate`.
    effort: times as many paths as usual.
    seed, threads, progress: as in `simulate`; a function is called with (what is done, pulls so far), from 0
        on for each horizon that is tried.

    docs/planning.md says how the search works and what is guaranteed.

    >>> import lighttail as lt
    >>> found = lt.plan(lt.Bandit([0.2, 0.8]), horizon=200, loss=60, chance=0.01, seed=1, effort=0.05)
    >>> found.met, found.choice.chance.high <= 0.01
    (True, True)
    """
    seed = check_seed(seed)
    asked = partial(_asked, family, chance, over, policies, also, delay, batch)
    bench = partial(_bench, seed, threads)
    if horizon is None or loss_per_pull is not None:
        found = _shortest(family, horizon, loss, loss_per_pull, asked, bench, effort, progress)
    else:
        found = _planned(*asked(horizon, loss), bench, effort, progress)[0]
    given = {
        **{"horizon": horizon, "loss": loss, "loss_per_pull": loss_per_pull, "chance": chance, "over": over},
        **{"delay": delay, "batch": batch, "effort": effort, "seed": seed},
    }
    usual = {"loss": None, "loss_per_pull": None, "delay": None, "batch": None, "effort": 1.0}
    said = [f"{name}={value!r}" for name, value in given.items() if usual.get(name, ...) != value]
    named = [f"{name}={name}" for name, value in (("policies", policies), ("also", also)) if value]
    return replace(found, made_by=f"plan({', '.join(['family', *said, *named])})")


def _planned(
    question: Question,
    course: Course,
    curves: list[Curve],
    bench_of: Callable[..., Bench],
    effort: Any,
    progress: Any,
    looks: int = 0,
) -> tuple[Plan, int]:
    """The plan, and the looks that were taken so far: search, confirm and put the plan together."""
    budget = BUDGET * check_effort(effort)
    if question.asks_for_loss:
        _check_enough(question, budget, "to promise a loss at this chance")
    _check_sight(question, course)
    expected = expected_pulls(question, budget)
    with parts_reporter(progress, expected, "pulls") as report:
        bench = bench_of(question, course, report)
        bench.expect(expected)
        search = Search(question, curves, bench, budget)
        confirmation = _confirmation(search, looks)
        ranked = search.run()
        if question.asks_for_loss:
            found = _smallest_loss(search, confirmation, ranked)
        else:
            found = _made(search, confirmation, *confirmed(search, confirmation, ranked))
        return found, confirmation.looks


def _confirmation(search: Search, looks: int = 0) -> Confirmation:
    """What confirms the choices of a search."""
    return Confirmation(
        search.question,
        search.bench,
        CONFIRM * (search.proof or search.budget),
        looks,
        search.weighted,
        search.counted,
        search.dear,
        looked=search.known,
    )


def _lacking(question: Question, budget: float) -> float:
    """How many times more paths than those of a confirmation are needed to show by counting that a chance is
    within the limit: more than hit the limit by luck."""
    needed = -math.log(FIRST_TAIL / (PROMISES + 1) ** 2) / question.limit
    return needed / confirming_paths(question, budget)


def _check_enough(question: Question, budget: float, purpose: str) -> None:
    """Refuse an effort with which no chance could be shown to be within the limit by counting paths."""
    if (lacking := _lacking(question, budget)) > 1.0:
        least = budget / BUDGET * lacking
        raise refuse("effort", budget / BUDGET, f"at least {above(least):g} {purpose}")


def _check_sight(question: Question, course: Course) -> None:
    """Refuse rewards that all become known too late for any decision."""
    horizon, first = question.horizon, course.delay.shortest
    alone = "otherwise no reward would become known before the last decision"
    for field, value, most in (("batch", course.batch, horizon - 1), ("delay", first, horizon - 2)):
        if value > most:
            allowed = f"at most {most:,} with {horizon:,} pulls: {alone}"
            raise refuse(field, int(value) if math.isfinite(value) else value, allowed)
    if informed(course) > horizon:
        allowed = f"smaller with {horizon:,} pulls in batches of {course.batch:,}: {alone}"
        raise refuse("delay", int(first), allowed)


def informed(course: Course) -> float:
    """The first decision, from 1, for which a reward may be known: the reward of the first pull is known
    after `delay` more pulls, and a batch of decisions sees what is known when it begins.

    >>> from lighttail.delays import FixedDelay
    >>> informed(Course()), informed(Course(FixedDelay(5))), informed(Course(FixedDelay(5), batch=4))
    (2, 7, 9)
    """
    first = course.delay.shortest
    return 1 + course.batch * math.ceil((first + 1) / course.batch) if math.isfinite(first) else first


def _shortest(
    family: Any,
    horizon: Any,
    loss: Any,
    per_pull: Any,
    asked: Callable[..., Asked],
    bench_of: Callable[..., Bench],
    effort: Any,
    progress: Any,
) -> Plan:
    """The plan for the shortest horizon at which the limit can be met.

    Short searches double the horizon until one policy is confirmed within the limit, and then halve the way
    back. The plan for the horizon found is made with the whole effort and fresh random numbers, and for a
    tenth more if it fails. All plans that are made share one error: the looks of one plan count for the next.
    """
    if horizon is not None:
        raise refuse("loss_per_pull", per_pull, "left out if a horizon is given")
    if per_pull is None or loss is not None:
        raise refuse("loss_per_pull", per_pull, "given if the horizon is None, in place of loss")
    family, share = family_of(family), positive("loss_per_pull", per_pull)
    most = family.most_lost(1)
    if not share < most * (1.0 - 1e-9):
        raise refuse("loss_per_pull", per_pull, f"below {most:g}, the largest gap")
    budget = BUDGET * check_effort(effort)

    def too_long(pulls: int) -> bool:
        """Whether the effort is hardly enough to confirm a chance with this number of pulls."""
        question = asked(pulls, share * pulls)[0]
        return question.by_counting and _lacking(question, budget) > HARDLY_ENOUGH

    @cache
    def enough(pulls: int) -> bool:
        question, course, curves = asked(pulls, share * pulls)
        if informed(course) > pulls:
            return False
        if question.by_counting:
            _check_enough(question, budget, f"to confirm this chance with {pulls:,} pulls")
        expected = expected_pulls(question, SHORT * budget)
        with parts_reporter(progress, expected, "pulls") as report:
            bench = bench_of(question, course, report and partial(_tried, report, pulls)).apart(pulls)
            bench.expect(expected)
            quick = [curve for curve in curves if curve.dear == 1]  # slow policies are left to the plan
            search = Search(question, quick or curves, bench, SHORT * budget, budget)
            ranked = search.run()
            if not any(score.likely(question.limit) for score in ranked):
                return False
            _, answer = confirmed(search, replace(_confirmation(search), states=False), ranked)
            return answer.chance.high <= question.limit

    alike = (family.sigma / share) ** 2  # pulls of an arm until a gap of this size is as large as the error
    low, high = 0, round(min(LONGEST / 2, max(8 * family.arms, 32, alike)))
    halves = (high >> turn for turn in range(high.bit_length()) if high >> turn >= 2 * family.arms)
    high = next((pulls for pulls in halves if not too_long(pulls)), high)
    while enough(high) and high > 2 * family.arms:
        low, high = 0, max(2 * family.arms, high // 2)
    while not enough(high):
        low, high = high, 2 * high
        if high > LONGEST:
            allowed = f"larger: no policy was found that meets it within {LONGEST:,} pulls"
            raise refuse("loss_per_pull", per_pull, allowed)
    while high > NEAR * low > 0:
        middle = round(math.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    looks = 0
    for _ in range(LONGER):
        found, looks = _planned(*asked(high, share * high), bench_of, effort, progress, looks)
        if found.met or NEAR * high > LONGEST:
            break
        high = math.ceil(NEAR * high)
    return replace(found, asked_for_horizon=True)


def _tried(report: Callable[..., None], pulls: int, part: str, *counts: int) -> None:
    """Report a part of the search for the shortest horizon, with the horizon that is tried."""
    report(f"are {pulls:,} pulls enough? {part}", *counts)


def _bench(seed: int, threads: Any, question: Question, course: Course, report: Any = None) -> Bench:
    return Bench(question.horizon, seed, check_threads(threads), course, report)


def _asked(
    family: Any,
    chance: Any,
    over: Any,
    policies: Any,
    also: Any,
    delay: Any,
    batch: Any,
    horizon: Any,
    loss: Any,
) -> Asked:
    """Refuse what cannot be planned, before anything is simulated."""
    family = family_of(family)
    first = family.members[0]
    pulls = first.check_horizon(horizon)
    if pulls > LONGEST:
        raise refuse("horizon", horizon, f"at most {LONGEST:,} for a plan")
    limit = number("chance", chance)
    if not 0.0 < limit < 1.0:
        raise refuse("chance", chance, "a number above 0 and below 1")
    everywhere = one_of("over", over, ("everywhere", "average")) == "everywhere" or family.single
    most = family.most_lost(pulls)
    if most == 0.0:
        raise refuse("family", family, "a family in which some arm is worse than another", verb="be")
    lost = math.nan if loss is None else positive("loss", loss)
    if loss is not None:
        check_loss("loss", lost, most, pulls)
    sigma = family.sigma
    if policies is None and not sigma > 0.0:
        raise refuse("family", family, "a family whose rewards are random")
    curves = shipped_curves(family, pulls) if policies is None else own_curves(policies, sigma)
    curves += own_curves(also, sigma, "also", least=0)
    course = Course()
    for turn, curve in enumerate(curves):
        for one in curve.candidates(turn)[:1]:
            check_settings(one.policy, first, pulls, paths=2, seed=0, threads=1)
            course = check_course(one.policy, first, pulls, delay, batch)
    if course.delay.never == 1.0:
        raise refuse("never", course.delay.never, "below 1: no reward would become known")
    return Question(family, pulls, lost, limit, everywhere, course.straight), course, curves


def _option(search: Search, confirmation: Confirmation, one: Candidate, answer: Confirmed) -> Option:
    curve = search.curves[one.curve]
    members = len(search.question.family.members)
    paths = max(64, int(min(MEAN_PATHS * 8, search.budget / 32 / search.question.horizon) / members))
    mean, losses = confirmation.mean(one.policy, paths)
    return Option(
        str(one.policy),
        one.policy,
        policy_words(one.policy),
        one.scale,
        curve.unit,
        mean,
        answer.chance,
        answer.source + (", nominal limit" if answer.nominal else ""),
        answer.worst,
        losses,
        answer.confirmed_in,
        answer.nominal,
    )


def _made(
    search: Search,
    confirmation: Confirmation,
    score: Score,
    answer: Confirmed,
    asks_for_loss: bool = False,
) -> Plan:
    """The plan around a choice. A cheaper policy that turns out to be within the limit is the choice."""
    question, bench, points = search.question, search.bench, frontier(search, asks_for_loss)
    choice = _option(search, confirmation, score.candidate, answer)
    cheapest = _cheapest(search, confirmation, choice, score.candidate)
    if _within(cheapest, question.limit) and cheapest.mean_loss.value < choice.mean_loss.value:
        choice = cheapest
    met, even = _within(choice, question.limit), _even(search)
    misjudged = sensitivity(question, choice.policy, choice.worst, bench)
    promised = (
        question.loss if met else confirmation.for_any_loss().promise(choice.policy, score.watched).loss
    )
    return Plan(
        question.family,
        question.horizon,
        question.loss,
        question.limit,
        "everywhere" if question.everywhere else "average",
        met,
        choice,
        cheapest,
        even,
        promised,
        points,
        misjudged,
        bench.course,
        bench.seed,
        bench.pulls,
        bench.playing,
        asks_for_loss,
        rivals=not met and rivals(search, score, answer),
    )


def _within(option: Option, limit: float) -> bool:
    return option.chance.high <= limit * (1.0 + 1e-12)


def _cheapest(search: Search, confirmation: Confirmation, choice: Option, chosen: Candidate) -> Option:
    """The policy with the least mean loss, whatever its chance: the best few of the search and the choice
    once more, on the same members with the same random numbers, and then the best on all members."""
    few = sorted(search.scores.values(), key=lambda score: score.mean + score.error)[:CHEAPEST]
    again = search.score(
        dict.fromkeys([*(score.candidate for score in few), chosen]),
        search.sized(ROUNDS[2]),
        len(ROUNDS) + 20,
        "the least mean loss",
    )
    best = min(again, key=lambda score: score.mean)
    if best.candidate == chosen:
        return choice
    answer = confirmation.chance(best.candidate.policy, best.watched, decide=False)
    found = _option(search, confirmation, best.candidate, answer)
    return found if found.mean_loss.value < choice.mean_loss.value else choice


def _even(search: Search) -> Option:
    """The even split, whose loss has no chance in it."""
    question, policy = search.question, EvenSplit()
    family, horizon = question.family, question.horizon

    def lost(problem: Bandit) -> float:
        return even_split(problem.means, horizon)

    worst = max((*question.edges(), *family.members), key=lost)
    losses = np.array([lost(member) for member in family.members])
    mean = math.fsum(losses) / losses.size
    judged = np.array([lost(worst)]) if question.everywhere else losses
    value = float(question.reaches(judged).mean())
    return Option(
        "EvenSplit",
        policy,
        policy_words(policy),
        math.nan,
        "",
        Estimate(mean, mean, mean, LEVEL),
        Estimate(value, value, value, LEVEL),
        "certain",
        worst,
        losses,
    )


def _smallest_loss(search: Search, confirmation: Confirmation, ranked: list[Score]) -> Plan:
    """The plan whose loss limit is the smallest that can be promised.

    A rare error that few paths did not meet makes a policy look good, so the best policies of several curves
    are asked for a promise, and the best of them once more with more paths, since more paths promise a
    smaller loss. Each promise has its own part of the whole error, so that the smaller one of the two holds.
    """
    best = {score.candidate.curve: score for score in reversed(ranked)}
    few = sorted(best.values(), key=lambda score: (score.promised, score.mean))[:PROMISES]
    few += [score for score in search.scores.values() if score.candidate.policy == EvenSplit()]
    asked_for = [(confirmation.promise(one.candidate.policy, one.watched), one) for one in dict.fromkeys(few)]
    first, score = min(asked_for, key=lambda pair: (pair[0].loss, pair[1].mean))
    again = confirmation.promise(score.candidate.policy, score.watched, PROMISED_AGAIN)
    loss, _, answer = min(first, again, key=lambda promise: promise.loss)
    if math.isinf(loss):
        allowed = "larger: no loss below the largest possible can be promised at this chance with these paths"
        raise refuse("effort", search.budget / BUDGET, allowed)
    asked = replace(search.question, loss=loss)
    known = replace(confirmation, question=asked, scanned={}, looked={}, played={})
    found = _made(replace(search, question=asked), known, score, answer, asks_for_loss=True)
    likely = again.likely if found.choice.policy == score.candidate.policy else math.nan
    return replace(found, smallest_loss=loss, likely_loss=likely)


def frontier(search: Search, asks_for_loss: bool = False) -> tuple[Point, ...]:
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
        curve = search.curves[score.candidate.curve]
        one = score.candidate
        found.append(
            Point(
                curve.name,
                one.scale,
                curve.unit,
                one.policy,
                score.mean,
                score.error,
                score.chance,
                beaten,
                score.promised,
                score.paths,
            )
        )
    return tuple(sorted(found, key=lambda point: (point.curve, point.scale)))
