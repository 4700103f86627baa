"""The tail of one policy on one problem as a curve, from everything that is known about the tail."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lighttail.bounds.bound import TINY, most_regret
from lighttail.checks import refuse
from lighttail.course import STRAIGHT, Course, check_course
from lighttail.delays import DelayLike
from lighttail.outcomes.estimates import Estimate, finite, proportion_limits
from lighttail.outcomes.format import amount
from lighttail.outcomes.losing import Lost, check_lost
from lighttail.outcomes.outcome import Outcome
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.records import Floats
from lighttail.running.prepare import check_progress, check_settings
from lighttail.running.simulate import simulate
from lighttail.system.progress import ReportPart, parts_reporter
from lighttail.tails.known import LATE, KnownBounds, bounds_at, bounds_to_dict, exact_at
from lighttail.tails.rare import MOST_PULLS, TailMethod, asked_regret, tail_probability
from lighttail.tails.task import TailEstimate, Task

POINTS = 7  # estimated points, from where few simulated paths are left to the end of the curve
STEPS = 400  # points of the simulated curve at most
BOUND_POINTS = 48  # points of the curves of the bounds
MOST_ASKED = 1000  # regrets that may be asked for; each of them takes a simulation
# Seconds that an exact value may take: at a regret that was asked for, beside bounds, at any other point.
ASKED_SECONDS, QUICK_SECONDS, CURVE_SECONDS = 30.0, 2.0, 0.3
SHARE, ROUGH = 1 / 10, 0.1  # share of the budget, and relative error, at a point that was not asked for
SIMULATED_PULLS = 200_000_000  # pulls of the plain simulation at most, unless paths are given
ROUNDS = 4  # attempts to place the points, each nearer, until no chance is too small for a float


@dataclass(frozen=True)
class TailPoint:
    """P(kind >= regret): estimated, counted in the simulation, exact if a law is known, and bounded."""

    regret: float
    estimate: TailEstimate
    simulated: Estimate
    exact: float | None
    bounds: KnownBounds

    def to_dict(self) -> dict[str, Any]:
        """The point for `results.json`."""
        more = {name: getattr(self.estimate, name) for name in ("paths", "pulls", "method", "reached")}
        diagnostics = {
            name: finite(value) if isinstance(value, float) else value
            for name, value in asdict(self.estimate.diagnostics).items()
        }
        return {
            "regret": self.regret,
            "estimate": {**self.estimate.to_dict(), **more, "diagnostics": diagnostics},
            "simulated": self.simulated.to_dict(),
            "exact": self.exact,
            **bounds_to_dict(self.bounds),
        }


@dataclass(frozen=True, eq=False)
class TailCurve:
    """Everything that the picture shows.

    points: in rising order of regret; the points in `asked` were asked for and have the whole budget.
    bound_regrets, certificates, theorems: regrets and the bounds at them; nan if there is no bound.
    """

    policy: Policy
    problem: Bandit
    horizon: int
    kind: Lost
    seed: int
    relative_error: float
    asked: tuple[float, ...]
    outcome: Outcome
    points: tuple[TailPoint, ...]
    bound_regrets: Floats
    certificates: Floats
    theorems: Floats
    course: Course = STRAIGHT

    def at(self, regret: float) -> TailPoint:
        """The point whose regret is this number."""
        for point in self.points:
            if point.regret == regret:
                return point
        raise refuse("regret", regret, f"one of {', '.join(f'{point.regret:g}' for point in self.points)}")

    def simulated(self) -> tuple[Floats, Floats, Floats, Floats]:
        """x, P(kind >= x) in the simulation and its 95 % limits, at up to STEPS values."""
        sample = np.sort(getattr(self.outcome, self.kind))
        values = np.unique(sample)
        if values.size > STEPS:  # spread evenly in the logarithm of the number of paths that are left
            left = np.unique(np.round(np.geomspace(1, sample.size, STEPS)).astype(np.int64))
            values = np.unique(sample[sample.size - left])
        hits = sample.size - np.searchsorted(sample, values)
        low, high = proportion_limits(hits, sample.size, 0.95)
        return values, hits / sample.size, low, high

    def to_dict(self, command: str, sentences: Sequence[str]) -> dict[str, Any]:
        """The curve for `results.json`; a value that is not known is null."""
        return {
            "command": command,
            "policy": repr(self.policy),
            "problem": repr(self.problem),
            "horizon": self.horizon,
            "kind": self.kind,
            "seed": self.seed,
            **self.course.told(),
            "relative_error": self.relative_error,
            "simulated_paths": self.outcome.paths,
            "sentences": list(sentences),
            "asked": list(self.asked),
            "points": [point.to_dict() for point in self.points],
            "versions": self.outcome.settings["versions"],
        }


def tail_curve(
    policy: Policy,
    problem: Bandit,
    horizon: int,
    regret: float | Sequence[float] | None = None,
    *,
    kind: Lost = "pseudo_regret",
    paths: int | None = None,
    relative_error: float = 0.05,
    seed: int | None = None,
    method: TailMethod = "auto",
    most_pulls: int = MOST_PULLS,
    threads: int | None = None,
    progress: bool | ReportPart = False,
    delay: DelayLike = None,
    batch: int | None = None,
) -> TailCurve:
    """Simulate, estimate, compute and bound P(kind >= x), from where simulation thins out to the end.

    regret: one regret or several whose chances are asked for; the largest one ends the curve. Without it, a
        third of the largest possible regret is asked for, and the curve goes on to 95 % of the largest.
    paths: the paths of the plain simulation; 10,000 unless given, fewer at long horizons.
    relative_error, method, most_pulls: as in `tail_probability`, for the regrets that were asked for; the
        other points have a relative error of 0.1 and a tenth of the budget.
    progress: True shows a bar on a terminal and lines elsewhere; a function is called with (what is being
        done, steps done of `steps`).
    delay, batch: as in `simulate`; if rewards come late, the chances are only counted in simulated paths.

    >>> import lighttail as lt
    >>> curve = tail_curve(lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8]), 50, 12, seed=1)
    >>> point = curve.at(12)
    >>> point.estimate.method, f"{point.exact:.4f}"
    ('exact', '0.0657')
    """
    paths = _default_paths(horizon) if paths is None else paths
    if getattr(problem, "linear", False):
        raise refuse("problem", problem, "a Bandit; for a LinearBandit use tail_probability")
    checked = check_settings(policy, problem, horizon, paths, seed, threads)
    horizon, paths, seed, threads = checked.horizon, checked.paths, checked.seed, checked.threads
    kind, asked = check_lost(kind), asked_regrets(regret, problem, horizon)
    course, progress = check_course(policy, problem, horizon, delay, batch), check_progress(progress)
    common: dict[str, Any] = {"seed": seed, "threads": threads, "delay": course.delay, "batch": course.batch}
    with parts_reporter(progress, steps(len(asked)), "steps") as report:
        say = report or (lambda label, done: None)
        common["progress"] = report is not None and (lambda done, total: None)  # compiling is reported

        def estimate(x: float, done: int, **effort: Any) -> TailEstimate:
            say(f"{'' if x in asked else 'for the curve: '}the chance of {amount(x)}", done)
            return tail_probability(policy, problem, horizon, x, kind=kind, **effort, **common)

        effort: dict[str, Any] = {"relative_error": relative_error, "most_pulls": most_pulls}
        estimates = {x: estimate(x, done, method=method, **effort) for done, x in enumerate(asked)}
        say("plain simulation", len(asked))
        outcome = simulate(policy, problem, horizon=horizon, paths=paths, **common)
        tilted = course.straight and Task(policy, problem, horizon, 0.0, kind).why_not_tilted() is None
        if tilted:  # otherwise the plain simulation is all that there is
            error, pulls = max(relative_error, ROUGH), max(1, int(most_pulls * SHARE))
            less = {"relative_error": error, "most_pulls": pulls}
            end = math.inf if regret is None else max(asked)
            _add_between(estimates, outcome, kind, problem, end, lambda x, done: estimate(x, done, **less))
        say("exact values and bounds", steps(len(asked)) - 1)

        def known(x: float) -> KnownBounds:
            return bounds_at(policy, problem, horizon, x, kind) if course.straight else LATE

        def point(x: float, answer: TailEstimate) -> TailPoint:
            seconds = ASKED_SECONDS if x in asked else CURVE_SECONDS
            exact = answer.value or None if answer.method == "exact" else None
            if answer.method != "exact" and course.straight:
                exact = exact_at(Task(policy, problem, horizon, x, kind), seconds)
            return TailPoint(x, answer, outcome.exceedance(x, kind), exact, known(x))

        points = tuple(point(x, found) for x, found in sorted(estimates.items()))
        bound_curves = _bound_curves(points, outcome, kind, known)
    settings = (policy, problem, horizon, kind, seed, relative_error, asked)
    return TailCurve(*settings, outcome, points, *bound_curves, course)


def steps(asked: int) -> int:
    """The number of steps that `tail_curve` reports for this number of regrets."""
    return asked + POINTS + 2


def asked_regrets(regret: Any, problem: Bandit, horizon: int) -> tuple[float, ...]:
    """The regrets that were asked for, in rising order and without repetition."""
    if regret is None:
        return (problem.default_threshold(horizon),)
    listed = isinstance(regret, (list, tuple)) or (isinstance(regret, np.ndarray) and regret.ndim == 1)
    several = regret if listed else [regret]
    if not 1 <= len(several) <= MOST_ASKED:
        raise refuse("regret", regret, f"a number, or a list of 1 to {MOST_ASKED:,} numbers")
    return tuple(sorted({asked_regret(x) for x in several}))


def _default_paths(horizon: Any) -> int:
    """The number of paths with which the simulation takes about a second; a bad horizon is refused later."""
    try:
        return int(np.clip(SIMULATED_PULLS // int(horizon), 200, 10_000))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return 1


def _add_between(
    estimates: dict[float, TailEstimate],
    outcome: Outcome,
    kind: Lost,
    problem: Bandit,
    end: float,
    estimate: Callable[[float, int], TailEstimate],
) -> None:
    """Add estimates at some regrets up to the end; the end moves if a chance is too small for a float."""
    sample, asked = getattr(outcome, kind), len(estimates)
    last = _last_regret(sample, problem, kind, outcome.horizon, end)
    for _ in range(ROUNDS):
        regrets = [] if last is None else _regrets_between(sample, last, estimates)
        for done, x in enumerate(regrets, start=asked + 1):
            found = estimate(x, done)
            if found.high <= TINY:
                last = 0.5 * (x + max((y for y in estimates if y < x), default=x))
                break
            estimates[x] = found
        else:
            return


def _last_regret(sample: Floats, problem: Bandit, kind: Lost, horizon: int, end: float) -> float | None:
    """The regret at which the points end: `end`, or almost the largest possible regret."""
    largest = 0.95 * most_regret(problem, horizon)
    middle = float(np.median(sample))
    if kind == "regret" and largest == 0.0:  # only noise, which has no limit: twice as far as the sample
        largest = middle + 2.0 * (float(sample.max()) - middle)
    end = min(end, largest)
    return end if end > middle else None


def _regrets_between(sample: Floats, end: float, taken: Iterable[float]) -> list[float]:
    """Regrets from one that a path in a hundred reaches, or from half-way to the end, up to the end.

    A regret is left out if its point would lie on the point of a regret that is taken.
    """
    middle, rare = (float(x) for x in np.quantile(sample, [0.5, 0.99]))
    start = min(rare, 0.5 * (middle + end))
    regrets = {float(f"{x:.3g}") for x in np.linspace(start, end, POINTS)}
    near = 0.03 * (end - start)
    return sorted(x for x in regrets if all(abs(x - other) > near for other in taken))


def _bound_curves(
    points: Sequence[TailPoint], outcome: Outcome, kind: Lost, known: Callable[[float], KnownBounds]
) -> tuple[Floats, Floats, Floats]:
    """Regrets from the middle of the simulation to the last point that can be reached, and the certificate
    and the theorem's bound at each of them; nan if there is none."""
    middle = float(np.median(getattr(outcome, kind)))
    regrets = [middle, *(point.regret for point in points if point.estimate.high > 0.0)]
    grid = np.linspace(min(regrets), max(regrets), BOUND_POINTS)
    both = [(bounds.certificate, bounds.theorem) for bounds in map(known, grid.tolist())]
    certificates, theorems = np.array([[b.value if b else math.nan for b in pair] for pair in both]).T
    return grid, certificates, theorems
