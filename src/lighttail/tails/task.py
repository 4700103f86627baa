"""The question about a tail, the effort that the answer may take, and the answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from lighttail.bounds.bound import remembered
from lighttail.checks import Argument, BadInput, refuse
from lighttail.noises.noise import PILOT_ARMS, Noise, rewards_drawn
from lighttail.noises.tilts import Tilts
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.losing import Lost
from lighttail.outcomes.outcome import rounding
from lighttail.policies import Policy
from lighttail.records import Floats
from lighttail.system.progress import Report
from lighttail.tails.groups import LOST

PLAIN = Argument("method", ("plain",))  # counts simulated paths, whatever the task
MOST_PLANNED = 10**7  # pulls per path: a plan looks at every number of pulls
PAIRED = ("radius", "phases")  # `plays_by` of policies of which all ways with two arms are known
SMALLEST = 1e-100  # the smallest unit of rewards: squares of rewards and of their sums are floats
TRIED, NEAR = 1e-3, 1e-2  # a tilt that is tried, in units of the rewards, and the allowed relative error
ROUNDED = 1e-14  # the relative error that rounding causes in a difference of means


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
    progress: bool | Report

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
    def tilts(self) -> Tilts:
        """The tilts of the rewards, which exist if `why_not_tilted` returns None."""
        tilts = tilts_of(self.problem.noise)
        assert tilts is not None
        return tilts

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
        noise, tilts = self.problem.noise, tilts_of(self.problem.noise)
        needed = None
        if tilts is None:
            needed = "Gaussian or Bernoulli, or of a class that states its tilt and moves = True,"
        elif not SMALLEST <= tilts.unit <= 1.0 / SMALLEST:
            needed = f"of a sigma between {SMALLEST:g} and {1.0 / SMALLEST:g}"
        elif max(map(abs, self.problem.means)) > LOST * tilts.unit:
            needed = f"of a sigma that is at least {1.0 / LOST:g} of every mean"
        if needed is not None:
            instead, given = Argument("method", ("plain", "splitting")), f"is {noise!r}"
            allowed = f"{needed} for importance sampling"
            return refuse("noise", noise, allowed, found=given, more=("; use ", instead))
        remembered(_check_tilt, noise, self.problem.means)
        if self.horizon > MOST_PLANNED:
            allowed = f"at most {MOST_PLANNED} for importance sampling"
            return refuse("horizon", self.horizon, allowed, more=("; use ", PLAIN))
        return None


def tilts_of(noise: Noise) -> Tilts | None:
    """The tilts that a noise states, or None if it states none."""
    return noise.tilt() if noise.moves else None


@lru_cache(maxsize=16)
def _check_tilt(noise: Noise, means: tuple[float, ...]) -> None:
    """Raise BadInput if the stated tilts visibly do not fit the rewards that the noise draws.

    psi'(0) is the mean and psi''(0) the variance of a reward; psi' is the mean of the tilted law, and `lam`
    is the tilt to a mean. The variance may differ from that of some draws by a factor of 2.
    """
    tilts = tilts_of(noise)
    assert tilts is not None
    arms = range(min(len(means), PILOT_ARMS))
    true = np.array([means[arm] for arm in arms])
    step = TRIED / tilts.unit
    with np.errstate(all="ignore"):
        low, high = (np.asarray(tilts.psi(true, lam), dtype=np.float64) for lam in (-step, step))
        moved = np.asarray(tilts.mean(true, step), dtype=np.float64)
        there = np.asarray(tilts.lam(true, moved), dtype=np.float64)
    spread = rewards_drawn(noise, means, arms).var(axis=1)
    variance = (high + low) / step**2
    slack = NEAR * (tilts.unit + np.abs(true))
    rounded = ROUNDED * np.abs(true) / np.where(variance > 0.0, variance, np.inf)
    wrong = {
        "psi": ~(np.abs((high - low) / (2.0 * step) - true) <= slack)
        | ~(variance <= 2.0 * spread + slack * tilts.unit)
        | ~(variance >= 0.5 * spread - slack * tilts.unit),
        "mean": ~(np.abs(moved - true - step * variance) <= slack),
        "lam": ~(np.abs(there - step) <= NEAR * step + rounded) & (spread > 0.0),
    }
    for name, bad in wrong.items():
        if bad.any():
            mean = means[int(np.argmax(bad))]
            found = f"its {name} at the mean {mean:g} does not fit the rewards that the class draws"
            raise refuse(f"{type(noise).__name__}.tilt", None, "the tilts of its rewards", found=found)


def without_paths(chance: float, level: float, method: str = "certain", error: float = 0.0) -> TailEstimate:
    """The answer if no path is needed; `error` is the relative error that the value may have."""
    low, high = chance * (1.0 - error), min(1.0, chance * (1.0 + error))
    sure = Diagnostics(0, math.nan, math.nan, math.nan, error, low, high)
    return TailEstimate(chance, low, high, level, 0, 0, method, True, sure)


def kurtosis_of(values: Floats) -> float:
    """The fourth power of the values' distances from their mean, on average, over the variance squared."""
    spread = float(values.std())
    return float(np.mean((values - float(values.mean())) ** 4)) / spread**4 if spread > 0.0 else math.nan
