"""What `auto` loses on settings drawn at random, and prices fitted to them.

    python benchmarks/prices.py --seconds 300 --seed 1 [--arms 41] [--hard] [--fit]

Each setting is timed with both methods, and the cost of the one that `auto` takes is divided by
the lesser. With --hard only settings count whose costs are said to lie within a factor of 2.5. With
--fit the prices of UCB in src/lighttail/costs.py are fitted to these times by least relative squares.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear
from skip import CLOSE, one_path
from speed import numpy_draw

import lighttail as lt
from lighttail import costs
from lighttail.running.methods import choose_method

ROUNDS = 6
NEAR = 2.5


@dataclass(frozen=True)
class Timed:
    """A setting, what each method took in NumPy draws, what it was said to, and what `auto` took."""

    policy: Any
    problem: lt.Bandit
    horizon: int
    step: float
    skip: float
    said: tuple[float, float]
    chosen: str

    @property
    def loss(self) -> float:
        return (self.skip if self.chosen == "skip" else self.step) / min(self.skip, self.step)

    @property
    def error(self) -> float:
        """Of the ratio of the two, as a logarithm."""
        return float(np.log(self.said[1] / self.said[0]) - np.log(self.skip / self.step))

    @property
    def group(self) -> str:
        parts = (self.policy, self.policy.bonus, self.problem.noise)
        return " ".join(type(part).__name__ for part in parts)


def settings(seed: int, most: int) -> Iterator[tuple[Any, lt.Bandit, int]]:
    """Policies, problems and horizons without end."""
    rng = np.random.default_rng(seed)

    def between(low: float, high: float) -> float:
        return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))), 4)

    while True:
        arms, kappa, gap = int(between(2, most)), between(0.02, 2.0), between(0.02, 0.6)
        bonus: lt.Bonus = (
            lt.Standard(kappa),
            lt.LightTailed(kappa),
            lt.ArmOptimal(kappa, between(0.02, 2.0)),
            lt.AnyTime(kappa),
        )[rng.integers(4)]
        policy: lt.Policy = lt.UCB(bonus)
        if isinstance(bonus, (lt.Standard, lt.LightTailed)) and rng.random() < 0.4:
            policy = lt.SuccessiveElimination(bonus)
        means = (
            np.linspace(0.2, 0.8, arms),
            np.full(arms, rng.uniform(0.02, 0.98)),
            np.append(np.full(arms - 1, 0.5 - gap / 2), 0.5 + gap / 2),
            np.append(np.full(arms - 1, 0.02), 0.02 + gap),
            rng.uniform(0.01, 0.99, arms),
        )[rng.integers(5)]
        noise = lt.Bernoulli() if rng.random() < 0.55 else lt.Gaussian(between(0.1, 4.0))
        yield policy, lt.Bandit(means, noise), int(between(1000, 600_000))


def timed(policy: Any, problem: lt.Bandit, horizon: int, said: tuple[float, float]) -> Timed:
    """Both methods in turns, the best time of each call, the mean over calls with different seeds."""
    paths, calls = (8, 12) if horizon <= 32_000 else (4, 12) if horizon <= 200_000 else (2, 8)
    plays = [
        [one_path(method, policy, problem, horizon, paths, seed) for seed in range(1, calls + 1)]
        for method in ("step", "skip")
    ]
    rounds = [(numpy_draw(), [[play() for play in of_one] for of_one in plays]) for _ in range(ROUNDS)]
    unit = min(draw for draw, _ in rounds)
    step, skip = np.array([times for _, times in rounds]).min(axis=0).mean(axis=1) / unit
    chosen = choose_method(policy, problem, horizon, "auto")
    return Timed(policy, problem, horizon, float(step), float(skip), said, chosen)


def fitted(prices: Any, rows: list[Timed]) -> Any:
    """The prices of a group that come nearest to its times, of which both costs are linear functions."""

    def costs_at(values: Any) -> Any:
        guess = type(prices)(*values)
        found = [guess.costs(row.horizon, row.problem.arms, *counts) for row, counts in counted]
        return np.ravel(found) / took

    counted = [(row, counts_of(row)) for row in rows]
    took = np.ravel([(row.step, row.skip) for row in rows])
    free = costs_at(np.zeros(len(prices)))
    slopes = np.stack([costs_at(row) - free for row in np.eye(len(prices))], axis=1)
    found = lsq_linear(slopes, 1.0 - free, bounds=(0.0, np.inf)).x
    return type(prices)(*(round(float(value), 3) for value in found))


def counts_of(row: Timed) -> list[Any]:
    """What the prices are paid for, beside horizon and arms."""
    counts = costs.pilots(row.policy, row.problem, row.horizon)
    if type(row.policy.bonus).changes_with_time():
        return [counts]
    return [counts, *costs.turns_and_ties(row.policy, row.problem, row.horizon, counts.pulls)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arms", type=int, default=41, help="draw up to so many arms")
    parser.add_argument("--hard", action="store_true")
    parser.add_argument("--fit", action="store_true")
    args = parser.parse_args()
    rows, drawn, end = [], 0, time.monotonic() + args.seconds
    for policy, problem, horizon in settings(args.seed, args.arms):
        if time.monotonic() > end:
            break
        drawn += 1
        said = costs.costs_of(policy, problem, horizon)
        if not args.hard or 1.0 / NEAR < said[1] / said[0] < NEAR:
            rows.append(timed(policy, problem, horizon, said))
    report(rows, drawn)
    ucb = [row for row in rows if isinstance(row.policy, lt.UCB)]
    if args.fit:
        for prices in (*costs.STANDING.values(), *costs.MOVING.values()):
            group = [row for row in ucb if costs.prices_of(row.policy, row.problem) is prices]
            print(prices, "->", fitted(prices, group) if len(group) > len(prices) else "too few settings")


def report(rows: list[Timed], drawn: int) -> None:
    print(f"{len(rows)} of {drawn} settings timed; beyond {CLOSE}: {sum(row.loss > CLOSE for row in rows)}")
    for group in sorted({row.group for row in rows}):
        found = [row for row in rows if row.group == group]
        errors = np.array([row.error for row in found])
        print(
            f"{group:48}{len(found):5}  loss {max(row.loss for row in found):.2f} at most,"
            f" said/timed {np.exp(errors.mean()):.2f}, sd {errors.std():.2f}"
        )
    for row in sorted(rows, key=lambda row: -row.loss)[:10]:
        where = f"{row.policy}, {row.problem.arms} arms, {type(row.problem.noise).__name__}, T={row.horizon}"
        ratios = f"skip/step {row.skip / row.step:.2f}, said {row.said[1] / row.said[0]:.2f}"
        print(f"  {row.loss:.2f}  {where}: {ratios}")


if __name__ == "__main__":
    main()
