"""What a plan is asked for: the arguments of `plan`, checked before anything is simulated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lighttail.checks import number, one_of, positive, refuse
from lighttail.course import Course, check_course
from lighttail.families import family_of
from lighttail.outcomes.losing import check_loss
from lighttail.planning.bench import Bench
from lighttail.planning.curves import Curve, own_curves, shipped_curves
from lighttail.planning.effort import BUDGET, check_effort
from lighttail.planning.question import Question
from lighttail.running.prepare import check_settings, check_threads

LONGEST = 10**7  # pulls of an experiment: a plan plays some ten thousand paths


@dataclass(frozen=True)
class Request:
    """The arguments of `plan`, without the horizon and the loss."""

    family: Any
    chance: Any
    over: Any
    policies: Any
    also: Any
    delay: Any
    batch: Any
    seed: int
    effort: Any
    threads: Any
    progress: Any

    @property
    def budget(self) -> float:
        return BUDGET * check_effort(self.effort)

    def at(self, horizon: Any, loss: Any) -> tuple[Question, Course, list[Curve]]:
        """The question for a horizon and a loss. Refuses what cannot be planned."""
        family = family_of(self.family)
        first = family.members[0]
        pulls = first.check_horizon(horizon)
        if pulls > LONGEST:
            raise refuse("horizon", horizon, f"at most {LONGEST:,} for a plan")
        limit = number("chance", self.chance)
        if not 0.0 < limit < 1.0:
            raise refuse("chance", self.chance, "a number above 0 and below 1")
        everywhere = one_of("over", self.over, ("everywhere", "average")) == "everywhere" or family.single
        most = family.most_lost(pulls)
        if most == 0.0:
            raise refuse("family", family, "a family in which some arm is worse than another", verb="be")
        lost = math.nan if loss is None else positive("loss", loss)
        if loss is not None:
            check_loss("loss", lost, most, pulls)
        if not family.sigma > 0.0 and self.policies is None:
            raise refuse("family", family, "a family whose rewards are random")
        curves = shipped_curves(family, pulls) if self.policies is None else own_curves(self.policies)
        curves += own_curves(self.also, "also", least=0)
        course = Course()
        for turn, curve in enumerate(curves):
            policy = curve.candidates(turn)[0].policy
            check_settings(policy, first, pulls, paths=2, seed=0, threads=1)
            course = check_course(policy, first, pulls, self.delay, self.batch)
        if course.delay.never == 1.0:
            raise refuse("never", course.delay.never, "below 1: no reward would become known")
        return Question(family, pulls, lost, limit, everywhere, not course.straight), course, curves

    def bench(self, question: Question, course: Course, report: Any) -> Bench:
        return Bench(question.horizon, self.seed, check_threads(self.threads), course, report)


def check_sight(question: Question, course: Course) -> None:
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
