"""Measures what guard rails do to losses, and writes the table of docs/live.md (`make guard-rails`).

About a minute of one processor. `Railed` is UCB behind guard rails as one rule, which `simulate` compiles;
`tests/test_guard_rails.py` holds it against desks with the same settings.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

import lighttail as lt

PAGE = Path(__file__).parent / "live.md"
MARKS = ("<!-- guard rails -->\n", "<!-- end of guard rails -->")
HORIZON, PATHS, RUIN = 1000, 100_000, 100.0
CONTROL_WORSE, CONTROL_BETTER = (0.4, 0.6), (0.6, 0.4)  # chances of a conversion; the control comes first
GAP = 0.2


@dataclass(frozen=True)
class Railed(lt.Policy):
    """UCB behind guard rails. note: the pulls and the rewards that the policy sees, and 1 for a pull of the
    holdout.

    light: the radius is that of LightTailed(kappa), otherwise that of Standard(kappa). holdout: the share of
    the units that always get the first arm and that the policy does not see. back: the share of the other
    asks that come from a unit seen before, which gets its arm again. floor, other: the shares of the arms.
    """

    kappa: float
    light: bool
    holdout: float = 0.0
    back: float = 0.0
    floor: float = 0.0
    other: float = 0.0
    notes = 3
    memo = 1

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        bonus: lt.Bonus = (lt.LightTailed if self.light else lt.Standard)(self.kappa)
        (scale,) = bonus.params(horizon, arms)
        return scale, float(self.light), self.holdout, self.back, self.floor, self.other

    @staticmethod
    def choose(rng: Any, t: Any, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> int:
        scale, light, holdout, back, floor, other = params
        if lt.uniform(rng) < holdout:
            note[0, 2] = 1.0
            return 0
        seen = note[0, 0] + note[1, 0]
        mark, arm = lt.uniform(rng), -1
        if seen > 0.0 and lt.uniform(rng) < back:
            arm = 0 if lt.uniform(rng) * seen < note[0, 0] else 1
        elif mark < floor:
            arm = 0
        elif mark < floor + other:
            arm = 1
        else:
            best = -math.inf
            for k in range(2):
                n = note[k, 0]
                value = math.inf
                if n > 0.0:
                    value = note[k, 1] / n + scale / (n if light > 0.5 else math.sqrt(n))
                if value > best or (value == best and lt.uniform(rng) < 0.5):
                    best, arm = value, k
        note[arm, 0] += 1.0
        note[arm, 2] = 0.0
        return arm

    @staticmethod
    def learn(arm: Any, reward: Any, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> None:
        if note[arm, 2] == 0.0:
            note[arm, 1] += reward


POLICIES = {"UCB + Standard(0.4)": Railed(0.4, False), "UCB + LightTailed(0.1)": Railed(0.1, True)}


@dataclass(frozen=True)
class Row:
    """A row of the table. seen: the chances as the policy sees them, if a window distorts them."""

    name: str
    means: tuple[float, float]
    rails: dict[str, float]
    seen: tuple[float, float] | None = None


ROWS = [
    Row("none", CONTROL_WORSE, {}),
    Row("floor of 5 % for a control that is worse", CONTROL_WORSE, {"floor": 0.05}),
    Row("floor of 5 % for a control that is better", CONTROL_BETTER, {"floor": 0.05}),
    Row("floor of 5 % for both arms", CONTROL_WORSE, {"floor": 0.05, "other": 0.05}),
    Row("holdout of 10 %, control worse", CONTROL_WORSE, {"holdout": 0.1}),
    Row("holdout of 10 %, control better", CONTROL_BETTER, {"holdout": 0.1}),
    Row("sticky, half of the asks are returns", CONTROL_WORSE, {"back": 0.5}),
    Row("window that 30 % of all conversions miss", CONTROL_WORSE, {}, (0.28, 0.42)),
    Row("window that half of the better arm's conversions miss", CONTROL_WORSE, {}, (0.4, 0.3)),
]


def losses(policy: Railed, row: Row, horizon: int = HORIZON, paths: int = PATHS, seed: int = 1) -> Any:
    """The loss of each path: the pulls of the worse arm times the gap, the holdout's included."""
    problem = lt.Bandit(row.seen or row.means, lt.Bernoulli())
    out = lt.simulate(replace(policy, **row.rails), problem, horizon=horizon, paths=paths, seed=seed)
    return out.pulls[:, int(np.argmin(row.means))] * abs(row.means[1] - row.means[0])


def chance(lost: Any, threshold: float) -> tuple[float, float, float]:
    """P(loss >= threshold) with its 95 % interval (Clopper-Pearson)."""
    hits, n = int(np.sum(lost >= threshold - 1e-9)), len(lost)
    low = float(beta.ppf(0.025, hits, n - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.975, hits + 1, n - hits)) if hits < n else 1.0
    return hits / n, low, high


def shown(lost: Any) -> str:
    mean, half = float(np.mean(lost)), 1.96 * float(np.std(lost)) / math.sqrt(len(lost))
    value, low, high = (100.0 * part for part in chance(lost, RUIN))
    odds = f"{value:.3g} % [{low:.3g}, {high:.3g}]" if value else f"< {high:.1g} %"
    return f"{mean:.1f} ± {half:.1f} | {odds}"


def table() -> str:
    heads = [f"{name}: mean loss | a loss of {RUIN:g} or more" for name in POLICIES]
    lines = [f"| guard rail | {' | '.join(heads)} |", f"|---|{'---|' * 2 * len(POLICIES)}"]
    for row in ROWS:
        cells = [shown(losses(policy, row)) for policy in POLICIES.values()]
        lines.append(f"| {row.name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    text = PAGE.read_text()
    before, found, rest = text.partition(MARKS[0])
    if not found:
        sys.exit(f"{PAGE} has no {MARKS[0]}")
    PAGE.write_text(before + MARKS[0] + table() + MARKS[1] + rest.partition(MARKS[1])[2])
    print(f"a floor of 5 % costs at most f T gap = {0.05 * HORIZON * GAP:g}")


if __name__ == "__main__":
    main()
