"""What a simulation leaves: rewards and pulls of every path, and estimates made from them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from lighttail import statistics
from lighttail.files import whole_file
from lighttail.statistics import Estimate, Floats
from lighttail.validation import BadInput, confidence, fraction, number, refuse

if TYPE_CHECKING:
    import pandas

Kind = Literal["regret", "pseudo_regret", "reward"]
FORMAT = 1  # of the file that `save` writes


def rounding(x: float, kind: Kind, means: Floats, horizon: int) -> float:
    """What rounding may take from an outcome that is x: in the units of the problem, so that they do not
    matter. A pseudo regret is made of gaps, the others of rewards."""
    if kind != "pseudo_regret":
        return 1e-9 * max(abs(x), float(np.abs(means).max()) * horizon)
    gaps = means.max() - means
    return 1e-9 * (abs(x) + float(np.min(gaps, where=gaps > 0.0, initial=np.inf) if gaps.any() else 0.0))


@dataclass(frozen=True, eq=False)
class Offers:
    """What stands in for pulls and means where the actions change from round to round.

    best: float64[paths], what the best action of every round would have earned on average.
    lost: float64[paths], the pseudo regret. most: the largest pseudo regret possible.
    """

    best: Floats
    lost: Floats
    most: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """The paths of one simulation.

    reward: float64[paths], the sum of a path's rewards.
    pulls: int64[paths, arms]; None where the actions change from round to round.
    means, labels: of the problem's arms; empty where they change. horizon: pulls a path.
    settings: the policy, problem, seed and versions that made it.
    offers: what stands in for pulls and means where the actions change.

    Every estimate takes `kind`: "regret" (best mean * horizon - reward, the default),
    "pseudo_regret" (sum of pulls * gaps, free of the noise in the rewards) or "reward".
    """

    reward: Floats
    pulls: npt.NDArray[np.int64] | None
    means: Floats
    labels: tuple[str, ...]
    horizon: int
    settings: dict[str, Any] = field(repr=False)
    offers: Offers | None = field(default=None, repr=False)

    @property
    def paths(self) -> int:
        return int(self.reward.size)

    @property
    def method(self) -> str:
        """How it was played: "step", or "skip" for many pulls at once."""
        return str(self.settings.get("method", "step"))

    @cached_property
    def regret(self) -> Floats:
        """Best mean * horizon - reward."""
        return self._best - self.reward  # type: ignore[no-any-return]

    @cached_property
    def pseudo_regret(self) -> Floats:
        """Sum over the arms of pulls * gap; where the actions change, of the gaps of those taken."""
        if self.offers is not None:
            return self.offers.lost
        assert self.pulls is not None  # a fixed set has them
        return self.pulls @ (self.means.max() - self.means)  # type: ignore[no-any-return]

    def mean(self, kind: Kind = "regret", *, level: float = 0.95) -> Estimate:
        """The expected value."""
        level = confidence("level", level)
        return statistics.mean(self._of(kind), self._ends(kind), level)

    def std(self, kind: Kind = "regret", *, level: float = 0.95) -> Estimate:
        """The standard deviation."""
        level = confidence("level", level)
        return statistics.std(self._of(kind), self._ends(kind), level)

    def quantile(self, q: float, kind: Kind = "regret", *, level: float = 0.95) -> Estimate:
        """The value that is not exceeded with probability q; an end out of reach is infinite."""
        q, level = fraction("q", q), confidence("level", level)
        return statistics.quantile(self._ordered(kind), q, level)

    def cvar(self, q: float, kind: Kind = "regret", *, level: float = 0.95) -> Estimate:
        """The mean of the worst 1 - q of the paths: the highest regrets, or the lowest rewards."""
        q, level = fraction("q", q), confidence("level", level)
        low, high = self._ends(kind)
        if kind != "reward":
            return statistics.cvar(self._ordered(kind), q, (low, high), kind == "pseudo_regret", level)
        loss = statistics.cvar(-self._ordered(kind)[::-1], q, (-high, -low), False, level)
        return Estimate(-loss.value, -loss.high, -loss.low, level)

    def exceedance(self, x: float, kind: Kind = "regret", *, level: float = 0.95) -> Estimate:
        """P(kind >= x); with no path there, an upper limit."""
        x, level = number("x", x), confidence("level", level)
        return statistics.proportion(int(np.sum(self.reaches(x, kind))), self.paths, level)

    def reaches(self, x: float, kind: Kind = "regret") -> npt.NDArray[np.bool_]:
        """Which paths have kind >= x; a value that is x but for rounding does."""
        if self.offers is not None:
            slack = 1e-9 * max(abs(x), float(np.abs(self._best).max()))
        else:
            slack = rounding(x, kind, self.means, self.horizon)
        return self._of(kind) >= x - slack

    def to_frame(self) -> pandas.DataFrame:
        """One row a path: reward, regret, pseudo_regret and the pulls of each arm of a fixed set."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None
        columns: dict[str, Any] = {
            "reward": self.reward,
            "regret": self.regret,
            "pseudo_regret": self.pseudo_regret,
        }
        if self.pulls is not None:
            columns |= {f"pulls {label}": self.pulls[:, arm] for arm, label in enumerate(self.labels)}
        return pandas.DataFrame(columns)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one .npz file, whole or not at all."""
        path = Path(path)
        about = {"format": FORMAT, "horizon": self.horizon, "labels": self.labels, "settings": self.settings}
        arrays = {"reward": self.reward, "pulls": self.pulls, "means": self.means}
        if self.offers is not None:
            about["most"] = self.offers.most
            arrays = {"reward": self.reward, "best": self.offers.best, "lost": self.offers.lost}
        with whole_file(path) as file:
            np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Outcome:
        """Read what `save` wrote."""
        try:
            with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                names = ("reward", "best", "lost") if "most" in about else ("reward", "pulls", "means")
                arrays = {name: file[name] for name in names}
            version, labels = about["format"], tuple(about["labels"])
            horizon, settings = about["horizon"], about["settings"]
        except FileNotFoundError:
            raise
        except Exception:  # whatever a reader of damaged bytes may raise
            raise BadInput(f"{path} is not an outcome that lighttail saved") from None
        if version != FORMAT:
            raise refuse(f"the format of {path}", version, str(FORMAT))
        reward, second, third = (arrays[name].shape for name in names)
        if "most" in about:
            fits = len(reward) == 1 and reward == second == third
        else:
            fits = second == (*reward, *third) and len(second) == 2 and len(labels) == third[0]
        if not fits:
            raise BadInput(f"{path} is not an outcome that lighttail saved: its arrays do not fit together")
        if "most" in about:
            offers = Offers(arrays["best"], arrays["lost"], about["most"])
            return cls(arrays["reward"], None, np.zeros(0), labels, horizon, settings, offers)
        return cls(**arrays, labels=labels, horizon=horizon, settings=settings)

    @property
    def _best(self) -> Any:
        """What the best arm, or the best action of every round, earns on average: a number, or one a path."""
        return self.means.max() * self.horizon if self.offers is None else self.offers.best

    def _of(self, kind: Kind) -> Floats:
        if kind not in get_args(Kind):
            raise refuse("kind", kind, "'regret', 'pseudo_regret' or 'reward'")
        return getattr(self, kind)  # type: ignore[no-any-return]

    def _ordered(self, kind: Kind) -> Floats:
        values = self._of(kind)
        cache: dict[Kind, Floats] = self.__dict__.setdefault("_sorted", {})
        if kind not in cache:
            cache[kind] = np.sort(values)
        return cache[kind]

    def _ends(self, kind: Kind) -> tuple[float, float]:
        """The range of an outcome, for the limits of means.

        The pseudo regret lies between 0 and the largest possible (gap * horizon). The regret is that minus
        the sum of the noise, for which the widest sum seen in the sample stands in.
        """
        worst = float(np.ptp(self.means)) * self.horizon if self.offers is None else self.offers.most
        if kind == "pseudo_regret":
            return 0.0, worst
        noise = self.pseudo_regret - self.regret
        low, high = -max(0.0, float(noise.max())), worst + max(0.0, -float(noise.min()))
        if kind == "regret":
            return low, high
        return float(np.min(self._best)) - high, float(np.max(self._best)) - low
