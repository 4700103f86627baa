"""From a policy and a problem to the outcomes of many independent paths."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from lighttail.checks import one_of, refuse, whole
from lighttail.course import Course, check_course
from lighttail.delays import DelayLike
from lighttail.gpu.run import Device, Precision, check_device, launches, precision_for, used_device
from lighttail.outcomes.outcome import Outcome
from lighttail.policies import Policy
from lighttail.policies.rehearsal import try_out
from lighttail.problems import Problem
from lighttail.running.blocks import Keep, block_player
from lighttail.running.kept import KEEP_LAW, KeptLaw, KeptPaths, check_memory, kept_as
from lighttail.running.methods import Method, check_method, choose_method
from lighttail.running.pool import check_executor, check_travels, run_tasks
from lighttail.system.interrupts import postponed_interrupts
from lighttail.system.versions import used_versions

if TYPE_CHECKING:
    from lighttail.online import Experiment

BLOCK_PULLS = 1 << 19  # about so many pulls a block, a millisecond or more of work
LISTEN = 0.1  # seconds between two looks for Ctrl-C
MOST_PATHS = 10**10
MOST_COUNTED = 10**12  # whose estimates are tested
MOST_THREADS = 10**4
MOST_SEED = 2**4096  # bits that a seed may have: more would only take time
Progress = Callable[[int, int], None]


SKIP_PATHS = 64  # paths a block where the cost of a path hardly depends on the horizon


def block_paths(horizon: int, method: str = "step", dear: int = 1) -> int:
    """Paths a block: part of what a seed means, so it depends on what is played alone.

    dear: pulls of an arm that cost as much as a pull of the problem.
    """
    if method == "skip":
        return SKIP_PATHS
    return max(1, min(4096, BLOCK_PULLS // (dear * horizon)))


def usable_processors() -> int:
    """Processors that this process may use, which in a container are fewer than the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def simulate(
    policy: Policy,
    problem: Problem,
    *,
    horizon: int,
    paths: int,
    seed: int | None = None,
    threads: int | None = None,
    progress: bool | Progress = False,
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
    seed: the same seed gives the same bits, whatever the threads or the executor. Without one a fresh seed is
        taken; it stands in the outcome's settings.
    threads: one for each usable processor unless given.
    progress: True shows a bar on a terminal; a function is called with (paths done, paths).
    method: "step" plays every pull; "skip" draws many at once, with the same law to a total variation
        below 1e-12 per path and other bits; "auto" takes the faster one. The outcome says which it was.
    executor: where to play instead of on threads of this process: any `concurrent.futures.Executor`, such as
        a `ProcessPoolExecutor` or a Dask client's `get_executor()`. Policy and problem must pickle. It
        stays open. docs/cluster.md says what happens when a worker dies.
    keep: "paths" keeps reward and pulls of every path; "law" only counts them, in memory that does not
        depend on how many there are. All estimates work on both (docs/streaming.md).
    device: "cpu", or "cuda" for an NVIDIA GPU: one thread per path, the same law, other bits (docs/gpu.md).
    precision: of a GPU's arithmetic, "float32" or "float64"; unless given, the first where a path's sums
        lose less than a thousandth of their noise by it.
    delay: of every reward, in pulls: a number, a `FixedDelay`, `UniformDelay` or `GeometricDelay`, or an
        array of observed delays to draw from; with `never=` the chance that a reward does not come. A reward
        counts in the outcome whether it comes or not; what is late is that the policy knows it
        (docs/delays.md).
    batch: decisions per group, which see no reward of their own group.
    start: an `Experiment` with the same policy, from whose state every path goes on, open trials included.
        The horizon and the outcome count its pulls and rewards, too; the policy keeps the horizon that the
        experiment was made with.

    Paths are played in blocks; a block's random numbers depend on the seed and the block's number
    alone. The first use of a policy with a kind of noise on a machine compiles for about a
    second. Ctrl-C stops at once.

    >>> import lighttail as lt
    >>> problem = lt.Bandit([0.2, 0.8], noise=lt.Gaussian(1.0))
    >>> out = lt.simulate(lt.UCB(lt.LightTailed(0.2)), problem, horizon=500, paths=5000, seed=1)
    >>> round(out.mean("regret").value, 2)
    11.94
    """
    if executor is not None:
        check_executor(executor, threads)
    checked = check_settings(policy, problem, horizon, paths, seed, threads, keep)
    horizon, paths, seed, keep = checked.horizon, checked.paths, checked.seed, checked.keep
    course = check_course(policy, problem, horizon, delay, batch, start)
    if not problem.linear:
        try_out(policy, horizon, problem.size, course.late)
    method = check_method(policy, problem, horizon, method, course.late)
    device, precision = check_device(device, problem, horizon, precision, method, executor, threads)
    threads = checked.threads
    if executor is not None:
        check_travels(policy=policy, problem=problem)
    progress = check_progress(progress)
    kept = kept_as(keep, problem, horizon, paths, threads)
    if device == "cuda":
        return _on_gpu(policy, problem, horizon, paths, seed, precision, keep, kept, progress, course)
    stop = np.zeros(1, dtype=np.int64)
    from lighttail.system.progress import compiling, reporter

    with reporter(progress, str(policy), paths) as report:
        with compiling(str(policy), progress is not False):
            method = "step" if course.late else choose_method(policy, problem, horizon, method)
            check_long(problem, horizon, method)
            size = block_paths(horizon, method, problem.dear)
            play = block_player(policy, problem, horizon, seed, method, course)
            play(0, problem.room(0), stop)  # compiles the kernel, or loads it from the cache
        if executor is None:
            run_blocks(kept.player(play, size, stop), size, paths, threads, stop, report)
        else:
            setting = (policy, problem, horizon, seed, method, course)
            run_tasks(executor, setting, size, paths, keep, kept.put, report)
    return kept.outcome(settings_of(policy, problem, horizon, paths, seed, method, keep) | course.said())


def _on_gpu(
    policy: Policy,
    problem: Any,
    horizon: int,
    paths: int,
    seed: int,
    precision: Precision | None,
    keep: Keep,
    kept: KeptPaths | KeptLaw,
    progress: bool | Progress,
    course: Course,
) -> Outcome:
    """The same on a GPU, a launch of some million paths at a time."""
    from lighttail.system.progress import compiling, reporter

    precision = precision_for(precision, problem, horizon, course)
    with reporter(progress, str(policy), paths) as report:
        with compiling(str(policy), progress is not False):
            for _ in launches(policy, problem, horizon, 1, seed, precision, course=course):
                pass  # one path, to compile the kernel
        played = launches(policy, problem, horizon, paths, seed, precision, course=course)
        for first, rewards, pulls in played:
            kept.take(first, rewards, pulls)
            report(first + rewards.size, paths)
    settings = settings_of(policy, problem, horizon, paths, seed, "step", keep)
    del settings["block_paths"]  # a path has a stream of its own there
    return kept.outcome(settings | used_device(precision) | course.said())


def run_blocks(
    play: Callable[[int, int], int],
    size: int,
    paths: int,
    threads: int,
    stop: Any,
    report: Progress,
    done: int = 0,
) -> None:
    """Play all blocks, a few in flight for every thread; whatever ends early ends all of them.

    play(block, until) plays the paths block * size to until. done: paths of whole blocks that have
    been played before.
    """
    blocks = math.ceil(paths / size)
    following = iter(range(done // size, blocks))
    running: set[Future[int]] = set()
    with postponed_interrupts() as ask:
        pool = ThreadPoolExecutor(min(threads, blocks), thread_name_prefix="lighttail")
        try:
            while True:
                ask()
                for block in following:
                    running.add(pool.submit(play, block, min(paths, (block + 1) * size)))
                    if len(running) >= 4 * threads:
                        break
                if not running:
                    return
                finished, running = wait(running, timeout=LISTEN, return_when=FIRST_COMPLETED)
                if finished:
                    done += sum(future.result() for future in finished)
                    report(done, paths)
        except BaseException:
            stop[0] = 1
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def check_settings(
    policy: Any,
    problem: Any,
    horizon: Any,
    paths: Any,
    seed: Any,
    threads: Any,
    keep: Any = "paths",
    together: int = 1,
) -> Checked:
    """Refuse what cannot be simulated, before any work.

    together: outcomes of this kind that are in memory at the same time.
    """
    if not isinstance(policy, Policy):
        raise refuse("policy", policy, "a policy such as UCB(LightTailed(kappa=0.2))")
    if not isinstance(problem, Problem):
        raise refuse("problem", problem, "a problem such as Bandit([0.2, 0.8])")
    pulls = problem.check(policy, horizon)
    kept: Any = one_of("keep", keep, get_args(Keep))
    count = whole("paths", paths, 1, most=MOST_COUNTED)
    if kept == "paths" and count > MOST_PATHS:
        raise refuse("paths", paths, (f"at most {MOST_PATHS}, or {MOST_COUNTED} with ", KEEP_LAW))
    use = usable_processors() if threads is None else whole("threads", threads, 1, most=MOST_THREADS)
    chosen = fresh_seed() if seed is None else check_seed(seed)
    check_memory(problem, pulls, count, kept, together, use)
    return Checked(pulls, count, chosen, use, kept)


class Checked(NamedTuple):
    """Settings as plain numbers; a fresh seed and all usable processors where none were given."""

    horizon: int
    paths: int
    seed: int
    threads: int
    keep: Keep


def fresh_seed() -> int:
    entropy: Any = np.random.SeedSequence().entropy
    return int(entropy)


def check_long(problem: Problem, horizon: int, method: Method) -> None:
    """Refuse a path that nobody could wait for: its pulls follow each other, whatever the processors."""
    if method == "step" and horizon > problem.most_steps:
        most = problem.most_steps
        raise refuse("horizon", horizon, f"at most {most} where every pull is played, which takes hours")


def check_seed(seed: Any) -> int:
    """A seed is any whole number that is not negative; of a huge one only the time would grow."""
    if (found := whole("seed", seed, 0)) >= MOST_SEED:
        raise refuse("seed", seed, f"a whole number of at most {MOST_SEED.bit_length() - 1} bits")
    return found


def check_progress(progress: Any) -> Any:
    """A truth value, or a function."""
    if callable(progress) or isinstance(progress, (bool, np.bool_)):
        return progress if callable(progress) else bool(progress)
    raise refuse("progress", progress, "True, False or a function")


def settings_of(
    policy: Policy,
    problem: Problem,
    horizon: int,
    paths: int,
    seed: int,
    method: str,
    keep: Keep = "paths",
) -> dict[str, Any]:
    """What made an outcome: enough to make it again."""
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
