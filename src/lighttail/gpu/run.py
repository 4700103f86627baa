"""A simulation on one NVIDIA GPU: what it can play, in which precision, and the launches."""

from __future__ import annotations

import hashlib
import importlib.util
import math
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from lighttail.checks import one_of, refuse, whole
from lighttail.course import STRAIGHT, Course
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.records import Counts
from lighttail.system.memory import in_bytes

Device = Literal["cpu", "cuda"]
Precision = Literal["float32", "float64"]
LAUNCH_PULLS = 1 << 33  # pulls per launch, some hundredths of a second, so that Ctrl-C is noticed
MOST_LAUNCHED = 1 << 22  # paths per launch, at most
FEWEST_LAUNCHED = 1 << 14  # paths per launch, at least: fewer would leave most of a device idle
QUEUE_SHARE = 0.5  # the share of the device's free memory for rewards that are not yet known
FEWEST_LATE = 32  # late paths per launch, at least: these run in lockstep, and fewer are slower than a CPU
MOST_SINGLE = 1 << 24  # the largest count in single precision
MOST_ROUNDS = (1 << 31) - 1  # counts are 32-bit integers on the device
MOST_ARMS = 64  # more arms do not fit into a thread's registers, and take minutes to compile
ROUNDING = 1e-3  # the error of a path's sums in single precision, at most, as a share of their noise
INSTALL = ": pip install 'lighttail[gpu]' gets it"


def check_device(
    device: Any,
    problem: Any,
    horizon: int,
    precision: Any = None,
    method: str = "auto",
    executor: Any = None,
    threads: Any = None,
) -> tuple[Device, Precision | None]:
    """Raise BadInput if the device cannot play this, or there is no GPU, or the CPU lacks the precision."""
    device = one_of("device", device, get_args(Device))
    precision = None if precision is None else one_of("precision", precision, get_args(Precision))
    if device == "cpu":
        if precision == "float32":
            raise refuse("precision", precision, "'float64' on the CPU; device='cuda' has both")
        return device, precision
    if not problem.independent:
        raise refuse("device", device, f"'cpu' with a {type(problem).__name__}")
    if method == "skip":
        raise refuse("method", method, "'auto' or 'step' with device='cuda', which plays every pull")
    for field, value in (("executor", executor), ("threads", threads)):
        if value is not None:
            raise refuse(field, value, "left out with device='cuda', which has threads of its own")
    horizon = whole("horizon", horizon, 1, " with device='cuda'", MOST_ROUNDS)
    if precision == "float32" and horizon > MOST_SINGLE:
        allowed = f"'float64' beyond {MOST_SINGLE} pulls, where float32 counts no further"
        raise refuse("precision", precision, allowed)
    if problem.arms > MOST_ARMS:
        raise refuse(
            "device", device, f"'cpu' with more than {MOST_ARMS} arms (the problem has {problem.arms})"
        )
    _check_present()
    return device, precision


def _check_present() -> None:
    """Raise BadInput, in one line that says how to get what is missing, if no GPU can be used."""
    simulated = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
    if not simulated and importlib.util.find_spec("numba_cuda") is None:
        raise refuse("device", "cuda", "'cpu' without numba-cuda", more=INSTALL)
    from numba import cuda

    if not cuda.is_available():
        raise refuse("device", "cuda", "'cpu' without an NVIDIA GPU and its driver (nvidia-smi lists it)")


def precision_for(
    precision: Precision | None, problem: Bandit, horizon: int, course: Course = STRAIGHT
) -> Precision:
    """The precision that was asked for. Otherwise single precision, if the rounding of a path's sums is far
    below their noise and the noise states that 23 random bits are enough for a reward (`Noise.single`), which
    no noise with a heavy tail or a small chance of a reward states.

    The rounding error of a sum of T rewards of size m is at most about sqrt(T) times m T 2^-24, and the noise
    of the sum is sd sqrt(T): their ratio (m + sd) T 2^-24 / sd may be at most `ROUNDING`. The sums at the
    start of the paths count, too.
    """
    if precision is not None:
        return precision
    magnitude, sd = problem.noise.single(problem.means), problem.noise.sd(problem.means)
    if magnitude is None:
        return "float64"
    if course.start is not None:
        magnitude = max(magnitude, float(np.abs(course.start.counts[2:]).max()) / horizon)
    rounding = (magnitude + sd) * horizon * 2.0**-24
    return "float32" if rounding <= ROUNDING * sd and horizon <= MOST_SINGLE else "float64"


def used_device(precision: Precision) -> dict[str, str]:
    """The entries about the GPU in the settings of an outcome."""
    from numba import config, cuda

    name = b"simulator" if config.ENABLE_CUDASIM else cuda.get_current_device().name
    named = name.decode() if isinstance(name, bytes) else str(name)
    return {"device": "cuda", "gpu": named, "precision": precision}


def launches(
    policy: Policy,
    problem: Bandit,
    horizon: int,
    paths: int,
    seed: int,
    precision: Precision,
    begin: int = 0,
    course: Course = STRAIGHT,
) -> Iterator[tuple[int, Any, Any]]:
    """Play `paths` paths from number `begin` on. For each launch: the number of paths played before, and the
    rewards and pulls on the device, which the next launch overwrites.

    The random numbers of a path depend only on the seed and on the path's number.
    """
    from numba import cuda

    from lighttail.gpu.accelerations import unrolled
    from lighttail.gpu.draws import seed_state
    from lighttail.kernels.errors import check_arms, compilable, parts_of

    real: Any = np.dtype(precision).type
    per_launch = min(paths, fitting_paths(policy, horizon, course, real))
    kernel, threads, more = _kernel_for(policy, problem, horizon, course, real, per_launch)
    params = tuple(real(value) for value in policy.params(course.known_horizon(horizon), problem.arms))
    world = tuple(_on_device(part, real) for part in problem.noise.world(problem.means))
    key = cuda.to_device(seed_state(seed))
    rewards = cuda.device_array(per_launch, real)
    pulls = cuda.device_array((problem.arms, per_launch), np.int32)
    stop = cuda.to_device(np.zeros(1, np.int32))
    # The unrolled kernels always choose an arm that exists.
    chosen = not course.straight or unrolled(policy, problem.arms, real) is None
    for first in range(0, paths, per_launch):
        count = min(per_launch, paths - first)
        args = key, np.uint64(begin + first), params, world, np.int32(horizon), rewards[:count], pulls
        with compilable(*parts_of(policy, problem)):
            launch(kernel, count, threads, *args, (stop, *more))
        if chosen:  # reading the flag waits for the end of the launch
            check_arms(policy, stop.copy_to_host())
        yield first, rewards[:count], pulls[:, :count]


def _kernel_for(
    policy: Policy, problem: Bandit, horizon: int, course: Course, real: Any, per_launch: int
) -> tuple[Any, int, tuple[Any, ...]]:
    """The kernel, its threads per block, and its last arguments for launches of `per_launch` paths."""
    from lighttail.gpu.build import device_kernel_for
    from lighttail.gpu.late import begun_on_device, queue_on_device

    kernel, threads = device_kernel_for(policy, problem, real, not course.straight)
    if course.straight:
        return kernel, threads, ()
    rule = policy.rule()
    waits = tuple(_on_device(part, np.float64) for part in course.delay.params())
    begun = begun_on_device(course, horizon, problem.arms, rule, real)
    queue = queue_on_device(course, horizon, rule.memo, real, per_launch)
    return kernel, threads, (waits, begun, queue)


def fitting_paths(policy: Policy, horizon: int, course: Course, real: Any) -> int:
    """Paths per launch; if rewards come late, as many as there is memory for the rewards not yet known."""
    most = launch_paths(horizon)
    if course.straight:
        return most
    from lighttail.gpu.late import bytes_per_path

    each, free = bytes_per_path(course, horizon, policy.rule().memo, real), free_on_device()
    paths = int(min(float(most), QUEUE_SHARE * free / each))
    if paths < FEWEST_LATE:
        need = f"about {in_bytes(each)} per path, of which {in_bytes(free)} are free"
        allowed = f"such that {FEWEST_LATE} paths with their open rewards fit into the GPU's memory ({need})"
        raise refuse("horizon", horizon, allowed)
    return paths


def free_on_device() -> float:
    """The free bytes of the GPU's memory."""
    from numba import cuda

    return float(cuda.current_context().get_memory_info()[0])


def launch_paths(horizon: int) -> int:
    """Paths per launch, on which no bit depends."""
    return max(FEWEST_LAUNCHED, min(MOST_LAUNCHED, LAUNCH_PULLS // horizon))


def launch(kernel: Any, count: int, threads: int, *args: Any) -> None:
    """Run `count` threads in blocks of `threads`, without numba's warning about small launches."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*under-utilization.*")
        kernel[math.ceil(count / threads), threads](*args)


def _on_device(part: Any, real: Any) -> Any:
    from numba import cuda

    if not isinstance(part, np.ndarray):
        return real(part)
    return cuda.to_device(part.astype(real) if part.dtype == np.float64 else part)


def device_paths(
    policy: Policy, problem: Bandit, horizon: int, rows: tuple[int, int], seed: int, precision: Precision
) -> Counts:
    """The paths rows[0] to rows[1] - 1, on the host."""
    paths = rows[1] - rows[0]
    record = problem.room(paths)
    for first, rewards, counts in launches(policy, problem, horizon, paths, seed, precision, rows[0]):
        played = Counts(rewards.copy_to_host(), counts.copy_to_host().T)
        record.put(slice(first, first + played.paths), played)
    return record


def device_sources() -> str:
    """A digest of the code, apart from the formulas, that decides the bits of a path on the device."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
