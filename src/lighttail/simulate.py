"""From a policy and a problem to the outcomes of many independent paths."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from lighttail.blocks import Play, block_player, room_for
from lighttail.executors import check_executor, check_travels, run_tasks
from lighttail.linear import LinearBandit, LinearPolicy
from lighttail.methods import Method, check_method, choose_method
from lighttail.outcome import Offers, Outcome
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.validation import refuse, whole

BLOCK_PULLS = 1 << 19  # about so many pulls a block, a millisecond or more of work
LINEAR_PULLS = 1 << 14  # of a linear bandit, whose pulls are dear
MOST_PULLS = 10**15  # counts stay exact as floats
MOST_PATHS = 10**10
Progress = Callable[[int, int], None]


SKIP_PATHS = 64  # paths a block where the cost of a path hardly depends on the horizon


def block_paths(horizon: int, method: str = "step", linear: bool = False) -> int:
    """Paths a block: part of what a seed means, so it depends on what is played alone."""
    if method == "skip":
        return SKIP_PATHS
    return max(1, min(4096, (LINEAR_PULLS if linear else BLOCK_PULLS) // horizon))


def usable_processors() -> int:
    """Processors that this process may use, which in a container are fewer than the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def simulate(
    policy: Policy,
    problem: Bandit | LinearBandit,
    *,
    horizon: int,
    paths: int,
    seed: int | None = None,
    threads: int | None = None,
    progress: bool | Progress = False,
    method: Method = "auto",
    executor: Executor | None = None,
) -> Outcome:
    """Play `policy` on `problem` for `horizon` pulls, `paths` times over.

    problem: a `Bandit`, or a `LinearBandit` with a policy for those.
    horizon: pulls a path, at least one an arm.
    paths: independent repetitions.
    seed: the same seed gives the same bits, whatever the threads or the executor. Without one a fresh seed is
        taken; it stands in the outcome's settings.
    threads: one for each usable processor unless given.
    progress: True shows a bar on a terminal; a function is called with (paths done, paths).
    method: "step" plays every pull; "skip" draws many at once, with the same law to a total variation
        below 1e-12 a path and other bits; "auto" takes the faster one. The outcome says which it was.
    executor: where to play instead of on threads of this process: any `concurrent.futures.Executor`, such as
        a `ProcessPoolExecutor` or a Dask client's `get_executor()`. Policy and problem must pickle. It
        stays open. docs/cluster.md says what happens when a worker dies.

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
    threads = usable_processors() if threads is None else threads
    check_settings(policy, problem, horizon, paths, seed, threads)
    horizon, paths = int(horizon), int(paths)
    check_method(policy, problem, horizon, method)
    if executor is not None:
        check_travels(policy=policy, problem=problem)
    seed = int(np.random.SeedSequence().entropy) if seed is None else int(seed)  # type: ignore[arg-type]
    try:
        reward, pulls = room_for(problem, paths)
    except MemoryError:
        raise refuse("paths", paths, "so few that reward and pulls fit into memory") from None
    stop = np.zeros(1, dtype=np.int64)
    from lighttail.progress import compiling, reporter

    with reporter(progress, str(policy), paths) as report:
        with compiling(str(policy), progress is not False):
            method = choose_method(policy, problem, horizon, method)
            size = block_paths(horizon, method, isinstance(problem, LinearBandit))
            play = block_player(policy, problem, horizon, seed, method)
            play(0, reward[:0], pulls[:0], stop)  # compiles the kernel, or loads it from the cache
        if executor is None:
            run_blocks(in_place(play, size, reward, pulls, stop), size, paths, threads, stop, report)
        else:
            run_tasks(executor, (policy, problem, horizon, seed, method), size, reward, pulls, report)
    settings = settings_of(policy, problem, horizon, paths, seed, method)
    if isinstance(problem, LinearBandit) and not problem.fixed:
        offers = Offers(pulls[:, 0].copy(), pulls[:, 1].copy(), problem.most_lost(horizon))
        return Outcome(reward, None, np.zeros(0), (), horizon, settings, offers)
    return Outcome(reward, pulls, np.array(problem.means), problem.labels, horizon, settings)


def in_place(play: Play, size: int, reward: Any, pulls: Any, stop: Any) -> Callable[[int, int], int]:
    """The function for `run_blocks` that plays a block into its rows of `reward` and `pulls`."""

    def into_its_rows(block: int, until: int) -> int:
        first = block * size
        play(block, reward[first:until], pulls[first:until], stop)
        return until - first

    return into_its_rows


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
    pool = ThreadPoolExecutor(min(threads, blocks), thread_name_prefix="lighttail")
    try:
        while True:
            for block in following:
                running.add(pool.submit(play, block, min(paths, (block + 1) * size)))
                if len(running) >= 4 * threads:
                    break
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            done += sum(future.result() for future in finished)
            report(done, paths)
    except BaseException:
        stop[0] = 1
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def check_settings(policy: Any, problem: Any, horizon: Any, paths: Any, seed: Any, threads: Any) -> None:
    """Refuse what cannot be simulated, before any work."""
    if not isinstance(policy, Policy):
        raise refuse("policy", policy, "a policy such as UCB(LightTailed(kappa=0.2))")
    if isinstance(problem, LinearBandit):
        _check_linear(policy, problem, horizon)
    elif isinstance(problem, Bandit):
        _check_arms(policy, problem, horizon)
    else:
        raise refuse("problem", problem, "a problem such as Bandit([0.2, 0.8])")
    whole("paths", paths, 1, most=MOST_PATHS)
    whole("threads", threads, 1)
    if seed is not None:
        whole("seed", seed, 0)


def _check_arms(policy: Policy, problem: Bandit, horizon: Any) -> None:
    if isinstance(policy, LinearPolicy):
        raise refuse("policy", policy, "for arms, such as UCB(LightTailed(kappa=0.2)), with a Bandit")
    whole("horizon", horizon, problem.arms, f", one pull for each of the {problem.arms} arms", MOST_PULLS)
    if not math.isfinite(max(map(abs, problem.means)) * horizon):
        raise refuse("means", problem.means, f"so small that {horizon} pulls add up to a finite number")
    policy.check(horizon, problem.arms)


def _check_linear(policy: Policy, problem: LinearBandit, horizon: Any) -> None:
    if not isinstance(policy, LinearPolicy):
        raise refuse(
            "policy",
            policy,
            "a linear one, such as LinearUCB(LinearLightTailed(kappa=0.2)), with a LinearBandit",
        )
    problem.actions.check(problem.dim, whole("horizon", horizon, 1, most=MOST_PULLS))
    policy.check(horizon, problem.dim)


def settings_of(
    policy: Policy,
    problem: Bandit | LinearBandit,
    horizon: int,
    paths: int,
    seed: int,
    method: Method = "auto",
) -> dict[str, Any]:
    """What made an outcome: enough to make it again."""
    import numba

    import lighttail

    method = choose_method(policy, problem, horizon, method)
    return {
        "policy": repr(policy),
        "policy_label": str(policy),
        "problem": repr(problem),
        "horizon": int(horizon),
        "paths": int(paths),
        "seed": seed,
        "method": method,
        "block_paths": block_paths(horizon, method, isinstance(problem, LinearBandit)),
        "versions": {
            "lighttail": lighttail.__version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
            "python": platform.python_version(),
        },
    }
