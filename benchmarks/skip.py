"""Skip-ahead: cost of a pull in NumPy draws, its growth with the horizon, and what `auto` chooses.

Ratios within one run, as in speed.py; the bars are in brackets.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
from speed import numpy_draw, own_seconds

import lighttail as lt
from lighttail.kernels import kernel_for, skip_kernel_for, stream
from lighttail.running.prepare import SHORT, choose_method

ROUNDS = 40
LONG = 10**6
ARMS = (2, 4, 16)
LIGHT, STANDARD = lt.UCB(lt.LightTailed(0.2)), lt.UCB(lt.Standard(0.8))
BARS = {LIGHT: (0.05, 0.15, 0.45), STANDARD: (0.0025, 0.012, 0.08)}
GROWTH = {LIGHT: 0.6, STANDARD: 0.25}
SETTINGS, SEED = 400, 2  # drawn at random to judge `auto`; its rule was fitted to those of seed 1
CLOSE = 2.0  # times the better method that `auto` may take,
BEYOND, MEAN = 0.02, 1.08  # but for this share of the settings; and the mean over all of them


def problem(arms: int) -> lt.Bandit:
    return lt.Bandit(np.linspace(0.2, 0.8, arms))


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
        return own_seconds(work) / paths

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


def settings(seed: int) -> Iterator[tuple[lt.Policy, lt.Bandit, int]]:
    """Policies, problems and horizons at random, without end."""
    rng = np.random.default_rng(seed)

    def between(low: float, high: float) -> float:
        return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))), 4)

    while True:
        arms, kappa, gap = round(between(2, 100)), between(0.02, 2.0), between(0.02, 0.6)
        bonuses = (
            *(lt.Standard(kappa), lt.LightTailed(kappa), lt.ArmOptimal(kappa, between(0.02, 2.0))),
            *(lt.AnyTime(kappa), lt.Moss(kappa), lt.Eqo(kappa), lt.TwoPart(kappa, between(0.02, 2.0))),
        )
        bonus = bonuses[rng.integers(len(bonuses))]
        policy = lt.SuccessiveElimination(bonus) if rng.random() < 0.25 else lt.UCB(bonus)
        means = (
            np.linspace(0.2, 0.8, arms),
            np.full(arms, rng.uniform(0.02, 0.98)),
            np.append(np.full(arms - 1, 0.5 - gap / 2), 0.5 + gap / 2),
            np.append(np.full(arms - 1, 0.02), 0.02 + gap),
            rng.uniform(0.01, 0.99, arms),
        )[rng.integers(5)]
        noise = lt.Bernoulli() if rng.random() < 0.5 else lt.Gaussian(between(0.1, 4.0))
        yield policy, lt.Bandit(means, noise), max(arms, round(between(100, 1_000_000)))


def loss_of_auto(policy: lt.Policy, bandit: lt.Bandit, horizon: int) -> float:
    """The time of the method that `auto` takes, over that of the better one.

    Both are played in turns; the least time of each call counts, and their mean over several seeds.
    """
    paths, calls = (8, 12) if horizon <= 32_000 else (2, 8) if horizon <= 200_000 else (1, 6)
    plays = {
        method: [one_path(method, policy, bandit, horizon, paths, seed) for seed in range(1, calls + 1)]
        for method in ("step", "skip")
    }
    rounds = [{method: [play() for play in plays[method]] for method in plays} for _ in range(3)]
    times = {method: np.mean(np.min([one[method] for one in rounds], axis=0)) for method in plays}
    return float(times[choose_method(policy, bandit, horizon, "auto")] / min(times.values()))


def chosen_method() -> int:
    """`auto` against the better method, on settings that nobody chose."""
    warnings.simplefilter("ignore")  # elimination with a bonus that is made for UCB
    print(f"auto: its time over that of the better method, {SETTINGS} settings of seed {SEED}")
    found = []
    for policy, bandit, horizon in islice(settings(SEED), SETTINGS):
        loss = loss_of_auto(policy, bandit, horizon)
        found.append((horizon, loss))
        if horizon >= SHORT and loss > CLOSE:
            print(f"  {loss:.2f}  {policy}, {bandit.arms} arms, {bandit.noise}, T={horizon}")
    _show(f"T < {SHORT}, always pull by pull", [loss for horizon, loss in found if horizon < SHORT])
    share, mean = _show(f"T >= {SHORT}", [loss for horizon, loss in found if horizon >= SHORT])
    print(f"beyond {CLOSE}: {share:.2%} (<= {BEYOND:.0%}), mean {mean:.3f} (<= {MEAN})")
    return (share > BEYOND) + (mean > MEAN)


def _show(where: str, losses: list[float]) -> tuple[float, float]:
    """Print, and return the share that is beyond the bar and the mean."""
    beyond, mean = sum(loss > CLOSE for loss in losses), float(np.mean(losses))
    print(f"{where}: worst {max(losses):.2f}, {beyond} of {len(losses)} beyond {CLOSE}, mean {mean:.3f}")
    return beyond / len(losses), mean


def main() -> int:
    return 1 if cost_of_a_pull() + growth() + chosen_method() else 0


if __name__ == "__main__":
    sys.exit(main())
