"""Before a simulation is played: every check, every choice, and room for its outcome.

A simulation is played pull by pull, or skips ahead with the same law: docs/skip-ahead.md explains how, and
`check_method` and what follows decide when that is possible and faster.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np

from lighttail.checks import Argument, one_of, refuse, whole
from lighttail.course import check_course
from lighttail.gpu.run import Device, Precision, check_device, precision_for
from lighttail.members import shipped
from lighttail.outcomes.law import layout_of
from lighttail.policies import Policy
from lighttail.problems import Bandit, Problem
from lighttail.random.streams import block_generator, draws_made
from lighttail.rehearsal import try_out
from lighttail.running.blocks import Job, Method, Played, block_paths, block_player
from lighttail.running.kept import COUNTERS, Keep, KeptLaw, KeptPaths, PlayBlock, kept_as
from lighttail.running.pool import check_executor, check_travels
from lighttail.system.memory import free_memory, in_bytes
from lighttail.system.progress import Report, compiling

MOST_PATHS = 10**10
MOST_COUNTED = 10**12  # paths of a law: estimates are tested up to this number
MOST_THREADS = 10**4
MOST_SEED = 2**4096  # a seed has at most 4,096 bits: a longer seed would only take time
MOST_PLAYED = {"cpu": 10**15, "cuda": 10**18}  # pulls, one by one: some months of one processor
PRODUCTS = 100  # products of two numbers that take about as long as a pull of an arm
KEEP_LAW = Argument("keep", ("law",))  # always fits into memory
COPIES = 9  # of the rewards that estimates make, at most, as measured: regrets, sorted, and to work in
# How many pulls, played one by one, take as long as one random number of a path that skips ahead, by
# `plays_by`: fitted to the times of settings drawn at random (docs/skip-ahead.md, section 6).
PULLS_PER_NUMBER = {"radius": 3.0, "phases": 1.0}
SHORT = 1000  # below this horizon a path takes microseconds either way: always pull by pull
LONGEST_TRIED = 10**7  # pulls of a pilot path, which takes a second or two if skipping is slower
PILOTS = 16  # pilot paths, at most
SQUARED = 1e-140, 1e140  # the noises whose squares, and products of such squares, are floating-point numbers
PILOT_NUMBERS = 1 << 16  # random numbers after which no further pilot path is played


@dataclass(frozen=True)
class Prepared:
    """A simulation that is ready to be played.

    kept: room for its outcomes. play_block: plays a block on the CPU. precision: that of a GPU.
    """

    job: Job
    kept: KeptPaths | KeptLaw
    threads: int
    progress: bool | Report
    play_block: PlayBlock | None = None
    precision: Precision | None = None


def prepare(
    policy: Policy,
    problem: Any,
    horizon: int,
    paths: int,
    *,
    seed: int | None = None,
    threads: int | None = None,
    method: Method = "auto",
    executor: Any = None,
    keep: Keep = "paths",
    device: Device = "cpu",
    precision: Precision | None = None,
    progress: bool | Report = False,
    delay: Any = None,
    batch: Any = None,
    start: Any = None,
) -> Prepared:
    """Check the settings of `simulate` before any work, and choose everything that follows from them."""
    if executor is not None:
        check_executor(executor, threads)
    horizon, paths, seed, use, keep = check_settings(policy, problem, horizon, paths, seed, threads, keep)
    course = check_course(policy, problem, horizon, delay, batch, start)
    late = not course.straight
    if not problem.linear and not shipped(policy):
        try_out(policy, horizon, problem.dim, late)
    method = check_method(policy, problem, horizon, method, late)
    if precision is not None or not isinstance(device, str) or device != "cpu":
        device, precision = check_device(device, problem, horizon, precision, method, executor, threads)
    if executor is not None:
        check_travels(policy=policy, problem=problem)
    progress = check_progress(progress)
    kept = kept_as(keep, problem, horizon, paths, use)
    if device == "cuda":  # a path has a stream of its own there
        job = Job(policy, problem, horizon, paths, seed, "step", 1, keep, course)
        return Prepared(job, kept, use, progress, None, precision_for(precision, problem, horizon, course))
    with compiling(str(policy), progress):
        played = choose_method(policy, problem, horizon, method)
        check_long(problem, horizon, played)
        per_block = block_paths(horizon, played, problem.dear)
        job = Job(policy, problem, horizon, paths, seed, played, per_block, keep, course)
        return Prepared(job, kept, use, progress, block_player(job))


def usable_processors() -> int:
    """The number of processors that this process may use; in a container fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    """Raise BadInput, before any work, if this cannot be simulated.

    together: the number of outcomes of this kind that are in memory at the same time.
    """
    check_policy("policy", policy)
    pulls = check_problem(problem).check(policy, horizon)
    what: Any = one_of("keep", keep, get_args(Keep))
    count = whole("paths", paths, 1, most=MOST_COUNTED)
    if what == "paths" and count > MOST_PATHS:
        raise refuse("paths", paths, (f"at most {MOST_PATHS}, or {MOST_COUNTED} with ", KEEP_LAW))
    use, chosen = check_threads(threads), check_seed(seed)
    check_memory(problem, pulls, count, what, together, use)
    return Checked(pulls, count, chosen, use, what)


def check_policy(field: str, policy: Any) -> None:
    if not isinstance(policy, Policy):
        raise refuse(field, policy, "a policy such as UCB(LightTailed(kappa=0.2))")


def check_problem(problem: Any) -> Problem:
    if not isinstance(problem, Problem):
        raise refuse("problem", problem, "a problem such as Bandit([0.2, 0.8])")
    return problem


class Checked(NamedTuple):
    """The settings as plain numbers, with a fresh seed and all usable processors if none were given."""

    horizon: int
    paths: int
    seed: int
    threads: int
    keep: Keep


def check_long(problem: Problem, horizon: int, method: Method) -> None:
    """Raise BadInput if a path would take too long: no number of processors can share the pulls of a path."""
    if method == "step" and horizon > (most := problem.most_steps):
        raise refuse("horizon", horizon, f"at most {most} where every pull is played, which takes hours")


def check_played(
    policy: Policy, problem: Problem, horizon: int, paths: int, device: str, late: bool = False
) -> None:
    """Raise BadInput if every pull is played and that would take months. late: whether rewards come late."""
    if device == "cpu" and not late and not why_not_skip(policy, problem):
        return
    check_long(problem, horizon, "step")
    most = MOST_PLAYED[device] * PRODUCTS // max(PRODUCTS, problem.products)
    if paths * horizon > most:
        allowed = f"at most {most:,} where every pull is played, as with {policy}"
        raise refuse("paths * horizon", paths * horizon, allowed)


def check_threads(threads: Any) -> int:
    """The number of threads; all usable processors if it is None."""
    return usable_processors() if threads is None else whole("threads", threads, 1, most=MOST_THREADS)


def check_seed(seed: Any) -> int:
    """The seed as an int; a fresh one if it is None. A seed is a whole number from 0 on, of 4,096 bits at
    most."""
    if seed is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if (chosen := whole("seed", seed, 0)) >= MOST_SEED:
        raise refuse("seed", seed, f"a whole number of at most {MOST_SEED.bit_length() - 1} bits")
    return chosen


def check_progress(progress: Any) -> Any:
    """The argument `progress`, if it is a truth value or a function; otherwise raises BadInput."""
    if callable(progress):
        return progress
    if isinstance(progress, (bool, np.bool_)):
        return bool(progress)
    raise refuse("progress", progress, "True, False or a function")


def check_memory(problem: Any, horizon: int, paths: int, keep: Keep, together: int, threads: int) -> None:
    """Raise BadInput if the rewards, the pulls and the copies that estimates make do not fit into memory."""
    of_paths, free = bytes_of(problem, paths) * together, free_memory()
    if (work := threads * problem.bytes) > free:
        about = f"about {in_bytes(work)}, of which {in_bytes(free)} are free"
        raise refuse("the dimension", problem.dim, f"so small that its matrices fit into memory ({about})")
    if keep == "paths" and of_paths <= free:
        return
    of_law = layout_of(problem, horizon).bytes * (together + COUNTERS)
    if keep == "law" and of_law <= free:
        return
    about = f"about {in_bytes(of_law if keep == 'law' else of_paths)}, of which {in_bytes(free)} are free"
    if keep == "law":
        raise refuse("horizon", horizon, f"so short that the law of the pulls fits into memory ({about})")
    few, hint = f"so few that their outcomes fit into memory ({about}; ", f" needs {in_bytes(of_law)}"
    raise refuse("paths", paths, (few, KEEP_LAW, f"{hint} whatever the paths)"))


def bytes_of(problem: Problem, paths: int) -> int:
    """The bytes that the paths of one policy need, with the copies that estimates make."""
    return paths * 8 * (problem.room(0).width + 1 + COPIES)


def fitting_paths(problem: Problem) -> int:
    """The number of paths of one policy that fit into memory."""
    return int(min(1e18, free_memory() / bytes_of(problem, 1)))


def check_method(policy: Any, problem: Any, horizon: int, method: Any, late: bool) -> Method:
    """Raise BadInput if the method is unknown or impossible, or if a bonus is not concave as declared."""
    method = one_of("method", method, get_args(Method))
    if method == "step" or (late and method == "auto"):
        return "step"
    obstacle = "with rewards that come late, or a start" if late else why_not_skip(policy, problem)
    if method == "skip" and obstacle:
        raise refuse("method", method, f"'auto' or 'step' {obstacle}")
    if not obstacle and policy.plays_by == "radius":
        policy.bonus.check_concave(horizon, problem.arms)
    return method  # type: ignore[no-any-return]


def choose_method(policy: Policy, problem: Any, horizon: int, method: Method) -> Played:
    """The method to play with; for "auto" the faster one, by a rule that depends on no clock and no seed."""
    if method != "auto":
        return method
    return "skip" if work_of(policy, problem, horizon) < horizon else "step"


def work_of(policy: Policy, problem: Any, horizon: int) -> float:
    """The cost of a path with the faster method, in pulls that are played one by one.

    With the method "step" the cost is the horizon. With "skip" it is `PULLS_PER_NUMBER` times the random
    numbers of a path, which are counted at a horizon of at most `LONGEST_TRIED`.
    """
    if horizon < SHORT or why_not_skip(policy, problem):
        return float(horizon)
    tried = min(horizon, LONGEST_TRIED)
    work = PULLS_PER_NUMBER[policy.plays_by] * numbers_drawn(policy, problem, tried)
    return work if work < tried else float(horizon)


def why_not_skip(policy: Any, problem: Problem) -> str:
    """The reason why a policy cannot skip ahead on a problem; empty if it can."""
    noise = problem.noise
    if policy.plays_by not in PULLS_PER_NUMBER or not shipped(policy):
        return f"with {policy}, which draws or learns anew at every pull"
    if noise.total is None or (policy.plays_by == "radius" and noise.clear is None):
        return f"with {type(noise).__name__} noise, whose sums are not drawn at once"
    if noise.certain:
        return "with sigma 0, where every decision is a matter of rounding"
    sigma = noise.normal
    if sigma is None and noise.proxy is not None:
        sigma = noise.proxy(*problem.world())
    if sigma is not None and not SQUARED[0] <= sigma <= SQUARED[1]:
        return f"with a noise of {sigma:g}, whose variance no floating-point number holds"
    if policy.plays_by == "radius" and not policy.bonus.concave:
        return f"with {policy.bonus}, which does not declare that n * radius(n) is concave"
    return ""


def numbers_drawn(policy: Policy, problem: Bandit, horizon: int) -> float:
    """Random numbers per path that skips ahead: the mean over a few pilot paths with a fixed seed."""
    from lighttail.kernels import skip_kernel_for, stream
    from lighttail.kernels.errors import compilable, parts_of

    params, world, record = policy.params(horizon, problem.arms), problem.world(), problem.room(1)
    generator, stop = block_generator(0, 0), np.zeros(1, dtype=np.int64)
    before, paths = draws_made(generator), 0
    with compilable(*parts_of(policy, problem)):
        kernel = skip_kernel_for(policy, problem)
        while paths < PILOTS and draws_made(generator) - before < PILOT_NUMBERS:
            kernel(stream(generator), params, world, horizon, record.reward, record.table, stop)
            paths += 1
    return (draws_made(generator) - before) / paths
