"""A forecast: its seconds, and how much faster its kernels are than those of rewards that come late.

`make bench` runs it. Ratios are within one run; the limit in seconds is for two processors."""

from __future__ import annotations

import sys
import time

import numpy as np

import lighttail as lt
from lighttail.forecasting import PATHS
from lighttail.inference import BoundedRewards
from lighttail.inference.evidence import Heard
from lighttail.running.continued import continued
from lighttail.running.prepare import usable_processors

LEFT, BEFORE, RATES, BETWEEN = 20_000, 2_000, (0.03, 0.05, 0.04), (0.02, 0.08)
MOST = 2.0  # seconds on two processors
POLICIES = (lt.UCB(lt.LightTailed(0.0587)), lt.UCB(lt.AnyTime(0.1)), lt.ThompsonSampling(0.5))
HELD = 2  # policies for which the limit holds: a pull of Thompson sampling draws a normal number per arm


def begun(policy: lt.Policy) -> lt.Experiment:
    """A web test after its first pulls."""
    rng = np.random.default_rng(1)
    experiment = lt.Experiment(policy, arms=[0, 1, 2], horizon=BEFORE + LEFT, seed=1)
    for _ in range(BEFORE):
        trial = experiment.ask()
        experiment.tell(trial.id, float(rng.random() < RATES[int(trial.arm)]))
    return experiment


def ratio(experiment: lt.Experiment, paths: int = 200) -> float:
    """Processor seconds of the kernel for late rewards, in those of the kernels of a forecast."""
    start, coins = experiment.beginning(), BoundedRewards()
    heard = [Heard(int(n), float(s)) for n, s in zip(start.counts[1], start.counts[2], strict=True)]
    means, spent = coins.posterior(heard, np.random.default_rng(2), paths, BETWEEN), []
    for delay in (0, None):
        continued(start, coins.noise, means[:2], BEFORE + LEFT, seed=1, delay=delay)
        begin = time.process_time()
        continued(start, coins.noise, means, BEFORE + LEFT, seed=1, delay=delay)
        spent.append(time.process_time() - begin)
    return spent[0] / spent[1]


def main() -> int:
    use, late = usable_processors(), False
    for place, policy in enumerate(POLICIES):
        experiment = begun(policy)
        experiment.forecast(loss=150, seed=1, paths=100, between=BETWEEN)  # loads every kernel
        wall, spent = time.perf_counter(), time.process_time()
        experiment.forecast(loss=150, seed=1, between=BETWEEN)
        wall, spent = time.perf_counter() - wall, time.process_time() - spent
        limit = f" (< {MOST:g} s on two)" if place < HELD else ""
        took = f"{wall:.2f} s on {use} processors{limit}, {spent:.2f} processor seconds"
        print(f"{policy}: {PATHS:,} ends of {LEFT:,} pulls in {took};")
        print(f"  the kernel of late rewards takes {ratio(experiment):.1f} times as long")
        late |= place < HELD and spent / 2.0 >= MOST
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
