"""What only hardware can show of `simulate(..., device="cuda")`; its output stands in docs/benchmarks.md.

    python benchmarks/gpu.py

Prints tables as Markdown; ends with status 1 if a bar is missed or a law is not the CPU's.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import lighttail as lt
from lighttail.course import STRAIGHT, Course
from lighttail.delays import as_delay
from lighttail.gpu.run import launches
from lighttail.outcomes.law import Law, layout_of
from lighttail.records import Counts
from lighttail.system.versions import used_versions, versions_line

PATHS = 1_000_000_000
LIGHT = lt.UCB(lt.LightTailed(0.2))
POLICIES = {
    LIGHT: {2: 400, 4: 250, 16: 80},  # bars, in G pulls a second
    lt.UCB(lt.Standard(0.8)): {},
    lt.UCB(lt.ArmOptimal(0.2, 0.2)): {},
    lt.UCB(lt.AnyTime(0.2)): {},
    lt.SuccessiveElimination(lt.Standard(0.2)): {},
    lt.ThompsonSampling(0.8): {},
    lt.Exp3IX(): {},
}
NOISES = (lt.Gaussian(1.0), lt.Bernoulli(), lt.Laplace(1.0), lt.StudentT(5.0), lt.Uniform(1.0))
missed: list[str] = []


def spread(arms: int, noise: lt.Noise | None = None) -> lt.Bandit:
    return lt.Bandit([float(mean) for mean in np.linspace(0.2, 0.8, arms)], noise)


def bar(name: str, good: bool) -> str:
    if not good:
        missed.append(name)
    return "yes" if good else "NO"


@dataclass(frozen=True)
class Greedy(lt.Policy):
    """A user's rule, with notes and draws of its own: with chance share / t a random arm, otherwise the
    highest fading mean."""

    share: float
    fade: float
    needs_horizon: ClassVar[bool] = False
    notes: ClassVar[int] = 1

    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> int:
        if lt.uniform(rng) * t < params[0]:
            return int(lt.uniform(rng) * len(tried))
        return lt.highest(rng, note)

    @staticmethod
    def learn(arm: int, reward: float, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> None:
        note[arm, 0] += max(params[1], 1.0 / heard[arm]) * (reward - note[arm, 0])

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return self.share, self.fade


@dataclass(frozen=True)
class Squeezed(lt.IndexPolicy):
    """A user's index, which changes with time: mean + kappa sqrt(ln(1 + t) / n)."""

    kappa: float
    needs_horizon: ClassVar[bool] = False

    @staticmethod
    def clock(t: float, kappa: float) -> float:
        return kappa * math.sqrt(math.log(1.0 + t))

    @staticmethod
    def index(n: float, mean: float, clock: float, kappa: float) -> float:
        return mean + clock / math.sqrt(n)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)


OWN = (Greedy(2.0, 0.1), Squeezed(0.5))


@contextmanager
def without_table() -> Iterator[None]:
    """Every policy by the generic kernel."""
    from lighttail.gpu.accelerations import ACCELERATIONS

    kept = dict(ACCELERATIONS)
    ACCELERATIONS.clear()
    try:
        yield
    finally:
        ACCELERATIONS.update(kept)


def pulls_a_second(
    policy: lt.Policy,
    problem: lt.Bandit,
    horizon: int,
    precision: Any,
    paths: int,
    course: Course = STRAIGHT,
) -> float:
    """In G: of the play alone, the best of three."""
    from numba import cuda

    best = math.inf
    for _ in range(4):  # the first one compiles
        start = time.perf_counter()
        for _ in launches(policy, problem, horizon, paths, 1, precision, course=course):
            pass
        cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return paths * horizon / best / 1e9


def show_billion() -> None:
    """First of all, so that the first time includes all compiling."""
    print(f"\n{PATHS:.0e} paths of T = 500 to a law, UCB + LightTailed(0.2), two arms\n")
    print("| | s | bar | met |\n|---|---|---|---|")
    for name, limit in (("with compiling, in a new process", 10.0), ("again", 3.0)):
        start = time.perf_counter()
        out = lt.simulate(LIGHT, spread(2), horizon=500, paths=PATHS, seed=1, device="cuda", keep="law")
        took = time.perf_counter() - start
        print(f"| {name} | {took:.2f} | {limit:g} | {bar('law', took < limit)} |", flush=True)
    print(
        f"\nmean pseudo regret {out.mean('pseudo_regret'):.5f}, 1 - 1e-8 quantile "
        f"{out.quantile(1 - 1e-8, 'pseudo_regret'):.1f}, regret {out.quantile(1 - 1e-8, 'regret'):.2f}"
    )


def show_speed() -> None:
    print(
        "\nG pulls a second, T = 500\n\n"
        "| policy | K = 2 | K = 4 | K = 16 | K = 2, float64 |\n|---|---|---|---|---|"
    )
    for policy, bars in POLICIES.items():
        cells = []
        for arms in (2, 4, 16):
            rate = pulls_a_second(policy, spread(arms), 500, "float32", 1 << 24)
            limit = bars.get(arms)
            cells.append(
                f"{rate:.0f}" + (f" (bar {limit}: {bar(f'K={arms}', rate >= limit)})" if limit else "")
            )
        cells.append(f"{pulls_a_second(policy, spread(2), 500, 'float64', 1 << 22):.0f}")
        print(f"| {policy} | {' | '.join(cells)} |", flush=True)
    print("\n| UCB + LightTailed(0.2), two arms | float32 |\n|---|---|")
    for noise in NOISES[1:]:
        rate = pulls_a_second(LIGHT, spread(2, noise), 500, "float32", 1 << 24)
        print(f"| {noise} | {rate:.0f} |", flush=True)


def show_rules() -> None:
    """The generic kernel beside the unrolled ones, policies of a user's, and rewards that come late."""
    print(
        "\nG pulls a second of any policy, T = 500\n\n"
        "| policy, kernel | K = 2 | K = 4 | K = 16 | K = 2, float64 |\n|---|---|---|---|---|"
    )
    late = Course(as_delay(100))
    rows = [(f"{policy}, unrolled", policy, STRAIGHT, False) for policy in POLICIES]
    rows += [(f"{policy}, generic", policy, STRAIGHT, True) for policy in POLICIES]
    rows += [(f"{policy}, a user's", policy, STRAIGHT, False) for policy in OWN]
    rows += [(f"{policy}, delay=100", policy, late, False) for policy in (*POLICIES, *OWN)]
    for label, policy, course, generic in rows:
        with without_table() if generic else nullcontext():
            cells = [
                pulls_a_second(policy, spread(arms), 500, precision, paths, course)
                for arms, precision, paths in (
                    *((arms, "float32", 1 << 22) for arms in (2, 4, 16)),
                    (2, "float64", 1 << 21),
                )
            ]
        print(f"| {label} | {' | '.join(f'{rate:.1f}' for rate in cells)} |", flush=True)


def show_rule_laws() -> None:
    """The generic kernel against the CPU's law: without the table, a user's policies, late, from a start."""
    print("\nlargest standardised difference from the CPU's law (T = 200), float32 / float64\n")
    print("| policy | generic, K = 2 | generic, K = 16 | delay, batch | start |\n|---|---|---|---|---|")
    late = {"delay": lt.GeometricDelay(20.0, never=0.1), "batch": 5}
    for row, policy in enumerate((*POLICIES, *OWN)):
        start = lt.Experiment(policy, range(2), horizon=200, seed=row)
        for trial in [start.ask() for _ in range(6)][:4]:
            start.tell(trial.id, 0.25 * trial.id)
        cases = [
            (spread(2), {}),
            (spread(16), {}),
            (spread(4), late),
            (spread(2), {"start": start, "delay": 9}),
        ]
        cells = []
        for column, (problem, course) in enumerate(cases):
            seed = 1000 + 100 * row + column
            settings = {"horizon": 200, "seed": seed, **course}
            cpu = lt.simulate(policy, problem, paths=300_000, method="step", **settings)
            far = []
            for precision in ("float32", "float64"):
                with without_table():
                    out = lt.simulate(
                        policy, problem, paths=1_000_000, device="cuda", precision=precision, **settings
                    )
                far.append(furthest(out, cpu))
                bar(f"{policy}, case {column} of the generic kernel in {precision}", far[-1] < 5.0)
            cells.append(f"{far[0]:.1f} / {far[1]:.1f}")
        print(f"| {policy} | {' | '.join(cells)} |", flush=True)


def show_same_paths() -> None:
    """How many paths of the generic kernel are those of the unrolled one, in double precision.

    Not all: a device contracts a product and a sum into one rounding where it sees fit.
    """
    print("\npaths that the generic and the unrolled kernel play alike, of 100,000 in double precision\n")
    for policy in POLICIES:
        settings = {"horizon": 200, "paths": 100_000, "seed": 3, "device": "cuda", "precision": "float64"}
        quick = lt.simulate(policy, spread(4), **settings)
        with without_table():
            slow = lt.simulate(policy, spread(4), **settings)
        alike = int(np.sum(np.all(quick.pulls == slow.pulls, axis=1)))
        print(f"- {policy}: {alike}", flush=True)
        bar(f"{policy} alike", alike > 99_000)


def show_tails() -> None:
    print("\nP(pseudo regret >= 0.2 T) by brute force, against the exact value\n")
    print("| T | paths | hits | estimate | exact | standard errors |\n|---|---|---|---|---|---|")
    for horizon, paths in ((500, PATHS), (1000, 4 * PATHS)):
        out = lt.simulate(LIGHT, spread(2), horizon=horizon, paths=paths, seed=2, device="cuda", keep="law")
        found = out.exceedance(0.2 * horizon, "pseudo_regret")
        exact = lt.exact_tail(LIGHT, spread(2), horizon=horizon, regret=0.2 * horizon)
        z = (found.value - exact) / math.sqrt(exact * (1.0 - exact) / paths)
        hits = round(found.value * paths)
        print(f"| {horizon} | {paths:.0e} | {hits} | {found:.4g} | {exact:.4g} | {z:+.2f} |", flush=True)
        bar(f"tail at T={horizon}", abs(z) < 4.0)


def furthest(device: Any, cpu: Any) -> float:
    """The largest standardised difference of means, squares and products of pulls and rewards."""

    def features(out: Any) -> np.ndarray:
        pulls, noise = out.pulls.astype(float), out.regret - out.pseudo_regret
        columns = [*pulls.T, *(pulls.T**2), out.reward, out.regret**2, noise**2, noise * pulls[:, 0]]
        return np.array([(column.mean(), column.var() / column.size) for column in columns])

    a, b = features(device), features(cpu)
    return float(np.max(np.abs(a[:, 0] - b[:, 0]) / np.sqrt(a[:, 1] + b[:, 1] + 1e-300)))


def show_laws() -> None:
    """Each cell compares 1e6 paths of the GPU with 3e5 of the CPU."""
    print("\nlargest standardised difference from the CPU's law (T = 200), float32 / float64\n")
    problems = [*(spread(2, noise) for noise in NOISES), spread(4), spread(16)]
    problems.append(lt.Bandit.from_samples({"a": [0.0, 1.0, 3.0], "b": [1.0, 2.0, 2.0, 5.0]}))
    names = [f"{type(problem.noise).__name__} {problem.arms}" for problem in problems]
    print(f"| policy | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for row, policy in enumerate(POLICIES):
        cells = []
        for column, problem in enumerate(problems):
            seed = 100 * row + column
            cpu = lt.simulate(policy, problem, horizon=200, paths=300_000, seed=seed, method="step")
            far = []
            for precision in ("float32", "float64"):
                settings = {"horizon": 200, "paths": 1_000_000, "seed": seed, "device": "cuda"}
                far.append(furthest(lt.simulate(policy, problem, **settings, precision=precision), cpu))
                bar(f"{policy} on {names[column]} in {precision}", far[-1] < 5.0)
            cells.append(f"{far[0]:.1f} / {far[1]:.1f}")
        print(f"| {policy} | {' | '.join(cells)} |", flush=True)
    wrong = lt.simulate(
        LIGHT, spread(2, lt.Gaussian(1.01)), horizon=200, paths=300_000, seed=0, method="step"
    )
    right = lt.simulate(LIGHT, spread(2), horizon=200, paths=1_000_000, seed=0, device="cuda")
    print(f"\nwith 1 % more noise on the CPU, which must be seen: {furthest(right, wrong):.1f}")
    bar("power", furthest(right, wrong) > 5.0)


def _agree(key: str, mine: Any, plain: Any) -> bool:
    """To the bit, but for a pseudo regret off the lattice: the device rounds n * gap + sum once."""
    ends = key.startswith("pseudo_regret") and mine.dtype == np.float64
    return np.allclose(mine, plain, rtol=1e-14) if ends else np.array_equal(mine, plain)


def show_bits() -> None:
    """The device's law is that of its own paths, twice the same."""
    for problem in (spread(2), lt.Bandit([0.1, 0.2, math.pi / 10], lt.StudentT(3.0))):
        settings = {"horizon": 300, "paths": 5_000_000, "seed": 5, "device": "cuda"}
        paths = lt.simulate(LIGHT, problem, **settings)
        laws = [lt.simulate(LIGHT, problem, **settings, keep="law").law for _ in range(2)]
        plain = Law.empty(layout_of(problem, 300))
        plain.add(Counts(paths.reward, paths.pulls))
        states = [law.state() for law in (*laws, plain)]
        same = all(_agree(key, state[1][key], states[2][1][key]) for state in states for key in states[2][1])
        print(
            f"\nlaw on the device = law of its paths, {problem.arms} arms: {bar('bits', same)}; "
            f"twice the same to the bit: {bar('twice', states[0][0] == states[1][0])}"
        )


def main() -> None:
    from numba import cuda

    versions = used_versions() | {"numba-cuda": importlib.metadata.version("numba-cuda")}
    name = cuda.get_current_device().name
    print(
        f"{datetime.date.today()}, {name.decode() if isinstance(name, bytes) else name}, "
        f"{versions_line(versions)}"
    )
    shows = (show_billion, show_speed, show_rules, show_tails, show_bits, show_same_paths, show_laws)
    for show in (*shows, show_rule_laws):
        show()
    print(f"\n{'all bars met' if not missed else 'missed: ' + ', '.join(missed)}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
