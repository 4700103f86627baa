"""An author's mistake gets one sentence that names the class and the function, and no page of numba's."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from own_noises import Exponential, Silent

import lighttail as lt
from lighttail.kernels.errors import compilable, complaint, formulas_of
from lighttail.random.streams import standard_normal, uniform
from lighttail.rehearsal import try_noise

UCB = lt.UCB(lt.LightTailed(0.2))
FORMULAS: dict[str, Callable[..., Any]] = {
    "shock": lambda rng, means, sigma: standard_normal(rng),
    "reward": lambda shock, arm, means, sigma: means[arm] + sigma * shock,
}


def made(**functions: Any) -> lt.Noise:
    """A noise of a class of its own, with some functions in the place of right ones."""
    world = functions.pop("world", lambda self, means: (np.array(means), 1.0))
    static = {name: staticmethod(function) for name, function in (FORMULAS | functions).items()}
    return type("Mine", (lt.Noise,), static | {"world": world})()  # type: ignore[no-any-return]


def tangled(shock: float, arm: int, means: Any, sigma: float) -> float:
    return float(np.linalg.norm(means)) + max([shock, sigma], key=lambda one: -one)


def managed(rng: Any, means: Any, sigma: float) -> float:
    with np.errstate(all="ignore") as found:
        return uniform(rng) if found is None else standard_normal(rng)


ALONE = "must draw with uniform(rng) and standard_normal(rng) of lighttail alone, but"
MISTAKES: dict[str, tuple[lt.Noise, str]] = {
    "the generator itself": (
        made(shock=lambda rng, means, sigma: rng.standard_normal()),
        f"Mine.shock {ALONE} uses rng.standard_normal",
    ),
    "another law of it": (
        made(shock=lambda rng, means, sigma: rng.exponential(2.0)),
        f"Mine.shock {ALONE} uses rng.exponential",
    ),
    "another generator": (
        made(shock=lambda rng, means, sigma: random.random()),
        f"Mine.shock {ALONE} its draws differ from call to call",
    ),
    "arguments of the shock": (
        made(shock=lambda rng, means: standard_normal(rng)),
        "Mine.shock must take (rng, *world), here 3 arguments, but takes (rng, means)",
    ),
    "arguments of the reward": (
        made(reward=lambda shock, arm, means: means[arm] + shock),
        "Mine.reward must take (shock, arm, *world), here 4 arguments, but takes (shock, arm, means)",
    ),
    "an error": (
        made(shock=lambda rng, means, sigma: math.log(-uniform(rng))),
        "Mine.shock must return a value for every draw, but raised ValueError: math domain error",
    ),
    "an index": (
        made(reward=lambda shock, arm, means, sigma: means[arm + 7]),
        "Mine.reward must return a value for every draw, but raised IndexError",
    ),
    "nan": (
        made(reward=lambda shock, arm, means, sigma: math.nan),
        "Mine.reward must return a finite number, but returned nan",
    ),
    "infinity": (
        made(reward=lambda shock, arm, means, sigma: math.inf),
        "Mine.reward must return a finite number, but returned an infinite one",
    ),
    "nothing": (
        made(reward=lambda shock, arm, means, sigma: None),
        "Mine.reward must return a finite number, but returned None",
    ),
    "several numbers": (
        made(reward=lambda shock, arm, means, sigma: means),
        "Mine.reward must return a finite number, but returned array([0.2, 0.8])",
    ),
    "no function": (
        made(shock=np.random.default_rng(1).standard_normal),
        "Mine.shock must be a plain Python function, which numba can compile, but is <bound method",
    ),
    "a list as the world": (
        made(world=lambda self, means: [np.array(means), 1.0]),
        "Mine.world must return a tuple of arrays and floats, but returned [array(",
    ),
    "a word in the world": (
        made(world=lambda self, means: (np.array(means), "wide")),
        "Mine.world must return a tuple of arrays of numbers and floats, but returned one with a str",
    ),
    "an error in the world": (
        made(world=lambda self, means: (np.array(means), 1.0 / 0)),
        "Mine.world must return a tuple of arrays and floats, but raised ZeroDivisionError",
    ),
    "what numba does not know": (
        made(reward=tangled),
        "Mine.reward must be a function that numba compiles: ",
    ),
    "what Python has and numba has not": (
        made(shock=managed),
        "must be a function that numba compiles: write it with + - * / and math, on floats; numba says: ",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_noise_gets_a_sentence(mistake: str) -> None:
    noise, wanted = MISTAKES[mistake]
    with pytest.raises(ValueError, match=r"^Mine\.") as caught:
        lt.simulate(UCB, lt.Bandit([0.2, 0.8], noise), horizon=20, paths=3, seed=1)
    text = str(caught.value)
    assert wanted in text
    assert "\n" not in text
    assert len(text) < 400
    assert (
        caught.value.__context__ is None or caught.value.__suppress_context__
    )  # nothing of numba's is shown


def test_right_noises_pass_the_trial() -> None:
    """Negative control."""
    for noise in (
        made(),
        Silent(),
        Exponential(),
        lt.Gaussian(1.0),
        lt.Laplace(0.0),
        lt.StudentT(2.1),
        lt.Bernoulli(),
    ):
        assert math.isfinite(try_noise(noise, (0.2, 0.8)))
    assert lt.simulate(UCB, lt.Bandit([0.2, 0.8], made()), horizon=20, paths=3, seed=1).paths == 3


def test_a_method_that_is_not_static_is_refused_where_it_is_written() -> None:
    for name in ("shock", "reward", "total"):
        with pytest.raises(
            TypeError, match=f"^{name} of Mine must be a static method: write @staticmethod above it$"
        ):
            type("Mine", (lt.Noise,), {name: lambda self, rng, means: 0.0})


def test_a_noise_without_its_functions_is_refused() -> None:
    class Mine(lt.Noise):
        def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
            return (np.array(means),)

    with pytest.raises(
        ValueError, match=r"^Mine must have a static method shock, as every noise has, but has none$"
    ):
        lt.simulate(UCB, lt.Bandit([0.2, 0.8], Mine()), horizon=20, paths=3, seed=1)


def test_one_that_states_that_it_moves_begins_its_world_with_the_means() -> None:
    class Mine(Silent):
        moves = True

        def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
            return 2.0 * np.array(means), self.sigma

    with pytest.raises(
        ValueError, match=r"^Mine.world must begin with the array of the means if moves = True"
    ):
        lt.simulate(UCB, lt.Bandit([0.2, 0.8], Mine()), horizon=20, paths=3, seed=1)


def test_a_formula_of_a_bonus_is_named_too() -> None:
    class Mine(lt.LightTailed):
        @staticmethod
        def radius(n: float, clock: float, scale: float) -> float:
            return scale * sorted([n, 1.0], key=str)[0]

    with pytest.raises(ValueError, match=r"^Mine.radius must be a function that numba compiles"):
        lt.simulate(lt.UCB(Mine(0.2)), lt.Bandit([0.2, 0.8]), horizon=20, paths=3, seed=1)


@dataclass(frozen=True)
class Listed(lt.IndexPolicy):
    c: float = 0.5

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.c,)

    @staticmethod
    def index(n: float, mean: float, clock: float, c: float) -> float:
        return mean + float(np.sqrt([c, c])[0]) / n


@pytest.mark.parametrize("method", ["auto", "plain", "importance", "splitting"])
def test_a_tail_names_the_class_the_function_and_the_line_as_a_simulation_does(method: Any) -> None:
    line = Listed.index.__code__.co_firstlineno + 2  # below @staticmethod and def
    said = rf"^Listed.index must be a function that numba compiles.* at line {line} of test_rehearsal.py "
    problem = lt.Bandit([0.2, 0.8])
    with pytest.raises(ValueError, match=f"{said}numba says: .*sqrt"):
        lt.tail_probability(Listed(), problem, 50, 20, method=method, seed=1)
    with pytest.raises(ValueError, match=f"{said}numba says: .*sqrt"):
        lt.simulate(Listed(), problem, horizon=20, paths=3, seed=1)


def test_what_is_no_error_of_numba_passes_through() -> None:
    """Negative control."""
    with pytest.raises(ZeroDivisionError), compilable(UCB, None):
        raise ZeroDivisionError
    assert "Silent.shock" in formulas_of(Silent())
    assert str(complaint("", {})).startswith("a formula must be a function that numba compiles")
