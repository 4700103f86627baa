"""What a simulation leaves: rewards and pulls of every path, or their law, and estimates made from them."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

import numpy as np
import numpy.typing as npt

from lighttail.checks import BadInput, confidence, file_path, fraction, number, one_of, refuse, whole
from lighttail.outcomes import estimates as statistics
from lighttail.outcomes.estimates import Estimate, Floats
from lighttail.outcomes.law import Law
from lighttail.outcomes.samples import Sample, sample_of
from lighttail.system.files import whole_file

if TYPE_CHECKING:
    import pandas

Kind = Literal["regret", "pseudo_regret", "reward"]
FORMAT = 1  # of the file that `save` writes
LONGEST_PATH = 200  # characters of a file's path in a message


def rounding(x: float, kind: Kind, means: Floats, horizon: int) -> float:
    """What rounding may take from an outcome that is x: in the units of the problem, so that they do not
    matter. A pseudo regret is made of gaps, the others of rewards."""
    if kind != "pseudo_regret":
        return of_sums(max(abs(x), float(np.abs(means).max()) * horizon), horizon)
    gaps = means.max() - means
    return 1e-9 * (abs(x) + float(np.min(gaps, where=gaps > 0.0, initial=np.inf) if gaps.any() else 0.0))


def of_sums(size: float, horizon: int) -> float:
    """What rounding does to a sum of so many rewards that is of that size: a last digit each."""
    return 4.0 * float(np.finfo(np.float64).eps) * math.sqrt(horizon) * size


class NotKept(BadInput, AttributeError):
    """Paths are asked for where only their law was kept."""


def _not_kept(outcome: LawOutcome) -> NoReturn:
    raise NotKept(
        field="keep",
        value="law",
        allowed="'paths' for the reward, pulls and regret of each path",
        more=f": of these {outcome.paths:,} paths mean, std, quantile, cvar, exceedance and sample "
        "are known, and law.pulls",
    )


def _known(kind: Any) -> Kind:
    return one_of("kind", kind, get_args(Kind))  # type: ignore[return-value]


def _digest(about: dict[str, Any], arrays: dict[str, Any]) -> str:
    """Of everything in a file but the digest itself."""
    content = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        content.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return content.hexdigest()


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
    def keep(self) -> str:
        """What is kept: "paths", or "law" for a `LawOutcome`."""
        return "paths"

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
        kind, level = _known(kind), confidence("level", level)
        return statistics.mean(self._of(kind), self._ends(kind), level)

    def std(self, kind: Kind = "regret", *, level: float = 0.95) -> Estimate:
        """The standard deviation."""
        kind, level = _known(kind), confidence("level", level)
        return statistics.std(self._of(kind), self._ends(kind), level)

    def quantile(self, q: float, kind: Kind = "regret", *, level: float = 0.95) -> Estimate:
        """The value that is not exceeded with probability q; an end out of reach is infinite."""
        kind, q, level = _known(kind), fraction("q", q), confidence("level", level)
        return statistics.quantile(self.sample(kind), q, level)

    def cvar(self, q: float, kind: Kind = "regret", *, level: float = 0.95) -> Estimate:
        """The mean of the worst 1 - q of the paths: the highest regrets, or the lowest rewards."""
        kind, q, level = _known(kind), fraction("q", q), confidence("level", level)
        sample, (low, high) = self.sample(kind), self._ends(kind)
        if kind != "reward":
            return statistics.cvar(sample, q, (low, high), kind == "pseudo_regret", level)
        loss = statistics.cvar(sample.mirrored(), q, (-high, -low), False, level)
        return Estimate(-loss.value, -loss.high, -loss.low, level)

    def exceedance(self, x: float, kind: Kind = "regret", *, level: float = 0.95) -> Estimate:
        """P(kind >= x); with no path there, an upper limit."""
        kind, x, level = _known(kind), number("x", x), confidence("level", level)
        return statistics.exceedance(self._of(kind), x - self._slack(x, kind), level)

    def reaches(self, x: float, kind: Kind = "regret") -> npt.NDArray[np.bool_]:
        """Which paths have kind >= x; a value that is x but for rounding does."""
        kind, x = _known(kind), number("x", x)
        values: Any = self._of(kind)
        return values >= x - self._slack(x, kind)  # type: ignore[no-any-return]

    def sample(self, kind: Kind = "regret") -> Sample:
        """The values in ascending order, with how many paths each stands for."""
        kind = _known(kind)
        cache: dict[Kind, Sample] = self.__dict__.setdefault("_samples", {})
        if kind not in cache:
            cache[kind] = sample_of(np.sort(self._of(kind)))
        return cache[kind]

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
        """Write one .npz file, whole or not at all, with a digest of what is in it."""
        path = file_path("path", path)
        more, arrays = self._parts()
        about = {"format": FORMAT, "horizon": self.horizon, "labels": self.labels, "settings": self.settings}
        about |= more
        about["digest"] = _digest(about, arrays)
        with whole_file(path) as file:
            np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)
        return path

    def _parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a file holds of it: words and numbers, and arrays."""
        if self.offers is None:
            return {}, {"reward": self.reward, "pulls": self.pulls, "means": self.means}
        arrays = {"reward": self.reward, "best": self.offers.best, "lost": self.offers.lost}
        return {"most": self.offers.most}, arrays

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Outcome:
        """Read what `save` wrote, and refuse what has changed since.

        Files of earlier versions have no digest: of those, only that their parts fit together is checked.
        """
        path = file_path("path", path)
        foreign = f"{_named(path)} is not an outcome that lighttail saved"
        try:
            with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file}
            about = json.loads(str(arrays.pop("about")))
            if about["format"] != FORMAT:
                raise refuse("its format", about["format"], str(FORMAT))
            digest = about.pop("digest", None)
            if digest is not None and digest != _digest(about, arrays):
                raise BadInput("its digest is that of other contents", field="digest", value=digest)
            return _loaded(about, arrays)
        except FileNotFoundError:
            raise
        except BadInput as error:
            raise error.within(foreign) from None
        except Exception:  # whatever a reader of damaged bytes may raise
            raise BadInput(foreign, field="path", value=str(path)) from None

    @property
    def _best(self) -> Any:
        """What the best arm, or the best action of every round, earns on average: a number, or one a path."""
        return self.means.max() * self.horizon if self.offers is None else self.offers.best

    def _of(self, kind: Kind) -> Any:
        """The values as they are known: an array, or a sample."""
        return getattr(self, _known(kind))

    def _slack(self, x: float, kind: Kind) -> float:
        """What rounding may have taken from a value that is x."""
        if self.means.size == 0:
            return of_sums(max(abs(x), *map(abs, self._spans()[1])), self.horizon)
        return rounding(x, kind, self.means, self.horizon)

    def _spans(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The smallest and the largest noise (pseudo regret - regret) and best."""
        noise = self.pseudo_regret - self.regret
        return (float(noise.min()), float(noise.max())), (
            float(np.min(self._best)),
            float(np.max(self._best)),
        )

    @property
    def _most(self) -> float:
        """The largest pseudo regret possible."""
        return float(np.ptp(self.means)) * self.horizon if self.offers is None else self.offers.most

    def _ends(self, kind: Kind) -> tuple[float, float]:
        """The range of an outcome, for the limits of means.

        The pseudo regret lies between 0 and the largest possible (gap * horizon). The regret is that minus
        the sum of the noise, for which the widest sum seen in the sample stands in.
        """
        if kind == "pseudo_regret":
            return 0.0, self._most
        noise, best = self._spans()
        low, high = -max(0.0, noise[1]), self._most + max(0.0, -noise[0])
        return (low, high) if kind == "regret" else (best[0] - high, best[1] - low)


class LawOutcome(Outcome):
    """An outcome that keeps the law of its paths instead of the paths (`simulate(..., keep="law")`).

    law: a `lighttail.outcomes.law.Law`: exact counts of pulls, and of what else docs/streaming.md says.

    Every estimate works as on paths. What needs the paths themselves says that they were not kept.
    """

    law: Law

    def __init__(
        self, law: Law, means: Floats, labels: tuple[str, ...], horizon: int, settings: dict[str, Any]
    ) -> None:
        parts = {"law": law, "means": means, "labels": labels, "horizon": horizon, "settings": settings}
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    def __repr__(self) -> str:
        return f"LawOutcome(paths={self.paths}, labels={self.labels!r}, horizon={self.horizon})"

    @property
    def paths(self) -> int:
        return self.law.paths

    @property
    def keep(self) -> str:
        return "law"

    reward = pulls = regret = pseudo_regret = property(_not_kept)

    def reaches(self, x: float, kind: Kind = "regret") -> npt.NDArray[np.bool_]:
        """Of paths alone; see `exceedance`."""
        _not_kept(self)

    def to_frame(self) -> pandas.DataFrame:
        """Of paths alone; see `sample`."""
        _not_kept(self)

    def sample(self, kind: Kind = "regret") -> Sample:
        kind = _known(kind)
        cache: dict[Kind, Sample] = self.__dict__.setdefault("_samples", {})
        if kind not in cache:
            cache[kind] = self.law.sample(kind)
        return cache[kind]

    def _parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        about, arrays = self.law.state()
        return {"law": about}, {**arrays, "means": self.means}

    def _of(self, kind: Kind) -> Any:
        return self.sample(kind)

    def _spans(self) -> tuple[tuple[float, float], tuple[float, float]]:
        noise, best = self.law.noise.tolist(), self.law.best.tolist()
        return (noise[0], noise[1]), (best[0], best[1])

    @property
    def _most(self) -> float:
        return self.law.layout.most


def _named(path: Path) -> str:
    """The path of a file in a message; of a long one its end."""
    return text if len(text := str(path)) <= LONGEST_PATH else f"...{text[3 - LONGEST_PATH :]}"


def _loaded(about: dict[str, Any], arrays: dict[str, Any]) -> Outcome:
    """An outcome from the parts of a file; an error where they do not fit together."""
    rest = tuple(map(str, about["labels"])), whole("horizon", about["horizon"], 1), dict(about["settings"])
    if "law" in about:
        means = arrays.pop("means")
        return LawOutcome(Law.from_state(about["law"], arrays), means, *rest)
    names = ("reward", "best", "lost") if "most" in about else ("reward", "pulls", "means")
    reward, second, third = (arrays[name] for name in names)
    if "most" in about:
        fits = reward.ndim == 1 and reward.shape == second.shape == third.shape
    else:
        fits = second.ndim == 2 and second.shape == (*reward.shape, *third.shape)
        fits = fits and len(rest[0]) == third.size and second.dtype == np.int64
    numbers = (reward, third, second.astype(np.float64))
    if not fits or not all(part.dtype == np.float64 and np.isfinite(part).all() for part in numbers):
        raise BadInput("its arrays do not fit together", field="arrays")
    if "most" in about:
        return Outcome(reward, None, np.zeros(0), *rest, Offers(second, third, number("most", about["most"])))
    return Outcome(reward, second, third, *rest)
