"""The plan of `lighttail plan` without options: pulls, seconds, and the share outside the kernels."""

from __future__ import annotations

import sys
import time

import lighttail as lt
from lighttail.cli.plan import ARMS, HORIZON, LOSS
from lighttail.running.prepare import usable_processors

MOST = 60.0  # seconds on two processors


def web_test(effort: float) -> lt.Plan:
    family = lt.Family.rates(0.03, 0.05, arms=ARMS)
    return lt.plan(family, horizon=HORIZON, loss=LOSS, chance=0.001, seed=1, effort=effort)


def main() -> int:
    web_test(0.001)  # loads every kernel
    start, spent = time.perf_counter(), time.process_time()
    plan = web_test(1.0)
    seconds, spent = time.perf_counter() - start, time.process_time() - spent
    use = usable_processors()
    outside = 1.0 - plan.playing / max(plan.playing, spent)
    print(
        f"the plan of the web test: {plan.pulls:.3g} pulls in {seconds:.1f} s (< {MOST:g} s on 2 processors),"
    )
    print(f"  {plan.pulls / seconds:.3g} pulls per second; {spent:.1f} processor seconds, ", end="")
    print(f"of which {outside:.0%} outside the kernels of plain and weighted paths")
    return 1 if use >= 2 and seconds >= MOST else 0


if __name__ == "__main__":
    sys.exit(main())
