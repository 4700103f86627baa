"""The chance of a large regret, however small: exact if a law is affordable, otherwise simulated."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, cast, get_args

import numpy as np

from lighttail.bounds.bound import TINY
from lighttail.checks import (
    Argument,
    BadInput,
    confidence,
    number,
    one_of,
    positive,
    refuse,
    whole,
    whole_float,
)
from lighttail.course import STRAIGHT, Course, check_course
from lighttail.delays import DelayLike
from lighttail.outcomes import estimates
from lighttail.outcomes.losing import Lost, check_lost
from lighttail.policies import Policy
from lighttail.problems import MOST_SUM, Problem
from lighttail.rehearsal import try_out
from lighttail.running.blocks import compiled_in_sentences
from lighttail.running.prepare import check_settings, fitting_paths, work_of
from lighttail.running.simulate import simulate
from lighttail.system.progress import Report
from lighttail.tails.exact import LEAST
from lighttail.tails.known import EXACT_ERROR, certain_chance, exact_way, known_limit
from lighttail.tails.splitting import split
from lighttail.tails.task import PLAIN, Diagnostics, Effort, TailEstimate, Task, without_paths
from lighttail.tails.weighted import FIRST, MOST_WEIGHTS, importance, most_paths

MOST_ASKED = 10**18  # pulls; a larger budget is cut to this number, which a float can hold
TailMethod = Literal["auto", "exact", "importance", "plain", "splitting"]
METHODS: tuple[str, ...] = get_args(TailMethod)
COUNTED = ("auto", "plain")  # methods that count plain paths, whatever the problem and the delays
MOST_PULLS = 2_000_000_000  # the budget unless one is given
AFFORDABLE = 2.0  # seconds that "auto" spends on an exact law at most


def tail_probability(
    policy: Policy,
    problem: Problem,
    horizon: int,
    regret: float,
    *,
    kind: Lost = "pseudo_regret",
    relative_error: float = 0.05,
    level: float = 0.95,
    seed: int | None = None,
    method: TailMethod = "auto",
    most_pulls: int = MOST_PULLS,
    threads: int | None = None,
    progress: bool | Report = False,
    delay: DelayLike = None,
    batch: int | None = None,
) -> TailEstimate:
    """P(kind >= regret), however small.

    kind: "pseudo_regret" or "regret".
    relative_error: stop once half the interval's width is this share of the value.
    most_pulls: stop at this budget even if the error is larger; the estimate's `reached` is then False.
    method: "exact" computes the chance (UCB with a bonus that ignores time; Bernoulli rewards at short
        horizons), "importance" draws paths under tilted laws and weights them (every policy; Gaussian and
        Bernoulli rewards), "plain" counts simulated paths, "splitting" is a slow check of both; "auto" takes
        an exact law that costs a second or two, otherwise the cheaper of "importance" and "plain". For a
        LinearBandit plain paths are counted. A chance below 2.2e-308 is given as 2.2e-308.
    seed, threads, progress: as in `simulate`.
    delay, batch: as in `simulate`; if rewards come late, "auto" and "plain" count paths, and no other
        method is possible.

    `reached` is a promise: the weights are bounded, or two plans that were found independently agree. If
    they disagree, `diagnostics.doubt` says so and the interval is widened to `sure_low` and `sure_high`.
    docs/rare-events.md says how it works and when to trust it.

    >>> import lighttail as lt
    >>> problem = lt.Bandit([0.2, 0.8])
    >>> print(lt.tail_probability(lt.UCB(lt.LightTailed(0.2)), problem, 4000, 801, seed=1))
    1.573e-18 [1.547e-18, 1.643e-18]
    """
    checked = check_settings(policy, problem, horizon, paths=1, seed=seed, threads=threads)
    if hasattr(problem, "arms"):
        try_out(policy, checked.horizon, problem.arms, late=False)
    regret, level = asked_regret(regret), confidence("level", level)
    relative_error = positive("relative_error", relative_error)
    most_pulls = min(whole("most_pulls", whole_float(most_pulls), 1), MOST_ASKED)
    method = cast(TailMethod, one_of("method", method, METHODS))
    course = check_course(policy, problem, checked.horizon, delay, batch)
    if method not in COUNTED and not course.straight:
        raise refuse("method", method, (Argument("", COUNTED), " with a delay or a batch"))
    task = Task(policy, problem, checked.horizon, regret, check_lost(kind))
    effort = Effort(relative_error, level, checked.seed, most_pulls, checked.threads, progress)
    if not problem.independent:
        if method not in COUNTED:
            raise refuse("problem", problem, (f"a Bandit for method {method!r}; use ", PLAIN))
        return _plain(task, effort)
    with compiled_in_sentences(policy, problem):
        certain = certain_chance(task) if course.straight else task.certain()
        if certain is not None:
            return without_paths(certain, level)
        if not course.straight:
            return _plain(task, effort, course)
        return _cut_at_most(ANSWERS[method](task, effort), task)


def _cut_at_most(estimate: TailEstimate, task: Task) -> TailEstimate:
    """The estimate, cut at a bound that the chance cannot exceed, whatever the luck of the paths was."""
    if estimate.method in ("certain", "exact") or estimate.value <= 0.0:
        return estimate
    most = known_limit(task)
    if estimate.high <= most:
        return estimate
    value = min(estimate.value, most)
    low = min(estimate.low, value * estimate.low / estimate.value)  # keep the ratio if all was above
    about = estimate.diagnostics
    about = replace(about, sure_low=min(about.sure_low, low), sure_high=min(about.sure_high, most))
    return replace(estimate, value=value, low=low, high=most, diagnostics=about)


def asked_regret(regret: Any) -> float:
    """The regret whose chance is asked for. Raises BadInput if no path's sum can be as large."""
    x = number("regret", regret)
    if abs(x) > MOST_SUM:
        raise refuse("regret", x, f"at most {MOST_SUM:g} in size, as the sum of a path's rewards is")
    return x


def _auto(task: Task, effort: Effort) -> TailEstimate:
    """The best method that is affordable."""
    way = exact_way(task)
    if not isinstance(way, BadInput) and way[0] <= AFFORDABLE:
        with suppress(BadInput):  # the noise may be too small for the law
            exact = _estimate_of_exact(way[1], task, effort)
            if exact.low > 0.0 or exact.high == 0.0:  # otherwise the chance is too small for the law
                return exact
    if task.why_not_tilted() is not None:
        return _plain(task, effort)
    found = importance(task, effort, may_change=True)
    return _plain(task, effort) if found is None or _better_counted(found, task, effort) else found


def _better_counted(estimate: TailEstimate, task: Task, effort: Effort) -> bool:
    """Whether there is doubt, and the budget allows enough plain paths to end the doubt."""
    if not estimate.diagnostics.doubt or estimate.value <= 0.0:
        return False
    precision = min(effort.z / effort.relative_error, MOST_WEIGHTS)  # a float can hold its square
    paths = precision**2 / estimate.value
    work = work_of(task.policy, task.problem, task.horizon)
    return paths <= MOST_WEIGHTS and paths * work <= effort.most_pulls - estimate.pulls


def _exact(task: Task, effort: Effort) -> TailEstimate:
    way = exact_way(task)
    if isinstance(way, BadInput):
        raise refuse("method", "exact", "a method other than 'exact'", found="", more=f": {way}")
    return _estimate_of_exact(way[1], task, effort)


def _estimate_of_exact(answer: Callable[[], float], task: Task, effort: Effort) -> TailEstimate:
    chance = answer()
    counted = task.problem.noise.outcomes is not None and task.policy.turns is None
    if chance == 0.0 and not counted:  # possible, but too rare to compute
        return replace(without_paths(TINY, effort.level, "exact"), low=0.0, high=LEAST)
    return without_paths(chance, effort.level, "exact", EXACT_ERROR)


def _weighted(task: Task, effort: Effort) -> TailEstimate:
    why_not = task.why_not_tilted()
    if why_not is not None:
        raise why_not
    return importance(task, effort, may_change=False) or _plain(task, effort)


def _plain(task: Task, effort: Effort, course: Course = STRAIGHT) -> TailEstimate:
    """Count simulated paths."""
    work = work_of(task.policy, task.problem, task.horizon) if course.straight else float(task.horizon)
    if work > max(effort.most_pulls, MOST_PULLS):
        raise refuse("most_pulls", effort.most_pulls, f"at least {work:.0f}, the work of one path")
    most, limit = most_paths(effort, work, fitting_paths(task.problem))
    paths = min(FIRST, most)
    settings: Any = {"seed": effort.seed, "threads": effort.threads, "progress": effort.progress}
    settings |= {"delay": course.delay, "batch": course.batch}
    while True:
        out = simulate(task.policy, task.problem, horizon=task.horizon, paths=paths, **settings)
        hits = int(np.sum(out.reaches(task.regret, task.kind)))
        error = effort.z * math.sqrt((1.0 - hits / paths) / hits) if hits else math.inf
        wanted = paths * min(64.0, max(2.0, 1.2 * min(8.0, error / effort.relative_error) ** 2))
        following = int(min(wanted, most))
        if error <= effort.relative_error or following <= paths:
            break
        paths = following
    found = estimates.proportion(hits, paths, effort.level)
    share = 1.0 / hits if hits else math.nan
    reached = error <= effort.relative_error
    about = Diagnostics(hits, share, math.nan, math.nan, error, found.low, found.high, out.method)
    about = replace(about, stopped="" if reached else limit)
    interval = (found.value, found.low, found.high, effort.level)
    return TailEstimate(*interval, paths, paths * task.horizon, "plain simulation", reached, about)


ANSWERS: dict[str, Callable[[Task, Effort], TailEstimate]] = {
    "auto": _auto,
    "exact": _exact,
    "importance": _weighted,
    "plain": _plain,
    "splitting": split,
}
