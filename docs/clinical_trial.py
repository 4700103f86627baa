"""Draws docs/images/clinical-trial.png: three policies on the data of a trial (docs/clinical-trial.md).

The data, ACTG 175, come with the package lifelines: `pip install --group docs`.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

import matplotlib

import lighttail as lt
from lighttail.report.figures import SETTINGS, draw, survival_figure
from lighttail.system.files import whole_file

TREATMENTS = {
    "0": "zidovudine",
    "1": "zidovudine + didanosine",
    "2": "zidovudine + zalcitabine",
    "3": "didanosine",
}
HORIZON, LOSS, PATHS = 2000, 48_000.0, 100_000
NOISE = 120.0  # the standard deviation of one patient's gain, about
POLICIES = (
    lt.UCB(lt.Standard(0.8 * NOISE)),
    lt.ThompsonSampling(0.8 * NOISE, 0.0, 0.8 * NOISE),
    lt.UCB(lt.LightTailed(0.2 * NOISE)),
)


def gains() -> dict[str, list[float]]:
    """The gain in CD4 cells per cubic millimetre after 20 weeks, of every patient, by treatment."""
    found: dict[str, list[float]] = {name: [] for name in TREATMENTS.values()}
    with (files("lifelines") / "datasets" / "ACTG175.csv").open() as file:
        for row in csv.DictReader(file):
            found[TREATMENTS[row["arms"]]].append(float(row["cd420"]) - float(row["cd40"]))
    return found


def measured(paths: int = PATHS, seed: int = 1) -> lt.Comparison:
    """The policies on patients who are drawn from those of the trial, with replacement."""
    problem = lt.Bandit.from_samples(gains())
    return lt.compare(
        POLICIES, problem, horizon=HORIZON, paths=paths, seed=seed, threshold=LOSS, growth=False
    )


def main() -> None:
    comparison = measured()
    print(comparison)
    with matplotlib.rc_context(SETTINGS):
        figure = survival_figure(comparison)
        axes = figure.axes[0]
        axes.set_title(f"Patients of the trial ACTG 175, {PATHS:,} simulated runs of each policy", loc="left")
        axes.set_xlabel(f"loss x over {HORIZON:,} patients, in CD4 cells")
        axes.xaxis.set_major_formatter("{x:,.0f}")
    path = Path(__file__).parent / "images" / "clinical-trial.png"
    with whole_file(path) as file:
        file.write(draw(figure, ("png",))["png"])
    print(path)


if __name__ == "__main__":
    main()
