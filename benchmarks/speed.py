"""Cost of one pull, in NumPy draws: ratios within one run, so that a noisy machine cancels out."""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable

import numpy as np

import lighttail as lt
from lighttail.delays import wait
from lighttail.kernels import kernel_for, stream
from lighttail.kernels.generic import generic_kernel, late_kernel

HORIZON = 500
PATHS = 400
ROUNDS = 15
ARMS = (2, 4, 16)
LIVE_BAR = 1.5
CASES = {
    "UCB, bonus without t": (lt.UCB(lt.LightTailed(0.2)), (0.6, 1.0, 1.8)),
    "UCB, Standard": (lt.UCB(lt.Standard(0.8)), (1.2, 1.4, 2.2)),
    "UCB, ArmOptimal": (lt.UCB(lt.ArmOptimal(0.4, 0.4)), (1.2, 1.4, 2.2)),
    "UCB, AnyTime": (lt.UCB(lt.AnyTime(0.2)), (1.5, 2.0, 3.5)),
    "SuccessiveElimination": (lt.SuccessiveElimination(lt.LightTailed(0.1)), (1.0, 1.2, 1.6)),
    "ThompsonSampling": (lt.ThompsonSampling(0.8), (2.5, 3.5, 9.0)),
}


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def own_seconds(work: Callable[[], object]) -> float:
    """Of this thread alone, which others on the machine disturb less."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def numpy_draw() -> float:
    """Seconds for one standard normal, SFC64, 4096 at a time into a buffer."""
    generator = np.random.Generator(np.random.SFC64(1))
    buffer = np.empty(4096)
    fill = lambda: [generator.standard_normal(out=buffer) for _ in range(16)]  # noqa: E731
    return seconds(fill) / (16 * buffer.size)


def one_pull(policy: lt.Policy, arms: int) -> Callable[[], float]:
    """A function that returns the seconds of one pull on one core."""
    problem = lt.Bandit(np.linspace(0.2, 0.8, arms))
    kernel = kernel_for(policy, problem)
    params, world = policy.params(HORIZON, arms), problem.noise.world(problem.means)
    reward, pulls = np.empty(PATHS), np.empty((PATHS, arms), dtype=np.int64)
    stop = np.zeros(1, dtype=np.int64)
    generator = np.random.Generator(np.random.SFC64(1))

    def play() -> float:
        work = lambda: kernel(stream(generator), params, world, HORIZON, reward, pulls, stop)  # noqa: E731
        return seconds(work) / (PATHS * HORIZON)

    play()
    return play


def any_rule(policy: lt.Policy, arms: int) -> tuple[float, float]:
    """The generic kernel over the accelerated one, and rewards 100 pulls late over the generic kernel."""
    problem, delay = lt.Bandit(np.linspace(0.0, 1.0, arms)), lt.FixedDelay(100)
    noise, rule = type(problem.noise), policy.rule()
    generic = generic_kernel(rule, noise.shock, noise.reward)
    late = late_kernel(rule, noise.shock, noise.reward, wait)
    nothing = np.zeros((4, arms)), np.zeros((arms, rule.notes)), np.zeros((0, 2), np.int64)
    course = (delay.params(), 1, 103, 0, *nothing, np.zeros((0, rule.memo)))
    kernels = ((kernel_for(policy, problem), ()), (generic, ()), (late, course))
    params, world = policy.params(1000, arms), problem.noise.world(problem.means)
    reward, pulls, stop = np.empty(200), np.empty((200, arms), np.int64), np.zeros(1, np.int64)

    def play(kernel: Callable[..., object], more: tuple[object, ...]) -> float:
        generator = np.random.Generator(np.random.SFC64(1))  # which must outlive its stream
        return own_seconds(lambda: kernel(stream(generator), params, world, 1000, reward, pulls, stop, *more))

    rounds = [[play(kernel, more) for kernel, more in kernels] for _ in range(ROUNDS + 1)]
    quick, plain, delayed = (min(column) for column in zip(*rounds[1:], strict=True))  # the first compiles
    return plain / quick, delayed / plain


def two_threads() -> float:
    """How many times faster two threads are than one."""
    policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])

    def run(threads: int) -> float:
        settings = {"horizon": HORIZON, "paths": 300_000, "seed": 1, "threads": threads}
        return seconds(lambda: lt.simulate(policy, problem, **settings))

    pairs = [(run(1), run(2)) for _ in range(9)]
    return min(one for one, _ in pairs) / min(two for _, two in pairs)


def ask_and_tell() -> float:
    """Microseconds for one ask and tell of the slowest policy, ten arms."""
    policies = [policy for policy, _ in CASES.values()]
    slowest = 0.0
    for policy in [*policies, lt.Exp3IX()]:
        experiment = lt.Experiment(policy, range(10), horizon=10**6, seed=1)

        def trials(experiment: lt.Experiment = experiment) -> None:
            for _ in range(2000):
                experiment.tell(experiment.ask().id, 0.5)

        slowest = max(slowest, min(seconds(trials) for _ in range(5)) / 2000 * 1e6)
    return slowest


class Textbook:
    """UCB1 as one writes it in a few lines of plain Python, with a dictionary: the yardstick of live use."""

    def __init__(self, arms: list[int]) -> None:
        self.pulls, self.sums, self.rounds = dict.fromkeys(arms, 0), dict.fromkeys(arms, 0.0), 0

    def index(self, arm: int) -> float:
        n = self.pulls[arm]
        return self.sums[arm] / n + math.sqrt(2.0 * math.log(self.rounds) / n) if n else math.inf

    def ask(self) -> int:
        index = {arm: self.index(arm) for arm in self.pulls}
        best = max(index.values())
        return random.choice([arm for arm, value in index.items() if value == best])

    def tell(self, arm: int, reward: float) -> None:
        self.pulls[arm] += 1
        self.sums[arm] += reward
        self.rounds += 1


def over_the_textbook(policy: lt.Policy) -> float:
    """What ask + tell cost with two arms, over the same of `Textbook`; the best of rounds taken in turns."""
    experiment, textbook = lt.Experiment(policy, [0, 1], horizon=10**6, seed=1), Textbook([0, 1])

    def live() -> None:
        for _ in range(1500):
            trial = experiment.ask()
            experiment.tell(trial.id, 0.1 * trial.arm)

    def plain() -> None:
        for _ in range(1500):
            arm = textbook.ask()
            textbook.tell(arm, 0.1 * arm)

    pairs = [(own_seconds(live), own_seconds(plain)) for _ in range(2 * ROUNDS)]
    return min(mine for mine, _ in pairs) / min(yardstick for _, yardstick in pairs)


def main() -> int:
    print(f"one pull, T={HORIZON}, in NumPy draws (best of {ROUNDS} alternating rounds; bar in brackets)")
    print(f"{'':24}" + "".join(f"{f'K={arms}':>16}" for arms in ARMS))
    missed = 0
    for name, (policy, bars) in CASES.items():
        plays = [one_pull(policy, arms) for arms in ARMS]
        rounds = [(numpy_draw(), *(play() for play in plays)) for _ in range(ROUNDS)]
        unit, *best = (min(column) for column in zip(*rounds, strict=True))
        cells = []
        for cost, bar in zip(best, bars, strict=True):
            missed += cost / unit > bar
            cells.append(f"{cost / unit:8.2f} (<= {bar})")
        print(f"{name:24}" + "".join(f"{cell:>16}" for cell in cells) + f"   unit {unit * 1e9:.2f} ns")
    print(f"{'one rule for all':24}" + "".join(f"{f'K={arms}':>16}" for arms in ARMS))
    for policy in (lt.UCB(lt.LightTailed(0.2)), lt.UCB(lt.Standard(0.5)), lt.UCB(lt.AnyTime(0.3))):
        columns = zip(*(any_rule(policy, arms) for arms in ARMS), strict=True)
        for name, bar, ratios in zip(
            ("generic / accelerated", "100 late / generic"), (3, 2), columns, strict=True
        ):
            missed += sum(ratio > bar for ratio in ratios)
            cells = "".join(f"{f'{ratio:.2f} (<= {bar})':>16}" for ratio in ratios)
            print(f"{name:24}{cells}   {policy}")
    speedup = two_threads()
    missed += speedup < 1.8
    print(f"two threads against one: {speedup:.2f} times (>= 1.8)")
    online = ask_and_tell()
    missed += online >= 20
    print(f"ask + tell, ten arms, slowest policy: {online:.1f} µs (< 20)")
    for policy in (lt.UCB(lt.LightTailed(0.2)), lt.UCB(lt.AnyTime(0.5))):
        ratio = over_the_textbook(policy)
        missed += ratio > LIVE_BAR
        print(f"ask + tell, two arms, over a UCB of plain Python: {ratio:.2f} (<= {LIVE_BAR})   {policy}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
