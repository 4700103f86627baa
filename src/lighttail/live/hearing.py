"""What was heard, as evidence about the means: the range of the rewards, and which rewards are no evidence.

With a window, a conversion may be told at once, and a failure is heard when the window is over. Among the
trials that are younger than the window, the rewards that are known are therefore too good, and only trials
that are older than the window are evidence. The sums of all rewards are the policy's; this module keeps the
rewards of young trials, which are taken away from the sums.

The visits of one unit are alike. If units stick to their arms (`sticky`), the rewards of later visits repeat
what the first visit said, and only the first visit of each unit is evidence. This module keeps the sums of
later visits, which are taken away, too.

How long rewards take is counted in parts of the window, for trials that are older than the window: among
younger trials fast rewards would be counted before slow ones."""

from __future__ import annotations

from array import array
from itertools import compress
from typing import Any

import numpy as np

from lighttail.live.ledger import Columns, leave, packed, unpack
from lighttail.records import Floats, Ints

SMALL = 1_024  # old rewards that are not worth a tidying
WINDOW_PARTS = 16
NAMES = ("asked", "place", "reward", "took")


class Hearing:
    """The least and the largest reward that the policy has heard, and the rewards of young trials: when each
    trial was asked, the place of its arm (-1 for a later visit of a unit), its reward, and how long the
    reward took, about 32 bytes each.

    returns: by place, the number and the sum of the rewards of later visits of units.
    took: how many rewards of old trials came in each part of the window, in two rows: rewards that equal the
        default, and other rewards. The last column counts the trials that the window closed.
    """

    def __init__(self) -> None:
        self.least: float | None = None
        self.most: float | None = None
        self._asked, self._places, self._rewards = array("d"), array("q"), array("d")
        self._took = array("q")  # row * (WINDOW_PARTS + 1) + part
        lists = (self._asked, self._places, self._rewards, self._took)
        self._columns: Columns = dict(zip(NAMES, lists, strict=True))
        self._left = 0  # young rewards after the last tidying
        self.returns: dict[int, list[float]] = {}
        self.took = [0] * (2 * (WINDOW_PARTS + 1))

    def note(self, reward: float) -> None:
        """A reward was heard."""
        if self.least is None or self.most is None:
            self.least = self.most = reward
        elif reward < self.least:
            self.least = reward
        elif reward > self.most:
            self.most = reward

    def again(self, place: int, times: int, reward: float) -> None:
        """A later visit of a unit had a reward; times: 0 if the reward is the change of an earlier one."""
        sums = self.returns.setdefault(place, [0.0, 0.0])
        sums[0] += times
        sums[1] += reward

    def closed(self) -> None:
        """A window closed a trial."""
        self.took[WINDOW_PARTS] += 1

    def early(self, asked: float, place: int, reward: float, since: float, took: float, same: bool) -> None:
        """A reward was told before the window of its trial was over. place: -1 for a later visit of a unit.
        since: trials that were asked at this time or before are not young. took: how long the reward took,
        in windows. same: whether the reward equals the default."""
        self._asked.append(asked)
        self._places.append(place)
        self._rewards.append(reward)
        within = min(WINDOW_PARTS - 1, int(took * WINDOW_PARTS))
        self._took.append(within if same else WINDOW_PARTS + 1 + within)
        if len(self._asked) > 2 * self._left + SMALL:
            self.forget(since)

    def forget(self, since: float | None) -> None:
        """Drop the rewards of trials that are not young; all of them if there is no window."""
        young = [since is not None and asked > since for asked in self._asked]
        for old in compress(self._took, (not flag for flag in young)):
            self.took[old] += 1
        for values in self._columns.values():
            leave(values, young)
        self._left = len(self._asked)

    def known(self, counts: Any, since: float | None) -> tuple[Floats, Floats]:
        """The number and the sum of the rewards of each arm that are evidence. counts: all rewards that the
        policy has heard, as in `Beginning.counts`. since: trials that were asked later are young; None if
        there is no window."""
        times, sums = self.young(counts.shape[1], since)
        for place, (again, total) in self.returns.items():
            times[place] += again
            sums[place] += total
        left = counts[1] - times
        return left, np.where(left > 0.0, counts[2] - sums, 0.0)  # sums are rounded

    def young(self, arms: int, since: float | None) -> tuple[Floats, Floats]:
        """How many rewards of each arm are those of young trials, and their sums. Later visits of units are
        not among them."""
        if since is None:
            return np.zeros(arms), np.zeros(arms)
        all_places = np.array(self._places, dtype=np.int64)
        chosen = (np.array(self._asked) > since) & (all_places >= 0)
        places = all_places[chosen]
        rewards = np.array(self._rewards)[chosen]
        times, sums = (np.bincount(places, weights, arms).astype(np.float64) for weights in (None, rewards))
        return times, sums

    def told_since(self, time: float) -> int:
        """How many trials that were asked after this time, all of them young, have their rewards."""
        return int((np.array(self._asked) > time).sum())

    def delays(self, since: float) -> Ints:
        """How many rewards of old trials came in each part of the window, [row, part], as in `took`."""
        old = np.array(self._took, dtype=np.int64)[np.array(self._asked) <= since]
        counts = np.array(self.took, dtype=np.int64) + np.bincount(old, minlength=len(self.took))
        return counts.reshape(2, WINDOW_PARTS + 1)

    def to_plain(self, since: float | None) -> dict[str, Any]:
        """As JSON values. Only what is young is kept."""
        self.forget(since)
        returns = [[place, *sums] for place, sums in self.returns.items()]
        plain = {"least": self.least, "most": self.most, "returns": returns, "counts": self.took}
        return {**plain, **packed(self._columns)}

    @classmethod
    def restored(cls, plain: dict[str, Any]) -> Hearing:
        """From what `to_plain` returned."""
        hearing = cls()
        hearing.least, hearing.most = plain["least"], plain["most"]
        hearing.returns = {int(place): list(map(float, sums)) for place, *sums in plain["returns"]}
        hearing.took = list(plain["counts"])
        unpack(plain, hearing._columns)
        hearing._left = len(hearing._asked)
        return hearing
