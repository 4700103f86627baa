"""Calls of the library with nasty arguments, drawn at random: each must give a value or one sentence.

`python tests/fuzz_calls.py --calls 25000 --seed 1` runs as many as one likes and lists what went wrong;
`tests/test_fuzz_calls.py` runs some in the suite. Live experiments have a fuzzer of their own.

A call is drawn as a name and its arguments. Most arguments come from a pool of good values, some from NASTY.
`judge` says what is wrong with an answer: nothing, where it is a value without nan whose interval holds it
and whose chances lie between 0 and 1, or a `ValueError` with one short sentence.
"""

from __future__ import annotations

import argparse
import faulthandler
import math
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import lighttail as lt
from lighttail import bounds
from lighttail.statistics import Estimate
from lighttail.validation import shown

SECONDS = 20.0  # that a call may take: none needs a tenth of it, but a kernel may have to be compiled
LONGEST = 400  # characters of a message


class Unwritable:
    """Nothing that a message can show."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Word(str):
    """A text of a class of its own."""


class Whole(int):
    """A whole number of a class of its own."""


class Unhashable:
    """Equal to nothing, and without a hash."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError("not to be compared")


SCALARS: tuple[Any, ...] = (
    *(
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        0.0,
        5e-324,
        -5e-324,
        1e-300,
        1e308,
        -1e308,
        1.7e308,
        0.5,
        1.5,
        -1.0,
    ),
    *(0, 1, 2, 3, -1, 7, 100, 2**31, 2**53 + 1, 2**63, 2**64, 10**12, 10**18, 10**400, -(10**400), 10**5000),
    *(
        np.uint8(200),
        np.int8(-3),
        np.int8(5),
        np.int64(6),
        np.float32(0.3),
        np.float16(0.1),
        np.longdouble(0.2),
    ),
    *(np.float64(math.nan), np.bool_(True), True, False, Fraction(1, 3), Fraction(10**400), Decimal("0.5")),
    *(
        Whole(4),
        1j,
        np.complex128(0.5),
        np.datetime64("2020-01-01"),
        np.array(0.5),
        np.array(3),
        np.str_("regret"),
    ),
)
OTHERS: tuple[Any, ...] = (
    *(
        None,
        "",
        "regret",
        "pseudo_regret",
        "auto",
        "0.5",
        "x" * 10**5,
        "a\nb",
        "\0",
        b"ab",
        Word("regret"),
        ...,
    ),
    *(
        [],
        (),
        {},
        set(),
        [[]],
        [0.5, 0.5],
        (0.2, 0.8),
        [0.5] * 1000,
        [math.nan, 0.5],
        ["a", "b"],
        [[0.2, 0.8]],
    ),
    *(np.array([]), np.array([0.2, 0.8]), np.zeros((2, 2)), np.array(["regret"]), np.array([None, 1.0])),
    *(
        np.array(["regret", "reward"]),
        range(3),
        range(10**9),
        {"a": [0.0, 1.0], "b": [1.0]},
        object(),
        Unwritable(),
    ),
    *(
        [Unwritable()] * 3,
        Unhashable(),
        lt.UCB,
        lt.Gaussian,
        print,
        iter([0.2, 0.8]),
        (x for x in (0.2, 0.8)),
    ),
    *(
        memoryview(b"ab"),
        bytearray(b"ab"),
        [10**400, 1],
        slice(3),
        NotImplemented,
        {0.5},
        type,
        Exception("no"),
    ),
)
NASTY = SCALARS + OTHERS
QUICK = tuple(x for x in NASTY if type(x) is not int or not 10**5 < x <= 10**12)  # sizes that one may ask for

NUMBER = (0.2, 1.0, 3, 0.01, 25.0, np.float32(0.5), 0.0, -2.5, 1e-12, 1e6)
POSITIVE = (0.2, 1.0, 0.01, 3, np.float32(0.5), 1e3, 1e-8, 1e8)
EDGES = (5e-324, 1e-320, 1e-300, 1e-160, 1e160, 1e300, 1.7e308)
FRACTIONS = (0.5, 0.9, 0.01, 0.999, 1e-9, 1 - 1e-9)
LEVELS = (0.95, 0.5, 0.9, 0.99, np.float32(0.75))
HORIZONS = (2, 3, 4, 10, 30, np.uint8(200), np.int16(50))
LONG = (1000, 10**6, 10**9, 10**12, 10**15)
ARMS = (2, 3, 10, np.uint8(200), 10**4)
KINDS = ("regret", "pseudo_regret", "reward")
TAIL_KINDS = ("regret", "pseudo_regret")
MEANS = (
    *(
        [0.2, 0.8],
        [0.5, 0.5],
        (0.1, 0.5, 0.9),
        np.array([0.2, 0.8]),
        np.array([0, 1], dtype=np.uint8),
        [0.0, 0.0],
    ),
    *(np.float32([0.1, 0.7]), [1e-300, 2e-300], [1e307, 0.0], [1e308, -1e308], [0.0, 5e-324], [-0.0, 0.0]),
    *([Fraction(1, 3), Fraction(2, 3)], [1e-9, 2e-9, 1.0], [1, 0, 0, 0, 0]),
)


@dataclass(frozen=True)
class Own(lt.Bonus):
    """A bonus of a user's own, with nothing but the formula."""

    kappa: float = 0.3

    @staticmethod
    def radius(n: float, clock: float, kappa: float) -> float:
        return kappa / n

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)


def drawn(rng: np.random.Generator, pool: Sequence[Any]) -> Any:
    """One of them; NumPy's own `choice` would make an array of them first."""
    return pool[int(rng.integers(len(pool)))]


def policies(rng: np.random.Generator) -> Any:
    """A policy that can be made; some with extreme numbers."""
    kappa = float(drawn(rng, POSITIVE if rng.random() < 0.7 else EDGES))
    makers: tuple[Callable[[], Any], ...] = (
        lambda: lt.UCB(lt.LightTailed(kappa)),
        lambda: lt.UCB(lt.Standard(kappa)),
        lambda: lt.UCB(lt.ArmOptimal(kappa, float(drawn(rng, (0.0, 0.3, 2.0, *EDGES))))),
        lambda: lt.UCB(lt.AnyTime(kappa)),
        lambda: lt.UCB(Own(kappa)),
        lambda: lt.SuccessiveElimination(lt.LightTailed(kappa)),
        lambda: lt.ThompsonSampling(float(drawn(rng, POSITIVE))),
        lambda: lt.Exp3IX("loss", upper=float(drawn(rng, (1.0, 5.0, 1e300)))),
        lambda: lt.Exp3IX("reward", eta=kappa),
        lambda: lt.LinearUCB(lt.LinearLightTailed(kappa)),
    )
    return drawn(rng, makers)()


def noises(rng: np.random.Generator) -> Any:
    """A noise; some with extreme numbers."""
    sigma = float(drawn(rng, POSITIVE if rng.random() < 0.6 else (0.0, *EDGES)))
    return drawn(
        rng,
        (
            lt.Gaussian(sigma),
            lt.Gaussian(sigma),
            lt.Bernoulli(),
            lt.Uniform(sigma),
            lt.Laplace(sigma),
            lt.StudentT(3.0),
        ),
    )


def problems(rng: np.random.Generator) -> Any:
    """A bandit; some with extreme means or noise, and now and then one with very many arms."""
    if rng.random() < 0.03:
        return lt.Bandit(np.linspace(0.0, 1.0, 10_000))
    if rng.random() < 0.08:
        return lt.Bandit.from_samples(
            {"a": [0.0, 1.0], "b": drawn(rng, ([1.0], [0.5, 0.5], [1e300, -1e300]))}
        )
    while True:
        try:
            return lt.Bandit(drawn(rng, MEANS), noises(rng))
        except ValueError:
            continue


def linear_problems(rng: np.random.Generator) -> Any:
    warnings.simplefilter("ignore", UserWarning)  # of what no theorem covers
    theta = drawn(rng, ([0.5, 0.2], [0.0, 0.0], [1e-300, 0.1], [1.0], [1e100, 1.0]))
    actions = drawn(rng, (lt.SphereActions(3), lt.BallActions(2), np.eye(len(theta))))
    return lt.LinearBandit(
        theta, actions, drawn(rng, (None, lt.Gaussian(0.0), lt.Gaussian(1e-300), lt.Laplace(2.0)))
    )


class Pool:
    """Outcomes to ask things of, made once."""

    def __init__(self, kernels: bool) -> None:
        made: dict[str, Any] = {"horizon": 20, "paths": 40, "seed": 1, "threads": 1}
        ucb = lt.UCB(lt.LightTailed(0.2))
        self.outcomes = [
            lt.simulate(ucb, lt.Bandit([0.2, 0.8]), **made),
            lt.simulate(ucb, lt.Bandit([0.5, 0.5]), **made),
            lt.simulate(ucb, lt.Bandit([0.2, 0.8]), **{**made, "paths": 1}),
            lt.simulate(ucb, lt.Bandit([0.2, 0.8], lt.Gaussian(0.0)), **made),
            lt.simulate(ucb, lt.Bandit([0.0, 1e-300], lt.Gaussian(1e-310)), **made),
            lt.simulate(ucb, lt.Bandit([0.0, 1e140], lt.Gaussian(1e130)), **made),
            lt.simulate(ucb, lt.Bandit([0.1, 0.4, 0.6]), **made, keep="law"),
            lt.simulate(ucb, lt.Bandit([0.5, 0.5], lt.Gaussian(0.0)), **made, keep="law"),
        ]
        if kernels:
            linear = lt.LinearBandit([0.5, 0.2], lt.SphereActions(3))
            self.outcomes.append(lt.simulate(lt.LinearUCB(lt.LinearLightTailed(0.2)), linear, **made))
        self.kernels = kernels
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        self.saved = [
            self.outcomes[0].save(self.folder / "a.npz"),
            self.outcomes[6].save(self.folder / "b.npz"),
        ]

    def outcome(self, rng: np.random.Generator) -> Any:
        return drawn(rng, self.outcomes)

    def damaged(self, rng: np.random.Generator) -> Path:
        """A file that was written well and has changed since, or has not."""
        content = bytearray(drawn(rng, self.saved).read_bytes())
        for _ in range(int(rng.integers(3))):
            content[int(rng.integers(len(content)))] = int(rng.integers(256))
        path = self.folder / "damaged.npz"
        path.write_bytes(
            bytes(content[: int(rng.integers(len(content) + 1))] if rng.random() < 0.3 else content)
        )
        return path


Draw = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class Call:
    """A function, and for each of its arguments a pool of good values or a function that draws one.

    An argument whose name ends in ? may be left out. share: of arguments that are nasty.
    """

    function: Callable[..., Any]
    arguments: dict[str, Sequence[Any] | Draw]
    share: float = 0.25

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        chosen: dict[str, Any] = {}
        for name, pool in self.arguments.items():
            if name.endswith("?") and rng.random() < 0.5:
                continue
            if rng.random() < self.share:
                chosen[name.rstrip("?")] = drawn(rng, QUICK if name in ("paths", "horizon") else NASTY)
            else:
                chosen[name.rstrip("?")] = pool(rng) if callable(pool) else drawn(rng, pool)
        return chosen


def surface(pool: Pool) -> dict[str, Call]:
    """The public functions and methods, by name."""
    calls: dict[str, Call] = {}
    calls |= _settings()
    calls |= _bounds()
    calls |= _outcomes(pool)
    calls |= _plays(pool)
    return calls


def _settings() -> dict[str, Call]:
    """Bonuses, policies, noises, problems and sets of actions."""
    wide = POSITIVE + EDGES
    bonuses = (lt.LightTailed(0.2), lt.AnyTime(0.3), Own(), lt.LinearStandard(1.0))
    thetas = (
        [0.5, 0.2],
        [1.0],
        np.array([0.1, 0.2]),
        [1e308, 1e308],
        [5e-324, 0.0],
        [0.0] * 3,
        np.float32([1, 2]),
    )
    actions = (
        *(np.eye(2), [[1.0, 0.0], [0.0, 1.0]], lt.SphereActions(3), lt.BallActions(2), np.ones((4, 3, 2))),
        *(
            [[1e308, 1.0]],
            [[1, 2], [3]],
            [[0.0, 0.0]],
            "no such file.npy",
            np.eye(2, dtype=np.int8),
            [["1", "2"]],
        ),
    )
    one: dict[str, Call] = {
        name: Call(getattr(lt, name), {"kappa": wide})
        for name in ("Standard", "LightTailed", "AnyTime", "LinearLightTailed")
    }
    one |= {name: Call(getattr(lt, name), {"sigma": wide}) for name in ("Gaussian", "Laplace", "Uniform")}
    one |= {name: Call(getattr(lt, name), {"bonus": bonuses}) for name in ("UCB", "SuccessiveElimination")}
    one |= {name: Call(getattr(lt, name), {"count": ARMS}) for name in ("SphereActions", "BallActions")}
    some = {"names": (["a", "b"], ("x", "y", "z"), ["a", "a"], [1, 2])}
    return one | {
        "ArmOptimal": Call(lt.ArmOptimal, {"kappa": wide, "floor": wide}),
        "StudentT": Call(lt.StudentT, {"df": (3.0, 2.0, 2.0000001, 1e300), "sigma?": wide}),
        "ThompsonSampling": Call(
            lt.ThompsonSampling, {"kappa": wide, "prior_mean?": NUMBER, "prior_sd?": wide}
        ),
        "Exp3IX": Call(
            lt.Exp3IX, {"estimator?": ("loss", "reward"), "upper?": NUMBER, "eta?": wide, "gamma?": wide}
        ),
        "LinearStandard": Call(lt.LinearStandard, {"beta": wide}),
        "Oful": Call(lt.Oful, {"sigma?": wide, "delta?": FRACTIONS, "bound?": wide}),
        "LinearUCB": Call(lt.LinearUCB, {"bonus": bonuses, "ridge?": wide}),
        "LinearThompson": Call(lt.LinearThompson, {"scale": wide, "ridge?": wide}),
        "BallSet": Call(lt.BallSet, {"dim": (1, 2, np.uint8(200)), "radius?": wide, "starts?": (0, 3)}),
        "BoxSet": Call(
            lt.BoxSet, {"low": ([0.0, 0.0], [-1.0]), "high": ([1.0, 1.0], [2.0]), "starts?": (0, 3)}
        ),
        "Bandit": Call(lt.Bandit, {"means": MEANS, "noise?": noises, "labels?": some["names"]}),
        "Bandit.from_samples": Call(
            lt.Bandit.from_samples,
            {
                "samples": (
                    {"a": [1.0, 2.0], "b": [3]},
                    {"a": [math.nan], "b": [1]},
                    {"a": [1e308] * 3, "b": [-1e308]},
                )
            },
        ),
        "Bandit of values": Call(
            lambda a, b: lt.Bandit.from_samples({"a": a, "b": b}),
            {"a": ([0.0, 1.0], np.uint8([3, 4]), ["1"], [True]), "b": ([1.0, 2.0], (5e-324,), [1e308, 1e308])},
        ),
        "LinearBandit": Call(lt.LinearBandit, {"theta": thetas, "actions": actions, "noise?": noises}),
    }


def _bounds() -> dict[str, Call]:
    """Everything in `lighttail.bounds`."""
    wide = POSITIVE + EDGES
    horizons = (*HORIZONS, *LONG)
    x: dict[str, Any] = {"x": NUMBER + EDGES, "horizon": horizons}
    rest: dict[str, Any] = {"sigma": wide, "kappa": wide}
    rule: dict[str, Any] = {"rule?": ("SE", "UCB")}
    arms: dict[str, Any] = {"arms": ARMS}
    asked: dict[str, Any] = {"policy": policies, "problem": problems, "horizon": horizons}
    x_kind: dict[str, Any] = {"regret": NUMBER + EDGES, "kind?": TAIL_KINDS}
    of = (bounds.tail, bounds.certificate, bounds.guarantee)
    known: dict[str, dict[str, Any]] = {
        "exp_k_armed": x | arms | rest | rule,
        "exp_2_armed": x | rest,
        "exp_k_armed_optimal": x | arms | rest | {"floor": wide} | rule,
        "any_time": x | arms | rest,
        "linear": x | {"dim": ARMS} | rest,
        "exp3_ix": x | arms | {"span": wide, "eta": wide, "gamma": wide},
        "mean_k_armed": {"horizon": horizons} | arms | {"kappa": wide} | rule,
        "mean_2_armed": {"horizon": horizons, "kappa": wide} | rule,
        "mean_k_armed_optimal": {"horizon": horizons} | arms | {"kappa": wide, "floor": wide} | rule,
        "best_tail_exponent": {"alpha": (0.6, 1.0, np.float32(0.75))},
        "consistent_tail_exponent": {"rate": wide, "sigma": wide, "true_sigma?": wide},
        "tail": asked | x_kind,
        "certificate": asked | x_kind,
        "guarantee": asked | x_kind,
        "regret": asked | {"delta": FRACTIONS, "kind?": TAIL_KINDS, "of?": of},
        "mean": asked,
        "simplified": asked,
    }
    calls = {f"bounds.{name}": Call(getattr(bounds, name), pools, 0.15) for name, pools in known.items()}
    calls["bounds.tail (linear)"] = Call(
        bounds.tail,
        asked | {"policy": (lt.LinearUCB(lt.LinearLightTailed(0.2)),), "problem": linear_problems} | x_kind,
        0.15,
    )
    for name, pools in {
        "simplified_k_armed": arms | rest,
        "simplified_k_armed_optimal": arms | rest | {"floor": wide},
        "simplified_linear": {"dim": ARMS} | rest,
    }.items():
        made = getattr(bounds, name)
        calls[f"bounds.{name}"] = Call(
            _both(made), {"horizon": horizons} | pools | {"x": NUMBER, "delta": FRACTIONS}, 0.12
        )
    return calls


def _both(made: Callable[..., Any]) -> Callable[..., Any]:
    """A simplified theorem, and what it says of a regret and of a risk."""

    def ask(*, x: Any, delta: Any, **settings: Any) -> Any:
        form = made(**settings)
        return form.tail(x), _Loss(form.regret(delta))

    return ask


@dataclass(frozen=True)
class _Loss:
    """A regret, which may be infinite where no float is as large."""

    value: float


def _outcomes(pool: Pool) -> dict[str, Call]:
    """What an outcome answers."""
    kind: dict[str, Any] = {"kind?": KINDS}
    level: dict[str, Any] = {"level?": LEVELS}
    ask: dict[str, dict[str, Any]] = {
        "mean": kind | level,
        "std": kind | level,
        "quantile": {"q": FRACTIONS} | kind | level,
        "cvar": {"q": FRACTIONS} | kind | level,
        "exceedance": {"x": NUMBER + EDGES} | kind | level,
        "reaches": {"x": NUMBER + EDGES} | kind,
        "sample": kind,
        "to_frame": {},
        "save": {"path": (pool.folder / "c.npz", str(pool.folder / "d.npz"), pool.folder)},
    }
    calls = {
        f"Outcome.{name}": Call(_method(name), {"outcome!": pool.outcome} | pools, 0.2)
        for name, pools in ask.items()
    }
    calls["Outcome.load"] = Call(lt.Outcome.load, {"path": pool.damaged}, 0.1)
    calls["Estimate"] = Call(
        lambda e, form: format(e, form),
        {"e": (Estimate(0.1, 0.0, 1.0, 0.95),), "form": (".3g", "", ".2f")},
        0.0,
    )
    return calls


def _method(name: str) -> Callable[..., Any]:
    def ask(**settings: Any) -> Any:
        outcome = settings.pop("outcome!")
        if not isinstance(outcome, lt.Outcome):
            return None
        return getattr(outcome, name)(**settings)

    return ask


def _plays(pool: Pool) -> dict[str, Call]:
    """What simulates: small sizes, or sizes that must be refused."""
    ucb = lt.UCB(lt.LightTailed(0.2))
    huge = (10**18, 10**400, 2**62)
    few: Any = (ucb, lt.UCB(lt.LightTailed(5e-324)), lt.UCB(lt.LightTailed(1e300)))
    gaussian: Any = _gaussian_problems
    simulated: dict[str, Any] = {
        "policy": policies if pool.kernels else few,
        "problem": problems if pool.kernels else gaussian,
        "horizon": (*HORIZONS, *huge),
        "paths": (1, 2, 20, np.uint8(200), 10**13, 10**18, 10**400),
        "seed?": (1, 0, 2**70, np.int32(5)),
        "threads": (1, 2),
        "method?": ("auto", "step", "skip"),
        "keep?": ("paths", "law"),
        "device?": ("cpu",),
        "precision?": (None, "float64"),
        "progress?": (False,),
    }
    tails: dict[str, Any] = {
        "policy": policies if pool.kernels else few,
        "problem": problems if pool.kernels else gaussian,
        "horizon": (*HORIZONS, *huge),
        "regret": NUMBER,
        "kind?": TAIL_KINDS,
        "relative_error?": (0.5, 0.9),
        "level?": LEVELS,
        "seed": (1, 2),
        "method?": ("auto", "plain"),
        "most_pulls": (1, 100, 20_000),
        "threads": (1,),
    }
    exact: dict[str, Any] = {"policy": few, "problem": gaussian, "horizon": (2, 3, 5, 10**18)}
    calls = {
        "simulate": Call(_used(lt.simulate), simulated, 0.05),
        "simulate, 10,000 arms": Call(
            _used(lt.simulate), simulated | {"problem": (lt.Bandit(np.linspace(0, 1, 10**4)),)}, 0.0
        ),
        "tail_probability": Call(lt.tail_probability, tails, 0.04),
        "exact_tail": Call(lt.exact_tail, exact | {"regret": NUMBER}, 0.08),
        "exact_law": Call(
            lambda regret, **rest: lt.exact_law(**rest).tail(regret), exact | {"regret": NUMBER}, 0.08
        ),
    }
    if pool.kernels:
        linear = {
            "policy": (lt.LinearUCB(lt.LinearLightTailed(0.2)), lt.LinearThompson(0.3)),
            "problem": linear_problems,
        }
        calls["simulate (linear)"] = Call(_used(lt.simulate), simulated | linear, 0.04)
        calls["tail_probability (linear)"] = Call(lt.tail_probability, tails | linear, 0.04)
    return calls


def _gaussian_problems(rng: np.random.Generator) -> Any:
    while True:
        try:
            sigma = float(drawn(rng, POSITIVE if rng.random() < 0.7 else (0.0, *EDGES)))
            return lt.Bandit(drawn(rng, MEANS), lt.Gaussian(sigma))
        except ValueError:
            continue


def _used(play: Callable[..., Any]) -> Callable[..., Any]:
    """An outcome and all of its estimates."""

    def ask(**settings: Any) -> Any:
        out = play(**settings)
        estimates = [out.mean(), out.std("pseudo_regret"), out.quantile(0.9, "reward"), out.cvar(0.5)]
        return [*estimates, out.exceedance(1.0, "pseudo_regret")]

    return ask


CHANCES = (
    "bounds.tail",
    "bounds.certificate",
    "bounds.guarantee",
    "tail_prob",
    "exact",
    "Outcome.exceedance",
)
LOSSES = ("bounds.mean", "bounds.regret", "bounds.consistent")  # may be infinite: no float is as large


def judge(name: str, answer: Any) -> str:
    """What is wrong with an answer: empty if nothing is."""
    if isinstance(answer, BaseException):
        return _wrong_error(name, answer)
    if isinstance(answer, (list, tuple)):
        return next((wrong for part in answer if (wrong := judge(name, part))), "")
    if isinstance(answer, Estimate):
        ends = (answer.low, answer.value, answer.high)
        if any(map(math.isnan, ends)) or math.isinf(answer.value):
            return f"not a number: {answer!r}"
        if not answer.low <= answer.value <= answer.high:
            return f"outside of its interval: {answer!r}"
        inside = 0.0 <= answer.low and answer.high <= 1.0
        return f"no probability: {answer!r}" if name.startswith(CHANCES) and not inside else ""
    if isinstance(answer, (bounds.Bound, _Loss)):
        answer = answer.value if name.startswith(CHANCES) else _Loss(answer.value)
    if isinstance(answer, _Loss) or name.startswith(LOSSES):
        value = float(answer.value if isinstance(answer, _Loss) else answer)
        return "" if value >= 0.0 else f"no bound: {value}"
    if isinstance(answer, (float, np.floating)):
        if not math.isfinite(answer):
            return f"not finite: {answer}"
        return f"no probability: {answer}" if name.startswith(CHANCES) and not 0.0 <= answer <= 1.0 else ""
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
        return "" if np.isfinite(answer).all() else "not finite in an array"
    return ""


def _wrong_error(name: str, error: BaseException) -> str:
    if isinstance(error, OSError) and name in ("Outcome.load", "Outcome.save"):
        return ""  # there is no such file, or it cannot be written
    text = str(error)
    if not isinstance(error, ValueError):
        return f"{type(error).__name__}: {text[:200]}"
    if len(text.splitlines()) != 1 or re.search(r"[.!?]\s+[A-Z]", text):
        return f"not one sentence: {text[:300]!r}"
    return f"a message of {len(text)} characters: {text[:200]}" if len(text) > LONGEST else ""


class TooLong(BaseException):
    """A call did not come back in time; not an Exception, which a call might catch."""


@contextmanager
def watched(text: str, seconds: float) -> Iterator[None]:
    """Raise where a call takes too long; where compiled code does not listen, say which and end the process."""

    def late(number: int, frame: Any) -> None:
        where = traceback.extract_stack(frame)[-1]
        raise TooLong(f"no answer within {seconds:g} s (in {where.name}, {where.filename}:{where.lineno})")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    print(text, file=(note := _last_words()), flush=True)
    faulthandler.dump_traceback_later(5 * seconds, exit=True, file=note)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        note.close()


def _last_words() -> Any:
    """A file with the call that runs, to be read if the process ends in it."""
    return open(Path(tempfile.gettempdir()) / f"fuzz_calls.{os.getpid()}.txt", "w")  # noqa: SIM115


def answer_of(
    function: Callable[..., Any], arguments: dict[str, Any], text: str = "", seconds: float = SECONDS
) -> Any:
    """What a call gives, an error included; a warning of a computation counts as an error."""
    with watched(text, seconds), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            return function(**arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return error


@dataclass(frozen=True)
class Finding:
    """A call with a bad answer."""

    number: int
    call: str
    wrong: str


def run(
    calls: int, seed: int, kernels: bool = True, only: str = "", without: Sequence[str] = (), say: Any = None
) -> list[Finding]:
    """Draw and judge so many calls; what went wrong."""
    pool = Pool(kernels)
    table = {name: call for name, call in surface(pool).items() if only in name and not name.startswith(tuple(without))}
    names, findings, spent, gave = list(table), [], Counter[str](), Counter[str]()
    for number in range(calls):
        rng = np.random.default_rng([seed, number])
        name = drawn(rng, names)
        arguments = table[name].draw(rng)
        text = f"{name}({', '.join(f'{field}={shown(value)}' for field, value in arguments.items())})"
        begin = time.perf_counter()
        answer = answer_of(table[name].function, arguments, text)
        spent[name] += time.perf_counter() - begin  # type: ignore[assignment]
        wrong = judge(name, answer)
        gave["errors" if isinstance(answer, BaseException) else "values"] += 1
        if wrong:
            findings.append(Finding(number, text, wrong))
            if say:
                say(f"{number}: {text}\n    {wrong}")
                if isinstance(answer, BaseException) and not isinstance(answer, ValueError):
                    last = traceback.extract_tb(answer.__traceback__)[-1]
                    say(f"    at {last.filename}:{last.lineno} in {last.name}")
    if say:
        say(f"{gave['values']} values, {gave['errors']} errors")
        say("slowest: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.most_common(6)))
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="calls whose name contains this")
    parser.add_argument("--without", nargs="*", default=[], help="calls whose name begins with one of these")
    options = parser.parse_args()
    findings = run(options.calls, options.seed, only=options.only, without=options.without, say=print)
    print(f"{options.calls} calls, seed {options.seed}: {len(findings)} bad answers")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
