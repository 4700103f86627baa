"""The simulation of the whole paper: pulls, seconds, and the time to draw as many normals with NumPy."""

from __future__ import annotations

import sys
import time

from speed import numpy_draw

from lighttail.paper import EXPERIMENTS, Setting, settings_in
from lighttail.running.prepare import usable_processors
from lighttail.running.simulate import simulate

PATHS = 5000


def main() -> int:
    # The linear parts are not in the paper, and have a benchmark of their own.
    settings = [setting for setting in settings_in(EXPERIMENTS) if isinstance(setting, Setting)]
    for setting in settings:  # loads every kernel
        simulate(setting.policy, setting.problem, horizon=setting.horizon, paths=1, seed=1)
    unit = min(numpy_draw() for _ in range(50))
    start = time.perf_counter()
    for setting in settings:
        simulate(setting.policy, setting.problem, horizon=setting.horizon, paths=PATHS, seed=1)
    seconds = time.perf_counter() - start
    pulls = sum(setting.horizon for setting in settings) * PATHS
    ratio = seconds / (pulls * unit)
    print(
        f"the whole paper: {pulls:.3g} pulls in {seconds:.1f} s on {usable_processors()} processors (< 30 s),"
    )
    print(f"  {ratio:.2f} times as long as one core takes to draw as many normals with NumPy")
    return 1 if seconds >= 30 else 0


if __name__ == "__main__":
    sys.exit(main())
