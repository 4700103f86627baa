"""Several policies on one problem: their outcomes, and the estimates of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from lighttail.checks import known_word, refuse
from lighttail.course import STRAIGHT, Course
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.format import aligned, interval, probability, rounded
from lighttail.outcomes.growth import Growth
from lighttail.outcomes.losing import EXPLAINED, Lost, event, noun
from lighttail.outcomes.outcome import Outcome
from lighttail.policies import Policy
from lighttail.problems import Problem

if TYPE_CHECKING:
    import pandas


def _estimated(name: str, *share: float) -> cached_property[Estimate]:
    """An estimate of the outcome of an entry, made once: a method of the outcome by its name."""
    return cached_property(lambda entry: getattr(entry.outcome, name)(*share, entry.kind))


@dataclass(frozen=True, eq=False, repr=False)
class Entry:
    """One policy of a comparison: its outcome, and the estimates that the table shows.

    light_tailed: whether a theorem proves this for the problem. turn: the place of the policy among all
    policies of its kind, which decides its colour. kind: what counts as lost (`lighttail.outcomes.losing`).
    growth: how the chance of losing the threshold falls as the experiment grows; None if this was not asked.
    """

    label: str
    policy: Policy
    light_tailed: bool
    outcome: Outcome
    threshold: float
    turn: int
    kind: Lost = "pseudo_regret"
    growth: Growth | None = None

    mean = _estimated("mean")
    quantile_95 = _estimated("quantile", 0.95)
    quantile_99 = _estimated("quantile", 0.99)
    cvar_99 = _estimated("cvar", 0.99)

    @cached_property
    def exceedance(self) -> Estimate:
        """The chance of losing the threshold or more, counted over the paths of the comparison."""
        return self.outcome.exceedance(self.threshold, self.kind)

    @property
    def chance(self) -> Estimate:
        """The best answer to the same question: from the exact law or more paths if `growth` has them."""
        return self.exceedance if self.growth is None else self.growth.chances[-1]

    @property
    def chance_source(self) -> str:
        """How `chance` was found: "exact", "5,000 paths" or the method of `tail_probability`."""
        return f"{self.outcome.paths:,} paths" if self.growth is None else self.growth.sources[-1]

    @property
    def worst(self) -> float:
        return float(self.outcome.sample(self.kind).high[-1])

    def estimates(self) -> dict[str, Estimate]:
        """All estimates by their names in `results.json`."""
        return {
            "mean_loss": self.mean,
            "loss_quantile_95": self.quantile_95,
            "loss_quantile_99": self.quantile_99,
            "loss_cvar_99": self.cvar_99,
            "chance": self.chance,
        }

    def cells(self) -> list[tuple[str, str]]:
        """The numbers of the policy in the order of `Comparison.headings`, each with its interval."""
        numbers = (self.mean, self.quantile_95, self.quantile_99, self.cvar_99)
        return [*map(interval, numbers), self.chance_cell(), (rounded(self.worst), "")]

    def chance_cell(self) -> tuple[str, str]:
        """The chance and its interval, or the word "exact"; if not all from the table's paths, from what."""
        value, limits = probability(self.chance)
        if self.chance_source == "exact":
            return value, "exact"
        same = self.chance_source == f"{self.outcome.paths:,} paths"
        return value, limits if same else f"{limits} ({self.chance_source})".strip()

    def to_dict(self) -> dict[str, Any]:
        """For `results.json`."""
        return {
            "label": self.label,
            "policy": repr(self.policy),
            "light_tailed_by_theorem": self.light_tailed,
            **{name: estimate.to_dict() for name, estimate in self.estimates().items()},
            "chance_source": self.chance_source,
            "share_of_paths": self.exceedance.to_dict(),
            "worst_loss": self.worst,
            "growth": None if self.growth is None else self.growth.to_dict(),
            "settings": self.outcome.settings,
        }

    def __repr__(self) -> str:
        lost = noun(self.kind)
        chance = f"{self.chance.value:.4g} (exact)" if self.chance_source == "exact" else self.chance
        return f"{self.label}: mean {lost} {self.mean}, P({lost} >= {self.threshold:g}) {chance}"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The outcomes of several policies on one problem; printed, it is a table.

    entries: one per policy; `comparison[name]` and `comparison[policy]` give the entry of one policy, with
    its `outcome` and the estimates `mean`, `quantile_95`, `quantile_99`, `cvar_99`, `exceedance` (the share
    of paths that lose `threshold` or more) and `chance` (the best answer to the same question).
    seed: several seeds if their paths are put together. course: when rewards become known.
    made_by: the call that gives the same numbers again.
    kind: what counts as lost, "pseudo_regret" or "regret".
    """

    problem: Problem
    horizon: int
    paths: int
    seed: int | tuple[int, ...]
    threshold: float
    entries: tuple[Entry, ...]
    course: Course = STRAIGHT
    made_by: str = ""
    kind: Lost = "pseudo_regret"
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
        played = f"{self.horizon:,} pulls, {self.paths:,} paths, {self.seeds}"
        late = "" if self.course.straight else f"\n{self.course.words()}"
        return f"{noun(self.kind).capitalize()} after {played}; 95 % intervals in brackets{late}"

    def headings(self) -> list[str]:
        """The headings of the columns with numbers."""
        names = [f"mean {noun(self.kind)}", "95 % quantile", "99 % quantile", "mean of worst 1 %"]
        return [*names, f"chance of {event(self.kind, self.threshold)}", "worst path"]

    def __str__(self) -> str:
        rows = [["policy", *self.headings()]]
        for entry in self.entries:
            rows.append([entry.label, *(" ".join(filter(None, cell)) for cell in entry.cells())])
        return "\n".join([self.title(), "", *aligned(rows), "", self.verdict(), EXPLAINED[self.kind]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from lighttail.outcomes.notebook import Cell, table

        rows: list[tuple[Cell, ...]] = [(entry.label, *entry.cells()) for entry in self.entries]
        return table(self.title(), ("policy", *self.headings()), rows, self.verdict(), EXPLAINED[self.kind])

    def verdict(self) -> str:
        """In plain words: the chance of losing the threshold, how it falls, and what an even split says."""
        from lighttail.outcomes.verdict import verdict  # which reads comparisons

        return verdict(self)

    def table(self) -> list[dict[str, Any]]:
        """One row per policy: its name, its estimates by the names of `results.json`, what is proved."""
        return [
            {
                "policy": entry.label,
                **entry.estimates(),
                "chance_source": entry.chance_source,
                "worst_loss": entry.worst,
                "light_tailed_by_theorem": entry.light_tailed,
                "growth": "" if entry.growth is None else entry.growth.answer,
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
            "kind": self.kind,
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
    kind: Lost = "pseudo_regret",
    growths: Mapping[str, Growth | None] | None = None,
) -> Comparison:
    """The comparison of outcomes with equally many paths. A policy without an outcome keeps its colour."""
    kinds = [policy.light_tailed for policy in policies.values()]
    turns = {name: kinds[:place].count(kinds[place]) for place, name in enumerate(policies)}
    covered = not uncovered(problem, course)
    entries = tuple(
        Entry(
            *(name, policy, policy.light_tailed and covered, outcomes[name], threshold, turns[name], kind),
            growth=(growths or {}).get(name),
        )
        for name, policy in policies.items()
        if name in outcomes
    )
    first = entries[0].outcome
    return Comparison(problem, first.horizon, first.paths, seed, threshold, entries, course, made_by, kind)


def uncovered(problem: Problem, course: Course = STRAIGHT) -> str:
    """The reason why no theorem proves a light tail on a problem; empty if there is none."""
    if not course.straight:
        return "no theorem covers rewards that come late"
    if problem.covered:
        return ""
    if not problem.noise.is_sub_gaussian:
        return f"no theorem covers {type(problem.noise).__name__} noise"
    return "no theorem covers this linear bandit"


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table with three numbers per estimate."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Estimate):
            flat |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            flat[name] = value
    return flat
