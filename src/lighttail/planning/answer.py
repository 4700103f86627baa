"""The answer of a plan: the policy to run, what is risked by running it, and the policies beside it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

from lighttail.course import Course
from lighttail.families import Family
from lighttail.outcomes.estimates import Estimate, finite
from lighttail.outcomes.format import aligned, amount, counted, interval, outward, probability, rounded
from lighttail.outcomes.format import chance as in_percent
from lighttail.planning.sensitivity import Misjudged
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.reading.words import policy_words
from lighttail.records import Floats

Over = Literal["everywhere", "average"]
CONFIRMED_BY = {"exact": "an exact law", "simulated paths": "simulated runs", "certain": "arithmetic"}


@dataclass(frozen=True)
class Option:
    """A policy with what is known of it from fresh random numbers.

    label: its name. words: the text that names it on the command line (`--policy`), or "" if it has none.
    scale: its tuning in `unit`s. chance: of losing the limit or more, in the `worst` problem or on average.
    losses: of simulated paths over the family. confirmed_in: the number of problems in which the upper limit
    of the chance was confirmed; 0 if the chance is certain.
    nominal: whether the limits of the chance are nominal (docs/planning.md, "What is guaranteed").
    """

    label: str
    policy: Policy
    words: str
    scale: float
    unit: str
    mean_loss: Estimate
    chance: Estimate
    source: str
    worst: Bandit
    losses: Floats = field(repr=False)
    confirmed_in: int = 0
    nominal: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "policy": self.words or repr(self.policy),
            "label": self.label,
            "scale": finite(self.scale),
            "unit": self.unit,
            "mean_loss": self.mean_loss.to_dict(),
            "chance": self.chance.to_dict(),
            "chance_from": self.source,
            "confirmed_in": self.confirmed_in,
            "nominal": self.nominal,
            "worst": {"means": list(self.worst.means), "labels": list(self.worst.labels)},
        }


@dataclass(frozen=True)
class Point:
    """A policy of the search, for the frontier. Its numbers are selected, those of an `Option` are not.

    promised: the loss that is reached with the allowed chance. paths: those behind the chance and the loss; 0
    if the chance is exact.
    """

    curve: str
    scale: float
    unit: str
    policy: Policy
    mean: float
    error: float
    chance: Estimate
    dominated: bool
    promised: float = math.nan
    paths: int = 0


@dataclass(frozen=True, repr=False)
class Plan:
    """Which policy to run, and what is risked by running it; printed, it is a sentence and a table.

    met: whether a policy was found whose chance of losing `loss` or more was confirmed to be at most `limit`,
    in the problems that looked worst for it (`choice.confirmed_in` of them) or on average over the members.
    choice: the policy to run, or the one that comes nearest. cheapest: the policy with the least estimated
    mean loss whatever its chance. even: the even split. smallest_loss: a loss that the choice reaches with a
    chance of at most `limit`, confirmed in the same way: `loss` itself if the limit is met, infinite if too
    few paths can tell. likely_loss: if the smallest loss was asked for, the loss that the choice reaches with
    this chance by our estimate, which no interval covers; otherwise nan. frontier: every policy of the
    search. misjudged: the choice in another world than planned for. rivals: whether, if no policy meets the
    limit, another one may come as near as the choice. made_by: the call that gives the same numbers again;
    what the family and the policies were called there is not known.
    """

    family: Family
    horizon: int
    loss: float
    limit: float
    over: Over
    met: bool
    choice: Option
    cheapest: Option
    even: Option
    smallest_loss: float
    frontier: tuple[Point, ...] = field(repr=False)
    misjudged: tuple[Misjudged, ...]
    course: Course
    seed: int
    pulls: int
    playing: float  # processor seconds in kernels of plain paths
    asked_for_loss: bool = False
    asked_for_horizon: bool = False
    likely_loss: float = math.nan
    rivals: bool = False
    made_by: str = ""
    shown_as: ClassVar[str] = "plan"  # the kind of its report

    @property
    def unit(self) -> str:
        """What is lost."""
        coins = all(member.noise.is_coin for member in self.family.members)
        return " conversions" if coins else ""

    def sentence(self) -> str:
        """The answer in words."""
        one, unit = self.choice, self.unit
        in_noise = one.unit == "kappa / sigma" and not math.isnan(one.scale)
        tuning = f", which is {of_noise(one.scale)} ({self.family.sigma:.3g})" if in_noise else ""
        loses, limit = f"loses {rounded(one.mean_loss.value)}{unit} on average", amount(self.loss)
        if self.asked_for_loss:
            by = " and ".join(CONFIRMED_BY.get(part, part) for part in one.source.split(" and "))
            return (
                f"The smallest loss that can be promised at this effort with a chance of at most "
                f"{in_percent(self.limit)} is {limit}{unit}, confirmed by {by}{self._where()}. Run "
                f"{one.label}{tuning}: it {loses}.{self._likely()} A smaller loss may be promised with more "
                f"effort, or if it is given as the limit, which is searched more closely."
            )
        most = f"at most {outward(one.chance.high)}{' (nominal)' if one.nominal else ''}"
        if self.met:
            text = f"Run {one.label}{tuning}: it {loses} and {limit} or more with a chance of {most}"
            long = f"{self.horizon:,} pulls are enough. " if self.asked_for_horizon else ""
            where = self._where() and f", confirmed{self._where()}"
            return f"{long}{text}{where}; {self._without_limit()}."
        many = f"{limit}{unit} or more with a chance of at most {in_percent(self.limit)}"
        none = (
            f"These runs are too few to confirm that a policy loses {many}."
            if self.undecided
            else f"No policy was found that loses {many}."
        )
        return (
            f"{none} {one.label}{tuning}{',' if tuning else ''} {self._nearest()}: it {loses} and {limit} or "
            f"more with a chance of {in_percent(one.chance.value)} ({most}{self._where()}). {self.help()}"
        )

    @property
    def undecided(self) -> bool:
        """Whether the chance of the nearest policy may be within the limit, which more runs would show."""
        return not self.met and self.choice.chance.low <= self.limit

    def _likely(self) -> str:
        """What the choice probably loses with the allowed chance, as a sentence after a space."""
        if math.isnan(self.likely_loss) or self.likely_loss >= self.loss:
            return ""
        return f" By our estimate it reaches {rounded(self.likely_loss)} with this chance."

    def _where(self) -> str:
        """Where the chance of the choice was confirmed, after a space; empty if there is one problem."""
        if self.family.single:
            return ""
        if self.over == "average":
            return f" on average over {counted(len(self.family.members), 'problem')} of the family"
        count = self.choice.confirmed_in
        many = "problem" if count == 1 else f"{count} problems"
        return f" in the {many} of the family that looked worst for it"

    def _nearest(self) -> str:
        if not self.rivals:
            return "comes nearest"
        return "came nearest in these runs, which are too few to tell whether another policy comes nearer"

    def _without_limit(self) -> str:
        other = self.cheapest
        if other.policy == self.choice.policy:
            return "by our estimates, no policy that was tried loses less on average"
        cheapest = (
            f"by our estimates, the cheapest policy without the limit, {other.label}, loses "
            f"{rounded(other.mean_loss.value)} on average but {amount(self.loss)} or more with a chance of "
        )
        if other.chance.value > self.limit:
            return f"{cheapest}{in_percent(other.chance.value)}"
        return f"{cheapest}up to {outward(other.chance.high)}: it was not shown to keep the limit"

    def help(self) -> str:
        """What would help if no policy meets the limit."""
        found = ["more effort, since the chance may be within the limit already"] if self.undecided else []
        if math.isfinite(self.smallest_loss):
            found.append(
                f"a limit of {amount(self.smallest_loss)}, which it reaches with a chance of at most "
                f"{in_percent(self.limit)} (more effort may confirm a smaller limit)"
            )
        else:
            found.append("a larger limit")
        found += [] if self.course.straight else ["rewards that become known sooner"]
        found += ["a longer experiment with a limit that grows with it", "a narrower family"]
        return f"What would help: {'; or '.join(found)}."

    def options(self) -> dict[str, Option]:
        """The options of the table by their parts in it."""
        found = {"choice" if self.met else "nearest": self.choice}
        if self.cheapest.policy != self.choice.policy:
            found["least mean loss"] = self.cheapest
        if self.even.policy not in (self.choice.policy, self.cheapest.policy):
            found["even split"] = self.even
        return found

    def _rows(self) -> list[list[str]]:
        """The table with its head."""
        rows = [["", "policy", "mean loss", f"P(loss >= {amount(self.loss)})", "chance from"]]
        for part, one in self.options().items():
            rows.append([part, one.label, loss_words(one.mean_loss), chance_words(one.chance), one.source])
        return rows

    def __str__(self) -> str:
        return "\n".join([self.sentence(), "", *aligned(self._rows(), texts=True)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from lighttail.outcomes.notebook import table

        columns, *rows = self._rows()
        return table("", columns, rows, self.sentence())

    def to_dict(self, command: str = "") -> dict[str, Any]:
        """For JSON. command: the command that made the plan, if it was not a call of `plan`."""
        return {
            "met": self.met,
            "nearest_is_uncertain": self.rivals,
            "sentence": self.sentence(),
            "family": self.family.about,
            "arms": self.family.arms,
            "sigma": self.family.sigma,
            "horizon": self.horizon,
            "loss": self.loss,
            "limit": self.limit,
            "over": self.over,
            **self.course.told(),
            "choice": self.choice.to_dict(),
            "cheapest": self.cheapest.to_dict(),
            "even_split": self.even.to_dict(),
            "smallest_loss": finite(self.smallest_loss),
            "likely_loss": finite(self.likely_loss),
            "misjudged": [asdict(one) for one in self.misjudged],
            "frontier": [
                {
                    "curve": point.curve,
                    "policy": policy_words(point.policy) or repr(point.policy),
                    "scale": finite(point.scale),
                    "unit": point.unit,
                    "mean_loss": {"value": point.mean, "standard_error": point.error},
                    "chance": point.chance.to_dict(),
                    "promised": point.promised,
                    "paths": point.paths,
                    "dominated": point.dominated,
                }
                for point in self.frontier
            ],
            "seed": self.seed,
            "pulls": self.pulls,
            "command": command or self.made_by,
        }


def of_noise(scale: float) -> str:
    """A tuning in units of the noise.

    >>> of_noise(0.1634), of_noise(1.0389)
    ('0.16 of the noise', '1.04 times the noise')
    """
    return f"{scale:.2g} of the noise" if scale < 0.995 else f"{scale:.3g} times the noise"


def loss_words(estimate: Estimate) -> str:
    """A mean loss with its limits; a loss without error has no limits.

    >>> loss_words(Estimate(8602.4, 8590.0, 8615.2, 0.95)), loss_words(Estimate(40.0, 40.0, 40.0, 0.95))
    ('8,602 [8,590, 8,615]', '40.0')
    """
    value, limits = interval(estimate)
    return f"{value} {limits}".strip() if estimate.low < estimate.high else value


def chance_words(estimate: Estimate) -> str:
    """A chance with its limits, which are rounded outward; a chance without error has no limits.

    >>> chance_words(Estimate(0.00075, 0.000681, 0.000837, 0.95))
    '0.075 % [0.068, 0.084] %'
    """
    if estimate.low == estimate.high:
        return in_percent(estimate.value)
    return " ".join(filter(None, probability(estimate)))
