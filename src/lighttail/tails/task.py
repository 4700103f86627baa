"""The question about a tail, the effort that the answer may take, and the answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lighttail.bounds.bound import remembered
from lighttail.checks import Argument, BadInput, refuse
from lighttail.noises.tilts import Tilts
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.losing import Lost
from lighttail.outcomes.outcome import rounding
from lighttail.policies import Policy
from lighttail.records import Floats
from lighttail.running.prepare import Progress
from lighttail.tails.tilts import check_tilt, tilts_of, why_not_tilted

PLAIN = Argument("method", ("plain",))  # counts simulated paths, whatever the task
MOST_PLANNED = 10**7  # pulls per path: a plan looks at every number of pulls
PAIRED = ("radius", "phases")  # `plays_by` of policies of which all ways with two arms are known


@dataclass(frozen=True)
class Diagnostics:
    """Whether to trust an estimate from weights.

    hits: paths on the event. largest_share: the largest weight's share of the sum of weights. kurtosis: of
    the weights. weight_bound: no weight can exceed this bound (nan without weights). relative_error: half
    the interval's width over the value, or the largest share if this is more. sure_low, sure_high: an
    interval that holds at this number of paths for every law of weights below their bound (empirical
    Bernstein); if there is doubt, it is cut at a bound that is known without simulation. played: "step"
    pull by pull, or "skip" if paths skip ahead. opinions: what each plan would have answered alone. doubt:
    a sentence that says why the estimate is not to be trusted; empty if it can be trusted. stopped: what
    ended the run before the relative error was reached; empty if it was reached. score: the score by which
    paths were split.
    """

    hits: int
    largest_share: float
    kurtosis: float
    weight_bound: float
    relative_error: float
    sure_low: float
    sure_high: float
    played: str = "step"
    opinions: tuple[float, ...] = ()
    doubt: str = ""
    stopped: str = ""
    score: str = ""


@dataclass(frozen=True)
class TailEstimate(Estimate):
    """A probability with its interval, how it was found, and what it took.

    reached: whether the answer has the relative error that was asked for and can be trusted: the weights are
    bounded, or two independent plans agree, or plain paths or enough repetitions were counted. If `reached`
    is False, `diagnostics.doubt` says why the estimate cannot be trusted or, if the interval is sound but
    wide, `diagnostics.stopped` says what ended the run.
    """

    paths: int
    pulls: int
    method: str
    reached: bool
    diagnostics: Diagnostics

    def _shown(self) -> dict[str, str]:
        why = self.diagnostics.doubt or self.diagnostics.stopped
        reached = "yes" if self.reached else f"no: {why}"
        found = {"found by": self.method, "paths": f"{self.paths:,}", "can be trusted": reached}
        return super()._shown() | found


@dataclass(frozen=True)
class Effort:
    """The wanted precision and confidence, the seed, and the limits on the work."""

    relative_error: float
    level: float
    seed: int
    most_pulls: int
    threads: int
    progress: bool | Progress

    @property
    def z(self) -> float:
        from scipy.special import ndtri

        return float(ndtri(0.5 + self.level / 2.0))


@dataclass(frozen=True)
class Task:
    """P(kind >= regret) of a policy on a problem."""

    policy: Policy
    problem: Any  # a Bandit; for plain simulation a LinearBandit, too
    horizon: int
    regret: float
    kind: Lost

    @cached_property
    def means(self) -> Floats:
        return np.array(self.problem.means)

    @cached_property
    def target(self) -> float:
        """The regret minus the most that rounding may take from a path with this regret."""
        return self.regret - rounding(self.regret, self.kind, self.means, self.horizon)

    @cached_property
    def family(self) -> Tilts:
        """The tilts of the rewards, which exist if `why_not_tilted` returns None."""
        family = tilts_of(self.problem.noise)
        assert family is not None
        return family

    @property
    def luck_counts(self) -> bool:
        """Whether the luck of the rewards counts, so that a path is decided by its last reward."""
        return self.kind == "regret"

    def certain(self) -> float | None:
        """The probability if it is known to be 0 or 1 without simulation, otherwise None."""
        if self.luck_counts:  # the regret is largest with the smallest reward at every pull
            span = self.problem.noise.span(self.problem.means)
            most = math.inf if span is None else (max(self.problem.means) - span[0]) * self.horizon
            return 0.0 if self.target > most else None
        gaps = self.problem.gaps
        first = sum(gaps) if self.policy.pulls_every_arm_first else 0.0
        if self.target <= first:  # every arm is pulled once
            return 1.0
        pulls = self.horizon - (self.problem.arms - 1 if first else 0)
        most = max(gaps) * pulls + (first - max(gaps) if first else 0.0)
        return 0.0 if self.target > most else None

    @property
    def every_way_counted(self) -> bool:
        """Whether a plan has every way to the event: if it has no route, the event cannot happen."""
        return not self.luck_counts and self.problem.arms == 2 and self.policy.plays_by in PAIRED

    def why_not_tilted(self) -> BadInput | None:
        """The refusal if importance sampling cannot be used for this task, otherwise None."""
        noise = self.problem.noise
        needed = why_not_tilted(noise, self.problem.means)
        if needed is not None:
            instead, given = Argument("method", ("plain", "splitting")), f"is {noise!r}"
            allowed = f"{needed} for importance sampling"
            return refuse("noise", noise, allowed, found=given, more=("; use ", instead))
        remembered(check_tilt, noise, self.problem.means)
        if self.horizon > MOST_PLANNED:
            allowed = f"at most {MOST_PLANNED} for importance sampling"
            return refuse("horizon", self.horizon, allowed, more=("; use ", PLAIN))
        return None


def certainly(chance: float, level: float, method: str = "certain", error: float = 0.0) -> TailEstimate:
    """The answer if no path is needed; `error` is the relative error that the value may have."""
    low, high = chance * (1.0 - error), min(1.0, chance * (1.0 + error))
    sure = Diagnostics(0, math.nan, math.nan, math.nan, error, low, high)
    return TailEstimate(chance, low, high, level, 0, 0, method, True, sure)
