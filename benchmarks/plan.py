"""The plan of `lighttail plan` without options: pulls, seconds, and where they go."""

from __future__ import annotations

import sys
import time
from typing import Any

import lighttail as lt
from lighttail.cli.options import ARM_COUNT
from lighttail.cli.plan import HORIZON, LOSS
from lighttail.running.prepare import usable_processors
from lighttail.tails import play

MOST = 60.0  # seconds on two processors


def web_test(horizon: int, effort: float) -> lt.Plan:
    family = lt.Family.rates(0.03, 0.05, arms=ARM_COUNT)
    loss = LOSS * horizon / HORIZON
    return lt.plan(family, horizon=horizon, loss=loss, chance=0.001, seed=1, effort=effort)


def timed_weighted_paths() -> list[float]:
    """The list to which every block of weighted paths adds the processor seconds of its kernel."""
    seconds: list[float] = []
    make = play.block_of_paths

    def timed(*given: Any) -> Any:
        block = make(*given)

        def played(*more: Any) -> None:
            begin = time.thread_time()
            block(*more)
            seconds.append(time.thread_time() - begin)

        return played

    play.block_of_paths = timed
    return seconds


def main() -> int:
    web_test(HORIZON // 10, 0.001)  # loads every kernel
    weighted = timed_weighted_paths()
    start, spent = time.perf_counter(), time.process_time()
    plan = web_test(HORIZON, 1.0)
    seconds, spent = time.perf_counter() - start, time.process_time() - spent
    use = usable_processors()
    print(f"the plan of the web test: {plan.pulls:.3g} pulls in {seconds:.1f} s on {use} processors ", end="")
    print(f"(< {MOST:g} s on two), {plan.pulls / seconds:.3g} pulls per second;")
    parts = plan.playing / spent, sum(weighted) / spent
    print(f"  {spent:.1f} processor seconds: {parts[0]:.0%} in kernels of plain paths, ", end="")
    print(f"{parts[1]:.0%} in kernels of weighted paths, {1.0 - sum(parts):.0%} outside kernels")
    return 1 if use >= 2 and seconds >= MOST else 0


if __name__ == "__main__":
    sys.exit(main())
