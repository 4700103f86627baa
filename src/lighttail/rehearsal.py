"""A short trial, in plain Python, of the functions of a user's class before numba compiles them.

numba reports a mistake as a page about types, and compiled code does not check its arguments: a rule that
chooses an arm that does not exist, or writes outside its notes, would end the process. The trial calls the
same functions a few times first and reports each mistake in one sentence that names the class and the
function. The generator of the trial supports only `uniform(rng)` and `standard_normal(rng)`.
"""

from __future__ import annotations

import math
import random
import sys
from numbers import Integral, Real
from traceback import walk_tb
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from lighttail.checks import BadInput, refuse, shown
from lighttail.members import check_takes, shipped
from lighttail.policies.policy import PAGE, TAKES, Policy
from lighttail.random import streams
from lighttail.rules import Rule

DRAWS = 8  # calls per trial of a function that draws random numbers
ROUNDS = 200  # rounds per trial of a rule, to which one per arm is added
MOST_TRIED = 1000  # arms at most: a trial with more arms would take long and find no more mistakes
LATEST = 6  # pulls: every reward becomes known before this number of further pulls
ALONE = "with uniform(rng) and standard_normal(rng) of lighttail alone"
WORLD = "a tuple of arrays and floats"


class Misused(Exception):
    """A function used a method of the generator directly."""


class TrialGenerator:
    """A generator that only `uniform` and `standard_normal` of `lighttail.random.streams` may use."""

    def __init__(self) -> None:
        self._numbers = streams.block_generator(0, 0)

    def standard_normal(self) -> float:
        if sys._getframe(1).f_code is not streams.standard_normal.__code__:
            raise Misused("standard_normal")
        return self._numbers.standard_normal()

    def random(self) -> float:
        if sys._getframe(1).f_code is not streams.uniform.__code__:
            raise Misused("random")
        return self._numbers.random()

    def __getattr__(self, name: str) -> Any:
        raise Misused(name)


def try_noise(noise: Any, means: tuple[float, ...]) -> float:
    """Try the functions of a noise. Returns the largest absolute reward of the trial, possibly infinite."""
    kind = type(noise)
    world = _world(f"{kind.__name__}.world", noise, means)

    def shocks() -> list[Any]:
        rng, what = TrialGenerator(), f"{kind.__name__}.shock"
        return [_returned(what, kind.shock, "rng, *world", rng, *world) for _ in range(DRAWS)]

    drawn = shocks()
    if [*map(repr, drawn)] != [*map(repr, shocks())]:  # nan equals nan
        differ = "its draws differ from call to call"
        raise refuse(f"{kind.__name__}.shock", None, ALONE, verb="draw", found=differ)
    what, largest = f"{kind.__name__}.reward", 0.0
    for arm in sorted({0, max(0, len(means) - 1)}):
        for shock in drawn:
            value = _returned(what, kind.reward, "shock, arm, *world", shock, arm, *world)
            if not isinstance(value, (Real, np.bool_)) or math.isnan(value):
                found = f"returned {shown(value)}"
                raise refuse(what, value, "a finite number", verb="return", found=found)
            largest = max(largest, abs(float(value)))
    return largest


def check_finite(noise: Any, largest: float) -> None:
    """Raise BadInput if `largest`, which `try_noise` returned, is infinite."""
    if math.isinf(largest):
        found = "returned an infinite one"
        what = f"{type(noise).__name__}.reward"
        raise refuse(what, largest, "a finite number", verb="return", found=found)


def _world(what: str, noise: Any, means: tuple[float, ...]) -> tuple[Any, ...]:
    """The world of a noise. Raises BadInput if it is wrong, or if the noise lacks one of its functions."""
    kind = type(noise)
    for name in ("shock", "reward"):
        if not hasattr(kind, name):
            method = f"a static method {name}, as every noise has"
            raise refuse(kind.__name__, None, method, verb="have", found="has none")
    try:
        world = noise.world(means)
    except BadInput:
        raise
    except Exception as error:  # a user's function may raise anything
        raise refuse(what, None, WORLD, verb="return", found=f"raised {_said(error)}") from None
    if not isinstance(world, tuple):
        raise refuse(what, world, WORLD, verb="return", found=f"returned {shown(world)}")
    for part in world:
        number = isinstance(part, (Real, np.bool_))
        if not number and not (isinstance(part, np.ndarray) and part.dtype.kind in "fiub"):
            found = f"returned one with a {type(part).__name__}"
            raise refuse(what, part, "a tuple of arrays of numbers and floats", verb="return", found=found)
    if getattr(noise, "moves", False) and not (
        world and isinstance(world[0], np.ndarray) and np.array_equal(world[0], np.array(means))
    ):
        first = "with the array of the means if moves = True"
        raise refuse(what, None, first, verb="begin", found="does not")
    return world


def _returned(what: str, function: Any, takes: str, *args: Any) -> Any:
    """What a function returns for these arguments. Raises BadInput if the function is wrong.

    what: the function in a message, such as "MyNoise.shock". takes: the arguments that the function must
    take, such as "rng, *world".
    """
    plain = getattr(function, "py_func", function)  # the Python function of a compiled one
    if not isinstance(plain, FunctionType):
        raise refuse(what, plain, "a plain Python function, which numba can compile")
    check_takes(what, plain, takes, len(args))
    try:
        with np.errstate(all="ignore"):
            return plain(*args)
    except Misused as error:
        raise refuse(what, None, ALONE, verb="draw", found=f"uses rng.{error}") from None
    except Exception as error:  # a user's function may raise anything
        every = "a value for every draw"
        raise refuse(what, None, every, verb="return", found=f"raised {_said(error)}") from None


class Nothing:
    """The notes of a rule that keeps no notes."""

    def __getitem__(self, place: object) -> float:
        raise IndexError

    def __setitem__(self, place: object, value: float) -> None:
        raise IndexError


def try_out(policy: Policy, horizon: float, arms: int, late: bool) -> None:
    """Raise BadInput if a user's policy fails in the first rounds with this number of arms.

    late: whether rewards may come late, so that a tried arm may have no reward yet.
    """
    if shipped(policy):
        return
    rule, params = policy.rule(), _checked_params(policy, horizon, arms)
    for part, function in {"choose": rule.choose, "learn": rule.learn, **policy.formulas()}.items():
        _check_draws(f"{part} of {type(policy).__name__}", function, part in policy.formulas())
    _check_formulas(policy, params)
    for count in dict.fromkeys((min(arms, MOST_TRIED), 2)):
        given = params if count == arms else _checked_params(policy, horizon, count)
        _play(policy, rule, given, count, horizon, LATEST if late else 1)


def _check_draws(what: str, function: Any, of_floats: bool) -> None:
    """Raise BadInput if a function uses the random numbers of Python's or NumPy's modules, which do not
    depend on the seed. A function of floats may not draw at all."""
    names = function.__code__.co_names
    used = [function.__globals__.get(name) for name in names]
    homes = {getattr(value, "__name__", "") for value in used if isinstance(value, ModuleType)}
    if "random" in homes or "numpy.random" in homes or ("numpy" in homes and "random" in names):
        how = "no random numbers, which are for choose" if of_floats else ALONE
        raise refuse(what, None, how, verb="draw", found="", more=f"; {PAGE} shows how")


def _check_formulas(policy: Policy, params: tuple[float, ...]) -> None:
    """Raise BadInput if a function of floats takes other arguments than it gets, or returns no number."""
    for part, formula in policy.formulas().items():
        what = f"{part} of {type(policy).__name__}"
        given = [1.0] * TAKES[part].count(",")
        check_takes(what, formula, TAKES[part], len(given) + len(params))
        try:
            value: Any = formula(*given, *params)
        except Exception:  # which the play meets, too, if these arguments occur at all
            continue
        if not isinstance(value, Real):
            raise refuse(what, value, "a number", verb="return", found=f"returned {shown(value)}")


def _checked_params(policy: Policy, horizon: float, arms: int) -> tuple[float, ...]:
    name = type(policy).__name__
    try:
        params = policy.params(horizon, arms)
    except BadInput:
        raise
    except Exception as error:  # a user's formula may raise anything
        raise BadInput(
            f"params of {name} failed with {arms} arms and horizon {horizon}: {_said(error)}",
            field=f"params of {name}",
        ) from None
    if not isinstance(params, tuple) or not all(isinstance(value, float) for value in params):
        returned, whole = f"returned {shown(params)}", isinstance(params, tuple) and int in map(type, params)
        allowed = "a tuple of floats" + (", so write 2.0 and not 2" if whole else "")
        raise refuse(f"params of {name}", params, allowed, verb="return", found=returned)
    return params


def _play(
    policy: Policy, rule: Rule, params: tuple[float, ...], arms: int, horizon: float, latest: int
) -> None:
    """Play some rounds with rewards of 0 and 1 that become known up to `latest` - 1 pulls late."""
    rng, luck = TrialGenerator(), random.Random(1)
    view: Any = memoryview
    tried, heard, total = (view(np.zeros(arms)) for _ in range(3))
    seen = (tried.toreadonly(), heard.toreadonly(), total.toreadonly())
    note = view(np.zeros((arms, rule.notes))) if rule.notes else Nothing()
    # The entries are (round before which the reward becomes known, arm, reward, memo).
    open_pulls: list[tuple[int, int, float, list[float]]] = []
    last = min(ROUNDS + arms, int(horizon)) if math.isfinite(horizon) else ROUNDS + arms
    for t in range(1, last + 1):
        for _, arm, reward, memo in [entry for entry in open_pulls if entry[0] <= t]:
            for place, value in enumerate(memo, rule.notes - rule.memo):
                note[arm, place] = value
            heard[arm] += 1.0
            total[arm] += reward
            _call(policy, "learn", t, latest > 1, rule.learn, arm, reward, *seen, note, params)
        open_pulls = [entry for entry in open_pulls if entry[0] > t]
        arm = _call(policy, "choose", t, latest > 1, rule.choose, rng, float(t), *seen, note, params)
        if isinstance(arm, bool) or not isinstance(arm, Integral) or not 0 <= int(arm) < arms:
            returned = f"returned {shown(arm)} in round {t} of a trial"
            allowed = f"an arm, a whole number from 0 to {arms - 1}"
            raise refuse(f"choose of {type(policy).__name__}", arm, allowed, verb="return", found=returned)
        tried[arm] += 1.0
        memo = [note[arm, place] for place in range(rule.notes - rule.memo, rule.notes)]
        open_pulls.append((t + 1 + luck.randrange(latest), int(arm), float(luck.random() < 0.5), memo))


def _call(policy: Policy, part: str, t: int, late: bool, function: Any, *args: Any) -> Any:
    what = f"{part} of {type(policy).__name__}"
    try:
        return function(*args)
    except Misused:
        raise refuse(what, None, ALONE, verb="draw", found="", more=f"; {PAGE} shows how") from None
    except IndexError:
        keeps = "tried, heard and total have one entry per arm, and note has `notes` columns"
        found = f"did not in round {t} of a trial"
        raise refuse(what, None, "within its arrays", verb="stay", found=found, more=f": {keeps}") from None
    except Exception as error:  # a user's formula may raise anything
        if "read-only memory" in str(error):
            own, given = ": keep numbers of your own in note", "tried, heard or total"
            raise refuse(what, None, given, verb="not change", found="did", more=own) from None
        own = _part(policy, error)
        what, waits = f"{own or part} of {type(policy).__name__}", late and not own
        hint = " with late rewards (heard[k] may be 0 while tried[k] is not)"
        trial = f"a trial{hint if waits and isinstance(error, (ArithmeticError, ValueError)) else ''}"
        why = f"{_said(error)}; {PAGE} shows the contract"
        raise BadInput(f"{what} failed in round {t} of {trial}: {why}", field=what) from None


def _part(policy: Policy, error: Exception) -> str:
    """The name of the function of floats in which the error was raised, or nothing if it was none of them."""
    codes = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
    return next((part for part, one in policy.formulas().items() if one.__code__ in codes), "")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
