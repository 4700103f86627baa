"""From a policy and a problem to the outcomes of many independent paths."""

from __future__ import annotations

from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict, Unpack, overload

import numpy as np

from lighttail.delays import DelayLike
from lighttail.gpu.run import Device, Precision, launches, used_device
from lighttail.outcomes.outcome import LawOutcome, Outcome, PathsOutcome
from lighttail.policies import Policy
from lighttail.problems import Problem
from lighttail.running.blocks import Method, block_paths
from lighttail.running.kept import Keep
from lighttail.running.pool import run_blocks, run_tasks
from lighttail.running.prepare import Prepared, prepare
from lighttail.system.progress import Report, compiling, reporter
from lighttail.system.versions import used_versions

if TYPE_CHECKING:
    from lighttail.online import Experiment


class Arguments(TypedDict, total=False):
    """The arguments of `simulate` that do not decide the type of its outcome."""

    horizon: Required[int]
    paths: Required[int]
    seed: int | None
    threads: int | None
    progress: bool | Report
    method: Method
    executor: Executor | None
    device: Device
    precision: Precision | None
    delay: DelayLike
    batch: int | None
    start: Experiment | None


@overload
def simulate(
    policy: Policy, problem: Problem, *, keep: Literal["paths"] = "paths", **settings: Unpack[Arguments]
) -> PathsOutcome: ...
@overload
def simulate(
    policy: Policy, problem: Problem, *, keep: Literal["law"], **settings: Unpack[Arguments]
) -> LawOutcome: ...
@overload
def simulate(policy: Policy, problem: Problem, *, keep: Keep, **settings: Unpack[Arguments]) -> Outcome: ...
def simulate(
    policy: Policy,
    problem: Problem,
    *,
    horizon: int,
    paths: int,
    seed: int | None = None,
    threads: int | None = None,
    progress: bool | Report = False,
    method: Method = "auto",
    executor: Executor | None = None,
    keep: Keep = "paths",
    device: Device = "cpu",
    precision: Precision | None = None,
    delay: DelayLike = None,
    batch: int | None = None,
    start: Experiment | None = None,
) -> Outcome:
    """Play `policy` on `problem` for `horizon` pulls, `paths` times over.

    policy: any policy, also one of your own (docs/own-policies.md).
    problem: a `Bandit`, or a `LinearBandit` with a policy for those.
    horizon: pulls per path, at least one per arm.
    paths: independent repetitions.
    seed: the same seed gives the same bits, whatever the threads or the executor. Without a seed a fresh one
        is drawn; the outcome's settings name it.
    threads: one per usable processor by default.
    progress: True shows a bar on a terminal and lines elsewhere; a function is called with (paths done,
        paths).
    method: "step" plays every pull; "skip" draws many pulls at once, with other bits and the same law up to a
        total variation below 1e-12 per path; "auto" takes the faster method. The outcome says which it was.
    executor: where to play instead of on threads of this process: any `concurrent.futures.Executor`, such as
        a `ProcessPoolExecutor` or a Dask client's `get_executor()`. Policy and problem must pickle. The
        executor stays open. docs/cluster.md says what happens when a worker dies.
    keep: "paths" keeps the reward and the pulls of every path; "law" only counts them, in memory that does
        not depend on the number of paths. All estimates work on both (docs/streaming.md).
    device: "cpu", or "cuda" for an NVIDIA GPU: one thread per path, the same law, other bits (docs/gpu.md).
    precision: of a GPU's arithmetic, "float32" or "float64". By default "float32", if its rounding of a
        path's sums is below a thousandth of their noise.
    delay: of every reward, in pulls: a number, a `FixedDelay`, `UniformDelay` or `GeometricDelay`, or an
        array of observed delays to draw from; with `never=` the chance that a reward never comes. Every
        reward counts in the outcome; only the policy learns it late, or never (docs/delays.md).
    batch: decisions per group; no decision knows a reward of its own group.
    start: an `Experiment` with the same policy, from whose state, with its open trials, every path continues.
        The horizon and the outcome count its pulls and rewards, too; the policy keeps the horizon that the
        experiment was made with.

    Paths are played in blocks; the random numbers of a block depend only on the seed and on the number of the
    block. The first use of a policy with a kind of noise on a machine compiles for about a second. Ctrl-C
    stops at once.

    >>> import lighttail as lt
    >>> problem = lt.Bandit([0.2, 0.8], noise=lt.Gaussian(1.0))
    >>> out = lt.simulate(lt.UCB(lt.LightTailed(0.2)), problem, horizon=500, paths=5000, seed=1)
    >>> round(out.mean().value, 2)
    12.37
    """
    ready = prepare(
        policy,
        problem,
        horizon,
        paths,
        seed=seed,
        threads=threads,
        method=method,
        executor=executor,
        keep=keep,
        device=device,
        precision=precision,
        progress=progress,
        delay=delay,
        batch=batch,
        start=start,
    )
    job, kept = ready.job, ready.kept
    settings = settings_of(policy, problem, job.horizon, job.paths, job.seed, job.method, job.keep)
    with reporter(ready.progress, settings["policy_label"], job.paths) as report:
        if ready.play_block is None:
            settings |= _on_gpu(ready, report)
            del settings["block_paths"]  # a path has a stream of its own there
        elif executor is None:
            stop = np.zeros(1, dtype=np.int64)
            fill = partial(kept.fill, ready.play_block, job.per_block, stop)
            run_blocks(fill, job.per_block, job.paths, ready.threads, stop, report)
        else:
            run_tasks(executor, job, kept.put, report)
    return kept.outcome(settings | job.course.said())


def _on_gpu(ready: Prepared, report: Report) -> dict[str, str]:
    """Play on a GPU, some million paths per launch; returns the entries about the GPU in the settings."""
    job, precision = ready.job, ready.precision
    assert precision is not None  # it was prepared for a GPU
    problem: Any = job.problem
    with compiling(str(job.policy), ready.progress):
        for _ in launches(job.policy, problem, job.horizon, 1, job.seed, precision, course=job.course):
            pass  # one path, to compile the kernel
    played = launches(job.policy, problem, job.horizon, job.paths, job.seed, precision, course=job.course)
    for first, rewards, pulls in played:
        ready.kept.take(first, rewards, pulls)
        report(first + rewards.size, job.paths)
    return used_device(precision)


def settings_of(
    policy: Policy, problem: Problem, horizon: int, paths: int, seed: int, method: str, keep: Keep = "paths"
) -> dict[str, Any]:
    """The settings of an outcome, which are enough to make it again."""
    return {
        "policy": repr(policy),
        "policy_label": str(policy),
        "problem": repr(problem),
        "horizon": int(horizon),
        "paths": int(paths),
        "seed": seed,
        "method": method,
        "keep": keep,
        "block_paths": block_paths(horizon, method, problem.dear),
        "versions": used_versions(),
    }
