"""The public functions and methods with pools of arguments, for the calls of `fuzz_calls`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from cases import NOISES as SHIPPED_NOISES
from fuzz_values import (
    ARMS,
    EDGES,
    FRACTIONS,
    HORIZONS,
    KINDS,
    LEVELS,
    LONG,
    MEANS,
    NASTY,
    NUMBER,
    POSITIVE,
    QUICK,
    TAIL_KINDS,
    UNCALLABLE,
    Own,
    Share,
    drawn,
    gaussian_problems,
    ignoring_time,
    linear_problems,
    noises,
    plain_tail_problems,
    policies,
    problems,
    regrets,
    tail_problems,
)

import lighttail as lt
from lighttail import bounds
from lighttail.outcomes.estimates import Estimate


class Pool:
    """Outcomes to ask things of, made once."""

    def __init__(self, kernels: bool, folder: Path) -> None:
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
        self.folder = folder
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


FEW = (lt.UCB(lt.LightTailed(0.2)), lt.UCB(lt.LightTailed(5e-324)), lt.UCB(lt.LightTailed(1e300)))
LINEAR = (lt.LinearUCB(lt.LinearLightTailed(0.2)), lt.LinearThompson(0.3))
HUGE = (10**18, 10**400, 2**62)
LESS = {"paths": QUICK, "horizon": QUICK, "progress?": UNCALLABLE, "of?": UNCALLABLE}


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
                chosen[name.rstrip("?")] = drawn(rng, LESS.get(name, NASTY))
            else:
                chosen[name.rstrip("?")] = pool(rng) if callable(pool) else drawn(rng, pool)
        return chosen


def surface(pool: Pool) -> dict[str, Call]:
    """The public functions and methods, by name."""
    calls: dict[str, Call] = {}
    calls |= _settings()
    calls |= _delays()
    calls |= _experiments()
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
        for name in (
            *("Standard", "LightTailed", "AnyTime", "LinearLightTailed"),
            *("Moss", "Eqo", "InflatedThompson"),
        )
    }
    numbers: dict[str, Any] = {"df": (3.0, 2.0, 2.0000001, 1e300)}  # of a noise, besides sigma
    for kind in map(type, SHIPPED_NOISES):
        pools = {f.name + "?" * (f.default is not MISSING): numbers.get(f.name, wide) for f in fields(kind)}
        one[kind.__name__] = Call(kind, pools)
    one |= {name: Call(getattr(lt, name), {"bonus": bonuses}) for name in ("UCB", "SuccessiveElimination")}
    one |= {name: Call(getattr(lt, name), {"count": ARMS}) for name in ("SphereActions", "BallActions")}
    some = {"names": (["a", "b"], ("x", "y", "z"), ["a", "a"], [1, 2])}
    return one | {
        "ArmOptimal": Call(lt.ArmOptimal, {"kappa": wide, "floor": wide}),
        "TwoPart": Call(lt.TwoPart, {"kappa": wide, "cap": wide, "alpha?": FRACTIONS, "beta?": FRACTIONS}),
        "KlUcb": Call(lt.KlUcb, {"c?": wide, "sigma?": wide}),
        "Imed": Call(lt.Imed, {"sigma?": wide}),
        "BayesUcb": Call(lt.BayesUcb, {"c?": wide}),
        "EpsilonGreedy": Call(lt.EpsilonGreedy, {"c": wide, "d": wide}),
        "ExploreThenCommit": Call(lt.ExploreThenCommit, {"m": ARMS}),
        "BetaThompson": Call(lt.BetaThompson, {}),
        "EvenSplit": Call(lt.EvenSplit, {}),
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
            {
                "a": ([0.0, 1.0], np.uint8([3, 4]), ["1"], [True]),
                "b": ([1.0, 2.0], (5e-324,), [1e308, 1e308]),
            },
        ),
        "LinearBandit": Call(lt.LinearBandit, {"theta": thetas, "actions": actions, "noise?": noises}),
    }


def _delays() -> dict[str, Call]:
    """The delays, and their sentences."""
    pulls, never = (0, 1, 20, np.uint8(200), 2**53, 10**400), {"never?": (*FRACTIONS, 0.0)}
    asked: dict[str, dict[str, Any]] = {
        "FixedDelay": {"pulls?": pulls},
        "UniformDelay": {"low": pulls, "high": pulls},
        "GeometricDelay": {"mean": POSITIVE + EDGES},
        "ObservedDelays": {"delays": ([1, 2, 3], [0.0, math.inf], np.uint8([7]), [1.5], [], [math.nan])},
    }

    def made(name: str) -> Callable[..., Any]:
        return lambda **settings: (delay := getattr(lt, name)(**settings)) and (delay, delay.words())

    return {name: Call(made(name), pools | never) for name, pools in asked.items()}


def _experiments() -> dict[str, Call]:
    """Experiments, which ask for a trial and are told its reward."""
    seed: dict[str, Any] = {"seed?": (1, 0, 2**70, np.int32(5)), "reward": NUMBER + EDGES}
    names = (["a", "b"], ("x", "y", "z"), range(20), ["a", "a"], [1, 2], [1, 1.0])

    def arms(*, policy: Any, arms: Any, reward: Any, **settings: Any) -> Any:
        experiment = lt.Experiment(policy, arms, **settings)
        experiment.tell(experiment.ask().id, reward)
        return tuple(experiment.pulls.values())

    def actions(*, policy: Any, dim: Any, reward: Any, **settings: Any) -> Any:
        experiment = lt.LinearExperiment(policy, dim, **settings)
        experiment.tell(experiment.ask(np.eye(experiment.dim)).id, reward)
        return tuple(experiment.estimate.tolist())

    asked = {"horizon?": (*HORIZONS, *HUGE)} | seed
    return {
        "Experiment": Call(arms, {"policy": policies, "arms": names} | asked, 0.15),
        "LinearExperiment": Call(actions, {"policy": LINEAR, "dim": (2, 1, np.uint8(20))} | asked, 0.15),
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
        return form.tail(x), Loss(form.regret(delta))

    return ask


@dataclass(frozen=True)
class Loss:
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
        lambda e, form: f"{e:{form}}",
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
    gaussian: Any = gaussian_problems
    simulated: dict[str, Any] = {
        "policy": policies if pool.kernels else FEW,
        "problem": problems if pool.kernels else gaussian,
        "horizon": (*HORIZONS, *HORIZONS, *HUGE),
        "paths": (1, 2, 3, 20, 30, 50, np.uint8(200), 10**13, 10**400),
        "seed?": (1, 0, 2**70, np.int32(5)),
        "threads": (1, 2),
        "method?": ("auto", "step", "skip"),
        "keep?": ("paths", "law"),
        "device?": ("cpu",),
        "precision?": (None, "float64"),
        "progress?": (False,),
    }
    calls = {
        "simulate": Call(_used(lt.simulate), simulated, 0.05),
        "simulate, 10,000 arms": Call(
            _used(lt.simulate), simulated | {"problem": (lt.Bandit(np.linspace(0, 1, 10**4)),)}, 0.0
        ),
    }
    calls["compare"] = Call(_compared, _comparisons(simulated), 0.05)
    calls |= _plans(pool)
    calls |= _tails(pool)
    if pool.kernels:
        linear = {
            "policy": LINEAR,
            "problem": linear_problems,
        }
        calls["simulate (linear)"] = Call(_used(lt.simulate), simulated | linear, 0.04)
    return calls


def _comparisons(simulated: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `compare`: those of `simulate`, with several policies and a threshold."""
    shared = {
        name: pool for name, pool in simulated.items() if name not in ("policy", "method?", "precision?")
    }
    lists = (
        FEW,
        list(FEW[:1]),
        {"one": FEW[0], "other": FEW[1], "again": FEW[0]},
        [],
        (FEW[0], FEW[0]),
        FEW[0],
    )
    return shared | {"policies": lists, "threshold?": POSITIVE + EDGES, "delay?": (None, 3), "batch?": (1, 4)}


def _compared(**settings: Any) -> Any:
    """A comparison, all that it says in words and rows, and the estimates of its first policy."""
    comparison = lt.compare(**settings)
    comparison.to_dict(), comparison.to_frame(), str(comparison)
    return list(comparison.table()[0].values())


def _plans(pool: Pool) -> dict[str, Call]:
    """Families and plans, with as few paths as there can be."""
    ends: dict[str, Any] = {"low": FRACTIONS, "high": (*FRACTIONS, 1.0, 0), "arms?": ARMS, "members?": (1, 5)}
    planned: dict[str, Any] = {
        "family": (
            lt.Family.gaps(0.2, 0.8, arms=2, members=2),
            lt.Bandit([0.2, 0.8]),
            [lt.Bandit([0.0, 1.0]), lt.Bandit([0.0, 0.5])],
            lt.Bandit([0.5, 0.5]),
            lt.Bandit([0.0, 1e-300], lt.Gaussian(1e-300)),
            lt.Bandit([0.0, 1.0], lt.Gaussian(0.0)),
        ),
        "horizon": (*HORIZONS, 10**9, 10**18),
        "loss": (1.0, 0.5, None, 1e-300, 1e300, np.float32(2.0)),
        "chance": (0.2, 0.5, 1e-9, 5e-324, 1.0, 0.0),
        "over?": ("everywhere", "average"),
        "policies": (FEW[:1], {"mine": FEW[0]}, [lt.EvenSplit()], []),
        "also?": ((), [lt.EvenSplit()]),
        "delay?": (None, 3),
        "batch?": (1, 4),
        "seed": (1, 2**70),
        "effort": (0.001,),
        "threads": (1, 2, 10**30),
    }
    return {
        "Family.rates": Call(lt.Family.rates, ends),
        "Family.gaps": Call(lt.Family.gaps, ends | {"noise?": noises, "best?": NUMBER}),
        "Family.from_samples": Call(
            lt.Family.from_samples,
            {
                "samples": ({"a": [0, 1, 1], "b": [1, 0]}, {"a": [0.5, 2.0], "b": [1e308] * 2}, {"a": [1.0]}),
                "members?": (1, 5),
                "seed?": (1, 2**70),
            },
        ),
        "Family": Call(lt.Family, {"members": ([lt.Bandit([0.0, 1.0])], [], lt.Bandit([0.0, 1.0]), [3])}),
        "plan": Call(_planned, planned, 0.05),
    }


def _planned(**settings: Any) -> Any:
    """A plan, all that it says in words, and the estimates of its options."""
    plan = lt.plan(**settings)
    plan.to_dict(), str(plan)
    options = plan.options().values()
    return [one.mean_loss for one in options] + [one.chance for one in options]


def _tails(pool: Pool) -> dict[str, Call]:
    """Chances of a large regret: by every method where kernels may be compiled for every policy."""
    asked: dict[str, Any] = {
        "policy": policies if pool.kernels else FEW,
        "problem": tail_problems if pool.kernels else plain_tail_problems,
        "horizon": (*HORIZONS, *HORIZONS, *HUGE, 10**12),
        "regret": regrets,
    }
    simulated: dict[str, Any] = {
        "kind?": TAIL_KINDS,
        "relative_error?": (0.5, 0.9, 0.05, 1e-9, *EDGES),
        "level?": (*LEVELS, 1.0 - 1e-16, 0.999999),
        "seed": (1, 2, 0, 2**70),
        "method?": ("auto", "exact", "importance", "plain", "splitting"),
        "most_pulls": (1, 100, 20_000, 100_000),
        "threads": (1,),
    }
    exact: dict[str, Any] = asked | {"policy": ignoring_time, "horizon": (2, 3, 5, 12, *HUGE)}
    calls = {
        "tail_probability": Call(_reached(lt.tail_probability), asked | simulated, 0.03),
        "exact_tail": Call(_reached(lt.exact_tail), exact, 0.03),
        "exact_law": Call(_reached(_law_tail), exact, 0.03),
    }
    if pool.kernels:
        long = asked | simulated | {"horizon": (9000,), "method?": ("auto", "importance")}
        linear = simulated | {"policy": LINEAR, "problem": linear_problems}
        calls["tail_probability, skipping ahead"] = Call(_reached(lt.tail_probability), long, 0.0)
        calls["tail_probability (linear)"] = Call(
            lt.tail_probability, asked | {"regret": NUMBER} | linear, 0.04
        )
    return calls


def _law_tail(regret: Any, **rest: Any) -> Any:
    """All chances of a law, and that of one regret."""
    law = lt.exact_law(**rest)
    return [law.tail(regret), law.regrets, *law.survival]


def _reached(function: Callable[..., Any]) -> Callable[..., Any]:
    """A call whose regret may be a share of the largest one that its problem has."""

    def ask(*, regret: Any, **settings: Any) -> Any:
        if isinstance(regret, Share):
            regret = regret.of(settings["problem"], settings["horizon"])
        return function(regret=regret, **settings)

    return ask


def _used(play: Callable[..., Any]) -> Callable[..., Any]:
    """An outcome and all of its estimates."""

    def ask(**settings: Any) -> Any:
        out = play(**settings)
        estimates = [out.mean(), out.std("pseudo_regret"), out.quantile(0.9, "reward"), out.cvar(0.5)]
        return [*estimates, out.exceedance(1.0, "pseudo_regret")]

    return ask
