"""The tables of the paper with our numbers and the published numbers, and tables that go beyond the paper.

A table writes itself as CSV, LaTeX and HTML.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import Any

from lighttail import bounds
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.format import chance, interval, probability
from lighttail.paper.experiments import PUBLISHED, PUBLISHED_PATHS, PaperExperiment, Results, Setting
from lighttail.report import document
from lighttail.tails import exact_tail

MARK = 4.0  # |z| above which a cell is marked
FEW = 1000  # paths below which z says little
LATEX = str.maketrans(
    {"%": r"\%", "_": r"\_", "<": "$<$", "≥": r"$\ge$", "√": r"$\sqrt{}$", "κ": r"$\kappa$", "×": r"$\times$"}
)


@dataclass(frozen=True)
class MeanCell:
    """One mean next to the published mean. error: the standard error of their difference."""

    series: str
    kappa: float
    ours: Estimate
    published: float
    error: float

    @property
    def difference(self) -> float:
        return self.ours.value - self.published

    @property
    def z(self) -> float:
        return self.difference / self.error

    @property
    def marked(self) -> bool:
        return abs(self.z) > MARK


@dataclass(frozen=True)
class PaperTable:
    """A table: columns and rows for CSV, a wide form for people, and the notes below it."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    wide_columns: Sequence[str]
    wide_rows: Sequence[Sequence[Sequence[str]]]  # lines of text per cell; a last line "!" marks the cell
    notes: Sequence[str] = field(default=())

    def to_csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()

    def to_latex(self) -> str:
        """The table as a LaTeX tabular. Marked cells are bold."""
        body = [" & ".join(name.translate(LATEX) for name in self.wide_columns) + r" \\ \hline"]
        for row in self.wide_rows:
            cells = []
            for cell in row:
                text = " ".join(filter(None, (cell[0], _beside(cell)))).translate(LATEX)
                cells.append(rf"\textbf{{{text}}}" if "!" in cell else text)
            body.append(" & ".join(cells) + r" \\")
        layout = "l" + "r" * (len(self.wide_columns) - 1)
        ends = [r"\hline", r"\end{tabular}", ""]
        return "\n".join([rf"\begin{{tabular}}{{{layout}}}", r"\hline", *body, *ends])

    def to_html(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return document.table(self.wide_columns, (map(_shown, row) for row in self.wide_rows)) + notes


def with_ends(*estimates: Estimate) -> list[str]:
    """The cells of a CSV file for estimates: each value and the ends of its interval."""
    return [f"{number:.6g}" for one in estimates for number in (one.value, one.low, one.high)]


def columns_with_ends(*names: str) -> list[str]:
    """The columns of these cells."""
    return [f"{name}{end}" for name in names for end in ("", " low", " high")]


def _beside(cell: Sequence[str]) -> str:
    """The text after the value in a LaTeX cell: the published value, or the interval."""
    if len(cell) < 2 or not cell[1]:
        return ""
    published = cell[1].removeprefix("published ")
    return published if published == cell[1] else f"({published})"


def _shown(lines: Sequence[str]) -> str:
    """A cell on the page."""
    kind = "marked" if "!" in lines else ""
    return document.cell(*(line for line in lines if line != "!"), kind=kind)


def _linear_chance(setting: Setting, results: Results) -> Estimate:
    return results[setting].exceedance(0.2 * setting.horizon, "regret")


def mean_cells(
    experiment: PaperExperiment, results: Results, published: Mapping[int, Mapping[str, Sequence[float]]]
) -> list[MeanCell]:
    """Every cell of a table of means."""
    cells = []
    for setting in experiment.settings:
        printed = published[len(setting.means)][setting.series.partition(",")[0]]
        kappas = sorted({other.kappa for other in experiment.settings})
        outcome, theirs = results[setting], printed[kappas.index(setting.kappa)]
        error = float(outcome.reward.std(ddof=1)) * math.sqrt(1.0 / outcome.paths + 1.0 / PUBLISHED_PATHS)
        cells.append(MeanCell(setting.series, setting.kappa, outcome.mean("reward"), theirs, error))
    return cells


def few_words(paths: int) -> str:
    """A sentence about tables of means that are made from few paths; empty if there are enough."""
    if paths >= FEW:
        return ""
    return (
        f"{paths:,} paths per setting are few, and the paper has {PUBLISHED_PATHS:,}: such paths often miss "
        "the rare large losses, so that the standard error is too small and z too large. A marked cell says "
        f"little below {FEW:,} paths."
    )


def means_table(experiment: PaperExperiment, results: Results) -> PaperTable:
    """A table of our means, the published means, their differences and z. Notes explain the marked cells."""
    cells = mean_cells(experiment, results, PUBLISHED)
    kappas = sorted({cell.kappa for cell in cells})
    rows, lines = [], {cell.series: [[cell.series]] for cell in cells}
    for cell in cells:
        ours = (f"{number:.4f}" for number in (cell.ours.value, cell.ours.low, cell.ours.high))
        far = (f"{cell.published:.2f}", f"{cell.difference:.4f}", f"{cell.z:.3f}")
        rows.append([cell.series, f"{cell.kappa:g}", *ours, *far, "yes" if cell.marked else "no"])
        shown = [f"{cell.ours.value:.2f}", f"published {cell.published:.2f}"]
        shown.append(f"difference {cell.difference:+.2f}, z {cell.z:+.1f}")
        lines[cell.series].append([*shown, "!"] if cell.marked else shown)
    columns = ["policy", "kappa", "ours", "low", "high", "published", "difference", "z", "marked"]
    heads = ["policy", *(f"κ = {kappa:g}" for kappa in kappas)]
    few = few_words(min(results[setting].paths for setting in experiment.settings))
    notes = [few, *explain(cells)] if few else explain(cells)
    return PaperTable(columns, rows, heads, list(lines.values()), notes)


def explain(cells: Sequence[MeanCell]) -> list[str]:
    """Sentences about the cells that differ from the print, with the reason if it is known."""
    notes = []
    theorem = [cell for cell in cells if cell.series == "UCB_any, theorem"]
    printed = [cell for cell in cells if cell.series == "UCB_any"]
    if any(cell.marked for cell in theorem):
        far = max(abs(cell.z) for cell in theorem)
        notes.append(
            "UCB_any, theorem: with the theorem's radius, which has a factor 1/√K, "
            f"{sum(cell.marked for cell in theorem)} of {len(theorem)} cells differ from the print, by |z| "
            f"up to {far:.0f}. Without this factor (UCB_any above) "
            f"{sum(not cell.marked for cell in printed)} of {len(printed)} cells agree with the print: the "
            "paper's runs left out the factor."
        )
    for cell in cells:
        if cell.marked and cell.series != "UCB_any, theorem":
            known = cell.series == "UCB_any" and math.isclose(cell.kappa, 0.1)
            why = (
                "This is the one cell that we cannot reproduce; other initial pulls, logarithms or clocks "
                "do not explain the difference."
                if known
                else "No explanation is known."
            )
            notes.append(
                f"{cell.series} at κ = {cell.kappa:g}: ours {cell.ours.value:.2f}, published "
                f"{cell.published:.2f}, z {cell.z:+.1f}. {why}"
            )
    return notes or [f"No cell differs from the print by more than {MARK:g} standard errors."]


def readings_table(experiment: PaperExperiment, results: Results) -> PaperTable:
    """A table with one row per policy: the mean, the worst 1 %, and the chance of a linear regret."""
    rows, wide, notes = [], [], []
    for setting in experiment.settings:
        outcome = results[setting]
        mean, worst = outcome.mean("regret"), outcome.cvar(0.99, "regret")
        linear = _linear_chance(setting, results)
        label = f"{setting.series} ({setting.kappa:g})"
        rows.append([label, *with_ends(mean, worst, linear)])
        wide.append([[label], interval(mean), interval(worst), probability(linear)])
        often = f"{linear.value:.2%}" if linear.value else f"less than {chance(linear.high)}"
        earned = max(setting.means) * setting.horizon
        notes.append(
            f"{label} loses {mean.value:.0f} on average, of the {earned:.0f} that pulling the best arm every "
            f"time earns, and {worst.value:.0f} in the worst 1 % of the runs; {often} of the runs lose "
            f"{0.2 * setting.horizon:.0f} or more."
        )
    names = ("mean regret", "mean of worst 1 %", "P(regret ≥ 0.2 T)")
    return PaperTable(["policy", *columns_with_ends(*names)], rows, ["policy (κ)", *names], wide, notes)


def arms_table(experiment: PaperExperiment, results: Results) -> PaperTable:
    """A table of LightTailed and ArmOptimal: their mean regrets and the ratio, which may reach sqrt K."""
    rows, wide = [], []
    for means in dict.fromkeys(setting.means for setting in experiment.settings):
        pair = [setting for setting in experiment.settings if setting.means == means]
        light, optimal = (results[setting].mean("regret") for setting in pair)
        chances = [_linear_chance(setting, results) for setting in pair]
        arms, ratio, root = len(means), light.value / optimal.value, math.sqrt(len(means))
        regrets = [f"{light.value:.6g}", f"{optimal.value:.6g}"]
        rows.append([str(arms), *regrets, f"{ratio:.4f}", f"{root:.4f}"])
        cells = [interval(light), interval(optimal), [f"{ratio:.2f}", f"√K = {root:.2f}"]]
        wide.append([[f"K = {arms}"], *cells, *map(probability, chances)])
    columns = ["arms", "LightTailed mean regret", "ArmOptimal mean regret", "ratio", "sqrt arms"]
    names = ["", "mean regret, LightTailed", "mean regret, ArmOptimal", "ratio"]
    chances_of = [f"P(regret ≥ 0.2 T), {name}" for name in ("LightTailed", "ArmOptimal")]
    note = (
        "Both policies have κ = 0.4; the means are evenly spread from 0.2 to 0.8, and T = 4000. For an arm "
        "that was pulled at most T/K times, the bonus of ArmOptimal is smaller by the factor √K, so the "
        "policy explores less."
    )
    return PaperTable(columns, rows, [*names, *chances_of], wide, [note])


def _beyond(settings: Sequence[Setting]) -> list[tuple[str, list[float]]]:
    """The numbers that need no simulation: exact values, the certificate and the theorem's bound."""

    def each(value: Callable[..., Any]) -> list[float]:
        asked = ((one, {"horizon": one.horizon, "regret": 0.2 * one.horizon}) for one in settings)
        return [float(value(one.policy, one.problem, **sizes)) for one, sizes in asked]

    known = [("exact, pseudo regret", each(exact_tail))]
    if settings[0].policy.light_tailed:
        known.append(("certificate, pseudo regret", each(bounds.certificate)))
        known.append(("theorem's bound", each(partial(bounds.tail, kind="regret"))))
    return known


def reach_table(experiment: PaperExperiment, results: Results) -> PaperTable:
    """A table of P(regret ≥ 0.2 T) for growing T: simulated, exact, and bounded."""
    horizons = sorted({setting.horizon for setting in experiment.settings})
    rows, wide = [], []
    for series, settings in experiment.by_series.items():
        chances = [_linear_chance(setting, results) for setting in settings]
        for setting, estimate in zip(settings, chances, strict=True):
            rows.append([series, str(setting.horizon), *with_ends(estimate)])
        wide.append([[f"{series} ({settings[0].kappa:g})"], *map(probability, chances)])
    for series in ("UCB", "UCB_new"):
        settings = experiment.by_series[series]
        for source, values in _beyond(settings):
            name = f"{series}, {source}"
            for setting, value in zip(settings, values, strict=True):
                rows.append([name, str(setting.horizon), f"{value:.6g}", "", ""])
            wide.append([[name], *([chance(value) if value < 1.0 else "1 or more"] for value in values)])
    paths = next(iter(results.values())).paths
    note = (
        f"“<” marks the upper end of the 95 % interval if none of {paths:,} paths lost that much: plain "
        "simulation cannot show smaller chances. The exact values and the certificate, which bounds them, "
        "are for the pseudo regret, that is, the regret without the noise in the rewards. The theorem's "
        "bound holds for every problem; at these horizons it exceeds 1, so it tells us nothing."
    )
    columns = ["policy", "horizon", "P(regret ≥ 0.2 T)", "low", "high"]
    heads = ["policy (κ)", *(f"T = {horizon:,}" for horizon in horizons)]
    return PaperTable(columns, rows, heads, wide, [note])
