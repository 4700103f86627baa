"""Skip-ahead: cost of a pull in NumPy draws, its growth with the horizon, and what `auto` chooses.

Ratios within one run, as in speed.py; the bars are in brackets.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from speed import numpy_draw, seconds

import lighttail as lt
from lighttail.kernels import kernel_for, skip_kernel_for, stream
from lighttail.running.methods import choose_method

ROUNDS = 40
LONG = 10**6
ARMS = (2, 4, 16)
LIGHT, STANDARD = lt.UCB(lt.LightTailed(0.2)), lt.UCB(lt.Standard(0.8))
BARS = {LIGHT: (0.05, 0.15, 0.45), STANDARD: (0.0025, 0.012, 0.08)}
GROWTH = {LIGHT: 0.6, STANDARD: 0.25}
POLICIES = (
    *(LIGHT, STANDARD, lt.UCB(lt.ArmOptimal(0.4, 0.4)), lt.UCB(lt.AnyTime(0.2))),
    *(lt.SuccessiveElimination(lt.LightTailed(0.1)), lt.SuccessiveElimination(lt.Standard(0.4))),
)
NOISES = (lt.Gaussian(1.0), lt.Bernoulli())
GRID = (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 512_000, 2_000_000)
SAME = 32_000  # up to here both methods play as many paths from the same seeds
CLOSE = 1.3  # how much slower than the better method `auto` may be


def problem(arms: int, noise: lt.Noise | None = None) -> lt.Bandit:
    return lt.Bandit(np.linspace(0.2, 0.8, arms), noise)


def one_path(
    method: str, policy: lt.Policy, bandit: lt.Bandit, horizon: int, paths: int, seed: int = 1
) -> Callable[[], float]:
    """A function that returns the seconds of one path on one core."""
    kernel = (skip_kernel_for if method == "skip" else kernel_for)(policy, bandit)
    params, world = policy.params(horizon, bandit.arms), bandit.noise.world(bandit.means)
    reward, pulls = np.empty(paths), np.empty((paths, bandit.arms), dtype=np.int64)
    stop = np.zeros(1, dtype=np.int64)

    def play() -> float:
        generator = np.random.Generator(np.random.SFC64(seed))  # the same paths in every round
        work = lambda: kernel(stream(generator), params, world, horizon, reward, pulls, stop)  # noqa: E731
        return seconds(work) / paths

    kernel(
        stream(np.random.Generator(np.random.SFC64(1))), params, world, horizon, reward[:0], pulls[:0], stop
    )
    return play


def cost_of_a_pull() -> int:
    """Skip-ahead at a long horizon, in NumPy draws a pull."""
    print(f"skip-ahead, one pull, T={LONG}, in NumPy draws (best of {ROUNDS} rounds; bar in brackets)")
    print(f"{'':24}" + "".join(f"{f'K={arms}':>22}" for arms in ARMS))
    missed = 0
    for policy, bars in BARS.items():
        plays = [one_path("skip", policy, problem(arms), LONG, 40) for arms in ARMS]
        rounds = [(numpy_draw(), *(play() for play in plays)) for _ in range(ROUNDS)]
        unit, *best = (min(column) for column in zip(*rounds, strict=True))
        shares = [cost / unit / LONG for cost in best]
        missed += sum(share > bar for share, bar in zip(shares, bars, strict=True))
        cells = [f"{share:.5f} (<= {bar})" for share, bar in zip(shares, bars, strict=True)]
        print(f"{policy!s:24}" + "".join(f"{cell:>22}" for cell in cells))
    return missed


def growth() -> int:
    """The exponent of the cost of a path in the horizon."""
    missed = 0
    horizons = (10**4, 10**5, 10**6, 10**7)
    for policy, bar in GROWTH.items():
        plays = [one_path("skip", policy, problem(2), horizon, 40) for horizon in horizons]
        costs = [min(column) for column in zip(*([play() for play in plays] for _ in range(20)), strict=True)]
        slope = float(np.polyfit(np.log(horizons), np.log(costs), 1)[0])
        missed += slope > bar
        times = ", ".join(f"{cost * 1e6:.1f}" for cost in costs)
        print(f"{policy!s:24} K=2, T=1e4 .. 1e7: {times} µs a path, exponent {slope:.2f} (<= {bar})")
    return missed


def chosen_method() -> int:
    """`auto` against the better method on a grid of policies, noises, arms and horizons."""
    print(f"auto against the better method (<= {CLOSE}): largest ratio, and where skipping begins to pay")
    missed = 0
    for policy in POLICIES:
        for noise in NOISES:
            cells = []
            for arms in ARMS:
                worst, turn = compare_methods(policy, problem(arms, noise))
                missed += worst > CLOSE
                cells.append(f"{f'{worst:.2f} (from {turn:.3g})':>21}")
            print(f"{policy!s:26} {type(noise).__name__:10}" + "".join(cells))
    return missed


def compare_methods(policy: lt.Policy, bandit: lt.Bandit) -> tuple[float, float]:
    """The largest cost of `auto` over that of the better method, and the first horizon that skips better."""
    worst, turn = 1.0, math.inf
    for horizon in GRID:
        chosen = choose_method(policy, bandit, horizon, "auto")
        ratio = ratio_of_costs(policy, bandit, horizon)
        worst = max(worst, ratio if chosen == "skip" else 1.0 / ratio)
        if ratio < 1.0:
            turn = min(turn, horizon)
    return worst, turn


def ratio_of_costs(policy: lt.Policy, bandit: lt.Bandit, horizon: int) -> float:
    """The cost of skip-ahead over that of pull by pull: the median over rounds with seeds of their own.

    Paths that skip take very different times, so many are played; in short calls, of both methods in
    turns, since a busy second would spoil a long one. No seed comes twice: Bernoulli rewards that a
    processor has met before are partly foreseen, which made a pull 6 % cheaper.
    """
    size = {"step": (8, 12), "skip": (8, 12)} if horizon <= SAME else {"step": (2, 4), "skip": (4, 12)}
    ratios = []
    for turn in range(9):
        cost = {
            name: np.mean(
                [one_path(name, policy, bandit, horizon, paths, 100 * turn + i)() for i in range(calls)]
            )
            for name, (paths, calls) in size.items()
        }
        ratios.append(float(cost["skip"] / cost["step"]))
    return float(np.median(ratios))


def main() -> int:
    return 1 if cost_of_a_pull() + growth() + chosen_method() else 0


if __name__ == "__main__":
    sys.exit(main())
