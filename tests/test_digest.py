"""A kernel is never older than its formula: not on disk, and not within a process."""

from __future__ import annotations

import math
import types
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pytest
from numba import njit
from oracle import play

import lighttail as lt
from lighttail.kernels import kernel_for
from lighttail.kernels.build import digest
from lighttail.kernels.compiled import KernelCache

CONSTANT = 0.5
PAIR = (np.arange(2000.0), 1.0)
inner = types.ModuleType("inner")
inner.SHIFT = 0.25  # type: ignore[attr-defined]
outer = types.ModuleType("outer")
outer.inner = inner  # type: ignore[attr-defined]


class Level(Enum):
    LOW = 1.0


def by_global(n: float) -> float:
    return CONSTANT / n


def by_inner_function(n: float) -> float:
    def share(x: float) -> float:
        return CONSTANT / x

    return share(n)


def by_comprehension(n: float) -> float:
    return sum([CONSTANT for _ in range(2)]) / n


def by_nested_module(n: float) -> float:
    return float(outer.inner.SHIFT) / n


def by_tuple_of_arrays(n: float) -> float:
    return float(PAIR[0][1500]) / n


def by_unknown_object(n: float) -> float:
    return Level.LOW.value / n


def calls_itself(n: float) -> float:
    return n if n < 2 else calls_itself(n / 2) + CONSTANT


@pytest.mark.parametrize("formula", [by_global, by_inner_function, by_comprehension, calls_itself])
def test_a_global_constant_changes_the_digest(formula: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(formula)
    assert digest(formula) == before
    monkeypatch.setitem(globals(), "CONSTANT", 0.75)
    assert digest(formula) != before


def test_an_attribute_of_a_nested_module_changes_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(by_nested_module)
    monkeypatch.setattr(inner, "SHIFT", 0.5)
    assert digest(by_nested_module) != before


def test_an_array_within_a_tuple_changes_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(by_tuple_of_arrays)
    other = np.arange(2000.0)
    other[1000] += 1
    monkeypatch.setitem(globals(), "PAIR", (other, 1.0))
    assert digest(by_tuple_of_arrays) != before


def test_an_object_of_unknown_content_is_never_taken_from_another_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = digest(by_unknown_object)
    monkeypatch.setattr("lighttail.kernels.build.PROCESS", "another process")
    assert digest(by_unknown_object) != before


def test_an_edited_formula_changes_the_digest_and_its_place_in_the_file_does_not() -> None:
    def one(n: float) -> float:
        return 1.0 / n

    def same(n: float) -> float:
        return 1.0 / n

    def other(n: float) -> float:
        return 2.0 / n

    assert digest(one) == digest(same) != digest(other)


def test_an_edited_docstring_does_not_change_the_digest() -> None:
    def one(n: float) -> float:
        """The first text."""
        return 1.0 / n

    def same(n: float) -> float:
        """The second text."""
        return 1.0 / n

    def other(n: float) -> float:
        """The second text."""
        return 2.0 / n

    assert digest(one) == digest(same) != digest(other)


def test_formulas_that_differ_in_little_have_different_digests() -> None:
    """Two names for one helper, the order of fields, packed arguments, and how numba compiles a helper."""

    def low(n: float) -> float:
        return n + 1.0

    def high(n: float) -> float:
        return n + 2.0

    def third_of(first: Any, second: Any, third: Any) -> Any:
        return lambda n: first(n) + 2.0 * second(n) + 4.0 * third(n)

    def field_of(pair: Any) -> Any:
        return lambda n: pair.a * n

    def packed(n: float, *rest: Any) -> int:
        return len(rest)

    def plain(n: float, rest: Any) -> int:
        return len(rest)

    pairs = [namedtuple("Pair", fields)(1.0, 2.0) for fields in ("a b", "b a")]
    assert digest(third_of(low, high, low)) == digest(third_of(low, high, low))
    assert digest(third_of(low, high, low)) != digest(third_of(low, high, high))
    assert digest(field_of(pairs[0])) != digest(field_of(pairs[1]))
    assert digest(packed) != digest(plain)
    assert digest(njit(low)) == digest(njit(low)) != digest(njit(fastmath=True)(low))


@dataclass(frozen=True)
class Notebook(lt.Bonus):
    """A bonus whose constant and helper live in the notebook's globals."""

    kappa: float

    @staticmethod
    def radius(n: float, clock: float, kappa: float) -> float:
        return helper(n) * kappa

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)


def helper(n: float) -> float:
    return CONSTANT / math.sqrt(n)


def test_a_constant_changed_in_a_notebook_is_used_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, problem = lt.UCB(Notebook(1.0)), lt.Bandit([0.2, 0.8])
    pulls = []
    for constant in (0.5, 8.0, 0.5):
        monkeypatch.setitem(globals(), "CONSTANT", constant)
        out = lt.simulate(policy, problem, horizon=100, paths=20, seed=1)
        assert np.array_equal(out.pulls, play(policy, problem, 100, 20, 1).pulls)
        pulls.append(out.pulls[:, 0].mean())
    assert pulls[0] == pulls[2] != pulls[1]


@dataclass(frozen=True)
class ByModule(Notebook):
    """The helper and its constant live in a module."""

    @staticmethod
    def radius(n: float, clock: float, kappa: float) -> float:
        return outer.inner.bend(n) * kappa  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ByNjit(Notebook):
    """The helper is compiled by the user: numba keeps its first constant, in Python and in kernels."""

    @staticmethod
    def radius(n: float, clock: float, kappa: float) -> float:
        return by_njit(n) * kappa  # type: ignore[no-any-return]


@njit
def by_njit(n: float) -> float:
    return CONSTANT / math.sqrt(n)


def bend(n: float) -> float:
    return CONSTANT / math.sqrt(n)


inner.bend = bend  # type: ignore[attr-defined]


@pytest.mark.parametrize("bonus", [Notebook, ByModule, ByNjit])
def test_a_kernel_of_changed_constants_is_right_and_is_not_kept(
    bonus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel may call a function that this process compiled with the old constant: such a kernel must never
    be written to the file of the new constant. The kernel of the first constant is kept (control)."""
    policy, problem = lt.UCB(bonus(1.0)), lt.Bandit([0.2, 0.8])
    pulls, kept = [], []
    for constant in (0.45, 9.0):
        monkeypatch.setitem(globals(), "CONSTANT", constant)
        out = lt.simulate(policy, problem, horizon=100, paths=20, seed=1)
        assert np.array_equal(out.pulls, play(policy, problem, 100, 20, 1).pulls)
        pulls.append(out.pulls[:, 0].mean())
        kept.append(isinstance(kernel_for(policy, problem)._cache, KernelCache))
    assert (pulls[0] != pulls[1]) == (bonus is not ByNjit)
    assert kept == [bonus is not Notebook, False]  # the helper of the notebook was changed before


def test_a_radius_that_is_no_static_method_is_refused_when_it_is_defined() -> None:
    with pytest.raises(TypeError, match=r"radius of Wrong must be a static method: write @staticmethod"):

        class Wrong(lt.Bonus):
            def radius(self, n: float, clock: float) -> float:
                return 1.0 / n

            def params(self, horizon: float, arms: int) -> tuple[float, ...]:
                return ()


@dataclass(frozen=True)
class Odd(lt.Bonus):
    """Finite at n = 1 and at the horizon, and not a number between 5 and 9 pulls."""

    @staticmethod
    def radius(n: float, clock: float) -> float:
        return math.sqrt((n - 5.0) * (n - 9.0)) / n

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()


@dataclass(frozen=True)
class Negative(lt.Bonus):
    @staticmethod
    def radius(n: float, clock: float) -> float:
        return 0.5 * math.log(2.0 / n)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()


def test_a_radius_that_fails_anywhere_on_its_way_is_refused() -> None:
    for policy, where in ((lt.UCB(Odd()), "Odd"), (lt.SuccessiveElimination(Negative()), "Negative")):
        with pytest.raises(ValueError, match=rf"the radius of {where}"):
            lt.simulate(policy, lt.Bandit([0.2, 0.8]), horizon=200, paths=3, seed=1)
        with pytest.raises(ValueError, match=rf"the radius of {where}"):
            lt.Experiment(policy, ["A", "B"], horizon=200)
