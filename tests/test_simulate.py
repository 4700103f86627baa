"""`simulate`: the same bits however it is run, honest settings, early refusals, few compilations."""

from __future__ import annotations

import importlib
import json
import math
import platform
import threading
from concurrent.futures import Future
from typing import Any, ClassVar

import numba
import numpy as np
import pytest
from cases import BONUSES, POLICIES, name
from numba.core import event

import lighttail as lt
from lighttail.kernels import kernel_for
from lighttail.running import pool
from lighttail.running.blocks import block_paths
from lighttail.system.versions import versions_line

simulation = importlib.import_module(
    "lighttail.running.simulate"
)  # `lighttail.running.simulate` is the function
PROBLEM = lt.Bandit([0.2, 0.8, 0.5])
POLICY = lt.UCB(lt.LightTailed(0.2))
GOOD: dict[str, Any] = {"policy": POLICY, "problem": PROBLEM, "horizon": 200, "paths": 60, "seed": 4}


def run(**changes: Any) -> lt.Outcome:
    settings = {**GOOD, **changes}
    return lt.simulate(settings.pop("policy"), settings.pop("problem"), **settings)


def same(first: lt.Outcome, second: lt.Outcome) -> bool:
    return np.array_equal(first.reward, second.reward) and np.array_equal(first.pulls, second.pulls)


@pytest.fixture
def blocks_of_five(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 paths of 200 pulls are then 12 blocks."""
    monkeypatch.setattr("lighttail.running.blocks.BLOCK_PULLS", 1000)
    assert block_paths(200) == 5


class Backwards:
    """An executor that plays what it was handed last first, and only when someone waits for it."""

    played: ClassVar[list[int]] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.waiting: list[tuple[Future[int], Any, int, int]] = []

    def submit(self, play: Any, block: int, until: int) -> Future[int]:
        future: Future[int] = Future()
        self.waiting.append((future, play, block, until))
        future.play_all = self.play_all  # type: ignore[attr-defined]
        return future

    def play_all(self) -> None:
        while self.waiting:
            future, play, block, until = self.waiting.pop()
            self.played.append(block)
            future.set_result(play(block, until))

    def shutdown(self, **kwargs: Any) -> None:
        assert not self.waiting


def wait_backwards(futures: dict[Any, Any], **kwargs: Any) -> tuple[set[Any], set[Any]]:
    next(iter(futures)).play_all()
    return set(futures), set()


@pytest.mark.usefixtures("blocks_of_five")
@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_any_number_of_threads_gives_the_same_bits(policy: lt.Policy) -> None:
    alone = run(policy=policy, threads=1)
    assert same(alone, run(policy=policy, threads=2))
    assert same(alone, run(policy=policy, threads=5))
    assert same(alone, run(policy=policy))


@pytest.mark.usefixtures("blocks_of_five")
def test_any_order_of_the_blocks_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    forwards = run(threads=20)
    monkeypatch.setattr(pool, "ThreadPoolExecutor", Backwards)
    monkeypatch.setattr(pool, "wait", wait_backwards)
    assert same(forwards, run(threads=20))
    assert Backwards.played == list(range(11, -1, -1))


@pytest.mark.usefixtures("blocks_of_five")
def test_more_paths_begin_with_the_same_full_blocks() -> None:
    few, many = run(paths=22), run(paths=58)
    assert few.paths == 22
    assert np.array_equal(few.reward, many.reward[:22])
    assert np.array_equal(few.pulls, many.pulls[:22])


@pytest.mark.usefixtures("blocks_of_five")
def test_no_path_repeats() -> None:
    assert np.unique(run(paths=500).reward).size == 500


def test_another_seed_gives_other_paths() -> None:
    first, second = run(), run(seed=5)
    assert same(first, run())
    assert not np.any(first.reward == second.reward)


def test_a_fresh_seed_is_recorded_and_repeats_the_outcome() -> None:
    fresh, other = run(seed=None), run(seed=None)
    assert not same(fresh, other)
    assert same(fresh, run(seed=fresh.settings["seed"]))


def test_settings_are_enough_to_make_the_outcome_again() -> None:
    out = run()
    settings = json.loads(json.dumps(out.settings))
    assert settings == out.settings
    again = lt.simulate(
        eval(settings["policy"], vars(lt)),
        eval(settings["problem"], vars(lt)),
        **{name: settings[name] for name in ("horizon", "paths", "seed")},
    )
    assert same(out, again)
    made = {"lighttail": lt.__version__, "numpy": np.__version__, "numba": numba.__version__}
    assert settings["versions"] == made | {"python": platform.python_version()}
    assert (
        versions_line(made)
        == f"lighttail {lt.__version__}, numpy {np.__version__}, numba {numba.__version__}"
    )
    assert settings["block_paths"] == block_paths(200)


@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_regrets_are_what_they_are_defined_as(policy: lt.Policy) -> None:
    out = run(policy=policy)
    assert out.pulls.dtype == np.int64
    assert out.reward.dtype == np.float64
    assert np.all(out.pulls >= 0)
    assert np.all(out.pulls.sum(axis=1) == 200)
    assert np.allclose(out.regret, 0.8 * 200 - out.reward, rtol=1e-15)
    assert np.array_equal(out.pseudo_regret, out.pulls @ np.array(PROBLEM.gaps))
    assert out.labels == ("arm 1", "arm 2", "arm 3")


def test_certain_rewards_make_both_regrets_equal() -> None:
    out = run(problem=lt.Bandit([0.25, 0.75, 0.5], lt.Gaussian(0.0)))
    assert np.array_equal(out.regret, out.pseudo_regret)


@pytest.mark.usefixtures("blocks_of_five")
def test_progress_rises_to_the_total() -> None:
    calls: list[tuple[int, int]] = []
    run(paths=58, progress=lambda done, total: calls.append((done, total)))
    done = [call[0] for call in calls]
    assert {total for _, total in calls} == {58}
    assert done == sorted(set(done))
    assert len(done) > 1
    assert done[-1] == 58


@pytest.mark.usefixtures("blocks_of_five")
def test_an_error_in_the_progress_function_ends_the_simulation() -> None:
    def fail(done: int, total: int) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        run(paths=58, progress=fail)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lighttail")]


BAD = [
    ("horizon", 2, "at least 3"),
    ("horizon", 0, "at least 3"),
    ("horizon", -1, "at least 3"),
    ("horizon", 200.0, "whole number"),
    ("horizon", "200", "whole number"),
    ("horizon", True, "whole number"),
    ("horizon", None, "whole number"),
    ("paths", 0, "at least 1"),
    ("paths", -5, "at least 1"),
    ("paths", 10.0, "whole number"),
    ("seed", -1, "at least 0"),
    ("seed", 1.0, "whole number"),
    ("seed", True, "whole number"),
    ("threads", 0, "at least 1"),
    ("threads", 1.5, "whole number"),
    ("policy", lt.LightTailed(0.2), "a policy"),
    ("policy", "UCB", "a policy"),
    ("policy", lt.UCB, "a policy"),
    ("problem", [0.2, 0.8], "a problem"),
    ("problem", None, "a problem"),
]


@pytest.mark.parametrize(("field", "value", "allowed"), BAD, ids=name)
def test_a_bad_argument_is_refused_before_any_work(
    field: str, value: Any, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "run_blocks", lambda *args: pytest.fail("work was done"))
    monkeypatch.setattr("lighttail.kernels.kernel_for", lambda *args: pytest.fail("a kernel was made"))
    with pytest.raises(ValueError, match=f"^{field} must be .*{allowed}.*, but is ") as caught:
        run(**{field: value})
    assert str(caught.value).endswith(repr(value))


class BrokenBonus(lt.Bonus):
    """A user's bonus that is not a number late in the experiment."""

    def __init__(self, broken: float) -> None:
        self.broken = broken

    def __repr__(self) -> str:
        return f"BrokenBonus({self.broken})"

    @staticmethod
    def radius(n: float, clock: float, broken: float) -> float:
        return broken if n > 1.0 else 1.0

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.broken,)


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_radius_that_is_not_finite_is_refused_by_name(broken: float) -> None:
    with pytest.raises(ValueError, match=r"the radius of BrokenBonus\(.*\) at n=2, t=1 must be a finite"):
        run(policy=lt.UCB(BrokenBonus(broken)))


class FailingBonus(BrokenBonus):
    @staticmethod
    def radius(n: float, clock: float, broken: float) -> float:
        return math.sqrt(2.0 - n)


def test_a_radius_that_raises_is_refused_by_name() -> None:
    with pytest.raises(
        ValueError, match=r"the radius of BrokenBonus.* must be a finite number, but is 'math domain error'"
    ):
        run(policy=lt.UCB(FailingBonus(0.0)))


class Compilations(event.Listener):
    """Counts what numba compiles; kernels loaded from its cache do not count."""

    def __init__(self) -> None:
        self.count = 0

    def on_start(self, happening: Any) -> None:
        self.count += 1

    def on_end(self, happening: Any) -> None:
        pass


def signatures(policy: lt.Policy) -> int:
    return len(kernel_for(policy, PROBLEM).overloads)  # type: ignore[attr-defined]


VARIED = [
    (lt.UCB(lt.LightTailed(0.2)), lt.UCB(lt.LightTailed(3.0))),
    (lt.UCB(lt.ArmOptimal(0.2, 0.1)), lt.UCB(lt.ArmOptimal(2, 0))),
    (lt.UCB(lt.AnyTime(0.2)), lt.UCB(lt.AnyTime(1))),
    (lt.SuccessiveElimination(lt.Standard(0.2)), lt.SuccessiveElimination(lt.Standard(1))),
    (lt.ThompsonSampling(0.2), lt.ThompsonSampling(1, 3, 2)),
    (lt.Exp3IX(), lt.Exp3IX("loss", upper=2, eta=1, gamma=0.1)),
    (lt.Exp3IX(), lt.Exp3IX("reward")),
    (lt.UCB(lt.Moss(1.0)), lt.UCB(lt.Moss(0.3))),
    (lt.UCB(lt.TwoPart(0.4, 0.6)), lt.UCB(lt.TwoPart(1, 2, alpha=0.7, beta=0.1))),
    (lt.KlUcb(), lt.KlUcb(3)),
    (lt.KlUcb(0.5, sigma=1), lt.KlUcb(0, sigma=0.3)),
    (lt.Imed(1), lt.Imed(0.3)),
    (lt.BayesUcb(), lt.BayesUcb(5)),
    (lt.InflatedThompson(1), lt.InflatedThompson(0.2)),
    (lt.EpsilonGreedy(5, 0.1), lt.EpsilonGreedy(1, 0.5)),
    (lt.ExploreThenCommit(3), lt.ExploreThenCommit(9)),
]


@pytest.mark.parametrize(("first", "other"), VARIED, ids=name)
def test_new_numbers_compile_nothing(first: lt.Policy, other: lt.Policy) -> None:
    run(policy=first)
    assert signatures(first) == 1
    with event.install_listener("numba:compile", Compilations()) as compiled:
        run(policy=other)
        run(policy=other, horizon=77)
        run(policy=other, paths=1)
        run(policy=other, horizon=np.int64(77), paths=np.int64(3), seed=np.uint8(2))
        run(policy=other, problem=lt.Bandit([1, -3, 7], lt.Gaussian(2)))
        run(policy=other, problem=lt.Bandit(np.linspace(0, 1, 9), lt.Gaussian(0.1)))
    assert compiled.count == 0
    assert signatures(other) == 1
    assert kernel_for(first, PROBLEM) is kernel_for(other, PROBLEM)


def test_a_new_bonus_compiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The control of the test above: the counter does count. An empty cache cannot help."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    class NewBonus(lt.Bonus):
        @staticmethod
        def radius(n: float, clock: float) -> float:
            return 1.0 / (n + 0.5)

        def params(self, horizon: float, arms: int) -> tuple[float, ...]:
            return ()

        def __str__(self) -> str:
            return "NewBonus"

    with event.install_listener("numba:compile", Compilations()) as compiled:
        run(policy=lt.UCB(NewBonus()))
    assert compiled.count > 0


def test_bonuses_with_one_kernel_each() -> None:
    kernels = {kernel_for(lt.UCB(bonus), PROBLEM) for bonus in BONUSES}
    assert len(kernels) == len(BONUSES)


def test_a_gpu_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"horizon": 10, "paths": 4, "device": "cuda"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"^device must be 'cpu' without numba-cuda.*'lighttail\[gpu\]'"):
        lt.simulate(POLICY, PROBLEM, **settings)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    with pytest.raises(ValueError, match=r"^device must be 'cpu' without an NVIDIA GPU.*nvidia-smi"):
        lt.simulate(POLICY, PROBLEM, **settings)


@pytest.mark.parametrize(("field", "value"), [("device", "gpu"), ("device", None), ("precision", "float32")])
def test_a_device_or_precision_that_there_is_not(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{field} must be .*, but is "):
        lt.simulate(POLICY, PROBLEM, horizon=10, paths=4, **{field: value})
