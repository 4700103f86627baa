"""The chance of a large regret by simulation, down to any level."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lighttail import statistics
from lighttail.keeping import fitting_paths
from lighttail.linear import LinearBandit
from lighttail.methods import Played, work_of
from lighttail.outcome import rounding
from lighttail.policies import UCB, Policy, SuccessiveElimination
from lighttail.problems import Bandit, Bernoulli
from lighttail.progress import compiling, noted, reporter
from lighttail.simulate import (
    Progress,
    block_paths,
    check_settings,
    run_blocks,
    simulate,
    usable_processors,
)
from lighttail.statistics import Estimate, Floats
from lighttail.streams import block_generator
from lighttail.tails.plan import Plan, loss_plan, regret_plan
from lighttail.tails.play import block_of_paths, choose_played
from lighttail.tails.tilts import family_of
from lighttail.validation import BadInput, confidence, number, positive, refuse, whole

Kind = Literal["pseudo_regret", "regret"]
Method = Literal["auto", "importance", "plain", "splitting"]
FIRST = 4096  # paths before the first look
MOST_PATHS = 4_000_000  # whose weights are kept
MOST_PULLS = 2_000_000_000
DEARER = 2.5  # a tilted pull costs about so many plain ones
SHARE = 0.05  # of all weights that one may have at most in an estimate to be trusted
UNSEEN = 3.0  # where only untilted paths bound the weights, a larger one may be so many times the largest


@dataclass(frozen=True)
class Diagnostics:
    """Whether to trust an estimate from weights.

    hits: paths on the event. largest_share: the largest weight's share of their sum. kurtosis: of the
    weights. weight_bound: no weight can exceed it (nan without weights). relative_error: half the
    interval's width over the value, or the largest share if that is more. sure_low, sure_high: an
    interval that holds at this number of paths, whatever the law of the weights below their bound
    (empirical Bernstein). played: "step" pull by pull, or "skip" where paths skip ahead.
    """

    hits: int
    largest_share: float
    kurtosis: float
    weight_bound: float
    relative_error: float
    sure_low: float
    sure_high: float
    played: str = "step"


@dataclass(frozen=True)
class TailEstimate(Estimate):
    """A probability with its interval, how it was found, and what it took.

    reached: whether the relative error that was asked for was reached before the budget ended.
    """

    paths: int
    pulls: int
    method: str
    reached: bool
    diagnostics: Diagnostics


def tail_probability(
    policy: Policy,
    problem: Bandit | LinearBandit,
    horizon: int,
    regret: float,
    *,
    kind: Kind = "pseudo_regret",
    relative_error: float = 0.05,
    level: float = 0.95,
    seed: int | None = None,
    method: Method = "auto",
    most_pulls: int = MOST_PULLS,
    threads: int | None = None,
    progress: bool | Progress = False,
) -> TailEstimate:
    """P(kind >= regret), however small, from simulated paths.

    kind: "pseudo_regret" or "regret".
    relative_error: stop once half the interval's width is this share of the value.
    most_pulls: stop at this budget if it is not; the estimate's `reached` says which.
    method: "importance" draws paths under tilted laws and weights them (UCB, SuccessiveElimination
        and ThompsonSampling; Gaussian and Bernoulli rewards), "plain" counts simulated paths,
        "splitting" is a slow check of both; "auto" takes the cheaper of the first two. A LinearBandit
        is simulated plainly. A chance below 2.2e-308 is given as that.
    seed, threads, progress: as in `simulate`.

    docs/rare-events.md says how it works and when to trust it.

    >>> import lighttail as lt
    >>> problem = lt.Bandit([0.2, 0.8])
    >>> print(lt.tail_probability(lt.UCB(lt.LightTailed(0.2)), problem, 4000, 801, seed=1))
    1.573e-18 [1.547e-18, 1.643e-18]
    """
    threads = usable_processors() if threads is None else threads
    check_settings(policy, problem, horizon, 1, seed, threads)
    regret, level = number("regret", regret), confidence("level", level)
    positive("relative_error", relative_error)
    most_pulls = whole("most_pulls", most_pulls, 1)
    if kind not in ("pseudo_regret", "regret"):
        raise refuse("kind", kind, "'pseudo_regret' or 'regret'")
    if method not in ("auto", "importance", "plain", "splitting"):
        raise refuse("method", method, "'auto', 'importance', 'plain' or 'splitting'")
    seed = int(np.random.SeedSequence().entropy) if seed is None else int(seed)  # type: ignore[arg-type]
    task = Task(policy, problem, int(horizon), regret, kind)
    effort = Effort(relative_error, level, seed, int(most_pulls), threads, progress)
    if isinstance(problem, LinearBandit):
        if method in ("importance", "splitting"):
            raise refuse("problem", problem, f"a Bandit for method {method!r}; use method='plain'")
        return _plain(task, effort)
    certain = task.certain()
    if certain is not None:
        return _certain(certain, level)
    if method == "plain":
        return _plain(task, effort)
    if method == "splitting":
        from lighttail.tails.splitting import split

        return split(task, effort)
    why_not = task.no_tilts()
    if why_not is not None:
        if method == "importance":
            raise BadInput(why_not)
        return _plain(task, effort)
    return _importance(task, effort, may_change=method == "auto")


def _certain(chance: float, level: float) -> TailEstimate:
    sure = Diagnostics(0, math.nan, math.nan, math.nan, 0.0, chance, chance)
    return TailEstimate(chance, chance, chance, level, 0, 0, "certain", True, sure)


@dataclass(frozen=True)
class Task:
    """P(kind >= regret) of a policy on a problem."""

    policy: Policy
    problem: Any  # a Bandit; for plain simulation a LinearBandit, too
    horizon: int
    regret: float
    kind: Kind

    @property
    def target(self) -> float:
        """The regret less what rounding may take from a path that reaches it."""
        means = np.array(self.problem.means)
        return self.regret - rounding(self.regret, self.kind, means, self.horizon)

    def certain(self) -> float | None:
        """The probability where it is 0 or 1 without any simulation."""
        if self.kind == "regret":  # without a single reward it is as large as it can be
            best = max(self.problem.means) * self.horizon
            return 0.0 if isinstance(self.problem.noise, Bernoulli) and self.target > best else None
        gaps = self.problem.gaps
        first = sum(gaps) if isinstance(self.policy, (UCB, SuccessiveElimination)) else 0.0
        if self.target <= first:  # every arm is pulled once
            return 1.0
        pulls = self.horizon - (self.problem.arms - 1 if first else 0)
        most = max(gaps) * pulls + (first - max(gaps) if first else 0.0)
        return 0.0 if self.target > most else None

    @property
    def every_way_counted(self) -> bool:
        """Whether a plan would have every way to the event, so that none means that it cannot happen."""
        index_or_phases = isinstance(self.policy, (UCB, SuccessiveElimination))
        return self.kind == "pseudo_regret" and self.problem.arms == 2 and index_or_phases

    def no_tilts(self) -> str | None:
        """Why importance sampling is not for this task, if it is not."""
        from lighttail.policies import Exp3IX

        if family_of(self.problem.noise) is None:
            given = f"{self.problem.noise!r}; use method='plain' or 'splitting'"
            return f"noise must be Gaussian or Bernoulli for importance sampling, but is {given}"
        if isinstance(self.policy, Exp3IX):
            given = f"{self.policy!r}; use method='plain'"
            return f"policy must not be Exp3IX for importance sampling, but is {given}"
        return None

    def plan(self) -> Plan | None:
        """The mixture to draw from; None where no tilt leads to the event."""
        make = loss_plan if self.kind == "pseudo_regret" else regret_plan
        family = family_of(self.problem.noise)
        assert family is not None
        return make(self.policy, self.problem, family, self.horizon, self.target)


@dataclass(frozen=True)
class Effort:
    """How exact, how sure, from which seed, and at what cost at most."""

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


def _importance(task: Task, effort: Effort, may_change: bool) -> TailEstimate:
    """Look, and go on, until the error is small or the budget spent."""
    shown = effort.progress is not False
    with noted(f"planning the paths of {task.policy}", shown):
        plan = task.plan()
    if plan is None and task.every_way_counted:
        return _certain(0.0, effort.level)
    if plan is None:
        return _plain(task, effort)
    with compiling(str(task.policy), shown):  # pilots compile a kernel
        where = (task.policy, task.problem, plan, task.horizon, task.target, task.kind == "regret")
        played, work = choose_played(*where)
    play = _player(task, plan, effort, played)
    size = block_paths(task.horizon, played)
    paths = _whole_blocks(min(FIRST, max(1, int(effort.most_pulls / work))), size)
    log_weight, rounds = np.empty(0), np.empty(0, dtype=np.int64)
    looks = 0
    while True:
        log_weight, rounds = play(log_weight, rounds, paths)
        looks += 1
        weights, unit = _scaled(log_weight, plan)
        pulls = int(rounds.sum())
        spent = pulls / paths if played == "step" else work  # a path, in pulls
        if may_change and looks == 1 and _plain_is_cheaper(weights, unit, spent, work):
            return _plain(task, effort)
        most = min(MOST_PATHS, int(effort.most_pulls / max(1e-9, spent)))
        found = _estimate(weights, unit, plan, looks, pulls, most, effort, played)
        error = found.diagnostics.relative_error
        wanted = paths * min(8.0, max(2.0, 1.2 * (error / effort.relative_error) ** 2))
        following = _whole_blocks(int(min(wanted, most)), size)
        if found.reached or following <= paths:
            return found
        paths = following


def _player(
    task: Task, plan: Plan, effort: Effort, played: Played = "step"
) -> Callable[..., tuple[Floats, Any]]:
    """A function that plays more paths: (log weights, rounds) of all paths so far."""
    policy, horizon = task.policy, task.horizon
    play_block = block_of_paths(
        policy, task.problem, plan, horizon, task.target, task.kind == "regret", played
    )
    size, stop = block_paths(horizon, played), np.zeros(1, dtype=np.int64)

    def play(log_weight: Floats, rounds: Any, paths: int) -> tuple[Floats, Any]:
        done = log_weight.size
        log_weight = np.append(log_weight, np.empty(paths - done))
        rounds = np.append(rounds, np.empty(paths - done, dtype=np.int64))

        def block_of(block: int, until: int) -> int:
            part = slice(block * size, until)
            play_block(block_generator(effort.seed, block), log_weight[part], rounds[part], stop)
            return until - block * size

        with reporter(effort.progress, str(policy), paths) as report:
            with compiling(str(policy), effort.progress is not False):
                block_of(0, 0)
            run_blocks(block_of, size, paths, effort.threads, stop, report, done)
        return log_weight, rounds

    return play


def _whole_blocks(paths: int, size: int) -> int:
    return max(1, math.ceil(paths / size)) * size


def _scaled(log_weight: Floats, plan: Plan) -> tuple[Floats, float]:
    """The weights in units of exp(unit), and that unit: they may be smaller than any float.

    A weight beyond a tight bound comes from a route that was left out because its chance is below
    1e-12 of the bound: it counts as the bound.
    """
    unit = float(np.max(log_weight))
    unit = unit if math.isfinite(unit) else plan.log_bound
    return np.exp(np.minimum(log_weight, plan.log_bound) - unit), unit


def _plain_is_cheaper(weights: Floats, unit: float, rounds: float, plain: float) -> bool:
    """Whether counting plain paths takes less work for the same error, by the first look.

    rounds, plain: the work of a weighted path and of a plain one, in pulls.
    """
    mean = float(weights.mean())
    chance = mean * math.exp(unit)
    if not 0.0 < chance < 1.0:
        return False
    tilted = DEARER * rounds * float(weights.var()) / mean**2
    return plain * (1.0 - chance) / chance <= tilted


def _estimate(
    weights: Floats,
    unit: float,
    plan: Plan,
    looks: int,
    pulls: int,
    most: int,
    effort: Effort,
    played: Played,
) -> TailEstimate:
    """From the weights of all paths so far; `most`: as many as there may be.

    The interval is that of a mean between 0 and the weights' bound. A bound so large that it alone would
    ask for more paths than there may be is set aside, as is one that only untilted paths give: a few
    times the largest weight seen stands in, and no weight may make up more than the error asked for.
    """
    scale, hits = math.exp(unit), int(np.count_nonzero(weights))
    bound = math.exp(min(700.0, plan.log_bound - unit))
    mean, largest = float(weights.mean()), float(weights.max())
    helps = plan.tight and 4.0 * bound <= effort.relative_error * mean * most
    end = bound if helps or not hits else min(bound, UNSEEN * largest)
    guess = statistics.mean(weights, (0.0, end), effort.level)
    share, error, kurtosis = math.nan, math.inf, math.nan
    if hits:
        share, spread = largest / float(weights.sum()), float(weights.std())
        error = effort.z * spread / math.sqrt(weights.size) / mean
        error = max(error, (guess.high - guess.low) / (2.0 * mean) if helps else share)
        kurtosis = float(np.mean((weights - mean) ** 4)) / spread**4 if spread > 0.0 else math.nan
    # One interval for each look, so that stopping when it looks good does no harm.
    slip = (1.0 - effort.level) / (looks * (looks + 1))
    reach = bernstein(weights, bound, slip)
    diagnostics = Diagnostics(
        hits=hits,
        largest_share=share,
        kurtosis=kurtosis,
        weight_bound=math.exp(plan.log_bound),
        relative_error=error,
        sure_low=max(0.0, mean - reach) * scale,
        sure_high=max(sys.float_info.min, min(1.0, (mean + reach) * scale)),
        played=played,
    )
    # A chance too small for a float is given as the smallest one, not as 0.
    least = sys.float_info.min if hits else 0.0
    value, high = max(least, mean * scale), max(least, min(1.0, guess.high * scale))
    interval = (value, guess.low * scale, high, effort.level)
    reached = error <= effort.relative_error and (helps or share <= SHARE)
    return TailEstimate(*interval, weights.size, pulls, "importance sampling", reached, diagnostics)


def bernstein(sample: Floats, bound: float, slip: float) -> float:
    """How far the mean of an outcome in [0, bound] may be from the sample's, but for a chance `slip`.

    sqrt(2 V ln(4/slip) / n) + 7 bound ln(4/slip) / (3 (n - 1)), V the sample variance with n - 1
    (Maurer and Pontil 2009, Thm 4, at slip / 2 on each side).
    """
    n, log = sample.size, math.log(4.0 / slip)
    if n < 2:
        return bound
    return math.sqrt(2.0 * float(sample.var(ddof=1)) * log / n) + 7.0 * bound * log / (3.0 * (n - 1))


def _plain(task: Task, effort: Effort) -> TailEstimate:
    """Count simulated paths."""
    work = work_of(task.policy, task.problem, task.horizon)
    most = max(1, min(MOST_PATHS, int(effort.most_pulls / work), fitting_paths(task.problem)))
    paths = min(FIRST, most)
    while True:
        out = simulate(
            task.policy,
            task.problem,
            horizon=task.horizon,
            paths=paths,
            seed=effort.seed,
            threads=effort.threads,
            progress=effort.progress,
        )
        hits = int(np.sum(out.reaches(task.regret, task.kind)))
        error = effort.z * math.sqrt((1.0 - hits / paths) / hits) if hits else math.inf
        wanted = paths * min(64.0, max(2.0, 1.2 * (error / effort.relative_error) ** 2))
        following = int(min(wanted, most))
        if error <= effort.relative_error or following <= paths:
            break
        paths = following
    found = statistics.proportion(hits, paths, effort.level)
    share = 1.0 / hits if hits else math.nan
    limits = Diagnostics(hits, share, math.nan, math.nan, error, found.low, found.high, out.method)
    reached = error <= effort.relative_error
    pulls = paths * task.horizon
    interval = (found.value, found.low, found.high, effort.level)
    return TailEstimate(*interval, paths, pulls, "plain simulation", reached, limits)
