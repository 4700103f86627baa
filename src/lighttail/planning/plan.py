"""From what is known of a problem to a decision: the policy to run, and what is risked by running it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from lighttail.checks import BadInput, number, one_of, positive, refuse, whole
from lighttail.course import Course, check_course
from lighttail.delays import DelayLike
from lighttail.families import Family, family_of
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.format import chance as in_percent
from lighttail.planning.bench import Bench
from lighttail.planning.confirm import Answer, Confirmation
from lighttail.planning.curves import Candidate, Curve, own_curves, rounded, shipped_curves
from lighttail.planning.question import LEVEL, Question, Score
from lighttail.planning.search import BUDGET, ROUNDS, Search, boundary, reachable
from lighttail.planning.sensitivity import Misjudged, sensitivity
from lighttail.policies import EvenSplit, Policy
from lighttail.problems import Bandit
from lighttail.reading.words import policy_words
from lighttail.running.prepare import check_seed, check_settings, fresh_seed, usable_processors
from lighttail.system.progress import parts_reporter

Floats = npt.NDArray[np.float64]
Over = Literal["everywhere", "average"]
ATTEMPTS = 6  # choices that are confirmed, at most
SAFER = (2.0**0.25, 2.0**0.5, 2.0)  # steps along a curve to more exploration if no choice was confirmed
CONFIRM = 0.25  # of the budget, for one choice
MEAN_PATHS = 2048  # for the mean loss of a choice
STEPS = 3  # towards the limit itself
CHEAPEST = 4  # candidates among which the least mean loss is sought once more


@dataclass(frozen=True)
class Option:
    """A policy with what is known of it from fresh random numbers.

    label: its name. words: the text that names it on the command line (`--policy`), or "" if it has none.
    scale: its tuning in `unit`s. chance: of losing the limit or more, in the `worst` problem or on average;
    None if no limit was given. losses: of simulated paths over the family.
    """

    label: str
    policy: Policy
    words: str
    scale: float
    unit: str
    mean_loss: Estimate
    chance: Estimate | None
    source: str
    worst: Bandit
    losses: Floats = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "policy": self.words or repr(self.policy),
            "label": self.label,
            "scale": None if math.isnan(self.scale) else self.scale,
            "unit": self.unit,
            "mean_loss": self.mean_loss.to_dict(),
            "chance": None if self.chance is None else self.chance.to_dict(),
            "chance_from": self.source,
            "worst": {"means": list(self.worst.means), "labels": list(self.worst.labels)},
        }


@dataclass(frozen=True)
class Point:
    """A policy of the search, for the frontier. Its numbers are selected, those of an `Option` are not.

    promised: the loss that is reached with the allowed chance.
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


@dataclass(frozen=True, repr=False)
class Plan:
    """Which policy to run, and what is risked by running it; printed, it is a sentence and a table.

    met: whether a policy was found whose chance of losing `loss` or more is at most `limit`. choice: the
    policy to run, or the one that comes nearest. cheapest: the policy with the least mean loss whatever its
    chance. even: the even split. smallest_loss: a loss that the choice reaches with a chance of at most
    `limit`: `loss` itself if the limit is met. frontier: every policy of the search. misjudged: the choice
    in another world than planned for.
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
    playing: float  # seconds of the simulations, added up over the threads
    asked_for_loss: bool = False
    shown_as: ClassVar[str] = "plan"  # the kind of its report

    @property
    def unit(self) -> str:
        """What is lost."""
        coins = all(member.noise.outcomes == (0.0, 1.0) for member in self.family.members)
        return " conversions" if coins else ""

    def sentence(self) -> str:
        """The answer in words."""
        one, unit = self.choice, self.unit
        tuning = f", which is {one.scale:.2g} of the noise" if one.unit == "kappa / sigma" else ""
        loses = f"loses {one.mean_loss.value:.3g}{unit} on average"
        where = "" if self.over == "everywhere" else " (averaged over the family)"
        if self.asked_for_loss:
            return (
                f"The smallest loss that can be promised with a chance of {in_percent(self.limit)} is "
                f"{self.loss:g}{unit}: run {one.label}{tuning}, which {loses}."
            )
        assert one.chance is not None
        if self.met:
            text = (
                f"Run {one.label}{tuning}: it {loses} and {self.loss:g} or more with a chance of at most "
                f"{in_percent(one.chance.high)}{where}"
            )
            return f"{text}; {self._without_limit()}."
        return (
            f"No policy was found that loses {self.loss:g}{unit} or more with a chance of at most "
            f"{in_percent(self.limit)}{where}. {one.label}{tuning} comes nearest: it {loses} and "
            f"{self.loss:g} or more with a chance of {in_percent(one.chance.value)} (at most "
            f"{in_percent(one.chance.high)}). {self.help()}"
        )

    def _without_limit(self) -> str:
        other = self.cheapest
        if other.policy == self.choice.policy:
            return "no policy that was tried loses less on average"
        assert other.chance is not None
        return (
            f"the cheapest policy without the limit, {other.label}, loses {other.mean_loss.value:.3g} on "
            f"average but {self.loss:g} or more with a chance of {in_percent(other.chance.value)}"
        )

    def help(self) -> str:
        """What would help if no policy meets the limit."""
        return (
            f"What would help: a limit of {rounded(self.smallest_loss):g}, which it reaches with this "
            f"chance at most; or a longer experiment with a limit that grows with it; or a narrower family."
        )

    def options(self) -> dict[str, Option]:
        """The options of the table by their parts in it."""
        found = {"choice" if self.met else "nearest": self.choice}
        if self.cheapest.policy != self.choice.policy:
            found["least mean loss"] = self.cheapest
        if self.even.policy not in (self.choice.policy, self.cheapest.policy):
            found["even split"] = self.even
        return found

    def __str__(self) -> str:
        rows = [["", "policy", "mean loss", f"P(loss >= {self.loss:g})", "chance from"]]
        for part, one in self.options().items():
            chance = "" if one.chance is None else f"{one.chance:.3g}"
            rows.append([part, one.label, f"{one.mean_loss:.4g}", chance, one.source])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([self.sentence(), "", *lines])

    __repr__ = __str__

    @property
    def made_by(self) -> str:
        """The call that gives the same numbers again; the family's own name is not known."""
        loss = None if self.asked_for_loss else self.loss
        late = "".join(f", {name}={value!r}" for name, value in self.course.said().items())
        return (
            f"plan(family, horizon={self.horizon}, loss={loss!r}, chance={self.limit!r}, over={self.over!r}"
            f"{late}, seed={self.seed})"
        )

    def to_dict(self, command: str = "") -> dict[str, Any]:
        """For JSON. command: the command that made the plan, if it was not a call of `plan`."""
        return {
            "met": self.met,
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
            "smallest_loss": self.smallest_loss,
            "misjudged": [
                {
                    "what": one.what,
                    "factor": one.factor,
                    "loss": one.loss,
                    "mean_loss": one.mean_loss.to_dict(),
                    "chance": one.chance.to_dict(),
                }
                for one in self.misjudged
            ],
            "frontier": [
                {
                    "curve": point.curve,
                    "policy": policy_words(point.policy) or repr(point.policy),
                    "scale": None if math.isnan(point.scale) else point.scale,
                    "unit": point.unit,
                    "mean_loss": {"value": point.mean, "standard_error": point.error},
                    "chance": point.chance.to_dict(),
                    "promised": point.promised,
                    "dominated": point.dominated,
                }
                for point in self.frontier
            ],
            "seed": self.seed,
            "pulls": self.pulls,
            "command": command or self.made_by,
        }


def plan(
    family: Family | Bandit | Sequence[Bandit],
    *,
    horizon: int,
    loss: float | None = None,
    chance: float = 0.001,
    over: Over = "everywhere",
    policies: Sequence[Policy] | Mapping[str, Policy] | None = None,
    also: Sequence[Policy] | Mapping[str, Policy] = (),
    delay: DelayLike = None,
    batch: int | None = None,
    seed: int | None = None,
    effort: float = 1.0,
    threads: int | None = None,
    progress: bool | Callable[[str, int], None] = False,
) -> Plan:
    """The policy with the least mean loss among those whose chance of losing `loss` or more is small enough.

    family: what is known of the problem: a `Family`, one problem, or a list of problems.
    horizon: pulls of the experiment.
    loss: the loss (pseudo regret) that must be rare. None asks for the smallest loss that can be promised.
    chance: how rare.
    over: "everywhere" holds the chance to the limit in every problem of the family, "average" over them. The
        mean loss is always the average over the family's members.
    policies: those to choose from, each over its tuning; the shipped ones unless given. also: further ones.
    delay, batch: when rewards become known, as in `simulate`.
    effort: times as many paths as usual.
    seed, threads, progress: as in `simulate`; a function is called with (what is done, pulls so far).

    docs/planning.md says how the search works and what is guaranteed.

    >>> import lighttail as lt
    >>> found = lt.plan(lt.Bandit([0.2, 0.8]), horizon=200, loss=60, chance=0.01, seed=1, effort=0.05)
    >>> found.met, found.choice.chance.high <= 0.01
    (True, True)
    """
    question, course, curves = _asked(family, horizon, loss, chance, over, policies, also, delay, batch)
    seed = fresh_seed() if seed is None else check_seed(seed)
    use = usable_processors() if threads is None else whole("threads", threads, 1)
    budget = BUDGET * positive("effort", effort)
    late = {"delay": course.delay, "batch": course.batch} if course.late else {}
    with parts_reporter(progress, int(1.5 * budget), "pulls") as report:
        bench = Bench(question.horizon, seed, use, late, report)
        search = Search(question, curves, bench, budget)
        ranked = search.run()
        confirmation = Confirmation(question, bench, CONFIRM * budget)
        if question.asks_for_loss:
            return _smallest_loss(search, confirmation, ranked[0], course, seed)
        score, answer = _confirmed(search, confirmation, ranked)
        met = answer.chance.high <= question.limit
        return _made(search, confirmation, score, answer, met, course, seed)


def _asked(
    family: Any,
    horizon: Any,
    loss: Any,
    chance: Any,
    over: Any,
    policies: Any,
    also: Any,
    delay: Any,
    batch: Any,
) -> tuple[Question, Course, list[Curve]]:
    """Refuse what cannot be planned, before anything is simulated."""
    family = family_of(family)
    first = family.members[0]
    pulls = first.check_horizon(horizon)
    limit = number("chance", chance)
    if not 0.0 < limit < 1.0:
        raise refuse("chance", chance, "a number above 0 and below 1")
    everywhere = one_of("over", over, ("everywhere", "average")) == "everywhere"
    most = family.most_lost(pulls)
    if most == 0.0:
        raise refuse("family", family, "a family in which some arm is worse than another", verb="be")
    lost = math.nan if loss is None else positive("loss", loss)
    if lost > most * (1.0 + 1e-9):
        allowed = f"at most {most:g}, the loss of pulling the worst arm {pulls:,} times"
        raise refuse("loss", loss, allowed)
    sigma = family.sigma
    if policies is None and not sigma > 0.0:
        raise refuse("family", family, "a family whose rewards are random")
    curves = shipped_curves(family, pulls) if policies is None else own_curves(policies, sigma)
    curves += own_curves(also, sigma) if len(also) else []
    course = Course()
    for turn, curve in enumerate(curves):
        for one in curve.candidates(turn)[:1]:
            check_settings(one.policy, first, pulls, 2, 0, 1)
            course = check_course(one.policy, first, pulls, delay, batch)
    return Question(family, pulls, lost, limit, everywhere, not course.late), course, curves


def _confirmed(search: Search, confirmation: Confirmation, ranked: list[Score]) -> tuple[Score, Answer]:
    """The first choice that is shown to be allowed; if there is none, the one that came nearest."""
    question, tried = search.question, list[tuple[Score, Answer]]()
    order = _order(search, confirmation, ranked)
    while order and len(tried) < ATTEMPTS:
        score = order.pop(0)
        answer = confirmation.chance(score.candidate.policy, score.watched)
        if answer.chance.high <= question.limit:
            return score, answer
        tried.append((score, answer))
        if not order and len(tried) < ATTEMPTS:
            order = _safer(search, tried[0][0], {one.candidate.policy for one, _ in tried})
    return min(tried, key=lambda pair: (pair[1].chance.high, pair[1].chance.value))


def _order(search: Search, confirmation: Confirmation, ranked: list[Score]) -> list[Score]:
    """The scores in the order in which they are confirmed."""
    question = search.question
    paths = max(1, int(confirmation.budget / question.horizon))
    within = reachable(question.limit, paths, confirmation.tail / 4.0)

    def target(score: Score) -> float:
        return question.limit if score.exact else within

    good = [score for score in ranked if score.chance.value <= target(score)]
    if not good:
        return sorted(ranked, key=lambda score: (score.chance.value, score.promised, score.mean))[:2]
    best = good[0]
    good += boundary(search, best, target(best), STEPS)[1:]
    return sorted(good, key=lambda score: score.mean)


def _safer(search: Search, first: Score, tried: set[Policy]) -> list[Score]:
    """Policies of the same curve that explore more."""
    one = first.candidate
    if math.isnan(one.scale):
        return []
    curve = search.curves[one.curve]
    new = curve.candidates(one.curve, [one.scale * step for step in SAFER])
    new = [candidate for candidate in new if candidate.policy not in tried]
    if not new:
        return []
    scores = search.score(new, search.sized(ROUNDS[2]), len(ROUNDS) + 9, "search, safer policies")
    return sorted(scores, key=lambda score: score.mean)


def _option(
    search: Search, confirmation: Confirmation, one: Candidate, answer: Answer, limit_given: bool = True
) -> Option:
    curve = search.curves[one.curve]
    mean, losses = confirmation.mean(one.policy, _mean_paths(search))
    label, words = str(one.policy), policy_words(one.policy)
    chance = answer.chance if limit_given else None
    return Option(
        label, one.policy, words, one.scale, curve.unit, mean, chance, answer.source, answer.worst, losses
    )


def _mean_paths(search: Search) -> int:
    members = len(search.question.family.members)
    return max(64, int(min(MEAN_PATHS * 8, search.budget / 32 / search.question.horizon) / members))


def _made(
    search: Search,
    confirmation: Confirmation,
    score: Score,
    answer: Answer,
    met: bool,
    course: Course,
    seed: int,
) -> Plan:
    question, bench = search.question, search.bench
    choice = _option(search, confirmation, score.candidate, answer)
    cheapest = _cheapest(search, confirmation, choice)
    even = _even(search, confirmation)
    misjudged = sensitivity(question, choice.policy, answer.worst, bench)
    promised = question.loss if met else confirmation.promise(choice.policy, score.watched)[0]
    return Plan(
        question.family,
        question.horizon,
        question.loss,
        question.limit,
        "everywhere" if question.everywhere else "average",
        met,
        choice,
        cheapest,
        even,
        promised,
        frontier(search),
        misjudged,
        course,
        seed,
        bench.pulls,
        bench.playing,
    )


def _cheapest(search: Search, confirmation: Confirmation, choice: Option) -> Option:
    """The policy with the least mean loss, whatever its chance: the best few of the search once more."""
    few = sorted(search.scores.values(), key=lambda score: score.mean + score.error)[:CHEAPEST]
    again = search.score(
        [score.candidate for score in few], search.sized(ROUNDS[2]), len(ROUNDS) + 20, "the least mean loss"
    )
    best = min(again, key=lambda score: score.mean)
    if best.candidate.policy == choice.policy or best.mean >= choice.mean_loss.value:
        return choice
    answer = confirmation.chance(best.candidate.policy, best.watched, decide=False)
    return _option(search, confirmation, best.candidate, answer)


def _even(search: Search, confirmation: Confirmation) -> Option:
    """The even split, whose loss has no chance in it."""
    question, policy = search.question, EvenSplit()
    family = question.family
    worst = max((*family.edges(0.0), *family.members), key=lambda problem: sum(problem.gaps))
    per_pull = [sum(member.gaps) / member.arms for member in family.members]
    losses = np.array(per_pull) * question.horizon
    mean = float(losses.mean())
    if question.asks_for_loss:
        chance = None
    else:
        share = sum(worst.gaps) / worst.arms * question.horizon if question.everywhere else losses
        value = float(np.mean(question.reaches(np.atleast_1d(np.asarray(share)))))
        chance = Estimate(value, value, value, LEVEL)
    return Option(
        "EvenSplit",
        policy,
        policy_words(policy),
        math.nan,
        "",
        Estimate(mean, mean, mean, LEVEL),
        chance,
        "certain",
        worst,
        losses,
    )


def _smallest_loss(
    search: Search, confirmation: Confirmation, score: Score, course: Course, seed: int
) -> Plan:
    """The plan whose loss limit is the smallest that can be promised."""
    question = search.question
    high, answer = confirmation.promise(score.candidate.policy, score.watched)
    loss = rounded(high)
    loss = loss if loss > high else rounded(loss + 10.0 ** (math.floor(math.log10(max(high, 1e-300))) - 2))
    asked = replace(question, loss=loss)
    known = Confirmation(asked, search.bench, confirmation.budget, confirmation.looks, confirmation.scanned)
    chance = known.chance(score.candidate.policy, score.watched, decide=False)
    done = replace(search, question=asked)
    choice = _option(done, known, score.candidate, replace(chance, worst=answer.worst))
    return replace(
        _made(done, known, score, replace(chance, worst=answer.worst), True, course, seed),
        choice=choice,
        smallest_loss=loss,
        asked_for_loss=True,
    )


def frontier(search: Search) -> tuple[Point, ...]:
    """Every policy of the search; dominated: another has both a lower mean loss and no higher chance."""
    scores = list(search.scores.values())
    found = []
    for score in scores:
        beaten = any(
            other.mean < score.mean - score.error - other.error and other.chance.value <= score.chance.value
            for other in scores
        )
        curve = search.curves[score.candidate.curve]
        one = score.candidate
        found.append(
            Point(
                curve.name,
                one.scale,
                curve.unit,
                one.policy,
                score.mean,
                score.error,
                score.chance,
                beaten,
                score.promised,
            )
        )
    return tuple(sorted(found, key=lambda point: (point.curve, point.scale)))


__all__ = ["BadInput", "Misjudged", "Option", "Plan", "Point", "plan"]
