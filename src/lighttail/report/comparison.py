"""Several policies on one problem, and what to say of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from lighttail.course import STRAIGHT, Course, check_course
from lighttail.delays import DelayLike
from lighttail.gpu.run import Device
from lighttail.outcomes.estimates import Estimate, exceedance, interpolated
from lighttail.outcomes.outcome import Outcome
from lighttail.policies import Policy
from lighttail.problems import Problem
from lighttail.report.format import chance
from lighttail.running.kept import Keep
from lighttail.running.simulate import simulate

MANY = 6  # policies, more than which a sentence does not name
FEW = 100  # paths that say nothing about a tail
RARE = 1e-3  # a policy has a heavy tail here if more paths than this are ruined


@dataclass(frozen=True, eq=False)
class Entry:
    """One policy's outcome and the estimates that the table shows."""

    label: str
    policy: Policy
    light_tailed: bool  # by a theorem, on this problem's noise
    outcome: Outcome
    threshold: float  # of regret
    turn: int  # its place among all policies of its kind, which gives its colour

    @cached_property
    def mean(self) -> Estimate:
        return self.outcome.mean("regret")

    @cached_property
    def quantile_95(self) -> Estimate:
        return self.outcome.quantile(0.95, "regret")

    @cached_property
    def quantile_99(self) -> Estimate:
        return self.outcome.quantile(0.99, "regret")

    @cached_property
    def cvar_99(self) -> Estimate:
        return self.outcome.cvar(0.99, "regret")

    @cached_property
    def exceedance(self) -> Estimate:
        return self.outcome.exceedance(self.threshold, "regret")

    @property
    def worst(self) -> float:
        return float(self.outcome.sample("regret").high[-1])

    @cached_property
    def ruined(self) -> Estimate:
        """The chance of a pseudo regret at or above the threshold that is not just a wide or a high middle.

        It must also lie far above the better paths: as far above their 25 % quantile as a normal law
        with their spread (from the 5 % to the 25 % quantile) has 1 in 30,000 of its mass.
        """
        sample = self.outcome.sample("pseudo_regret")
        best, good = (interpolated(sample, q) for q in (0.05, 0.25))
        sd = (good - best) / (1.645 - 0.674)
        far = math.nextafter(good + (0.674 + 4.0) * sd + 1e-9 * abs(good), math.inf)  # and more than that
        both = exceedance(sample, far, 0.95), self.outcome.exceedance(self.threshold, "pseudo_regret")
        return min(both, key=lambda chance: chance.value)  # the rarer of two tails lies within the other

    @property
    def heavy_here(self) -> bool:
        """Whether the sample shows, with 95 % confidence, that more than RARE of the paths are ruined."""
        return self.ruined.low > RARE

    def to_dict(self) -> dict[str, Any]:
        """For `results.json`."""
        estimates = {
            "mean_regret": self.mean,
            "regret_quantile_95": self.quantile_95,
            "regret_quantile_99": self.quantile_99,
            "regret_cvar_99": self.cvar_99,
            "regret_exceedance": self.exceedance,
            "ruined": self.ruined,
        }
        return {
            "label": self.label,
            "policy": repr(self.policy),
            "light_tailed_by_theorem": self.light_tailed,
            "heavy_tail_here": self.heavy_here,
            **{name: estimate.to_dict() for name, estimate in estimates.items()},
            "worst_regret": self.worst,
            "settings": self.outcome.settings,
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """The outcomes of several policies on one problem."""

    problem: Problem
    horizon: int
    paths: int
    seed: int | tuple[int, ...]  # several where paths of several seeds are put together
    threshold: float
    entries: tuple[Entry, ...]
    course: Course = STRAIGHT

    @property
    def seeds(self) -> str:
        """'seed 1', or 'seeds 1, 2'."""
        if isinstance(self.seed, int):
            return f"seed {self.seed}"
        return f"seed{'s' if len(self.seed) > 1 else ''} {', '.join(map(str, self.seed))}"

    def verdict(self) -> str:
        """In plain words: which policies carry a heavy tail on this problem."""
        heavy = [entry for entry in self.entries if entry.heavy_here]
        rest = [entry for entry in self.entries if not entry.heavy_here]
        loss = f"losing {self.threshold:g} or more"
        largest = worst_loss(self.problem, self.horizon)
        if largest == 0.0:
            return "All arms are equally good: no policy can lose anything but by chance."
        if self.threshold > largest * (1 + 1e-9):
            return (
                f"No path can be expected to lose {self.threshold:g}: always pulling the worst arm loses "
                f"{largest:g}. Choose a lower threshold."
            )
        if self.paths < FEW:
            return f"Fewer than {FEW} paths a policy cannot tell a heavy tail from a light one."
        if not heavy:
            return f"{self.paths:,} paths a policy show no heavy tail; the chance of {loss} is {_most(rest)}."
        verb = "carries" if len(heavy) == 1 else "carry"
        text = (
            f"{_named(heavy)} {verb} a heavy tail here: more than 1 path in {1 / RARE:,.0f} pulls bad arms "
            f"until {self.threshold:g} or more is lost, far above what the better paths lose."
        )
        if not rest:
            return text
        return (
            f"{text} No such tail is shown of {_named(rest)}; "
            f"the chance of {loss} is {_most(rest)} there ({self.paths:,} paths)."
        )

    def to_dict(self, command: str) -> dict[str, Any]:
        """For `results.json`; an open end of an interval is null."""
        return {
            "command": command,
            "problem": repr(self.problem),
            "horizon": self.horizon,
            "paths": self.paths,
            "seed": self.seed,
            **self.course.told(),
            "threshold": self.threshold,
            "verdict": self.verdict(),
            "policies": [entry.to_dict() for entry in self.entries],
        }


def compare(
    policies: Sequence[Policy],
    problem: Problem,
    *,
    horizon: int,
    paths: int,
    seed: int,
    threshold: float | None = None,
    labels: Sequence[str] | None = None,
    threads: int | None = None,
    progress: Callable[[str, int], None] | None = None,
    keep: Keep = "paths",
    device: Device = "cpu",
    delay: DelayLike = None,
    batch: int | None = None,
) -> Comparison:
    """Simulate every policy on the problem, each with the same seed.

    threshold: the regret whose chance is estimated; a third of the largest possible unless given.
    labels: the policies' names in tables and figures.
    progress: called with (policy, paths done, of all policies together).
    keep: "paths" or "law", device: "cpu" or "cuda", delay, batch: as in `simulate`.
    """
    course = check_course(policies[0], problem, horizon, delay, batch)
    late = f", {course.short()}" if course.late else ""
    threshold = default_threshold(problem, horizon) if threshold is None else threshold
    names = [str(policy) for policy in policies] if labels is None else list(labels)
    # Where short names are alike, the whole of it.
    labels = [repr(p) if names.count(name) > 1 else name for p, name in zip(policies, names, strict=True)]
    entries, places = [], turns(policies)
    for turn, policy in enumerate(policies):
        report: bool | Callable[[int, int], None] = False
        if progress is not None:
            report = partial(_shift, progress, labels[turn] + late, turn * paths)
            report(0, paths)
        outcome = simulate(
            policy,
            problem,
            horizon=horizon,
            paths=paths,
            seed=seed,
            threads=threads,
            progress=report,
            keep=keep,
            device=device,
            delay=delay,
            batch=batch,
        )
        proved = policy.light_tailed and not uncovered(problem, course)
        entries.append(Entry(labels[turn], policy, proved, outcome, threshold, places[turn]))
    return Comparison(problem, horizon, paths, seed, threshold, tuple(entries), course)


def turns(policies: Sequence[Policy]) -> list[int]:
    """The place of each policy among those of its kind: light-tailed on the noise of the theorems, or not."""
    kinds = [policy.light_tailed for policy in policies]
    return [kinds[:place].count(kind) for place, kind in enumerate(kinds)]


def worst_loss(problem: Problem, horizon: int) -> float:
    """What always pulling the worst arm, or taking the worst action of every round, loses on average."""
    return problem.worst_loss(horizon)


def covered(problem: Problem) -> bool:
    """Whether a problem is one that the paper's theorems are about."""
    return problem.covered


def uncovered(problem: Problem, course: Course = STRAIGHT) -> str:
    """Why no policy is light-tailed by theorem on a problem; empty where one may be."""
    if course.late:
        return "no theorem covers rewards that come late"
    if covered(problem):
        return ""
    if not problem.noise.is_sub_gaussian:
        return f"no theorem covers {type(problem.noise).__name__} noise"
    return "no theorem covers this linear bandit"


def legend_words(problem: Problem, course: Course = STRAIGHT) -> str:
    """What the style of a line says."""
    return uncovered(problem, course) or "solid: light-tailed by theorem"


def default_threshold(problem: Problem, horizon: int) -> float:
    """About a third of the largest possible loss: 0.2 T on the paper's problems, with a gap of 0.6."""
    return float(f"{worst_loss(problem, horizon) / 3.0 or 0.2 * horizon:.2g}")


def _shift(progress: Callable[[str, int], None], label: str, before: int, done: int, total: int) -> None:
    """Report the progress of one policy as that of all of them."""
    progress(label, before + done)


def _most(entries: Sequence[Entry]) -> str:
    """The upper limit of the highest chance to reach the threshold among the policies."""
    return f"at most {chance(max(entry.exceedance.high for entry in entries))}"


def _named(entries: Sequence[Entry]) -> str:
    """'A', 'A and B', 'A, B and C'; of many the number and the three that lose most often."""
    if len(entries) > MANY:
        worst = sorted(entries, key=lambda entry: entry.exceedance.value, reverse=True)[:3]
        return f"{len(entries)} policies ({'; '.join(entry.label for entry in worst)}; ...)"
    *others, last = (entry.label for entry in entries)
    return f"{', '.join(others)} and {last}" if others else last
