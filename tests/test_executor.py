"""`simulate` on an executor: the same bits from threads, processes and a cluster, whatever goes wrong."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import POLICIES, name, problems
from linear_cases import LIGHT, OWN, THOMPSON, problem_of

import lighttail as lt
from lighttail.running import blocks, prepare
from lighttail.running import pool as executors
from lighttail.running.blocks import Part

simulation = importlib.import_module("lighttail.running.simulate")
POLICY, PROBLEM = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8, 0.5])
PATIENCE = 300.0  # seconds for what happens at once, on a machine that is busy
ENDLESS = 10**11
NOTHING: Any = None  # what a task sent, where it does not matter


@dataclass(frozen=True)
class Steep(lt.Bonus):
    """A user's own bonus, in a module that a worker can import."""

    scale: float = 1.0

    @staticmethod
    def radius(n: float, clock: float, scale: float) -> float:
        return scale / (n * math.sqrt(n))

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.scale,)


LINEAR = [
    (LIGHT, problem_of("fixed", 3, 4), "step"),
    (OWN, problem_of("sphere", 2, 3), "step"),
    (THOMPSON, problem_of("contexts", 2, 3), "step"),
]
CASES = [
    *((policy, PROBLEM, "step") for policy in POLICIES),
    *((POLICY, problem, "step") for problem in problems(3)[1:]),
    (POLICY, PROBLEM, "skip"),
    (lt.SuccessiveElimination(lt.Standard(0.4)), PROBLEM, "skip"),
    (lt.UCB(Steep()), PROBLEM, "step"),
    *LINEAR,
]
FEW = [CASES[1], CASES[-6], CASES[-4], CASES[-1], (POLICY, problems(3)[-1], "auto")]  # for dear executors


def run(case: Any = (POLICY, PROBLEM, "step"), **changes: Any) -> lt.Outcome:
    policy, problem, method = case
    settings = {"horizon": 200, "paths": 58, "seed": 4, "method": method, **changes}
    return lt.simulate(policy, problem, **settings)


def same(first: lt.Outcome, second: lt.Outcome) -> bool:
    pairs = [(getattr(first, part), getattr(second, part)) for part in ("reward", "pulls", "pseudo_regret")]
    return all(np.array_equal(one, other) for one, other in pairs) and first.settings == second.settings


def same_law(pool: Any) -> bool:
    """Whether the law that a pool counts has the bytes of one thread's; another seed's has not."""
    plain, counted, other = (
        pickle.dumps(run(keep="law", **where).law.state())
        for where in ({"threads": 1}, {"executor": pool}, {"threads": 1, "seed": 5})
    )
    return plain == counted != other


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """58 paths are then twelve blocks, the last one short."""
    for module in (prepare, simulation):
        monkeypatch.setattr(module, "block_paths", lambda *args: 5)


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


class Local:
    """An executor in this thread that plays its tasks in an order of its own once someone waits."""

    def __init__(self, order: Callable[[list[Any]], None] = lambda tasks: None) -> None:
        self.order, self.tasks = order, []  # type: ignore[var-annotated]

    def submit(self, function: Any, *task: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.tasks.append((future, function, task))
        return future

    def wait(self, futures: Any, **kwargs: Any) -> Any:
        self.order(self.tasks)
        while self.tasks:
            future, function, task = self.tasks.pop(0)
            try:
                future.set_result(function(*task))
            except Exception as error:
                future.set_exception(error)
        return real_wait(futures, **kwargs)


real_wait = executors.wait


def play_locally(monkeypatch: pytest.MonkeyPatch, executor: Local, **changes: Any) -> lt.Outcome:
    monkeypatch.setattr(executors, "wait", executor.wait)
    return run(executor=executor, **changes)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{name(case[0])}-{case[2]}-{name(case[1])[:30]}")
def test_threads_of_ones_own_give_the_same_bits(case: Any, threads: ThreadPoolExecutor) -> None:
    assert same(run(case), run(case, executor=threads))


@pytest.mark.parametrize("order", [list.reverse, np.random.default_rng(1).shuffle], ids=["reverse", "random"])
def test_any_order_gives_the_same_bits(order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert same(run(), play_locally(monkeypatch, Local(order)))


def test_the_comparison_notices_numbers_that_depend_on_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: one stream for all blocks, taken as they come."""
    plain, shared = run(), np.random.Generator(np.random.SFC64(1))
    monkeypatch.setattr(blocks, "block_generator", lambda seed, block: shared)
    monkeypatch.setattr(blocks, "probe_of", lambda *args: b"")
    monkeypatch.setattr(executors, "probe_of", lambda *args: b"")
    assert not same(plain, play_locally(monkeypatch, Local(list.reverse)))


def test_every_block_is_in_one_task_however_long_blocks_take() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        tasks = executors.Tasks(int(rng.integers(1, 400)), 0.08)
        seen: list[int] = []
        while tasks.following < tasks.blocks:
            first, until = tasks.next()
            assert first < until
            seen += range(first, until)
            cost = 10.0 ** rng.uniform(-7, 1) * (until - first)
            tasks.heard(Part(NOTHING, cost, ("here", 1, int(rng.integers(9)))), until - first)
        assert seen == list(range(tasks.blocks))


def test_tasks_are_as_long_as_they_should_be_and_the_window_follows_the_workers() -> None:
    tasks = executors.Tasks(100_000, 0.08)
    assert tasks.next() == (0, 1)
    for worker in range(50):
        tasks.heard(Part(NOTHING, 0.002, ("here", 1, worker)), 1)
    assert tasks.next() == (1, 41)  # 40 blocks of 2 ms
    assert executors.window_of(tasks.workers) == 200


def test_a_worker_loads_a_job_once(threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks._opened.cache_clear()
    run(executor=threads)
    assert blocks._opened.cache_info().misses == 1
    assert blocks._opened.cache_info().hits > 5


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_failing_block_is_tried_three_times(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[int] = []

    def fragile(job: bytes, first: int, until: int, attempt: int) -> Part:
        if first <= 7 < until:
            attempts.append(attempt)
            if attempt <= failures:
                raise OSError("the disk is\nfull")
        return blocks.play_blocks(job, first, until, attempt)

    monkeypatch.setattr(executors, "play_blocks", fragile)
    if failures < 3:
        assert same(run(), play_locally(monkeypatch, Local()))
        assert attempts == list(range(1, failures + 2))
        return
    with pytest.raises(RuntimeError) as caught:
        play_locally(monkeypatch, Local())
    assert attempts == [1, 2, 3]
    assert str(caught.value) == (
        f"block 7 of simulate({POLICY!r}, {PROBLEM!r}, horizon=200, paths=58, seed=4, method='step'): "
        "failed 3 times (OSError: the disk is full)"
    )
    assert isinstance(caught.value.__cause__, OSError)


def test_a_worker_that_plays_otherwise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if its copy of the formulas were another: the caller's first outcomes are those of another kappa."""
    other = blocks.probe_of(lt.UCB(lt.LightTailed(0.21)), PROBLEM, 200, "step")
    monkeypatch.setattr(executors, "probe_of", lambda *args: other)
    with pytest.raises(executors.BlocksFailed, match="this worker does not play as the caller does"):
        play_locally(monkeypatch, Local())


def test_progress_rises_to_the_total(threads: ThreadPoolExecutor) -> None:
    calls: list[tuple[int, int]] = []
    run(executor=threads, progress=lambda done, total: calls.append((done, total)))
    assert calls == sorted(set(calls))
    assert len(calls) > 1
    assert calls[-1] == (58, 58)


class Client:
    """Has `submit`, as a Dask client has, and returns futures of its own."""

    def submit(self, *task: Any) -> int:
        return 0

    def __repr__(self) -> str:
        return "<Client>"


@pytest.mark.parametrize("value", [3, "threads", ThreadPoolExecutor, object, Client()], ids=str)
def test_what_is_no_executor_is_refused(value: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^executor must be a concurrent.futures.Executor, such as"
    ) as caught:
        run(executor=value)
    assert str(caught.value).endswith(f"but is {value!r}")


def test_threads_and_an_executor_are_refused(threads: ThreadPoolExecutor) -> None:
    with pytest.raises(ValueError, match=r"^threads must be left out where an executor is given.*but is 2$"):
        run(executor=threads, threads=2)


def local_bonus() -> lt.Bonus:
    class Hidden(Steep):
        @staticmethod
        def radius(n: float, clock: float, scale: float) -> float:
            return scale / (n + 0.25)

    return Hidden(0.5)


def test_a_policy_that_does_not_pickle_is_refused(
    threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    monkeypatch.setattr(prepare, "block_player", lambda *args: pytest.fail("work was done"))
    with pytest.raises(
        ValueError, match=r"^policy must be one that pickle can send to the workers \(.*Hidden"
    ):
        run((lt.UCB(local_bonus()), PROBLEM, "step"), executor=threads)


def test_a_job_with_a_large_message_gets_longer_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts of 4 MB travel with every task; a task is then worth 0.2 s more."""
    seen: list[float] = []
    made = executors.Tasks
    monkeypatch.setattr(executors, "Tasks", lambda *args: seen.append(args[1]) or made(*args))
    contexts = np.tile(np.eye(2), (125_000, 1, 1))
    play_locally(
        monkeypatch, Local(), case=(THOMPSON, lt.LinearBandit([0.5, 0.1], contexts), "step"), paths=5
    )
    assert seen[0] == pytest.approx(0.1 + 0.2, rel=0.01)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_contexts_in_a_file_travel_as_its_path(threads: ThreadPoolExecutor, tmp_path: Path) -> None:
    contexts, file = np.random.default_rng(3).standard_normal((400, 20, 2)) / 9.0, tmp_path / "contexts.npy"
    np.save(file, contexts)
    problem = lt.LinearBandit([0.5, 0.1], file)
    case = (THOMPSON, problem, "step")
    assert len(pickle.dumps(problem)) < 1000
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert same(run(case), run(case, executor=threads))
    part = lt.LinearBandit([0.5, 0.1], np.load(file, mmap_mode="r")[100:])  # not the whole file: its numbers
    assert len(pickle.dumps(part)) > part.actions.values.nbytes
    assert pickle.loads(pickle.dumps(part)) == part
    message = pickle.dumps(problem)
    np.save(file, contexts + 1e-9)
    with pytest.raises(ValueError, match=r"^actions must be a file with the contexts of digest "):
        pickle.loads(message)


class StopHere:
    """Waits until a task runs, then is Ctrl-C."""

    def __init__(self, ready: Callable[[], bool]) -> None:
        self.ready = ready

    def __call__(self, futures: Any, **kwargs: Any) -> Any:
        self.futures = list(futures)
        patiently(self.ready)
        raise KeyboardInterrupt


def patiently(ready: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < limit
        time.sleep(0.02)


def watching() -> bool:
    return any(thread.name == "lighttail-watch" for thread in threading.enumerate())


def test_an_interrupt_ends_what_is_queued_and_what_runs(
    monkeypatch: pytest.MonkeyPatch, own_folder: Path
) -> None:
    with ThreadPoolExecutor(2) as pool:
        interrupt = StopHere(watching)
        monkeypatch.setattr(executors, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(executor=pool, horizon=ENDLESS, paths=40)
        real_wait(interrupt.futures, timeout=PATIENCE)
        assert all(future.done() for future in interrupt.futures)
        assert sum(future.cancelled() for future in interrupt.futures) >= 6  # of eight on two threads
        monkeypatch.setattr(executors, "wait", real_wait)
        assert same(run(), run(executor=pool))  # it stays open
    assert [file.read_text() for file in own_folder.iterdir()] == ["stop"]  # until this process ends


def test_nothing_is_left_behind(threads: ThreadPoolExecutor, own_folder: Path) -> None:
    run(executor=threads)
    assert list(own_folder.iterdir()) == []
    assert not watching()


def test_processes_give_the_same_bits_until_one_dies() -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for case in [*FEW, (lt.UCB(local_bonus()), PROBLEM, "step")]:  # the last one travels by value
            assert same(run(case), run(case, executor=pool)), case
        assert same_law(pool)
        victim, killed = next(iter(pool._processes)), list[int]()

        def kill(done: int, total: int) -> None:
            if not killed:  # later there may be no such process
                killed.append(done)
                os.kill(victim, signal.SIGKILL)

        with pytest.raises(
            executors.BlocksFailed, match=r"^blocks? .* takes no more tasks \(BrokenProcessPool: "
        ):
            run(executor=pool, paths=10**6, progress=kill)


CHILD = """
import multiprocessing, sys, threading
from concurrent.futures import ProcessPoolExecutor
import lighttail as lt

if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
        lt.simulate(policy, problem, horizon=10, paths=1, seed=1, method="step", executor=pool)
        print("ready", flush=True)
        lt.simulate(policy, problem, horizon=10**11, paths=20, seed=1, method="step", executor=pool)
"""


def test_ctrl_c_ends_processes_too(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    command = [sys.executable, "child.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.7)  # no block ever ends; give them time to be under way
            child.send_signal(signal.SIGINT)  # to the caller alone: its workers hear of it from the caller
            _, err = child.communicate(timeout=PATIENCE)
        finally:
            child.kill()
    assert child.returncode == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")


def test_a_dask_cluster_gives_the_same_bits_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """One cluster for all of it: starting one is dear."""
    import distributed

    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pool = client.get_executor()
        for case in FEW:
            assert same(run(case), run(case, executor=pool)), case
        assert same_law(pool)
        check_a_killed_worker(client, pool)
        check_a_failing_task(pool, monkeypatch)
        check_an_interrupt(client, pool, monkeypatch)


def check_a_killed_worker(client: Any, pool: Any) -> None:
    """SIGKILL in mid-run costs nothing but time."""
    workers = set(client.run(os.getpid).values())
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if not killed and done > total / 10:
            os.kill(min(workers), signal.SIGKILL)
            killed.append(done)

    settings = {"paths": 4000, "horizon": 20_000}
    assert same(run(**settings), run(executor=pool, progress=kill, **settings))
    assert killed[0] < 4000
    assert min(workers) not in client.run(os.getpid).values()


def check_a_failing_task(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask remembers what a call came to, a failure too: a second try must be another call."""
    with monkeypatch.context() as patched:
        patched.setattr(executors, "probe_of", lambda *args: b"another")
        with pytest.raises(
            executors.BlocksFailed, match=r"failed 3 times \(RuntimeError: this worker does not play"
        ):
            run(executor=pool)


def check_an_interrupt(client: Any, pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on other machines, where nobody sees the caller's files: the cluster itself calls the tasks back."""
    with monkeypatch.context() as patched:
        patched.setattr(executors, "stop_flag", lambda: nullcontext(Path("/nowhere/to/be/seen")))
        patched.setattr(executors, "wait", StopHere(lambda: sum(map(len, client.processing().values())) >= 3))
        with pytest.raises(KeyboardInterrupt):
            run(executor=pool, horizon=ENDLESS, paths=40)
    patiently(lambda: not any(client.run(watching).values()))  # the workers are free again
    assert same(run(), run(executor=pool))


@dataclass(frozen=True)
class Plain(lt.Bonus):
    kappa: float

    @staticmethod
    def radius(n: float, clock: float, kappa: float) -> float:
        return kappa / math.sqrt(n)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)


@dataclass(frozen=True)
class Edited(Plain):
    """Differs long after the first pulls alone."""

    @staticmethod
    def radius(n: float, clock: float, kappa: float) -> float:
        return kappa / math.sqrt(n) * (1.1 if n >= 100.0 else 1.0)


def test_a_difference_that_comes_late_is_found_out_too() -> None:
    plain, edited = (blocks.probe_of(lt.UCB(bonus(0.8)), PROBLEM, 500, "step") for bonus in (Plain, Edited))
    played = 8 * blocks.PROBE_PATHS * (1 + PROBLEM.arms)  # bytes of rewards and pulls
    assert plain[:played] == edited[:played]
    assert plain != edited
