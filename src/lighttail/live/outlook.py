"""From the book of an experiment to its forecast: what the desk hands out, and what is made of it elsewhere.

The desk copies what a forecast needs (`outlook`), which takes a moment; the forecast itself
(`Outlook.forecast`) takes seconds and needs no desk."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lighttail.checks import EXACT, BadInput, positive, refuse, whole
from lighttail.course import Beginning
from lighttail.delays import LONGEST
from lighttail.forecasting import Forecast, forecast_from, stages
from lighttail.inference import BoundedRewards, Contradicted, Evidence, evidence_of
from lighttail.inference.evidence import Heard
from lighttail.live.alarms import MEANS
from lighttail.live.book import Book
from lighttail.live.errors import conflict
from lighttail.live.hearing import WINDOW_PARTS
from lighttail.live.ledger import SEEN, Trials
from lighttail.live.settings import Settings
from lighttail.online.base import Label
from lighttail.online.player import ArmPlayer
from lighttail.records import Floats
from lighttail.running.continued import Window

PATHS, MOST_PATHS = (10_000, 5_000, 2_000, 1_000, 400), 100_000  # the first that is allowed, and the most
MOST_PULLS = 2 * 10**9  # pulls of all simulated ends: a request must not be able to keep a server busy
TEN = 10  # arms above which a pull counts as more than one pull: as the tenth part of the arms
MOST_DRAWN = 2 * 10**7  # means of all arms of a stage: 160 MB, and as much for the pulls
SAMPLE = 512  # delays that stand for a law of delays
GRID, GRIDS, FAR = 1_000, 3, 10.0  # points of a law, grids that become finer, and deviations on each side
MOMENTS = 100  # per window: a forecast is made again when trials have become older by so much


class Wish(NamedTuple):
    """What a forecast is asked for: the loss, the pulls at the end, limits of all means, and simulated ends;
    None: what the settings of the experiment say, and as many ends as a forecast may take."""

    loss: float | None = None
    horizon: int | None = None
    between: tuple[float, float] | None = None
    paths: int | None = None


class Outlook(NamedTuple):
    """What a forecast needs of an experiment, copied after event `seq`.

    heard: the rewards of each arm that are evidence.
    first: how many arms the experiment had at its beginning. window: how long rewards take; None if there is
    no window. moment: changes with time if there is a window. drawn_from: the rewards from which means are
    drawn, if they are not `heard`.
    """

    name: str
    seq: int
    seed: int
    start: Beginning
    labels: list[Label]
    heard: list[Heard]
    evidence: Evidence
    horizon: int | None
    settings: Settings
    stopped: bool
    first: int
    window: Window | None = None
    moment: int = 0
    drawn_from: list[Heard] | None = None

    @property
    def stamp(self) -> tuple[Any, ...]:
        """Two outlooks with the same stamp have the same forecasts: evidence grows while trials become older
        than the window, although nothing happens."""
        return self.seq, self.moment, *self.heard

    def forecast(self, wish: Wish, threads: int = 1) -> Forecast:
        """The forecast. Raises BadInput if neither the wish nor the settings give the loss and the
        horizon, and Refused (409) if the rewards contradict the limits of all means."""
        try:
            return self._forecast(wish, threads)
        except Contradicted as error:
            name = MEANS if wish.between is None else "the range from low to high"
            said = f"the rewards contradict {name}: {error.detail}"
            raise conflict(name, error.value, str(error.allowed), message=said) from None

    def _forecast(self, wish: Wish, threads: int) -> Forecast:
        loss, risk = wish.loss, self.settings.risk
        if loss is None:
            if risk is None:
                raise refuse("loss", None, "given, because the experiment has no settings.risk.loss")
            loss = risk["loss"]
        end = self._end(wish.horizon)
        paths = self._paths(wish.paths, end - self.start.rounds)
        return forecast_from(
            self.start,
            self.labels,
            self.evidence,
            horizon=end,
            loss=positive("loss", loss),
            paths=paths,
            seed=self.seed,
            threads=threads,
            between=self.settings.means if wish.between is None else wish.between,
            heard=self.heard,
            floors=self.settings.shares,
            window=self.window,
            first=self.first,
            drawn_from=self.drawn_from,
            any_loss=wish.loss is None or self.stopped,  # an experiment that ends early may lose no more
        )

    def _paths(self, asked: int | None, left: int) -> int:
        """The simulated ends. left: the pulls of each. Raises BadInput, before any work, if all stages of the
        forecast would take too long or too much memory."""
        arms = len(self.labels)
        fits = [paths for paths in PATHS if self._allowed(paths, left)]
        paths = whole("paths", (fits or PATHS[-1:])[0] if asked is None else asked, 100, most=MOST_PATHS)
        if self._allowed(paths, left):
            return paths
        least = stages(100, arms)
        if arms * max(least) > MOST_DRAWN:
            allowed = f"one with at most {MOST_DRAWN // max(least):,} arms to be forecast"
            raise conflict("experiment", self.name, allowed, found=f"has {arms:,}")
        pulls = f"at most {MOST_PULLS:,} pulls of all paths together are simulated"
        found = f"{left:,} pulls per path are left, and {sum(stages(paths, arms)):,} paths are simulated"
        if not self._allowed(100, left):
            raise refuse("horizon", left + self.start.rounds, f"so small that {pulls}", found=found)
        means = f", and at most {MOST_DRAWN:,} means of {arms:,} arms are drawn"
        raise refuse("paths", paths, f"so small that {pulls}{means}", found=found)

    def _allowed(self, paths: int, left: int) -> bool:
        """Whether a forecast with this number of paths is quick and small enough."""
        arms = len(self.labels)
        played = stages(paths, arms)
        opened = len(self.start.opened) if self.window is not None else 0
        quick = sum(played) * (left + opened) * max(1.0, arms / TEN) <= MOST_PULLS
        return quick and max(played) * arms <= MOST_DRAWN

    def _end(self, asked: int | None) -> int:
        """The pulls at the end: those so far, if the experiment is stopped."""
        least = max(1, self.start.rounds)
        if self.stopped:
            return least
        if asked is not None:
            return whole("horizon", asked, least, f", the pulls so far ({least:,})", most=EXACT)
        if self.horizon is None:
            raise refuse("horizon", None, "given, because the experiment was made without one")
        return max(self.horizon, self.start.rounds)


def outlook(book: Book, now: float) -> Outlook:
    """What a forecast needs, copied from the book. Raises Refused (409) if there can be no forecast."""
    player = book.player
    if not isinstance(player, ArmPlayer):
        found = "has other actions at every ask"
        raise conflict("experiment", book.name, "one with arms to be forecast", found=found)
    if book.retired:
        found = "has retired arms"
        raise conflict("experiment", book.name, "one whose arms are all in play to be forecast", found=found)
    evidence = checked_evidence(book)
    counts, note = player.standing.arrays()
    trials, gap = book.ledger.seen(), book.last - player.pulls  # ids without a pull
    opened = np.column_stack([trials["place"], np.maximum(1, trials["id"] - gap)]).astype(np.int64)
    horizon = book.first.get("horizon")
    known = np.nan if horizon is None else float(horizon)
    start = Beginning(player.experiment.policy, known, player.pulls, counts, note, opened, trials["memo"])
    heard = [Heard(int(n), float(total)) for n, total in zip(*book.known(now), strict=True)]
    first, labels = len(book.first["arms"]), list(book.labels or [])
    facts = (labels, heard, evidence, horizon, book.settings, book.stopped, first)
    made = Outlook(book.name, book.seq, book.seed, start, *facts)
    if book.settings.window is None:
        return made
    pulls = pulls_per_window(book, trials, now, book.settings.window)
    ages = (now - trials["time"]) / book.settings.window  # in windows
    opened[:, 1] = player.pulls - np.floor(np.minimum(ages, 1.0) * pulls).astype(np.int64)
    coins, since = evidence == BoundedRewards(), now - book.settings.window
    from_all = with_young(book, trials, ages, since, heard) if coins else None
    moment = math.floor(now / book.settings.window * MOMENTS)
    return made._replace(window=window_of(book, since, pulls, coins), moment=moment, drawn_from=from_all)


def pulls_per_window(book: Book, trials: Trials, now: float, window: float) -> float:
    """How many pulls a window lasts: as many as were made in the last window or, if these are more, as many
    as were made per window since the beginning, because too small a number would make forecasts too hopeful.
    Two digits of the number are kept, rounded up."""
    since, age = now - window, max(now - float(book.first["time"]), 1e-9)
    last = int((trials["time"] > since).sum()) + book.hearing.told_since(since)
    return min(_rounded_up(max(float(last), book.player.pulls * window / age)), float(LONGEST))


def window_of(book: Book, since: float, pulls: float, apart: bool) -> Window:
    """How long rewards take if a window of so many pulls keeps them back.

    The delays are those of the trials that are older than the window, to a part of the window. As long as
    there are none, rewards that equal the default come at the end of the window and others come at once.
    since: trials that were asked at this time or before are older than the window. apart: whether rewards
        that equal the default and others have delays of their own; normal rewards never equal the default,
        and all rewards then have the delays of all rewards.
    """
    counts = book.hearing.delays(since).astype(np.float64)
    counts = counts if apart else np.tile(counts.sum(axis=0), (2, 1))
    for row, usual in enumerate((WINDOW_PARTS, 0 if apart else WINDOW_PARTS)):
        if counts[row].sum() == 0.0:
            counts[row, usual] = 1.0
    places = (np.arange(SAMPLE) + 0.5) / SAMPLE
    parts = [np.searchsorted(np.cumsum(row) / row.sum(), places) for row in counts]
    return Window(book.settings.default, np.floor(np.array(parts) / WINDOW_PARTS * pulls))


def with_young(
    book: Book, trials: Trials, ages: Floats, since: float, heard: list[Heard]
) -> list[Heard] | None:
    """The evidence and what young trials say about rates, by the delays of old trials; None if no old trial
    has a reward other than the default. trials, ages: the open trials, and how old they are in windows.

    Let F(a) and G(a) be the chances that a success, or a failure, is told before the trial has the age a. A
    trial of this age is open with the chance (1 - G) - p (F - G), so that being open speaks against the rate
    p with the likelihood 1 - c p, c = (F - G) / (1 - G). The state of the policy depends on young trials, and
    means that ignore them would not fit this state.
    """
    counts = book.hearing.delays(since).astype(np.float64)
    if counts[1].sum() == 0.0:
        return None
    fails, wins = (np.cumsum(row) / max(1.0, row.sum()) for row in counts)
    first = trials["apart"] == SEEN  # not a later visit of a unit
    part = np.clip(ages[first] * WINDOW_PARTS, 0, WINDOW_PARTS - 1).astype(np.int64)
    against = np.clip((wins - fails)[:-1] / np.maximum(1e-9, 1.0 - fails[:-1]), 0.0, 1.0)
    opened = np.zeros((len(heard), WINDOW_PARTS))
    np.add.at(opened, (trials["place"][first], part), 1.0)
    times, sums = book.hearing.young(len(heard), since)
    rows = zip(heard, times, sums, opened, strict=True)
    return [with_open(one.times + float(n), one.total + float(s), many, against) for one, n, s, many in rows]


def with_open(times: float, total: float, many: Floats, against: Floats) -> Heard:
    """Rewards of 0 or 1, so many with this sum, and open trials as numbers of rewards with about the same law
    of the rate.

    The law of a rate p with Jeffreys' prior is uniform in x = arcsin(sqrt(p)), and many[i] open trials
    multiply it by (1 - against[i] p) each. Its mean and its variance are those of a Beta law. To count an
    open trial as the part `against` of a failure would be right for small rates alone: of a rate of 90 %,
    whose rewards come slowly, it would make 60 %.

    >>> slow = with_open(45, 45.0, np.array([55.0]), np.array([0.5]))  # 45 successes, and half are not told
    >>> f"{(slow.total + 0.5) / (slow.times + 1.0):.2f}"
    '0.91'
    """
    if not (many * against).any():
        return Heard(times, total)
    low, high = 0.0, 0.5 * math.pi
    for _ in range(GRIDS):
        step = (high - low) / GRID
        angle = low + step * (np.arange(GRID) + 0.5)
        rate, rest = np.sin(angle) ** 2, np.cos(angle) ** 2
        log = total * np.log(rate) + (times - total) * np.log(rest)
        log += many @ np.log(rest + np.outer(1.0 - against, rate))  # 1 - c p = (1 - p) + (1 - c) p
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        mean, middle = float(weight @ rate), float(weight @ angle)
        away = FAR * (math.sqrt(float(weight @ (angle - middle) ** 2)) + step)
        low, high = max(0.0, middle - away), min(0.5 * math.pi, middle + away)
    variance = float(weight @ (rate - mean) ** 2)
    both = mean * float(weight @ rest) / variance - 1.0  # a + b of Beta(a, b)
    return Heard(max(0.0, both - 1.0), max(0.0, both * mean - 0.5))


def _rounded_up(count: float) -> float:
    """To two digits."""
    unit = 10.0 ** max(0, math.floor(math.log10(max(1.0, count))) - 1)
    return math.ceil(count / unit) * unit


def known_of(book: Book, now: float) -> tuple[dict[Label, Heard], str | None]:
    """The rewards of each arm that are evidence. If none are, all of its rewards, and the sentence that says
    why. Only a book with arms is asked."""
    assert isinstance(book.player, ArmPlayer)
    why = _why_no_evidence(book)
    rows = book.known(now) if why is None else book.player.standing.arrays()[0][1:3]
    columns = zip(book.labels or (), *rows, strict=True)
    return {label: Heard(int(n), float(total)) for label, n, total in columns}, why


def _why_no_evidence(book: Book) -> str | None:
    try:
        checked_evidence(book)
    except BadInput as error:
        return error.sentence
    if book.rechosen:  # the policy chose again for units that stuck to a retired arm
        why = "an arm was retired, and later visits of the same units may repeat what their first visits said"
        return f"{why}; no setting helps, but another experiment without the retired arm does"
    return None


def checked_evidence(book: Book) -> Evidence:
    """What is known about rewards. Raises Refused (409) if a reward that was heard says otherwise."""
    evidence = evidence_of(book.settings.rewards)
    for reward in (book.hearing.least, book.hearing.most):
        if reward is not None and not evidence.low <= reward <= evidence.high:
            limits = f"from {evidence.low:g} to {evidence.high:g}"
            allowed = f"set so that it fits the rewards, which were taken to lie {limits}"
            found = f"the reward {reward:g} was heard"
            raise conflict("settings.rewards", book.settings.rewards, allowed, found=found)
    return evidence
