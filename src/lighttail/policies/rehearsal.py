"""A short trial, in plain Python, of a user's policy before numba compiles it.

Compiled code does not check its arguments: a rule that chooses an arm that does not exist, or writes outside
its notes, would end the process. A trial of some rounds, with late rewards, finds such a mistake first and
reports it in one sentence.
"""

from __future__ import annotations

import math
import random
from numbers import Integral, Real
from traceback import walk_tb
from types import ModuleType
from typing import Any

from lighttail.checks import BadInput, refuse, shown
from lighttail.members import check_takes
from lighttail.policies.policy import PAGE, TAKES, Policy
from lighttail.rehearsal import ALONE, Misused, TrialGenerator
from lighttail.rules import Rule

ROUNDS = 200  # rounds per trial, to which one per arm is added
MOST_TRIED = 1000  # arms at most: a trial with more arms would take long and find no more mistakes
LATEST = 6  # pulls: every reward becomes known before this number of further pulls


class Nothing:
    """The notes of a rule that keeps no notes."""

    def __getitem__(self, place: object) -> float:
        raise IndexError

    def __setitem__(self, place: object, value: float) -> None:
        raise IndexError


def shipped(part: object) -> bool:
    """Whether lighttail defines the class of a policy, a bonus or a noise."""
    return type(part).__module__.startswith("lighttail.")


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


def _check_draws(place: str, function: Any, of_floats: bool) -> None:
    """Raise BadInput if a function uses the random numbers of Python's or NumPy's modules, which do not
    depend on the seed. A function of floats may not draw at all."""
    names = function.__code__.co_names
    used = [function.__globals__.get(name) for name in names]
    homes = {getattr(value, "__name__", "") for value in used if isinstance(value, ModuleType)}
    if "random" in homes or "numpy.random" in homes or ("numpy" in homes and "random" in names):
        how = "no random numbers, which are for choose" if of_floats else ALONE
        raise refuse(place, None, how, verb="draw", found="", more=f"; {PAGE} shows how")


def _check_formulas(policy: Policy, params: tuple[float, ...]) -> None:
    """Raise BadInput if a function of floats takes other arguments than it gets, or returns no number."""
    for part, formula in policy.formulas().items():
        place = f"{part} of {type(policy).__name__}"
        given = [1.0] * TAKES[part].count(",")
        check_takes(place, formula, TAKES[part], len(given) + len(params))
        try:
            value: Any = formula(*given, *params)
        except Exception:  # which the play meets, too, if these arguments occur at all
            continue
        if not isinstance(value, Real):
            raise refuse(place, value, "a number", verb="return", found=f"returned {shown(value)}")


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
    import numpy as np

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
    place = f"{part} of {type(policy).__name__}"
    try:
        return function(*args)
    except Misused:
        raise refuse(place, None, ALONE, verb="draw", found="", more=f"; {PAGE} shows how") from None
    except IndexError:
        keeps = "tried, heard and total have one entry per arm, and note has `notes` columns"
        found = f"did not in round {t} of a trial"
        raise refuse(place, None, "within its arrays", verb="stay", found=found, more=f": {keeps}") from None
    except Exception as error:  # a user's formula may raise anything
        if "read-only memory" in str(error):
            own, given = ": keep numbers of your own in note", "tried, heard or total"
            raise refuse(place, None, given, verb="not change", found="did", more=own) from None
        own = _part(policy, error)
        place, waits = f"{own or part} of {type(policy).__name__}", late and not own
        hint = " with late rewards (heard[k] may be 0 while tried[k] is not)"
        trial = f"a trial{hint if waits and isinstance(error, (ArithmeticError, ValueError)) else ''}"
        why = f"{_said(error)}; {PAGE} shows the contract"
        raise BadInput(f"{place} failed in round {t} of {trial}: {why}", field=place) from None


def _part(policy: Policy, error: Exception) -> str:
    """The name of the function of floats in which the error was raised, or nothing if it was none of them."""
    codes = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
    return next((part for part, one in policy.formulas().items() if one.__code__ in codes), "")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
