"""The paper's tables of mean rewards (mean-2 and mean-4) come out again, all 48 cells but one.

The print gives no standard errors; a cell of it has those of 5,000 paths. Ours has 20,000. The check
is |z| <= 4, z counted in both standard errors together.

Two readings of the print matter. UCB_any is there without the 1/sqrt(K) of the theorem, hence
`AnyTime(kappa * sqrt(K))`. And one cell, UCB_any at K = 2 and kappa = 0.1, does not come out under any
reading that was tried; that it does not is asserted, so that the exception stays honest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest

import lighttail as lt

pytestmark = pytest.mark.slow

Z = 4.0
KAPPAS = (0.1, 0.2, 0.4, 0.8)
PROBLEMS = {2: lt.Bandit([0.2, 0.8]), 4: lt.Bandit([0.2, 0.4, 0.6, 0.8])}

PRINTED = {
    ("SE", 2): (311.60, 336.46, 375.53, 374.69),
    ("UCB", 2): (349.68, 359.68, 377.17, 390.23),
    ("TS", 2): (351.00, 360.71, 377.94, 390.32),
    ("SE_new", 2): (388.16, 376.69, 354.25, 309.58),
    ("UCB_new", 2): (393.27, 387.48, 377.72, 360.69),
    ("UCB_any", 2): (391.66, 387.60, 377.37, 359.59),
    ("SE", 4): (293.11, 311.74, 351.81, 316.64),
    ("UCB", 4): (339.41, 348.52, 360.26, 369.25),
    ("TS", 4): (341.05, 349.86, 359.82, 365.26),
    ("SE_new", 4): (361.93, 334.18, 283.69, 251.52),
    ("UCB_new", 4): (371.10, 361.13, 339.29, 309.71),
    ("UCB_any", 4): (368.86, 359.87, 335.68, 305.88),
}
CELLS = [(row, arms, kappa) for row, arms in PRINTED for kappa in KAPPAS]
DOES_NOT_REPRODUCE = ("UCB_any", 2, 0.1)

POLICIES: dict[str, Callable[[float, int], lt.Policy]] = {
    "SE": lambda kappa, arms: lt.SuccessiveElimination(lt.Standard(kappa)),
    "UCB": lambda kappa, arms: lt.UCB(lt.Standard(kappa)),
    "TS": lambda kappa, arms: lt.ThompsonSampling(kappa),
    "SE_new": lambda kappa, arms: lt.SuccessiveElimination(lt.LightTailed(kappa)),
    "UCB_new": lambda kappa, arms: lt.UCB(lt.LightTailed(kappa)),
    "UCB_any": lambda kappa, arms: lt.UCB(lt.AnyTime(kappa * math.sqrt(arms))),
}


def distance(policy: lt.Policy, row: str, arms: int, kappa: float) -> float:
    """z: how many standard errors, ours and the print's together, lie between the two means."""
    out = lt.simulate(policy, PROBLEMS[arms], horizon=500, paths=20_000, seed=2024)
    printed = PRINTED[row, arms][KAPPAS.index(kappa)]
    sd = out.reward.std(ddof=1)
    return (out.reward.mean() - printed) / math.sqrt(sd**2 / 20_000 + sd**2 / 5_000)


@pytest.mark.parametrize(("row", "arms", "kappa"), [cell for cell in CELLS if cell != DOES_NOT_REPRODUCE])
def test_the_cell_comes_out_again(row: str, arms: int, kappa: float) -> None:
    assert abs(distance(POLICIES[row](kappa, arms), row, arms, kappa)) <= Z


def test_the_one_cell_that_does_not_still_does_not() -> None:
    row, arms, kappa = DOES_NOT_REPRODUCE
    assert abs(distance(POLICIES[row](kappa, arms), row, arms, kappa)) > Z


def test_any_time_as_in_the_theorem_is_not_what_was_printed() -> None:
    distances = [abs(distance(lt.UCB(lt.AnyTime(kappa)), "UCB_any", 4, kappa)) for kappa in KAPPAS]
    assert min(distances) > Z


# Negative controls: the same check must notice a radius that is 20 % too wide.


@dataclass(frozen=True)
class WideStandard(lt.Standard):
    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        (scale,) = super().params(horizon, arms)
        return (1.2 * scale,)


@dataclass(frozen=True)
class WideLightTailed(lt.LightTailed):
    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        (scale,) = super().params(horizon, arms)
        return (1.2 * scale,)


@dataclass(frozen=True)
class WideAnyTime(lt.AnyTime):
    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        scale, count = super().params(horizon, arms)
        return 1.2 * scale, count


TOO_WIDE: dict[str, Callable[[float, int], lt.Policy]] = {
    "SE": lambda kappa, arms: lt.SuccessiveElimination(WideStandard(kappa)),
    "UCB": lambda kappa, arms: lt.UCB(WideStandard(kappa)),
    "TS": lambda kappa, arms: lt.ThompsonSampling(1.2 * kappa),
    "SE_new": lambda kappa, arms: lt.SuccessiveElimination(WideLightTailed(kappa)),
    "UCB_new": lambda kappa, arms: lt.UCB(WideLightTailed(kappa)),
    "UCB_any": lambda kappa, arms: lt.UCB(WideAnyTime(kappa * math.sqrt(arms))),
}


@pytest.mark.parametrize("row", TOO_WIDE)
def test_a_radius_a_fifth_too_wide_is_noticed(row: str) -> None:
    """In two of a row's eight cells at least; UCB is the row that depends least on its kappa."""
    cells = [cell for cell in CELLS if cell[0] == row and cell != DOES_NOT_REPRODUCE]
    noticed = [cell for cell in cells if abs(distance(TOO_WIDE[row](cell[2], cell[1]), *cell)) > Z]
    assert len(noticed) >= 2
