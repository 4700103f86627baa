"""Cost of a round of a linear bandit against the arithmetic it cannot avoid, ratios within one run.

The floor is a compiled loop with the same draws and the same linear algebra and nothing else: no index, no
choice (the actions take turns), no regret, no re-factorisation.

fixed:     a shock; u = P a; a_i' u for every action; estimates, widths and P updated.
changing:  A d normals, scaled to length 1; a_i' theta and a_i' theta-hat and a_i' P a_i for every action; a
           shock; u = P a; theta-hat, P, V and b updated.
Thompson:  d normals and a triangular solve in place of the widths; Givens rotations in place of P and V.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from speed import seconds

import lighttail as lt
from lighttail.kernels import kernel_for, stream
from lighttail.random.streams import standard_normal

HORIZON = 1000
ROUNDS = 60  # short ones: on a shared machine some of them are left alone
BAR = 3.0
SIZES = ((5, 10), (5, 100), (20, 10), (20, 100))
POLICIES = {
    "LinearUCB, LightTailed": lt.LinearUCB(lt.LinearLightTailed(0.2)),
    "LinearUCB, Oful": lt.LinearUCB(lt.Oful()),
    "LinearThompson": lt.LinearThompson(1.0),
}


@njit(error_model="numpy")
def fixed_floor(rng: Any, x: Any, theta: Any, horizon: Any, paths: Any) -> Any:
    d, count = x.shape
    total = 0.0
    means, h, m, w, u = np.zeros(count), np.empty(count), np.empty(count), np.empty(count), np.empty(d)
    for k in range(d):
        for i in range(count):
            means[i] += x[k, i] * theta[k]
    for _ in range(paths):
        p = np.eye(d)
        m[:], w[:] = 0.0, 1.0
        for t in range(horizon):
            c = t % count
            reward = means[c] + standard_normal(rng)
            u[:] = 0.0
            for k in range(d):
                f = x[k, c]
                for j in range(d):
                    u[j] += p[k, j] * f
            h[:] = 0.0
            for k in range(d):
                f = u[k]
                for i in range(count):
                    h[i] += x[k, i] * f
            share = 1.0 / (1.0 + h[c])
            gain = (reward - m[c]) * share
            for i in range(count):
                m[i] += h[i] * gain
                w[i] -= h[i] * h[i] * share
            for k in range(d):
                f = u[k] * share
                for j in range(d):
                    p[k, j] -= f * u[j]
            total += reward
    return total + m[0] + w[0]


@njit(error_model="numpy")
def draw_sphere(rng: Any, x: Any) -> None:
    d, count = x.shape
    for i in range(count):
        square = 0.0
        for k in range(d):
            z = standard_normal(rng)
            x[k, i] = z
            square += z * z
        scale = 1.0 / math.sqrt(square)
        for k in range(d):
            x[k, i] *= scale


@njit(error_model="numpy")
def changing_floor(rng: Any, x: Any, theta: Any, horizon: Any, paths: Any) -> Any:
    d, count = x.shape
    total = 0.0
    means, m, w, y = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    u, hat, b = np.empty(d), np.empty(d), np.empty(d)
    for _ in range(paths):
        p, v = np.eye(d), np.eye(d)
        hat[:], b[:] = 0.0, 0.0
        for t in range(horizon):
            draw_sphere(rng, x)
            means[:], m[:], w[:] = 0.0, 0.0, 0.0
            for k in range(d):
                f, g = theta[k], hat[k]
                for i in range(count):
                    means[i] += x[k, i] * f
                    m[i] += x[k, i] * g
            for j in range(d):
                f = 0.5 * p[j, j]
                for i in range(count):
                    y[i] = x[j, i] * f
                for k in range(j):
                    f = p[j, k]
                    for i in range(count):
                        y[i] += x[k, i] * f
                for i in range(count):
                    w[i] += x[j, i] * y[i]
            c = t % count
            reward = means[c] + standard_normal(rng)
            u[:] = 0.0
            for k in range(d):
                f = x[k, c]
                for j in range(d):
                    u[j] += p[k, j] * f
            share = 1.0 / (1.0 + 2.0 * w[c])
            gain = (reward - m[c]) * share
            for k in range(d):
                hat[k] += u[k] * gain
                b[k] += x[k, c] * reward
                f = u[k] * share
                for j in range(d):
                    p[k, j] -= f * u[j]
                for j in range(k + 1):
                    v[k, j] += x[k, c] * x[j, c]
            total += reward
    return total + v[0, 0] + b[0]


@njit(error_model="numpy")
def thompson_floor(rng: Any, x: Any, theta: Any, horizon: Any, paths: Any, fixed: Any) -> Any:
    d, count = x.shape
    total = 0.0
    means, s = np.zeros(count), np.empty(count)
    a, hat, w = np.empty(d), np.empty(d), np.empty(d)
    for _ in range(paths):
        r = np.eye(d)
        w[:] = 0.0
        for t in range(horizon):
            if not fixed:
                draw_sphere(rng, x)
                means[:] = 0.0
                for k in range(d):
                    for i in range(count):
                        means[i] += x[k, i] * theta[k]
            c = t % count
            reward = means[c] + standard_normal(rng)
            for k in range(d):
                hat[k] = w[k] + standard_normal(rng)
            for k in range(d - 1, -1, -1):
                f = hat[k]
                for j in range(k + 1, d):
                    f -= r[k, j] * hat[j]
                hat[k] = f / r[k, k]
            s[:] = 0.0
            for k in range(d):
                f = hat[k]
                for i in range(count):
                    s[i] += x[k, i] * f
            left = reward
            for k in range(d):
                a[k] = x[k, c]
            for k in range(d):
                size = math.sqrt(r[k, k] * r[k, k] + a[k] * a[k])
                f, g = r[k, k] / size, a[k] / size
                r[k, k] = size
                for j in range(k + 1, d):
                    y, z = r[k, j], a[j]
                    r[k, j] = f * y + g * z
                    a[j] = f * z - g * y
                y = w[k]
                w[k] = f * y + g * left
                left = f * left - g * y
            total += reward + s[0]
    return total


def unit_rows(d: int, count: int) -> np.ndarray:
    rows = np.random.default_rng(d).standard_normal((count, d))
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 1e-12))


def one_round(policy: Any, problem: lt.LinearBandit, paths: int) -> Callable[[], float]:
    """A function that returns the seconds of one round on one core."""
    kernel = kernel_for(policy, problem)
    params, world = policy.params(HORIZON, problem.dim), problem.world()
    count = problem.actions.count
    tally = np.empty((paths, count), dtype=np.int64) if problem.fixed else np.empty((paths, 2))
    rest = (HORIZON, np.empty(paths), tally, np.zeros(1, dtype=np.int64))
    generator = np.random.Generator(np.random.SFC64(1))
    work = lambda: kernel(stream(generator), params, world, *rest)  # noqa: E731
    work()
    return lambda: seconds(work) / (paths * HORIZON)


def one_floor(policy: Any, problem: lt.LinearBandit, paths: int) -> Callable[[], float]:
    """The same for the bare arithmetic."""
    columns = np.ascontiguousarray(unit_rows(problem.dim, problem.actions.count).T)
    generator = np.random.Generator(np.random.SFC64(1))
    rest = (columns, np.array(problem.theta), HORIZON, paths)
    loop: Any = fixed_floor if problem.fixed else changing_floor
    if isinstance(policy, lt.LinearThompson):
        loop, rest = thompson_floor, (*rest, problem.fixed)  # type: ignore[assignment]
    work = lambda: loop(stream(generator), *rest)  # noqa: E731
    work()
    return lambda: seconds(work) / (paths * HORIZON)


def main() -> int:
    print(f"one round of a linear bandit, T={HORIZON}: nanoseconds, its floor, and the ratio (<= {BAR:g})")
    missed = 0
    for name, policy in POLICIES.items():
        for kind in ("fixed", "changing"):
            cells = []
            for d, count in SIZES:
                actions: Any = unit_rows(d, count) if kind == "fixed" else lt.SphereActions(count)
                problem = lt.LinearBandit(np.full(d, 1 / math.sqrt(d)), actions)
                paths = max(2, 10_000 // (count * d + d * d) if kind == "fixed" else 2_000 // (count * d))
                both = one_round(policy, problem, paths), one_floor(policy, problem, paths)
                rounds = [[time() for time in both] for _ in range(ROUNDS)]
                cost, floor = (min(column) for column in zip(*rounds, strict=True))
                missed += cost / floor > BAR
                cells.append(f"d={d} A={count}: {cost * 1e9:6.0f} /{floor * 1e9:6.0f} = {cost / floor:4.2f}")
            print(f"{name:24}{kind:10}" + "   ".join(cells))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
