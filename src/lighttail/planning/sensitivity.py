"""What becomes of a plan if the problem was misjudged: noise, gaps or horizon half or twice as large."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from lighttail.noises import Noise
from lighttail.outcomes.estimates import Estimate, mean
from lighttail.planning.bench import Bench, Play, members_of
from lighttail.planning.question import LEVEL, Question
from lighttail.policies import Policy
from lighttail.problems import Bandit

PATHS = 384  # over all members, at least two per member
HITS = 1024  # paths for the chance
STAGE = 2_000
SPREADS = ("sigma", "scale")  # fields by which a noise says how large it is
FACTORS = (0.5, 2.0)


@dataclass(frozen=True)
class Misjudged:
    """The chosen policy in another world than planned for. loss: the limit there."""

    what: str
    factor: float
    loss: float
    mean_loss: Estimate
    chance: Estimate


def sensitivity(question: Question, policy: Policy, worst: Bandit, bench: Bench) -> tuple[Misjudged, ...]:
    """The mean loss over the family, and the chance in the worst problem or on average, for each
    misjudgement."""
    changes = (("the noise", louder), ("the gaps", wider), ("the horizon", None))
    cases = [(what, change, factor) for what, change in changes for factor in FACTORS]
    found = (_misjudged(question, policy, worst, bench, *case) for case in cases)
    return tuple(one for one in found if one is not None)


def louder(problem: Bandit, factor: float) -> Bandit | None:
    """The same means with a noise that is `factor` times as large; None if the noise has no size.

    The noise of rewards of 0 or 1 follows from their rates: all rates are multiplied instead."""
    if problem.noise.is_coin:
        return Bandit([min(1.0, factor * mean) for mean in problem.means], problem.noise, problem.labels)
    noise: Any = problem.noise
    named = [f.name for f in fields(noise) if f.name in SPREADS] if is_dataclass(noise) else []
    if not named:
        return None
    scaled: Noise = replace(noise, **{name: factor * getattr(noise, name) for name in named})
    return Bandit(problem.means, scaled, problem.labels)


def wider(problem: Bandit, factor: float) -> Bandit | None:
    """The same best arm, with all gaps multiplied; rates stay at 0 or above. None for observations drawn
    anew, which have the means that they have."""
    if not problem.noise.moves:
        return None
    best = max(problem.means)
    least = 0.0 if problem.noise.is_coin else -np.inf
    means = [max(least, best - factor * gap) for gap in problem.gaps]
    return Bandit(means, problem.noise, problem.labels)


def _misjudged(
    question: Question, policy: Policy, worst: Bandit, bench: Bench, what: str, change: Any, factor: float
) -> Misjudged | None:
    horizon, loss = question.horizon, question.loss
    changed: list[Any] = [*question.family.members, worst]
    if change is None:
        horizon, loss = max(question.family.arms, round(factor * horizon)), factor * loss
    else:
        changed = [change(problem, factor) for problem in changed]
        if any(problem is None for problem in changed):
            return None
        what = "the rates" if what == "the noise" and worst.noise.is_coin else what
    *members, worst = changed
    paths = PATHS if question.everywhere else HITS
    plays = members_of(policy, members, max(2, paths // len(members)), STAGE)
    plays += [Play(policy, worst, HITS, STAGE)] if question.everywhere else []
    there = replace(bench, horizon=horizon, pulls=0, playing=0.0, report=None, ready={})
    losses = there.losses(plays, "sensitivity")
    bench.count(there.pulls, "sensitivity")
    bench.playing += there.playing
    of_members = np.concatenate(losses[: len(members)])
    judged = [worst] if question.everywhere else members
    if all(problem.most_lost(horizon) < loss - question.slack for problem in judged):
        chance = Estimate(0.0, 0.0, 0.0, LEVEL)  # nobody can lose so much there
    else:
        asked = replace(question, horizon=horizon, loss=loss)
        chance = asked.chance(losses[-1] if question.everywhere else of_members)
    most = max(problem.most_lost(horizon) for problem in changed)
    return Misjudged(what, factor, loss, mean(of_members, (0.0, most), LEVEL), chance)
