"""What was heard, as evidence about the means: the range of the rewards, and which of them came early.

With a window, a conversion may be told at once, and a failure is heard when the window is over. Among the
trials that are younger than the window, the rewards that are known are therefore too good, and only trials
that are older than the window are evidence. The sums of all rewards are the policy's; this module keeps the
rewards of young trials, which are taken away from the sums."""

from __future__ import annotations

import base64
from array import array
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
SMALL = 1_024  # old rewards that are not worth a tidying
PARTS = ("asked", "place", "reward")


class Hearing:
    """The least and the largest reward that the policy has heard, and the rewards of young trials: when each
    trial was asked, the place of its arm, and its reward, about 24 bytes each."""

    def __init__(self) -> None:
        self.least: float | None = None
        self.most: float | None = None
        self._asked, self._places, self._rewards = array("d"), array("q"), array("d")
        self._left = 0  # young rewards after the last tidying

    def note(self, reward: float) -> None:
        """A reward was heard."""
        if self.least is None or self.most is None:
            self.least = self.most = reward
        elif reward < self.least:
            self.least = reward
        elif reward > self.most:
            self.most = reward

    def early(self, asked: float, place: int, reward: float, since: float) -> None:
        """A reward was told before the window of its trial was over. since: trials that were asked at this
        time or before are not young."""
        self._asked.append(asked)
        self._places.append(place)
        self._rewards.append(reward)
        if len(self._asked) > 2 * self._left + SMALL:
            self.forget(since)

    def forget(self, since: float | None) -> None:
        """Drop the rewards of trials that are not young; all of them if there is no window."""
        young = [since is not None and asked > since for asked in self._asked]
        self._asked = array("d", compress(self._asked, young))
        self._places = array("q", compress(self._places, young))
        self._rewards = array("d", compress(self._rewards, young))
        self._left = len(self._asked)

    def young(self, arms: int, since: float | None) -> tuple[Floats, Floats]:
        """How many rewards of each arm are those of young trials, and their sums."""
        if since is None:
            return np.zeros(arms), np.zeros(arms)
        chosen = np.array(self._asked) > since
        places = np.array(self._places)[chosen]
        times = np.bincount(places, minlength=arms).astype(np.float64)
        sums = np.zeros(arms)
        np.add.at(sums, places, np.array(self._rewards)[chosen])
        return times, sums

    def to_plain(self, since: float | None) -> dict[str, Any]:
        """As JSON values. Only what is young is kept."""
        self.forget(since)
        parts: tuple[array[Any], ...] = (self._asked, self._places, self._rewards)
        packed = {
            name: base64.b64encode(one.tobytes()).decode() for name, one in zip(PARTS, parts, strict=True)
        }
        return {"least": self.least, "most": self.most, **packed}

    @classmethod
    def restored(cls, plain: dict[str, Any]) -> Hearing:
        """From what `to_plain` returned."""
        made = cls()
        made.least, made.most = plain["least"], plain["most"]
        parts: tuple[array[Any], ...] = (made._asked, made._places, made._rewards)
        for name, one in zip(PARTS, parts, strict=True):
            one.frombytes(base64.b64decode(plain[name]))
        made._left = len(made._asked)
        return made
