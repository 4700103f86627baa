"""Several policies on one problem: their outcomes, the estimates of a table, and a verdict in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from lighttail.checks import known_word, refuse
from lighttail.course import STRAIGHT, Course
from lighttail.outcomes.estimates import Estimate, exceedance, interpolated
from lighttail.outcomes.format import chance, interval, probability, rounded
from lighttail.outcomes.outcome import Outcome
from lighttail.policies import Policy
from lighttail.problems import Problem

if TYPE_CHECKING:
    import pandas

MANY = 6  # policies that a sentence names, at most
FEW = 100  # paths that a statement about a tail needs, at least
RARE = 1e-3  # a policy has a heavy tail here if a larger share of its paths is ruined


@dataclass(frozen=True, eq=False, repr=False)
class Entry:
    """One policy of a comparison: its outcome, and the estimates that the table shows.

    light_tailed: whether a theorem proves this for the problem. turn: the place of the policy among all
    policies of its kind, which decides its colour.
    """

    label: str
    policy: Policy
    light_tailed: bool
    outcome: Outcome
    threshold: float  # of regret
    turn: int

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
        """The chance of a pseudo regret that reaches the threshold and lies far above the better paths.

        Far above: beyond the point that 1 in 30,000 paths would reach under the normal law with the same 5 %
        and 25 % quantiles. So a policy whose paths are all bad, or merely scattered, is not called ruined.
        """
        sample = self.outcome.sample("pseudo_regret")
        best, good = (interpolated(sample, q) for q in (0.05, 0.25))
        sd = (good - best) / (1.645 - 0.674)
        far = math.nextafter(good + (0.674 + 4.0) * sd + 1e-9 * abs(good), math.inf)  # strictly above
        both = exceedance(sample, far, 0.95), self.outcome.exceedance(self.threshold, "pseudo_regret")
        return min(both, key=lambda chance: chance.value)  # the smaller of two tails lies within the larger

    @property
    def heavy_here(self) -> bool:
        """Whether the sample shows, with 95 % confidence, that more than RARE of the paths are ruined."""
        return self.ruined.low > RARE

    def estimates(self) -> dict[str, Estimate]:
        """All estimates by their names in `results.json`."""
        return {
            "mean_regret": self.mean,
            "regret_quantile_95": self.quantile_95,
            "regret_quantile_99": self.quantile_99,
            "regret_cvar_99": self.cvar_99,
            "regret_exceedance": self.exceedance,
            "ruined": self.ruined,
        }

    def cells(self) -> list[tuple[str, str]]:
        """The numbers of the policy in the order of `Comparison.headings`, each with its interval."""
        return [
            interval(self.mean),
            interval(self.quantile_95),
            interval(self.quantile_99),
            interval(self.cvar_99),
            probability(self.exceedance),
            (rounded(self.worst), ""),
        ]

    def to_dict(self) -> dict[str, Any]:
        """For `results.json`."""
        return {
            "label": self.label,
            "policy": repr(self.policy),
            "light_tailed_by_theorem": self.light_tailed,
            "heavy_tail_here": self.heavy_here,
            **{name: estimate.to_dict() for name, estimate in self.estimates().items()},
            "worst_regret": self.worst,
            "settings": self.outcome.settings,
        }

    def __repr__(self) -> str:
        return f"{self.label}: mean regret {self.mean}, P(regret >= {self.threshold:g}) {self.exceedance}"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The outcomes of several policies on one problem; printed, it is a table.

    entries: one per policy; `comparison[name]` and `comparison[policy]` give the entry of one policy, with
    its `outcome` and the estimates `mean`, `quantile_95`, `quantile_99`, `cvar_99` and `exceedance` (the
    chance of a regret of `threshold` or more). seed: several seeds if their paths are put together.
    course: when rewards become known. made_by: the call that gives the same numbers again.
    """

    problem: Problem
    horizon: int
    paths: int
    seed: int | tuple[int, ...]
    threshold: float
    entries: tuple[Entry, ...]
    course: Course = STRAIGHT
    made_by: str = ""
    shown_as: ClassVar[str] = "comparison"  # the kind of its report

    def __getitem__(self, key: str | Policy) -> Entry:
        """The entry of a policy, by its name or by itself."""
        for entry in self.entries:
            if entry.label == key if isinstance(key, str) else entry.policy == key:
                return entry
        if isinstance(key, str):
            known_word("policy", key, self)
        raise refuse("policy", key, "one of the comparison or its name")

    def __iter__(self) -> Iterator[str]:
        """The names of the policies."""
        return (entry.label for entry in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def seeds(self) -> str:
        """'seed 1', or 'seeds 1, 2'."""
        if isinstance(self.seed, int):
            return f"seed {self.seed}"
        return f"seed{'s' if len(self.seed) > 1 else ''} {', '.join(map(str, self.seed))}"

    def title(self) -> str:
        """The title of the table."""
        title = f"Regret after {self.horizon:,} pulls, {self.paths:,} paths, {self.seeds}"
        late = f"\n{self.course.words()}" if self.course.late else ""
        return f"{title}; 95 % intervals in brackets{late}"

    def headings(self) -> list[str]:
        """The headings of the columns with numbers."""
        names = ["mean regret", "95 % quantile", "99 % quantile", "mean of worst 1 %"]
        return [*names, f"P(regret ≥ {self.threshold:g})", "worst path"]

    def __str__(self) -> str:
        rows = [["policy", *self.headings()]]
        for entry in self.entries:
            rows.append([entry.label, *(" ".join(filter(None, cell)) for cell in entry.cells())])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for label, *cells in rows:
            numbers = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
            lines.append("  ".join([label.ljust(widths[0]), *numbers]).rstrip())
        return "\n".join([self.title(), "", *lines, "", self.verdict()])

    __repr__ = __str__

    def verdict(self) -> str:
        """In plain words: which policies carry a heavy tail on this problem."""
        heavy = [entry for entry in self.entries if entry.heavy_here]
        rest = [entry for entry in self.entries if not entry.heavy_here]
        loss = f"losing {self.threshold:g} or more"
        largest = self.problem.worst_loss(self.horizon)
        if largest == 0.0:
            return "All arms are equally good: a policy can lose only by chance."
        if self.threshold > largest * (1 + 1e-9):
            return (
                f"No policy can lose {self.threshold:g} on average: always pulling the worst arm loses "
                f"{largest:g}. Choose a lower threshold."
            )
        if self.paths < FEW:
            return f"Fewer than {FEW} paths per policy cannot tell a heavy tail from a light one."
        if not heavy:
            seen = f"In {self.paths:,} simulated runs of each policy we saw no heavy tail"
            return f"{seen}; the chance of {loss} is {_most(rest)}."
        verb = "carries" if len(heavy) == 1 else "carry"
        text = (
            f"{_listed(heavy)} {verb} a heavy tail here: more than 1 path in {1 / RARE:,.0f} pulls bad arms "
            f"until {self.threshold:g} or more is lost, far above what the better paths lose."
        )
        if not rest:
            return text
        return (
            f"{text} We saw no such tail for {_listed(rest)}, "
            f"whose chance of {loss} is {_most(rest)} ({self.paths:,} paths per policy)."
        )

    def table(self) -> list[dict[str, Any]]:
        """One row per policy: its name, its estimates by the names of `results.json`, and the verdict."""
        return [
            {
                "policy": entry.label,
                **entry.estimates(),
                "worst_regret": entry.worst,
                "light_tailed_by_theorem": entry.light_tailed,
                "heavy_tail_here": entry.heavy_here,
            }
            for entry in self.entries
        ]

    def to_frame(self) -> pandas.DataFrame:
        """The table as numbers: an estimate x has the columns x, x_low and x_high."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None
        return pandas.DataFrame([_flat(row) for row in self.table()])

    def to_dict(self, command: str = "") -> dict[str, Any]:
        """The content of `results.json`, where an infinite end of an interval is None.

        command: the command that made the comparison, if it was not a call of `compare`.
        """
        return {
            "command": command or self.made_by,
            "problem": repr(self.problem),
            "horizon": self.horizon,
            "paths": self.paths,
            "seed": self.seed,
            **self.course.told(),
            "threshold": self.threshold,
            "verdict": self.verdict(),
            "policies": [entry.to_dict() for entry in self.entries],
        }


def comparison_of(
    policies: Mapping[str, Policy],
    outcomes: Mapping[str, Outcome],
    problem: Problem,
    seed: int | tuple[int, ...],
    threshold: float,
    course: Course = STRAIGHT,
    made_by: str = "",
) -> Comparison:
    """The comparison of outcomes with equally many paths. A policy without an outcome keeps its colour."""
    kinds = [policy.light_tailed for policy in policies.values()]
    turns = {name: kinds[:place].count(kinds[place]) for place, name in enumerate(policies)}
    covered = not uncovered(problem, course)
    entries = tuple(
        Entry(name, policy, policy.light_tailed and covered, outcomes[name], threshold, turns[name])
        for name, policy in policies.items()
        if name in outcomes
    )
    first = entries[0].outcome
    return Comparison(problem, first.horizon, first.paths, seed, threshold, entries, course, made_by)


def uncovered(problem: Problem, course: Course = STRAIGHT) -> str:
    """The reason why no theorem proves a light tail on a problem; empty if there is none."""
    if course.late:
        return "no theorem covers rewards that come late"
    if problem.covered:
        return ""
    if not problem.noise.is_sub_gaussian:
        return f"no theorem covers {type(problem.noise).__name__} noise"
    return "no theorem covers this linear bandit"


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table with three numbers per estimate."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Estimate):
            found |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            found[name] = value
    return found


def _most(entries: Sequence[Entry]) -> str:
    """The upper limit of the highest chance to reach the threshold among the policies."""
    return f"at most {chance(max(entry.exceedance.high for entry in entries))}"


def _listed(entries: Sequence[Entry]) -> str:
    """'A', 'A and B', 'A, B and C'; for many policies, their number and the three that lose most often."""
    if len(entries) > MANY:
        worst = sorted(entries, key=lambda entry: entry.exceedance.value, reverse=True)[:3]
        return f"{len(entries)} policies ({'; '.join(entry.label for entry in worst)}; ...)"
    *others, last = (entry.label for entry in entries)
    return f"{', '.join(others)} and {last}" if others else last
