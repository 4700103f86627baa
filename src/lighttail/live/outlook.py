"""From the book of an experiment to its forecast: what the desk hands out, and what is made of it elsewhere.

The desk copies what a forecast needs (`outlook`), which takes a moment; the forecast itself
(`Outlook.forecast`) takes seconds and needs no desk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttail.checks import EXACT, positive, refuse, whole
from lighttail.course import Beginning
from lighttail.forecasting import Forecast, forecast_from
from lighttail.inference import BoundedRewards, Evidence, SubGaussianRewards
from lighttail.inference.evidence import Heard
from lighttail.live.book import Book
from lighttail.live.errors import conflict
from lighttail.live.settings import Settings
from lighttail.online.player import ArmPlayer
from lighttail.online.trials import Label

PATHS, FEWEST_PATHS, MOST_PATHS = 10_000, 400, 100_000
MOST_PULLS = 2 * 10**9  # pulls of all simulated ends: a request must not be able to keep a server busy


class Wish(NamedTuple):
    """What a forecast is asked for: the loss, the pulls at the end, limits of all means, and simulated ends;
    None: what the settings of the experiment say, and as many ends as a forecast may take."""

    loss: float | None = None
    horizon: int | None = None
    between: tuple[float, float] | None = None
    paths: int | None = None


class Outlook(NamedTuple):
    """What a forecast needs of an experiment, copied after event `seq`.

    heard: the rewards of each arm that are evidence. told: how many rewards the policy has heard.
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
    told: int

    def forecast(self, wish: Wish, threads: int = 1) -> Forecast:
        """The forecast. Raises BadInput if nothing says which loss, or how many pulls."""
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
        )

    def _paths(self, asked: int | None, left: int) -> int:
        """The simulated ends. left: the pulls of each."""
        paths = min(PATHS, max(FEWEST_PATHS, MOST_PULLS // max(1, left))) if asked is None else asked
        paths = whole("paths", paths, 100, most=MOST_PATHS)
        if left * paths > MOST_PULLS:
            most = f"at most {MOST_PULLS:,} pulls of all paths together are simulated"
            field, value = ("paths", paths) if left * FEWEST_PATHS <= MOST_PULLS else ("horizon", left)
            raise refuse(field, value, f"so small that {most}", found=f"{left:,} pulls are left")
        return paths

    def _end(self, asked: int | None) -> int:
        """The pulls at the end: those so far, if the experiment is stopped."""
        if self.stopped:
            return max(1, self.start.rounds)
        if asked is not None:
            least = max(1, self.start.rounds)
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
    evidence = evidence_of(book)
    counts, note = player.standing.arrays()
    opened, memos = book.ledger.seen()
    gap = book.last - player.pulls  # ids without a pull
    opened[:, 1] = np.maximum(1, opened[:, 1] - gap)
    horizon = book.first.get("horizon")
    known = np.nan if horizon is None else float(horizon)
    start = Beginning(player.experiment.policy, known, player.pulls, counts, note, opened, memos)
    window = book.settings.window
    times, sums = book.hearing.young(counts.shape[1], None if window is None else now - window)
    rows = zip(counts[1] - times, counts[2] - sums, strict=True)
    heard = [Heard(int(n), float(total) if n else 0.0) for n, total in rows]  # sums are rounded
    told = int(counts[1].sum())
    about = (book.labels or [], heard, evidence, horizon, book.settings, book.stopped, told)
    return Outlook(book.name, book.seq, book.seed, start, *about)


def evidence_of(book: Book) -> Evidence:
    """What is known about rewards: the setting `rewards`, and without it that they lie between 0 and 1.
    Raises Refused (409) if a reward that was heard says otherwise."""
    known, heard = book.settings.rewards, book.hearing
    if known is not None and "sigma" in known:
        return SubGaussianRewards(known["sigma"])
    low, high = (0.0, 1.0) if known is None else (known["low"], known["high"])
    for reward in (heard.least, heard.most):
        if reward is not None and not low <= reward <= high:
            allowed = f"set so that it fits the rewards, which were taken to lie from {low:g} to {high:g}"
            found = f"the reward {reward:g} was heard"
            raise conflict("settings.rewards", known, allowed, found=found)
    return BoundedRewards(low, high)
