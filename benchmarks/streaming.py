"""What keeping the law costs: its share of the time of playing, and its memory from 10^5 to 10^8 paths."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

import lighttail as lt
from lighttail.outcomes.law import Law, layout_of
from lighttail.running.blocks import Job, block_paths, block_player

HORIZON = 500
ROUNDS = 15
BLOCKS = 20
BAR = 0.05  # of the time of playing
SHORT = 20  # pulls a path, so that 10^8 paths end within a minute or two
PATHS = (10**5, 10**6, 10**7, 10**8)
GROWTH = 1.05  # of the peak, from the fewest paths to the most
POLICY, MEANS = lt.UCB(lt.LightTailed(0.2)), [0.2, 0.8]
SCRIPT = """
import resource, sys, time
import lighttail as lt
start = time.perf_counter()
settings = dict(horizon={horizon}, paths={paths}, seed=1, keep={keep!r})
out = lt.simulate(lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8]), **settings)
seconds = time.perf_counter() - start
answers = [out.mean(), out.std(), out.quantile(0.99), out.cvar(0.99), out.exceedance(5.0)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, seconds, answers[2])
"""


def share_of_counting() -> float:
    """Seconds of counting a block over those of playing it, K = 2, the best of alternating rounds."""
    problem = lt.Bandit(MEANS)
    size = block_paths(HORIZON)
    play = block_player(Job(POLICY, problem, HORIZON, size, 1, "step", size))
    law, record = Law.empty(layout_of(problem, HORIZON)), problem.room(size)
    stop = np.zeros(1, dtype=np.int64)
    play(0, record, stop)
    law.add(record)
    rounds = []
    for turn in range(ROUNDS):
        playing = counting = 0.0
        for block in range(BLOCKS):
            start = time.perf_counter()
            play(turn * BLOCKS + block, record, stop)
            between = time.perf_counter()
            law.add(record)
            playing += between - start
            counting += time.perf_counter() - between
        rounds.append((counting, playing))
    counting, playing = (min(column) for column in zip(*rounds, strict=True))
    return counting / playing


def peak(paths: int, keep: str) -> tuple[float, float]:
    """Megabytes at the peak of a new process that simulates and estimates, and the simulation's seconds."""
    script = SCRIPT.format(horizon=SHORT, paths=paths, keep=keep)
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    memory, seconds, *_ = done.stdout.split()
    return float(memory), float(seconds)


def main() -> int:
    share = share_of_counting()
    print(f"counting a block, T={HORIZON}, K=2: {share:.1%} of the time of playing it (<= {BAR:.0%})")
    print(f"peak of a process, T={SHORT}, K=2, estimates included:")
    peaks = []
    for paths in PATHS:
        memory, seconds = peak(paths, "law")
        peaks.append(memory)
        print(f"  {paths:>11,} paths, keep='law':   {memory:7.0f} MB, {seconds:6.1f} s")
    for paths in PATHS[:3]:
        memory, seconds = peak(paths, "paths")
        print(f"  {paths:>11,} paths, keep='paths': {memory:7.0f} MB, {seconds:6.1f} s")
    growth = peaks[-1] / peaks[0]
    print(f"from {PATHS[0]:,} to {PATHS[-1]:,} paths: {growth:.3f} times the memory (<= {GROWTH})")
    return 1 if share > BAR or growth > GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
