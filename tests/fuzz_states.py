"""Damaged states and odd calls: a live experiment answers each of them, or refuses it in one sentence.

`python tests/fuzz_states.py --states 10000 --seed 1` damages that many texts of experiments of every policy
and plays a tenth as many sequences of asks and tells with odd arguments. A complaint is printed with what led
to it; the exit status is 1 if there is one. `test_fuzz_states` runs a short part of the same.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from cases import POLICIES
from linear_cases import LIGHT, OFUL, OWN, THOMPSON, unit_rows

import lighttail as lt
from lighttail.checks import BadInput, shown

DIM = 2
LONGEST_MESSAGE = 400
SETS = [
    unit_rows(3, DIM, 1),
    unit_rows(2, DIM, 2),
    lt.BallSet(DIM, starts=4),
    lt.BoxSet([-0.5] * 2, [0.5] * 2, 4),
]
LINEAR = [LIGHT, lt.LinearUCB(lt.LinearStandard(0.5)), OFUL, OWN, THOMPSON]
EXTREME = [
    lt.Exp3IX("loss", upper=1.0),
    lt.Exp3IX("loss", upper=1e308),
    lt.Exp3IX("reward", eta=1e300, gamma=1e-320),
    lt.ThompsonSampling(1e-100, prior_mean=1e300, prior_sd=1e40),
    lt.UCB(lt.LightTailed(1e300)),
    lt.LinearUCB(lt.LinearStandard(1e-300), ridge=1e-300),
    lt.LinearUCB(lt.LinearStandard(1e300), ridge=1e300),
    lt.LinearThompson(1e300, ridge=1e-200),
    lt.LinearThompson(1e-320, ridge=5e-324),
]
GENERATORS = ["SFC64", "PCG64", "PCG64DXSM", "Philox", "MT19937"]

# What a field is replaced by; a text between two @ goes into the JSON as it is.
NASTY: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 625, 2**31, 2**32, 2**53, 2**64, 2**128, 10**30, 10**400),
    *(0.0, -0.0, 0.5, 1.0, 1.5, -1e308, 1e308, 1e100, 1e101, 5e-324, math.nan, math.inf, -math.inf),
    *("@1e999@", "@-1e999@", f"@{'9' * 5000}@", f"@{'[' * 400}{']' * 400}@", f"@{'[' * 90000}{']' * 90000}@"),
    *("", "A", "B", "0", "nan", "a\nb", "\ud800", "x" * 1000, "type", "experiment", "PCG64", "object"),
    *([], {}, [[]], [None], [1], [0, 1], [0.0, 0.0], [True], {"a": 1}, ["A", "A"], [[1.0, 0.0], [0.0, 1.0]]),
    {"type": "lighttail.policies:UCB"},
    {"type": "lighttail.policies:Policy"},
    {"type": "lighttail.bonuses:AnyTime", "kappa": 0.5},
    {"type": ":", "x": {}},
    {"dtype": "object", "values": [None]},
    {"dtype": "uint64", "values": [0, 0, 0, 0]},
]
REWARDS: list[Any] = [
    *(0, 1, 0.5, -2.0, True, np.bool_(False), np.float32(0.25), np.int8(3), Fraction(1, 3), 5e-324, -0.0),
    *(
        1e308,
        -1e308,
        1e100,
        -1e100,
        1e101,
        1e60,
        -1e60,
        10**99,
        10**400,
        math.nan,
        math.inf,
        np.longdouble("1e400"),
    ),
    *(
        "1",
        b"1",
        None,
        [1.0],
        {},
        1j,
        Decimal(1),
        np.array(1.0),
        np.array([1.0]),
        np.array(["a", "b"]),
        object(),
    ),
    *(10**5000, -(10**5000), Fraction(10**5000), np.zeros((2, 2)), np.array([[1.0]]), [[1.0], [2.0]]),
]
IDS: list[Any] = [
    0,
    -1,
    10**30,
    10**400,
    10**5000,
    True,
    1.0,
    "1",
    b"1",
    None,
    [1],
    np.array([1]),
    np.zeros((2, 2)),
    np.array([[1]]),
    math.nan,
    1j,
    object(),
]
ACTIONS: list[Any] = [
    *SETS,
    *(
        [],
        [[]],
        [1.0, 0.0],
        [[1.0]],
        [[1.0, 0.0], [1.0]],
        [[0.0, 0.0]],
        None,
        3,
        "ab",
        [["1", "0"]],
        [[None, 1.0]],
    ),
    *(
        [[1j, 0]],
        np.array([[1j, 0]]),
        [[math.nan, 1]],
        [[1e51, 1]],
        [[1e50, 1], [1e50, 1e50]],
        [[1e-200, 1e-300]],
    ),
    *(10**5000, [10**5000], [[10**5000, 1]], [[-(10**5000), 1]], np.zeros((2, 2, DIM)), np.zeros((2, 3))),
    *([[10**400, 1]], [[10**40, 1]], [[Fraction(1, 2), 1]], [[True, False]], {1: 2}, object(), np.array(0.5)),
    *(np.broadcast_to(0.5, (10**12, DIM)), np.empty((0, DIM)), np.array([["2020-01-01"] * 2], dtype="M8[D]")),
    *(lt.BallSet(3), lt.BallSet(DIM, 1e300), lt.BallSet(DIM, 1e50, 2), lt.BallSet(DIM, starts=10**6)),
    *(lt.BoxSet([-1e308, 0], [1e308, 1e-320], 3), lt.BallSet(DIM, 5e-324, 2), lt.BallSet(10**4)),
]
LABELS: list[Any] = [
    *(
        None,
        None,
        ["A", "B", "C"],
        ["A", "B"],
        ["A", "A", "A"],
        "ABC",
        [1.5, 2, 3],
        3,
        [None] * 3,
        [10**30, 1, 2],
    ),
    *(
        [10**4000, 1, 2],
        range(10**9),
        np.array([1, 2, 3]),
        np.array(["x", "y"]),
        np.array(1),
        {"A", "B", "C"},
    ),
    *(
        10**5000,
        [10**5000, 1, 2],
        np.array([10**5000, 1, 2]),
        np.zeros((3, 3)),
        np.array([["x"], ["y"], ["z"]]),
    ),
]


def started(policy: Any, rng: random.Random) -> Any:
    bits = getattr(np.random, rng.choice(GENERATORS))(rng.randrange(10**6))
    seed = np.random.Generator(bits)
    if isinstance(policy, (lt.LinearUCB, lt.LinearThompson)):
        return lt.LinearExperiment(policy, DIM, rng.choice([None, 40]), seed)
    return lt.Experiment(policy, rng.choice([["A", "B"], ["A", 7, "C"]]), 40, seed)


def asked(experiment: Any, rng: random.Random) -> Any:
    """The next trial; of a linear experiment from actions of any kind."""
    return (
        experiment.ask(rng.choice(SETS)) if isinstance(experiment, lt.LinearExperiment) else experiment.ask()
    )


def valid_texts(rng: random.Random) -> list[tuple[type, str]]:
    """Every policy at the start, after a few trials and after many, some of them open; with told trials and
    without."""
    texts = []
    for policy in (*POLICIES, *LINEAR):
        for trials in (0, 3, 30):
            experiment = started(policy, rng)
            for _ in range(trials):
                asked(experiment, rng)
            for trial in rng.sample(experiment.open_trials, trials * 2 // 3):
                experiment.tell(trial.id, rng.choice([0.0, 1.0, -0.75, rng.gauss(0, 1), 1e60, 1e-300]))
            texts.append((type(experiment), experiment.to_json()))
            texts.append((type(experiment), experiment.to_json(told=False)))
    return texts


# Damage


def somewhere(state: Any, rng: random.Random) -> tuple[Any, Any] | None:
    """A container of the state and a key in it; each level is left with the same chance."""
    here, found = state, None
    while isinstance(here, (dict, list)) and here and (found is None or rng.random() < 0.9):
        key = rng.choice(list(here)) if isinstance(here, dict) else rng.randrange(len(here))
        found, here = (here, key), here[key]
    return found


def nasty(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(NASTY))


def replace(state: Any, other: Any, rng: random.Random) -> None:
    container, key = somewhere(state, rng) or (state, "policy")
    container[key] = nasty(rng)


def perturb(state: Any, other: Any, rng: random.Random) -> None:
    """One number, a little or a lot."""
    for _ in range(20):
        container, key = somewhere(state, rng) or (state, "policy")
        value = container[key]
        if type(value) is int:
            container[key] = rng.choice(
                [value + 1, value - 1, -value, float(value) if value < 2**60 else 0.5]
            )
            return
        if type(value) is float:
            scale = 10.0 ** rng.randint(-18, 3)
            container[key] = rng.choice(
                [value * (1 + scale), value + scale, -value, math.nextafter(value, 9e9)]
            )
            return


def delete(state: Any, other: Any, rng: random.Random) -> None:
    container, key = somewhere(state, rng) or (state, "policy")
    container.pop(key, None) if isinstance(container, dict) else container.pop(key)


def add(state: Any, other: Any, rng: random.Random) -> None:
    container, key = somewhere(state, rng) or (state, "policy")
    if isinstance(container, dict):
        container[rng.choice(["", "x", "type", "dtype", "memo", "x" * 500])] = nasty(rng)
    else:
        container.insert(rng.randrange(len(container) + 1), rng.choice([container[key], nasty(rng)]))


def repeat(state: Any, other: Any, rng: random.Random) -> None:
    """A field twice."""
    container, key = somewhere(state, rng) or (state, "policy")
    if isinstance(container, dict):
        container[f"@again@{key}"] = container.get(key)


def graft(state: Any, other: Any, rng: random.Random) -> None:
    """A part of another experiment in the place of this one's."""
    while isinstance(state, dict) and isinstance(other, dict) and (shared := state.keys() & other.keys()):
        key = rng.choice(sorted(shared))
        if rng.random() < 0.4 or not isinstance(state[key], dict):
            state[key] = copy.deepcopy(other[key])
            return
        state, other = state[key], other[key]


CHANGES: list[Callable[[Any, Any, random.Random], None]] = [
    replace,
    replace,
    perturb,
    delete,
    add,
    repeat,
    graft,
]


def written(state: Any) -> str:
    """As JSON, with what stands between two @ as it is."""
    text = json.dumps(state).replace('"@again@', '"')
    return "".join(
        part if place % 2 == 0 else part.strip('"') for place, part in enumerate(_cut(text, '"@', '@"'))
    )


def _cut(text: str, begin: str, end: str) -> list[str]:
    """What is outside and inside of the marks, in turns."""
    first, *rest = text.split(begin)
    return [first, *(piece for part in rest for piece in part.split(end, 1))]


def garbled(text: str, other: str, rng: random.Random) -> Any:
    """A text damaged as a text."""
    at, upto = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    deep = rng.choice([1, 100, 900, 990, 1100, 100_000])
    return rng.choice(
        [
            text[:at],
            text[at:],
            text[:at] + text[upto:],
            text[:at] + rng.choice('0123456789-+.eE"[]{},: \n\\nNtfI\x00é') + text[at + 1 :],
            text[:at] + rng.choice('0123456789-.e"[]{},: ') + text[at:],
            text[:at] + text[at + 1 :],
            text[:at] + other[at:],
            "[" * deep + text + "]" * deep,
            '{"a":' * deep + text + "}" * deep,
            text + text,
            "\ufeff" + text,
            " " + text + "\n",
            text.encode(),
            json.loads(text),
            None,
        ]
    )


def damaged(texts: list[tuple[type, str]], rng: random.Random) -> tuple[type, Any]:
    """One text that is no longer what an experiment wrote, or rarely still is."""
    kind, text = rng.choice(texts)
    same_kind = [candidate for candidate in texts if candidate[0] is kind]
    other = rng.choice(texts if rng.random() < 0.2 else same_kind)[1]
    if rng.random() < 0.2:
        return kind, garbled(text, other, rng)
    state, changes = json.loads(text), rng.choice([1, 1, 1, 2, 3])
    while changes > 0 or written(state) == text:
        rng.choice(CHANGES)(state, json.loads(other), rng)
        changes -= 1
    return kind, written(state)


# The judge


def sentence(error: BaseException) -> str | None:
    """What is wrong with a refusal, if anything."""
    text = str(error)
    if not isinstance(error, BadInput):
        return f"{type(error).__name__}: {text[:300]}"
    if not text or "\n" in text or len(text) > LONGEST_MESSAGE:
        return f"not one short sentence: {text[:600]!r}"
    return None


def judged(restore: Callable[[Any], Any], text: Any, rng: random.Random) -> tuple[str, str | None]:
    """("refused" or "accepted", what is wrong about it if anything)."""
    try:
        experiment = restore(text)
    except Exception as error:
        return "refused", sentence(error)
    try:
        return "accepted", accepted(restore, experiment, text, rng)
    except Exception as error:
        return "accepted", f"later {type(error).__name__}: {str(error)[:300]}"


def accepted(restore: Callable[[Any], Any], experiment: Any, text: Any, rng: random.Random) -> str | None:
    """A state that was accepted is the one in the text, and plays on as its copy does."""
    saved = experiment.to_json()
    if restore(saved).to_json() != saved:
        return "its own text leads to another state"
    if contents(text) != contents(saved):
        return "it is not the state in the text"
    twin, seed = restore(saved), rng.random()
    first, second = (played(player, random.Random(seed)) for player in (experiment, twin))
    if first != second:
        return "it plays otherwise than its copy"
    if restore(experiment.to_json()).to_json() != experiment.to_json():
        return "it cannot be saved after a few trials"
    return None


def contents(text: str) -> tuple[Any, Any]:
    """The random numbers, exactly, and all other numbers as floats; a policy may have left out fields."""
    state = {**json.loads(text), "policy": None}
    return state.pop("rng"), json.loads(json.dumps(state), parse_int=float)


def played(experiment: Any, rng: random.Random) -> list[Any]:
    """A few trials; a sentence where one is refused."""
    seen: list[Any] = []
    for _ in range(4):
        try:
            seen.append(asked(experiment, rng))
            waiting = experiment.open_trials
            seen.append(rng.choice(waiting).id)
            experiment.tell(seen[-1], rng.choice([0.0, 1.0, -3.5]))
        except BadInput as error:
            seen.append(str(error))
            if sentence(error):
                raise
    return seen


def odd_calls(rng: random.Random, steps: int = 25) -> str | None:
    """Asks and tells with odd arguments; what is refused changes nothing, and what is not can be saved."""
    policy = rng.choice([*POLICIES, *LINEAR, *EXTREME])
    experiment: Any = started(policy, rng)
    for _ in range(steps):
        before = experiment.to_json()
        step, call = odd_call(experiment, rng)
        try:
            call()
        except Exception as error:
            wrong = sentence(error)
            if wrong is None and experiment.to_json() != before:
                wrong = "it was refused and changed the state"
            if wrong:
                return f"{policy}, {step[:300]}: {wrong}"
        try:
            after = experiment.to_json()
            if type(experiment).from_json(after).to_json() != after:
                return f"{policy}, {step[:300]}: its own text leads to another state"
            repr(experiment), experiment.open_trials
            if isinstance(experiment, lt.LinearExperiment) and not np.all(np.isfinite(experiment.estimate)):
                return f"{policy}, {step[:300]}: theta-hat is not finite"
        except Exception as error:
            return f"{policy}, after {step[:300]}: {type(error).__name__}: {str(error)[:300]}"
    return None


def odd_call(experiment: Any, rng: random.Random) -> tuple[str, Callable[[], Any]]:
    """One call and its description."""
    if rng.random() < 0.45:
        if not isinstance(experiment, lt.LinearExperiment):
            return "ask", experiment.ask
        place, labels = rng.randrange(len(ACTIONS)), rng.choice(LABELS) if rng.random() < 0.3 else None
        if rng.random() < 0.4:
            place = rng.randrange(len(SETS))
        return f"ask of actions {place}", lambda: experiment.ask(ACTIONS[place], labels)
    waiting = [trial.id for trial in experiment.open_trials]
    id = rng.choice(waiting if waiting and rng.random() < 0.8 else IDS)
    reward = rng.choice(REWARDS)
    return f"tell({type(id).__name__}, {shown(reward):.40})", lambda: experiment.tell(id, reward)


def fuzz(
    states: int, seed: int, slowest: float = math.inf, say: Callable[[str], Any] = print
) -> Counter[str]:
    """How many texts were refused, accepted and wrong, and how many sequences were wrong."""
    rng, seen = random.Random(seed), Counter({"refused": 0, "accepted": 0, "wrong": 0, "sequences": 0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # horizons that are over, and bonuses that do not fit
        texts = valid_texts(rng)
        for _ in range(states):
            kind, text = damaged(texts, rng)
            begun = time.process_time()
            answer, wrong = judged(kind.from_json, text, rng)
            if wrong is None and time.process_time() - begun > slowest:
                wrong = f"it took {time.process_time() - begun:.1f} s"
            seen[answer] += 1
            if wrong:
                seen["wrong"] += 1
                say(f"{kind.__name__}, {answer}: {wrong}\n    {str(text)[:1500]}")
        for _ in range(states // 10):
            seen["sequences"] += 1
            wrong = odd_calls(rng)
            if wrong:
                seen["wrong"] += 1
                say(wrong)
    return seen


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    counts = fuzz(given.states, given.seed, slowest=1.0)
    print(dict(counts))
    sys.exit(1 if counts["wrong"] else 0)
