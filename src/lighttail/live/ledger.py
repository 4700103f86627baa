"""The open trials of an experiment in compact arrays: a million of them take about 30 MB.

A closed trial leaves the ledger; what became of it is in the journal.
"""

from __future__ import annotations

import base64
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lighttail.checks import refuse

SEEN, HOLDOUT, FALLBACK, RETURN = 0, 1, 2, 3  # whether the policy sees a trial, or why it does not
TO_POLICY = (SEEN, RETURN)  # the policy sees these trials; a return is a later visit of a sticky unit
_new = tuple.__new__  # faster than calling `OpenTrial`
SMALL = 64  # closed trials that are not worth a tidying


class OpenTrial(NamedTuple):
    """An open trial: when it was asked, the place of its arm, who sees it, and the memo of the policy."""

    id: int
    time: float
    place: int
    apart: int
    memo: tuple[float, ...]


class Ledger:
    """Open trials, in the order of their ids, which is also the order of their times."""

    def __init__(self, memo: int) -> None:
        self.memo = memo
        self._ids, self._times, self._places = array("q"), array("d"), array("q")
        self._apart, self._memos = array("b"), array("d")
        self._alive = bytearray()
        self._first = 0  # the place in the arrays before which all trials are closed
        self._open = 0
        self.open_seen = 0  # the open trials that the policy sees

    def __len__(self) -> int:
        return self._open

    def add(self, id: int, time: float, place: int, apart: int, memo: tuple[float, ...]) -> None:
        """Open a trial, whose id is larger than all others; the rest is as in `OpenTrial`."""
        self._ids.append(id)
        self._times.append(time)
        self._places.append(place)
        self._apart.append(apart)
        if self.memo:
            self._memos.extend(memo or (0.0,) * self.memo)  # the policy has no memo of what it does not see
        self._alive.append(1)
        self._open += 1
        self.open_seen += apart in TO_POLICY

    def find(self, id: int) -> OpenTrial | None:
        """The open trial with this id; None if there is none."""
        at = bisect_left(self._ids, id, self._first)
        if at == len(self._ids) or self._ids[at] != id or not self._alive[at]:
            return None
        return self._at(at)

    def _at(self, at: int) -> OpenTrial:
        memo = tuple(self._memos[at * self.memo : (at + 1) * self.memo]) if self.memo else ()
        return _new(OpenTrial, (self._ids[at], self._times[at], self._places[at], self._apart[at], memo))

    def close(self, id: int) -> None:
        """Let go of a trial."""
        at = bisect_left(self._ids, id, self._first)
        self._alive[at] = 0
        self._open -= 1
        self.open_seen -= self._apart[at] in TO_POLICY
        if at == self._first:
            after = self._alive.find(1, at)
            self._first = after if after >= 0 else len(self._alive)
        if len(self._ids) > 2 * self._open + SMALL:
            self._tidy()

    def _tidy(self) -> None:
        """Drop closed trials from the arrays; the cost is shared by as many closings."""
        alive, width = self._alive, range(self.memo)
        self._ids = array("q", compress(self._ids, alive))
        self._times = array("d", compress(self._times, alive))
        self._places = array("q", compress(self._places, alive))
        self._apart = array("b", compress(self._apart, alive))
        self._memos = array("d", compress(self._memos, (flag for flag in alive for _ in width)))
        self._alive, self._first = bytearray(b"\1" * self._open), 0

    def due(self, time: float, most: int) -> list[int]:
        """The ids of at most so many open trials that were asked at this time or before."""
        found: list[int] = []
        for at in range(self._first, len(self._ids)):
            if self._times[at] > time or len(found) == most:
                break
            if self._alive[at]:
                found.append(self._ids[at])
        return found

    def seen(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The place and the id of every open trial that the policy sees, [trial, 2], and their memos."""
        chosen = self._chosen()
        pairs = np.column_stack([np.array(self._places), np.array(self._ids)])[chosen].astype(np.int64)
        return pairs, np.array(self._memos).reshape(len(self._ids), self.memo)[chosen]

    def _chosen(self) -> npt.NDArray[np.bool_]:
        """Which trials of the arrays are open and seen by the policy."""
        alive = np.frombuffer(bytes(self._alive), np.int8) == 1
        return np.asarray(alive & np.isin(np.array(self._apart), TO_POLICY))

    def asked_since(self, time: float) -> int:
        """How many open trials that the policy sees were asked after this time."""
        return int((self.times_seen() > time).sum())

    def firsts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The place of every open trial that the policy sees, later visits of units left out, and when the
        trial was asked."""
        chosen = self._chosen() & (np.array(self._apart) == SEEN)
        return np.array(self._places, dtype=np.int64)[chosen], np.array(self._times)[chosen]

    def times_seen(self) -> npt.NDArray[np.float64]:
        """When each open trial that the policy sees was asked, in the order of `seen`."""
        return np.array(self._times)[self._chosen()]

    @property
    def oldest(self) -> float | None:
        """When the oldest open trial was asked; None if none is open."""
        return self._times[self._first] if self._open else None

    def __iter__(self) -> Iterator[OpenTrial]:
        return (self._at(at) for at in range(self._first, len(self._ids)) if self._alive[at])

    def to_plain(self) -> dict[str, Any]:
        """The open trials as text."""
        if len(self._ids) > self._open:
            self._tidy()
        arrays: tuple[array[Any], ...] = (self._ids, self._times, self._places, self._apart, self._memos)
        return {
            name: base64.b64encode(one.tobytes()).decode("ascii")
            for name, one in zip(PARTS, arrays, strict=True)
        }

    @classmethod
    def restored(cls, memo: int, plain: dict[str, Any]) -> Ledger:
        """A ledger from what `to_plain` returned."""
        made = cls(memo)
        arrays: tuple[array[Any], ...] = (made._ids, made._times, made._places, made._apart, made._memos)
        for name, one in zip(PARTS, arrays, strict=True):
            one.frombytes(base64.b64decode(plain[name]))
        count = len(made._ids)
        if [len(one) for one in arrays] != [count] * 4 + [count * memo]:
            raise refuse("open", count, "lists of the same length")
        made._alive = bytearray(b"\1" * count)
        made._open = count
        made.open_seen = sum(made._apart.count(code) for code in TO_POLICY)
        return made


PARTS = ("id", "time", "place", "apart", "memo")
