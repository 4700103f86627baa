"""The rule behind the table of guard rails (docs/live.md) plays like desks with the same settings."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from desks import desk_of

import lighttail as lt

ROOT = Path(__file__).parents[1]
HORIZON, DESKS = 120, 50
MEANS = (0.4, 0.6)
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    "floor": ({"shares": {"A": 0.2}}, {"floor": 0.2}),
    "floors": ({"shares": {"A": 0.2, "B": 0.1}}, {"floor": 0.2, "other": 0.1}),
    "holdout": ({"holdout": {"arm": "A", "share": 0.3}}, {"holdout": 0.3}),
    "sticky": ({"sticky": True}, {"back": 0.5}),
}


def script() -> Any:
    import sys

    found = importlib.util.spec_from_file_location("guard_rails", ROOT / "docs" / "guard_rails.py")
    assert found is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["guard_rails"] = module
    assert found.loader is not None
    found.loader.exec_module(module)
    return module


PAGE = script()


def simulated(**rails: float) -> tuple[float, float]:
    """The mean loss, and its standard deviation per path."""
    row = PAGE.Row("", MEANS, rails)
    lost = PAGE.losses(PAGE.Railed(0.4, False), row, HORIZON, 20_000)
    return float(np.mean(lost)), float(np.std(lost))


def lost_by_a_desk(settings: dict[str, Any], seed: int) -> float:
    """The loss of an experiment whose visitors come back half of the time, if units stick."""
    rng, visits, lost = np.random.default_rng(seed), list[str](), 0.0
    given = {"policy": "ucb:standard:0.4", "arms": ["A", "B"], "horizon": HORIZON, "seed": seed}
    with desk_of(settings=settings, **given) as desk:
        for turn in range(HORIZON):
            unit = f"{seed}-{turn}"
            if settings.get("sticky") and visits and rng.random() < 0.5:
                unit = visits[int(rng.integers(len(visits)))]
            visits.append(unit)
            (trial,) = desk.ask(unit=unit)
            place = "AB".index(str(trial.arm))
            desk.tell([(trial.id, float(rng.random() < MEANS[place]))])
            lost += MEANS[1] - MEANS[place]
    return lost


@pytest.mark.parametrize("name", SETTINGS)
def test_desks_lose_what_the_page_says(name: str) -> None:
    """z = 4 standard errors, fixed seeds; negative control: the rule without the guard rail."""
    settings, rails = SETTINGS[name]
    desks = [lost_by_a_desk(settings, seed) for seed in range(DESKS)]
    mean, sd = simulated(**rails)
    slack = 4.0 * sd / math.sqrt(DESKS)
    assert abs(float(np.mean(desks)) - mean) < slack
    assert abs(float(np.mean(desks)) - simulated()[0]) > slack


def test_without_guard_rails_it_is_ucb() -> None:
    """z = 4 standard errors."""
    for light, bonus in ((False, lt.Standard(0.4)), (True, lt.LightTailed(0.1))):
        row = PAGE.Row("", MEANS, {})
        mine = PAGE.losses(PAGE.Railed(bonus.kappa, light), row, HORIZON, 20_000, seed=1)
        out = lt.simulate(
            lt.UCB(bonus), lt.Bandit(MEANS, lt.Bernoulli()), horizon=HORIZON, paths=20_000, seed=2
        )
        other = out.pseudo_regret
        error = math.sqrt((np.var(mine) + np.var(other)) / 20_000)
        assert abs(float(np.mean(mine) - np.mean(other))) < 4.0 * error


def test_the_page_has_the_table_and_the_floor_costs_at_most_the_formula() -> None:
    text = (ROOT / "docs" / "live.md").read_text()
    first, _, rest = text.partition(PAGE.MARKS[0])
    rows = rest.partition(PAGE.MARKS[1])[0].splitlines()[2:]
    assert first
    assert [row.split("|")[1].strip() for row in rows] == [row.name for row in PAGE.ROWS]
    means = [[float(part) for part in re.findall(r"([\d.]+) ±", row)] for row in rows]
    most = 0.05 * PAGE.HORIZON * PAGE.GAP
    for before, after in zip(means[0], means[1], strict=True):
        assert 0.5 * most < after - before <= most
