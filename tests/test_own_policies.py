"""A policy from outside the package: every executor plays it, and every mistake in it gets a sentence."""

from __future__ import annotations

import ast
import importlib
import json
import math
import random
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import late
import numpy as np
import oracle
import pytest
from cases import POLICIES, name
from own_policies import OWN_POLICIES, Clipped, Greedy

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.kernels import accelerations
from lighttail.tails.pairs import pair_routes
from lighttail.tails.task import Task

PROBLEM = lt.Bandit([0.3, 0.6, 0.5], lt.Bernoulli())


@pytest.mark.parametrize("policy", OWN_POLICIES, ids=name)
@pytest.mark.parametrize("problem", [PROBLEM, lt.Bandit([0.1, 0.9], lt.Gaussian(0.7))], ids=str)
def test_the_compiled_paths_are_those_of_an_experiment(policy: lt.Policy, problem: lt.Bandit) -> None:
    out = lt.simulate(policy, problem, horizon=80, paths=8, seed=1)
    played = oracle.play(policy, problem, 80, 8, 1)
    np.testing.assert_array_equal(out.pulls, played.pulls)
    np.testing.assert_array_equal(out.reward, played.reward)


@pytest.mark.parametrize("policy", OWN_POLICIES, ids=name)
def test_late_rewards_too(policy: lt.Policy) -> None:
    course: dict[str, Any] = {"delay": lt.GeometricDelay(5.0, never=0.1), "batch": 3}
    out = lt.simulate(policy, PROBLEM, horizon=60, paths=6, seed=3, **course)
    np.testing.assert_array_equal(out.pulls, late.play(policy, PROBLEM, 60, 6, 3, **course)[1])


@pytest.mark.parametrize("policy", OWN_POLICIES, ids=name)
def test_a_saved_experiment_goes_on_as_it_would_have(policy: lt.Policy) -> None:
    experiment = lt.Experiment(policy, ["a", "b", "c"], horizon=100, seed=5)
    for _ in range(20):
        trial = experiment.ask()
        if trial.id % 3:
            experiment.tell(trial.id, float(trial.arm == "b"))
    other = lt.Experiment.from_json(experiment.to_json())
    assert json.loads(other.to_json()) == json.loads(experiment.to_json())
    for _ in range(20):
        trial, again = experiment.ask(), other.ask()
        assert trial == again
        experiment.tell(trial.id, 0.5)
        other.tell(again.id, 0.5)


def test_processes_play_the_same_paths() -> None:
    plain = lt.simulate(Greedy(0.1), PROBLEM, horizon=100, paths=9000, seed=2)
    with ProcessPoolExecutor(1) as executor:
        away = lt.simulate(Greedy(0.1), PROBLEM, horizon=100, paths=9000, seed=2, executor=executor)
    np.testing.assert_array_equal(away.reward, plain.reward)


@pytest.fixture
def no_accelerations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerations, "ACCELERATIONS", {})


def drawn(number: int) -> tuple[lt.Bandit, int, int]:
    """A problem, a horizon and a seed that nobody chose."""
    rng = np.random.default_rng([7, number])
    arms = int(rng.choice([2, 3, 5, 17]))
    means = rng.random(arms) if number % 2 else np.repeat(rng.random(), arms) * rng.integers(1, 3, arms) / 2
    noise: Any = [lt.Bernoulli(), lt.Gaussian(float(rng.exponential())), lt.Laplace(0.5)][number % 3]
    return lt.Bandit(means, noise), int(rng.integers(arms, 400)), int(rng.integers(2**40))


@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_without_the_table_the_library_is_slower_and_plays_the_same_bits(
    policy: lt.Policy, no_accelerations: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        problem, horizon, seed = drawn(number)
        slow = lt.simulate(policy, problem, horizon=horizon, paths=20, seed=seed, method="step")
        with monkeypatch.context() as patch:
            patch.setattr(accelerations, "ACCELERATIONS", TABLE)
            fast = lt.simulate(policy, problem, horizon=horizon, paths=20, seed=seed, method="step")
        np.testing.assert_array_equal(slow.reward, fast.reward)
        np.testing.assert_array_equal(slow.pulls, fast.pulls)


TABLE = dict(accelerations.ACCELERATIONS)


def test_the_comparison_would_notice_another_rule(no_accelerations: None) -> None:
    """Negative control: a tie that goes to the first arm instead of one at random."""
    problem = lt.Bandit([0.5, 0.5], lt.Bernoulli())
    plain = lt.simulate(Clipped(0.7), problem, horizon=100, paths=20, seed=1)
    other = lt.simulate(FirstOfTied(0.7), problem, horizon=100, paths=20, seed=1)
    assert not np.array_equal(plain.pulls, other.pulls)


CLOCKS = np.log1p(np.arange(201.0))  # of the rounds 0 to 200, and of no other


@dataclass(frozen=True)
class FromTable(lt.Bonus):
    """A bonus whose clock is read from a table that ends at the horizon."""

    kappa: float
    concave: ClassVar[bool] = True

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)

    @staticmethod
    def clock(t: float, kappa: float) -> float:
        return float(CLOCKS[int(t)])

    @staticmethod
    def radius(n: float, clock: float, kappa: float) -> float:
        return kappa * math.sqrt(clock / n)


def test_no_kernel_asks_for_the_clock_after_the_horizon() -> None:
    """Reading beyond the table is an error, in kernels, too."""
    policy, problem = lt.UCB(FromTable(1.5)), lt.Bandit([0.2, 0.5])
    for method in ("step", "skip"):
        lt.simulate(policy, problem, horizon=200, paths=50, seed=1, method=method)
    lt.simulate(policy, problem, horizon=200, paths=5, seed=1, delay=3)
    lt.simulate(lt.SuccessiveElimination(FromTable(1.5)), problem, horizon=200, paths=5, seed=1)
    experiment = lt.Experiment(policy, ["A", "B"], horizon=200, seed=1)
    for _ in range(200):
        experiment.tell(experiment.ask().id, 0.5)
    experiment.forecast(loss=20.0, paths=100, seed=1)
    for kind in ("pseudo_regret", "regret"):
        for method in ("plain", "importance"):
            lt.tail_probability(
                policy, problem, 200, 50.0, kind=kind, method=method, seed=1, most_pulls=10**6
            )
    with pytest.raises(BadInput, match="index 201 is out of bounds"):  # control
        lt.simulate(policy, problem, horizon=201, paths=5, seed=1, method="step")


@pytest.mark.parametrize("horizon", [2, 3, 40])
def test_no_clock_is_asked_after_a_short_horizon(monkeypatch: pytest.MonkeyPatch, horizon: int) -> None:
    """The checks of a formula and the routes of weighted paths, which are plain Python."""
    asked: list[float] = []

    def clock(t: float, kappa: float) -> float:
        asked.append(t)
        return 1.0 + math.log(t)

    monkeypatch.setattr(FromTable, "clock", staticmethod(clock))
    for kind in (lt.UCB, lt.SuccessiveElimination):
        policy, problem = kind(FromTable(1.5)), lt.Bandit([0.2, 0.5])
        policy.check(horizon, 2)
        pair_routes(Task(policy, problem, horizon, 0.3 * (horizon // 2), "pseudo_regret"))
    assert 1.0 in asked
    assert max(asked) <= horizon


@dataclass(frozen=True)
class FirstOfTied(Clipped):
    notes: ClassVar[int] = 1

    def rule(self) -> Any:
        return lt.Policy.rule(self)

    @staticmethod
    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        best, arm = -1.0, 0
        for k in range(len(tried)):
            if tried[k] == 0.0:
                return k
            value = min(1.0, total[k] / heard[k] + params[0] / math.sqrt(tried[k]))
            if value > best:
                best, arm = value, k
        return arm


def test_new_parameters_horizons_and_problems_compile_nothing_new() -> None:
    from lighttail.kernels import kernel_for

    kernel = kernel_for(Greedy(0.1), PROBLEM)
    for epsilon, horizon, means in ((0.1, 50, [0.2, 0.8]), (0.3, 70, [0.2, 0.8, 0.5])):
        policy, problem = Greedy(epsilon), lt.Bandit(means, lt.Bernoulli())
        lt.simulate(policy, problem, horizon=horizon, paths=3, seed=1)
        assert kernel_for(policy, problem) is kernel
    assert len(getattr(kernel, "signatures", [1])) == 1


@dataclass(frozen=True)
class Base(lt.Policy):
    needs_horizon: ClassVar[bool] = False
    notes: ClassVar[int] = 1

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (1.0,)


class WrongLater(Base):
    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> int:
        return 0 if t < 900 else 7


class LeavesLater(Base):
    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> int:
        if t > 900.0:
            note[int(t) * 1000, 0] = 1.0
        return 0


class HalfAnArm(Base):
    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> float:
        return 0.5


class DrawsItself(Base):
    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> int:
        return int(rng.random() * 2)


class TooManyNotes(Base):
    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> int:
        note[0, 1] = 2.0
        return 0


class TooFewArguments(Base):
    @staticmethod
    def choose(rng: Any, t: float, tried: Any) -> int:
        return 0


class WithoutChoose(Base):
    pass


class OddParams(HalfAnArm):
    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return [1.0]  # type: ignore[return-value]


class ChangesTotal(Base):
    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> int:
        total[0] += 100.0
        return 0


class ForeignLuck(Base):
    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> int:
        return int(random.random() * 2)


@dataclass(frozen=True)
class BaseIndex(lt.IndexPolicy):
    needs_horizon: ClassVar[bool] = False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (1.0,)


class IndexOfTwo(BaseIndex):
    @staticmethod
    def index(n: float, mean: float) -> float:
        return mean + 1.0 / n


class IndexWithoutParams(BaseIndex):
    @staticmethod
    def index(n: float, mean: float, clock: float) -> float:
        return mean + clock / n


class ClockWithoutParams(BaseIndex):
    @staticmethod
    def index(n: float, mean: float, clock: float, c: float) -> float:
        return mean + c * clock / n

    @staticmethod
    def clock(t: float) -> float:
        return t


class IndexOfNothing(BaseIndex):
    @staticmethod
    def index(n: float, mean: float, clock: float, c: float) -> float:
        return None  # type: ignore[return-value]


class IndexThatDivides(BaseIndex):
    @staticmethod
    def index(n: float, mean: float, clock: float, c: float) -> float:
        return mean + c / (n - 2.0)


class IndexThatDraws(BaseIndex):
    @staticmethod
    def index(n: float, mean: float, clock: float, c: float) -> float:
        return mean + random.random()


BAD = {
    IndexOfTwo: r"index of IndexOfTwo must take \(n, mean, clock, \*params\), but takes \(n, mean\)$",
    IndexWithoutParams: r"index of IndexWithoutParams must take .*, here 4 arguments, but takes \(n",
    ClockWithoutParams: r"clock of ClockWithoutParams must take \(t, \*params\), here 2 arguments, but takes",
    IndexOfNothing: "index of IndexOfNothing must return a number, but returned None",
    IndexThatDivides: "index of IndexThatDivides failed in round . of a trial: ZeroDivisionError: float",
    IndexThatDraws: "index of IndexThatDraws must draw no random numbers, which are for choose; docs/own-",
    ChangesTotal: "choose of ChangesTotal must not change tried, heard or total",
    ForeignLuck: r"choose of ForeignLuck must draw with uniform\(rng\)",
    WrongLater: "choose of WrongLater must return the number of an arm",
    LeavesLater: r"the members of LeavesLater\(\) and of the noise must stay within their arrays",
    HalfAnArm: "choose of HalfAnArm must return an arm, a whole number from 0 to 1, but returned 0.5 in ",
    DrawsItself: r"choose of DrawsItself must draw with uniform\(rng\) and standard_normal",
    TooManyNotes: "choose of TooManyNotes must stay within its arrays, but did not in round 1",
    TooFewArguments: "choose of TooFewArguments failed in round 1 of a trial: TypeError",
    WithoutChoose: "policy must have a static method choose, but WithoutChoose has none; docs/own-",
    OddParams: r"params of OddParams must return a tuple of floats, but returned \[1.0\]",
}


def test_a_radius_that_takes_too_little_gets_a_sentence() -> None:
    @dataclass(frozen=True)
    class Short(lt.Bonus):
        @staticmethod
        def radius(n: float) -> float:
            return 1.0 / n

        def params(self, horizon: float, arms: int) -> tuple[float, ...]:
            return (1.0,)

    with pytest.raises(BadInput, match=r"radius of Short must take \(n, clock, \*params\), but takes \(n\)"):
        lt.UCB(Short()).rule()
    with pytest.raises(BadInput, match=r"radius of Short"):
        lt.simulate(lt.UCB(Short()), PROBLEM, horizon=20, paths=3, seed=1)


@pytest.mark.parametrize("course", [{}, {"delay": 3}], ids=str)
@pytest.mark.parametrize("kind", BAD, ids=lambda kind: kind.__name__)
def test_a_mistake_gets_a_sentence(kind: Any, course: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=BAD[kind]):
        lt.simulate(kind(), lt.Bandit([0.2, 0.8]), horizon=1000, paths=3, seed=1, **course)


def test_a_rule_that_forgets_open_pulls_plays_where_rewards_are_known_at_once() -> None:
    lt.simulate(FirstOfTied(0.7), PROBLEM, horizon=100, paths=2, seed=1)
    with pytest.raises(BadInput, match=r"late rewards \(heard\[k\] may be 0 while tried\[k\] is not\)"):
        lt.simulate(FirstOfTied(0.7), PROBLEM, horizon=100, paths=2, seed=1, delay=3)
    with pytest.raises(BadInput, match="ZeroDivisionError"):
        lt.Experiment(FirstOfTied(0.7), ["a", "b"])


def test_a_fact_is_not_inherited_by_another_rule() -> None:
    class Rule:
        def rule(self) -> Any:
            return Greedy(0.5).rule()

    class Mixed(Rule, lt.UCB):  # type: ignore[misc]
        pass

    facts = (Mixed.plays_by, Mixed.pulls_every_arm_first, Mixed.draws_for_itself)
    assert facts == ("", False, None)
    assert (lt.UCB.plays_by, lt.UCB.pulls_every_arm_first, lt.UCB.draws_for_itself) == ("radius", True, False)
    assert (Clipped.plays_by, Clipped.pulls_every_arm_first) == ("index", False)


def test_an_index_that_nobody_would_play_is_refused_where_it_is_defined() -> None:
    with pytest.raises(TypeError, match="index of Other is not played: UCB plays its bonus"):

        class Other(lt.UCB):
            @staticmethod
            def index(n: float, mean: float, clock: float, *params: float) -> float:
                return -mean


def test_an_infinite_note_stays_where_it_was() -> None:
    experiment = lt.Experiment(Remembers(0.1), ["a", "b"], seed=1)
    for _ in range(6):
        trial = experiment.ask()
        experiment.tell(trial.id, 1.0)
    assert sum(experiment.pulls.values()) == 6


@dataclass(frozen=True)
class Remembers(Greedy):
    """Greedy, whose first note is infinite for an arm without a reward, and which counts squares besides."""

    notes: ClassVar[int] = 2

    @staticmethod
    def learn(
        arm: int, reward: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> None:
        note[arm, 1] += reward * reward


def test_a_radius_may_have_a_default() -> None:
    policy = lt.UCB(WithDefault(0.3))
    plain = lt.simulate(policy, PROBLEM, horizon=50, paths=4, seed=1)
    late_ones = lt.simulate(policy, PROBLEM, horizon=50, paths=4, seed=1, delay=0, batch=1)
    np.testing.assert_array_equal(plain.reward, late_ones.reward)
    lt.simulate(policy, PROBLEM, horizon=50, paths=4, seed=1, delay=3)
    lt.Experiment(policy, ["a", "b"], horizon=50, seed=1).ask()


@dataclass(frozen=True)
class WithDefault(lt.Bonus):
    c: float

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.c,)

    @staticmethod
    def radius(n: float, clock: float, c: float, power: float = 2.0) -> float:
        return c * power / n


def test_a_method_that_is_not_static_is_named_where_it_is_defined() -> None:
    with pytest.raises(TypeError, match="choose of Bound must be a static method"):

        class Bound(Base):
            def choose(self, rng: Any) -> int:  # type: ignore[override]
                return 0


ROOT = Path(__file__).parents[1]
PAGE = "own-policies.md"


def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / PAGE).read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    (tmp_path / "page.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("page")
    assert module.out.mean("pseudo_regret").value > 0.0
    assert module.experiment.ask().arm in ("old", "new")


def classes_of(code: str) -> dict[str, str]:
    """The classes of a text by their names, in one form of writing."""
    return {part.name: ast.unparse(part) for part in ast.parse(code).body if isinstance(part, ast.ClassDef)}


def test_the_example_has_the_classes_of_the_page() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / PAGE).read_text(), re.DOTALL)
    example = classes_of((ROOT / "examples" / "my_policies.py").read_text())
    assert example == classes_of("\n".join(blocks))
    assert example.keys() == {"Ucb1", "OneOverN", "EpsilonGreedy"}


def test_an_index_without_the_clock_is_written_as_the_page_says() -> None:
    (line,) = re.findall(r"`(def index\(n, mean, _, .*?)`", (ROOT / "docs" / PAGE).read_text())
    names: dict[str, Any] = {}
    exec(line, names)
    asked = {"index": staticmethod(names["index"]), "params": lambda self, horizon, arms: (0.5,)}
    policy = type("Mine", (lt.IndexPolicy,), asked)()
    assert lt.simulate(policy, PROBLEM, horizon=30, paths=3, seed=1).paths == 3
    short = asked | {"index": staticmethod(lambda n, mean, c: mean + c / n)}
    with pytest.raises(BadInput, match=r"must take \(n, mean, clock, \*params\)"):  # negative control
        lt.simulate(type("Mine", (lt.IndexPolicy,), short)(), PROBLEM, horizon=30, paths=3, seed=1)
