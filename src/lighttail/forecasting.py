"""Forecasts: what a running experiment may lose by its end (docs/forecasts.md).

A forecast is the law of the loss at the end, from the present state of the experiment. The means of the arms
are not known. Two answers are given: the average over what the rewards say about the means (a posterior law
with a stated prior), and the worst problem that was found within the confidence sequences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.checks import numbers, positive, refuse, whole
from lighttail.course import Beginning
from lighttail.delays import DelayLike
from lighttail.inference import Contradicted, Evidence, Limits, contradiction
from lighttail.inference.evidence import Heard
from lighttail.inference.sequences import LEVEL, parts_of_error
from lighttail.outcomes import estimates
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.format import amount, chance, chance_limits, interval, outward, probability, rounded
from lighttail.outcomes.losing import check_loss
from lighttail.problems import Bandit
from lighttail.random.streams import seed_from
from lighttail.records import Floats
from lighttail.running.continued import Window, continued
from lighttail.running.prepare import check_problem, check_seed, check_threads

__all__ = ["Forecast", "forecast_from"]

Play = Callable[[Floats, int], Floats]  # (means, seed) -> the loss of one path per row of means
PATHS = 10_000
MOST_PATHS = 1_000_000
BINS = 30  # of the picture of a law
SCREENED = 10  # the part of the paths with which all candidates for the worst problem are compared
CONFIRMED = 4  # the part of the paths that the worst candidate is played on, with fresh random numbers
AGAIN = 6  # candidates that are compared again, with more paths
RISES = (0.25, 0.5, 1.0)  # how far an arm is raised, as a part of the way to its upper limit
# The gaps of the other arms, in units of the least gap with which the loss is possible.
GAPS = (1.1, 1.5, 2.0, 3.0, 5.0, 10.0)
NOTHING = Heard(0, 0.0)  # rules out no mean that the rewards can have
MOST_RAISED = 12  # arms that may be the best arm of a candidate
EACH, FEWEST = 20, 100  # paths of every candidate that is compared, and of the worst one, at least


@dataclass(frozen=True)
class Forecast:
    """What an experiment loses by its end, those pulls included that were made before.

    loss: the loss whose chance is asked for. horizon: the pulls at the end. pulls: the pulls so far.
    losses: of every simulated path, in rising order; each path has its own means, drawn from their posterior.
    most: the largest loss that is possible; if means have no limits, the largest on any of the drawn means.
    so_far: the loss up to now: its posterior mean, and the least and the largest loss of the means within the
        confidence sequences and, if they were stated, within the limits of all means.
    worst: the chance on the worst problem that was found within the confidence sequences.
    worst_means: the means of that problem, by arm.
    """

    loss: float
    horizon: int
    pulls: int
    losses: Floats = field(repr=False)
    most: float
    so_far: Limits
    worst: Estimate
    worst_means: dict[Any, float]

    @cached_property
    def chance(self) -> Estimate:
        """The chance that the loss at the end is `loss` or more, averaged over the posterior law."""
        return estimates.exceedance(self.losses, self.loss, LEVEL)

    @cached_property
    def mean_loss(self) -> Estimate:
        """The mean loss at the end, averaged over the posterior law."""
        return estimates.mean(self.losses, (0.0, self.most), LEVEL)

    def quantile(self, share: float) -> Estimate:
        """The loss that is not exceeded with this chance."""
        return estimates.quantile(self.losses, share, LEVEL)

    def __str__(self) -> str:
        lost, found, worst = f"{amount(self.loss)} or more", self.chance, self.worst
        return (
            f"After {self.horizon:,} pulls the experiment will have lost {rounded(self.mean_loss.value)} "
            f"on average, and {lost} with a chance of {_said(found)}. On the worst problem that was found "
            f"within the confidence limits, the chance of losing {lost} is {_said(worst)}."
        )

    def _repr_html_(self) -> str:
        from lighttail.outcomes.notebook import table

        so_far = f"[{rounded(self.so_far.low)}, {rounded(self.so_far.high)}]"
        rows = [
            (f"loss after {self.pulls:,} pulls", (rounded(self.so_far.value), so_far)),
            (f"mean loss after {self.horizon:,} pulls", interval(self.mean_loss)),
            (f"chance of losing {amount(self.loss)} or more", probability(self.chance)),
            ("the same in the worst problem found", probability(self.worst)),
        ]
        return table("Forecast; 95 % intervals in brackets", ("", "value"), rows, str(self))

    def to_dict(self) -> dict[str, Any]:
        """As the service answers."""
        return {
            "loss": self.loss,
            "horizon": self.horizon,
            "pulls": self.pulls,
            "chance": self.chance.to_dict(),
            "worst": {**self.worst.to_dict(), "means": {str(arm): m for arm, m in self.worst_means.items()}},
            "mean_loss": self.mean_loss.to_dict(),
            "so_far": self.so_far.to_dict(),
            "distribution": self.distribution(),
        }

    def distribution(self, bins: int = BINS) -> dict[str, list[float]]:
        """The law of the loss at the end: the shares of the paths in bins of equal width, and the edges of
        the bins, one more than there are shares."""
        least, most = float(self.losses[0]), float(self.losses[-1])
        counts, edges = np.histogram(self.losses, bins, (least, most if most > least else least + 1.0))
        return {"edges": edges.tolist(), "shares": (counts / self.losses.size).tolist()}


def forecast_from(
    start: Beginning,
    arms: Sequence[Any],
    evidence: Evidence,
    *,
    horizon: int,
    loss: float,
    paths: int = PATHS,
    seed: int | None = None,
    threads: int | None = None,
    delay: DelayLike = None,
    between: tuple[float, float] | None = None,
    problem: Bandit | None = None,
    heard: Sequence[Heard] | None = None,
    floors: Sequence[tuple[int, float]] = (),
    window: Window | None = None,
    first: int | None = None,
    drawn_from: Sequence[Heard] | None = None,
    any_loss: bool = False,
) -> Forecast:
    """The forecast of an experiment in the state `start`.

    evidence: what is known about rewards. horizon: the pulls at the end. loss: in units of reward.
    paths: simulated ends; each has means of its own. delay: of rewards to come, as in `simulate`.
    between: two numbers between which all means are believed to lie, all values equally likely before rewards
        are seen. Without them, the prior is that of the evidence. Raises Contradicted if the rewards exclude
        them for some arm.
    problem: the means and the noise, if they are known; `chance` and `worst` are then those of this problem.
    heard: the rewards of each arm that are evidence about its mean; by default all that the policy heard.
    floors: the places of arms that are pulled with a chance of their own, whatever the policy chooses.
    window: how long a window keeps rewards back, in place of a delay. first: how many arms the experiment had
        at its beginning, if others were added. drawn_from: the rewards from which means are drawn, if they
        are others than `heard`, from which the limits of the means follow. any_loss: whether a loss that no
        policy can lose in these pulls is answered, and not refused.
    """
    if not isinstance(evidence, Evidence):
        raise refuse("rewards", evidence, "BoundedRewards(low, high) or SubGaussianRewards(sigma)")
    if problem is not None and (check_problem(problem).linear or problem.dim != len(arms)):
        raise refuse("problem", problem, f"a Bandit with {len(arms)} arms, or left out")
    horizon = whole("horizon", horizon, max(1, start.rounds), f", the pulls so far ({start.rounds:,})")
    loss, paths = positive("loss", loss), whole("paths", paths, 100, most=MOST_PATHS)
    seed, use, believed = check_seed(seed), check_threads(threads), believed_limits(between)
    if heard is None:
        pairs = zip(*start.counts[1:3], strict=True)
        heard = [Heard(int(times), float(total)) for times, total in pairs]
    for arm, one in zip(arms, heard, strict=True):
        evidence.check(f"the sum of the rewards of {arm!r}", one)
    noise = evidence.noise if problem is None else problem.noise
    more: Any = {"threads": use, "delay": delay, "floors": floors, "window": window}

    def play(means: Floats, seed: int) -> Floats:
        return lost(continued(start, noise, means, horizon, seed=seed, **more), means)

    if problem is None:
        known = heard if drawn_from is None else drawn_from
        limits = _within(arms, heard, evidence, believed, first)
        _check_loss(loss, horizon, *_range(evidence, believed), any_loss)
        means = evidence.posterior(known, np.random.default_rng([seed, 0]), paths, believed)
        candidates = _candidates(limits, means, believed, loss / horizon)
    else:
        _check_loss(loss, horizon, min(problem.means), max(problem.means), any_loss)
        means, limits = np.tile(problem.means, (paths, 1)), [(mean, mean) for mean in problem.means]
        candidates = means[:1]
    losses = np.sort(play(means, seed))
    worst, worst_means = _worst(play, candidates, loss, paths, seed)
    return Forecast(
        loss=loss,
        horizon=horizon,
        pulls=start.rounds,
        losses=losses,
        most=_widest(evidence, between, means, problem is not None) * horizon,
        so_far=_so_far(start.counts[0], means, limits),
        worst=worst,
        worst_means=dict(zip(arms, worst_means.tolist(), strict=True)),
    )


def _within(
    arms: Sequence[Any], heard: Sequence[Heard], evidence: Evidence, between: Any, first: int | None
) -> list[tuple[float, float]]:
    """The limits of each mean, which hold at all times, within `between`. Raises Contradicted if the limits
    of some mean are outside: then no forecast with these numbers is right."""
    parts = parts_of_error(len(heard), first)
    limits = [
        evidence.limits(one, -math.log(part * (1.0 - LEVEL))) for one, part in zip(heard, parts, strict=True)
    ]
    if between is None:
        return limits
    if (detail := contradiction(dict(zip(arms, limits, strict=True)), between)) is not None:
        raise Contradicted("between", between, detail)
    return [(max(low, between[0]), min(high, between[1])) for low, high in limits]


def _range(evidence: Evidence, between: tuple[float, float] | None) -> tuple[float, float]:
    """The limits within which all means lie, whatever the rewards say."""
    low, high = evidence.limits(NOTHING, 1.0)
    return (low, high) if between is None else (max(low, between[0]), min(high, between[1]))


def _check_loss(loss: float, horizon: int, low: float, high: float, any_loss: bool) -> None:
    """Refuse a loss that no policy can lose. Limits that exclude one another are refused elsewhere."""
    if low <= high and not any_loss:
        check_loss("loss", loss, horizon * (high - low), horizon, f" with means from {low:g} to {high:g}")


def _widest(evidence: Evidence, between: Any, means: Floats, known: bool) -> float:
    """The largest gap: that of the limits of all means or, if there are none or the means are known, of the
    drawn means."""
    low, high = evidence.limits(NOTHING, 1.0) if between is None else between
    if known or not math.isfinite(high - low):
        return float(np.ptp(means, axis=1).max())
    return float(high - low)


def believed_limits(between: Any) -> tuple[float, float] | None:
    """Two rising numbers, or None."""
    if between is None:
        return None
    allowed = "two numbers, the lower one first"
    low, high = numbers("between", between, 2, allowed, 2)
    if not low < high:
        raise refuse("between", between, allowed)
    return low, high


def lost(pulls: npt.NDArray[Any], means: Floats) -> Floats:
    """The pseudo regret of each row: the gaps of its means times its pulls."""
    gaps = means.max(axis=1, keepdims=True) - means
    return np.asarray((gaps * pulls).sum(axis=1), dtype=np.float64)


def _so_far(tried: Floats, means: Floats, limits: list[tuple[float, float]]) -> Limits:
    """The loss so far: its posterior mean, and its range over all means within the limits.

    The loss sum_k n_k (max_j mu_j - mu_k) is convex in the means, so that it is largest in a corner: one arm
    at its upper limit, and the others at their lower limits. It is least if all means within reach are equal
    to the least possible best mean.
    """
    value = float(lost(np.broadcast_to(tried, means.shape), means).mean())
    low, high = np.array(limits).T
    top = low.max()
    least = float((tried * np.maximum(0.0, top - high)).sum())
    most = 0.0
    for arm in range(len(limits)):
        corner = low.copy()
        corner[arm] = high[arm]
        losing = (tried > 0.0) & (corner < corner.max())  # limits may be infinite, and 0 times them is nan
        most = max(most, float((tried[losing] * (corner.max() - corner[losing])).sum()))
    return Limits(value, least, most)


def _candidates(limits: list[tuple[float, float]], means: Floats, between: Any, least_gap: float) -> Floats:
    """Problems within the limits, of which the worst is sought: one arm is raised towards its upper limit,
    and the others keep their posterior means, are at their lower limits, or are below the raised arm by gaps
    that are hard to see."""
    middle, far = means.mean(axis=0), 6.0 * means.std(axis=0)
    low, high = np.array(limits).T
    low, high = np.maximum(low, middle - far), np.minimum(high, middle + far)
    if between is not None:
        low, high = np.clip(low, *between), np.clip(high, *between)
    middle = np.clip(middle, low, high)
    problems = []
    for arm in np.argsort(-high)[:MOST_RAISED]:
        for share in RISES:
            top = middle[arm] + share * (high[arm] - middle[arm])
            near = [np.clip(np.full(low.size, top - gap * least_gap), low, high) for gap in GAPS]
            for others in (middle, low, *near):
                candidate = others.copy()
                candidate[arm] = top
                problems.append(candidate)
    return np.array(problems)


def _worst(play: Play, candidates: Floats, loss: float, paths: int, seed: int) -> tuple[Estimate, Floats]:
    """The candidate with the highest chance, and its chance from paths that did not choose it."""
    for stage in (1, 2):
        each = _each(paths, len(candidates))
        candidates = _ranked(play, candidates, loss, each, seed_from(seed, stage))[:AGAIN]
    again = play(np.tile(candidates[0], (max(FEWEST, paths // CONFIRMED), 1)), seed_from(seed, 3))
    return estimates.exceedance(np.sort(again), loss, LEVEL), candidates[0]


def _each(paths: int, candidates: int) -> int:
    return max(EACH, paths // SCREENED // candidates)


def stages(paths: int, arms: int) -> tuple[int, ...]:
    """How many paths each stage of a forecast plays, at most: the average over the posterior law, two looks
    at candidates for the worst problem, and the worst one again.

    >>> stages(10_000, 2), stages(100, 1000)
    ((10000, 960, 996, 2500), (100, 5760, 120, 100))
    """
    many = min(arms, MOST_RAISED) * len(RISES) * (2 + len(GAPS))
    again = min(AGAIN, many)
    looks = many * _each(paths, many), again * _each(paths, again)
    return paths, *looks, max(FEWEST, paths // CONFIRMED)


def _ranked(play: Play, candidates: Floats, loss: float, each: int, seed: int) -> Floats:
    """The candidates by their chance; if no path loses that much, by their largest losses."""
    losses = play(np.repeat(candidates, each, axis=0), seed).reshape(len(candidates), each)
    large = np.quantile(losses, 0.9, axis=1)
    return candidates[np.lexsort((large, (losses >= loss).mean(axis=1)))[::-1]]


def _said(found: Estimate) -> str:
    if found.value == 0.0:
        return f"at most {outward(found.high)}"
    return f"{chance(found.value)} ({chance_limits(found.value, found.low, found.high)})"
