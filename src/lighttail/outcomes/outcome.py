"""What a simulation leaves: its paths or the law of its paths, and the estimates that are made from either.

An `Outcome` is a `PathsOutcome` or a `LawOutcome`. Both answer the same questions; a file holds either.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, final, get_args

import numpy as np
import numpy.typing as npt

from lighttail.checks import BadInput, confidence, file_path, fraction, number, one_of, refuse, whole
from lighttail.outcomes import estimates
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.law import Law
from lighttail.outcomes.tally import Sample, sample_of
from lighttail.records import Counts, Floats, Record, from_columns
from lighttail.system.files import whole_file

if TYPE_CHECKING:
    import pandas

Kind = Literal["regret", "pseudo_regret", "reward"]
FORMAT = 1  # of the file that `save` writes
LONGEST_PATH = 200  # characters of a file's path in a message
OF_PATHS = ("reward", "pulls", "regret", "pseudo_regret", "reaches", "to_frame")  # what a law does not have


def rounding(x: float, kind: Kind, means: Floats, horizon: int) -> float:
    """How much rounding may take from an outcome x. It scales with the unit of the rewards.

    A pseudo regret is a sum of gaps, the other kinds are sums of rewards.
    """
    if kind != "pseudo_regret":
        return of_sums(max(abs(x), float(np.abs(means).max()) * horizon), horizon)
    gaps = means.max() - means
    return 1e-9 * (abs(x) + float(np.min(gaps, where=gaps > 0.0, initial=np.inf) if gaps.any() else 0.0))


def of_sums(magnitude: float, horizon: int) -> float:
    """How much rounding may take from a sum of `horizon` rewards: a last digit of `magnitude` per reward."""
    return 4.0 * float(np.finfo(np.float64).eps) * math.sqrt(horizon) * magnitude


class NotKept(BadInput, AttributeError):
    """Somebody asks for single paths, but only the law of the paths was kept."""


class Spans(NamedTuple):
    """What the ranges of regret and reward follow from.

    luck: the smallest and the largest pseudo regret - regret of a path.
    best: the smallest and the largest average reward of the best arm, or of the best action of every round.
    most: the largest possible pseudo regret.
    """

    luck: tuple[float, float]
    best: tuple[float, float]
    most: float


class Outcome(ABC):
    """The outcome of a simulation. It is a `PathsOutcome`, or with `keep="law"` a `LawOutcome`.

    means, labels: of the problem's arms; empty if the actions change from round to round.
    horizon: pulls per path.
    settings: the policy, problem, seed and versions that made the outcome.
    keep: what is kept, "paths" or "law".

    Every estimate takes `kind`: "pseudo_regret" (the default: the sum of pulls * gaps, which leaves out the
    luck of single rewards), "regret" (best mean * horizon - reward) or "reward".
    """

    keep: ClassVar[str]
    means: Floats
    labels: tuple[str, ...]
    horizon: int
    settings: dict[str, Any]

    @property
    @abstractmethod
    def paths(self) -> int:
        """The number of paths."""

    @abstractmethod
    def _observations(self, kind: Kind) -> Sample:
        """The values of one kind: in any order if each is one path, otherwise ascending."""

    @abstractmethod
    def _spans(self) -> Spans: ...

    @abstractmethod
    def _parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a file holds besides the fields of every outcome: entries for JSON, and arrays."""

    @property
    def method(self) -> str:
        """How the paths were played: "step" pull by pull, "skip" many pulls at once."""
        return str(self.settings.get("method", "step"))

    def mean(self, kind: Kind = "pseudo_regret", *, level: float = 0.95) -> Estimate:
        """The expected value."""
        kind, level = _known(kind), confidence("level", level)
        return estimates.mean(self._of(kind), self._ends(kind), level)

    def std(self, kind: Kind = "pseudo_regret", *, level: float = 0.95) -> Estimate:
        """The standard deviation."""
        kind, level = _known(kind), confidence("level", level)
        return estimates.std(self._of(kind), self._ends(kind), level)

    def quantile(self, q: float, kind: Kind = "pseudo_regret", *, level: float = 0.95) -> Estimate:
        """The value that is not exceeded with probability q. Too few paths leave an end infinite."""
        kind, q, level = _known(kind), fraction("q", q), confidence("level", level)
        return estimates.quantile(self.sample(kind), q, level)

    def cvar(self, q: float, kind: Kind = "pseudo_regret", *, level: float = 0.95) -> Estimate:
        """The mean of the worst 1 - q of the paths: the highest regrets, or the lowest rewards."""
        kind, q, level = _known(kind), fraction("q", q), confidence("level", level)
        sample, (low, high) = self.sample(kind), self._ends(kind)
        if kind != "reward":
            return estimates.cvar(sample, q, (low, high), kind == "pseudo_regret", level)
        loss = estimates.cvar(sample.mirrored(), q, (-high, -low), False, level)
        return Estimate(-loss.value, -loss.high, -loss.low, level)

    def exceedance(self, x: float, kind: Kind = "pseudo_regret", *, level: float = 0.95) -> Estimate:
        """P(kind >= x). If no path reaches x, the interval still has an upper limit."""
        kind, x, level = _known(kind), number("x", x), confidence("level", level)
        return estimates.exceedance(self._of(kind), x - self._slack(x, kind), level)

    def sample(self, kind: Kind = "pseudo_regret") -> Sample:
        """The values in ascending order, and how many paths each value stands for."""
        return self._of(kind).ascending

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one .npz file, either all of it or nothing, with a digest of its contents."""
        path = file_path("path", path)
        more, arrays = self._parts()
        header = {"format": FORMAT, "horizon": self.horizon, "labels": self.labels, "settings": self.settings}
        header |= more
        header["digest"] = _digest(header, arrays)
        with whole_file(path) as file:
            np.savez_compressed(file, about=np.array(json.dumps(header)), **arrays)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote. A file that has changed since is refused.

        `Outcome.load` reads both kinds of outcome, `PathsOutcome.load` and `LawOutcome.load` one each. Files
        of earlier versions have no digest: only that their arrays fit together is checked.
        """
        path = file_path("path", path)
        foreign = f"{_named(path)} is not an outcome that lighttail saved"
        try:
            with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file}
            header = json.loads(str(arrays.pop("about")))
            if header["format"] != FORMAT:
                raise refuse("its format", header["format"], str(FORMAT))
            digest = header.pop("digest", None)
            if digest is not None and digest != _digest(header, arrays):
                raise BadInput("its digest does not match its contents", field="digest", value=digest)
            outcome = _loaded(header, arrays)
        except FileNotFoundError:
            raise
        except BadInput as error:
            raise error.within(foreign) from None
        except Exception:  # whatever a reader of damaged bytes may raise
            raise BadInput(foreign, field="path", value=str(path)) from None
        if not isinstance(outcome, cls):
            raise refuse("keep", outcome.keep, repr(cls.keep)).within(_named(path))
        return outcome

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(paths={self.paths}, labels={self.labels!r}, horizon={self.horizon})"

    def _repr_html_(self) -> str:
        from lighttail.outcomes.format import interval
        from lighttail.outcomes.notebook import Cell, table

        kinds: tuple[Kind, ...] = ("pseudo_regret", "regret", "reward")
        rows: list[tuple[Cell, ...]] = [
            (kind.replace("_", " "), *map(interval, (self.mean(kind), self.std(kind), self.cvar(0.99, kind))))
            for kind in kinds
        ]
        name = self.settings.get("policy_label", type(self).__name__)
        title = f"{name}: {self.paths:,} paths of {self.horizon:,} pulls; 95 % intervals in brackets"
        return table(title, ("per path", "mean", "standard deviation", "mean of worst 1 %"), rows)

    @cached_property
    def _samples(self) -> dict[Kind, Sample]:
        return {}

    def _of(self, kind: Kind) -> Sample:
        """The observations of one kind, which are made once."""
        kind = _known(kind)
        if kind not in self._samples:
            self._samples[kind] = self._observations(kind)
        return self._samples[kind]

    def _slack(self, x: float, kind: Kind) -> float:
        """How much rounding may have taken from a value x."""
        if self.means.size == 0:
            return of_sums(max(abs(x), *map(abs, self._spans().best)), self.horizon)
        return rounding(x, kind, self.means, self.horizon)

    def _ends(self, kind: Kind) -> tuple[float, float]:
        """The range of an outcome, for the limits of means.

        The pseudo regret lies between 0 and the largest possible. The regret is the pseudo regret minus the
        sum of the luck, whose range is taken from the paths.
        """
        luck, best, most = self._spans()
        if kind == "pseudo_regret":
            return 0.0, most
        low, high = -max(0.0, luck[1]), most + max(0.0, -luck[0])
        return (low, high) if kind == "regret" else (best[0] - high, best[1] - low)


@final
@dataclass(frozen=True, eq=False, repr=False)
class PathsOutcome(Outcome):
    """The outcome of a simulation that keeps every path.

    record: reward and pulls of every path (`Counts`) or, if the actions change, its reward, what was best and
        what was lost (`Losses`).
    most: the largest possible pseudo regret.
    """

    keep = "paths"
    record: Record
    means: Floats
    labels: tuple[str, ...]
    horizon: int
    settings: dict[str, Any]
    most: float

    @property
    def paths(self) -> int:
        return self.record.paths

    @property
    def reward(self) -> Floats:
        """float64[paths], the sum of a path's rewards."""
        return self.record.reward

    @property
    def pulls(self) -> npt.NDArray[np.int64] | None:
        """int64[paths, arms], how often each arm was pulled; None if the actions change."""
        return self.record.pulls

    @cached_property
    def _losses(self) -> tuple[Floats, Any]:
        """The pseudo regret, and what the best arm, or the best action of every round, earns on average."""
        top = self.means.max() if self.means.size else 0.0
        return self.record.losses(lambda pulls: pulls @ (top - self.means), top * self.horizon)

    @cached_property
    def regret(self) -> Floats:
        """float64[paths], best mean * horizon - reward."""
        return self._losses[1] - self.reward  # type: ignore[no-any-return]

    @property
    def pseudo_regret(self) -> Floats:
        """float64[paths], the sum of pulls * gap; if the actions change, of the gaps of the actions taken."""
        return self._losses[0]

    def reaches(self, x: float, kind: Kind = "pseudo_regret") -> npt.NDArray[np.bool_]:
        """Which paths have kind >= x. A value that differs from x by rounding alone counts."""
        kind, x = _known(kind), number("x", x)
        return self._of(kind).value >= x - self._slack(x, kind)

    def to_frame(self) -> pandas.DataFrame:
        """One row per path: reward, regret, pseudo_regret and the pulls of each arm, if there are arms."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None
        kinds = ("reward", "regret", "pseudo_regret")
        columns: dict[str, Any] = {kind: getattr(self, kind) for kind in kinds}
        if self.pulls is not None:
            columns |= {f"pulls {label}": self.pulls[:, arm] for arm, label in enumerate(self.labels)}
        return pandas.DataFrame(columns)

    def _observations(self, kind: Kind) -> Sample:
        return sample_of(getattr(self, kind))

    def _spans(self) -> Spans:
        luck, best = self.pseudo_regret - self.regret, self._losses[1]
        ends = float(luck.min()), float(luck.max())
        return Spans(ends, (float(np.min(best)), float(np.max(best))), self.most)

    def _parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        if self.pulls is None:
            return {"most": self.most}, self.record.arrays()
        return {}, {**self.record.arrays(), "means": self.means}


@final
@dataclass(frozen=True, eq=False, repr=False)
class LawOutcome(Outcome):
    """The outcome of a simulation that keeps the law of its paths (`simulate(..., keep="law")`).

    law: a `lighttail.outcomes.law.Law`: exact counts of pulls, and what else docs/streaming.md describes.
    """

    keep = "law"
    law: Law
    means: Floats
    labels: tuple[str, ...]
    horizon: int
    settings: dict[str, Any]

    @property
    def paths(self) -> int:
        return self.law.paths

    def _observations(self, kind: Kind) -> Sample:
        return self.law.sample(kind)

    def _spans(self) -> Spans:
        luck, best = self.law.luck.tolist(), self.law.best.tolist()
        return Spans(tuple(luck), tuple(best), self.law.layout.most)

    def _parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        header, arrays = self.law.state()
        return {"law": header}, {**arrays, "means": self.means}

    if not TYPE_CHECKING:  # a type checker knows by itself that there are no such attributes

        def __getattr__(self, name: str) -> Any:
            """One sentence for whoever asks for single paths."""
            if name not in OF_PATHS:
                message = f"{type(self).__name__!r} object has no attribute {name!r}"
                raise AttributeError(message, name=name, obj=self)
            raise NotKept(
                field="keep",
                value="law",
                allowed="'paths' for the reward, pulls and regret of each path",
                more=f": of these {self.paths:,} paths mean, std, quantile, cvar, exceedance and sample "
                "are known, and law.pulls",
            )


def _known(kind: Any) -> Kind:
    return one_of("kind", kind, get_args(Kind))  # type: ignore[return-value]


def _digest(header: dict[str, Any], arrays: dict[str, Any]) -> str:
    """The digest of a file's contents, which do not include the digest."""
    content = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        content.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return content.hexdigest()


def _named(path: Path) -> str:
    """The path of a file in a message; only the end of a long path."""
    return text if len(text := str(path)) <= LONGEST_PATH else f"...{text[3 - LONGEST_PATH :]}"


def _loaded(header: dict[str, Any], arrays: dict[str, Any]) -> Outcome:
    """An outcome from the contents of a file; an error if they do not fit together."""
    labels, horizon = tuple(map(str, header["labels"])), whole("horizon", header["horizon"], 1)
    means = np.zeros(0) if "most" in header else arrays.pop("means")
    settings = dict(header["settings"])
    if "law" in header:
        return LawOutcome(Law.from_state(header["law"], arrays), means, labels, horizon, settings)
    record: Record
    if "most" in header:
        most = number("most", header["most"])
        record = from_columns({name: arrays[name] for name in ("reward", "best", "lost")})
        fits = True
    else:
        most = float(np.ptp(means)) * horizon
        record = Counts(arrays["reward"], arrays["pulls"])
        fits = record.table.shape[1:] == means.shape == (len(labels),)
    if not (fits and record.sound() and means.dtype == np.float64 and np.isfinite(means).all()):
        raise BadInput("its arrays do not fit together", field="arrays")
    return PathsOutcome(record, means, labels, horizon, settings, most)
