"""The open trials of an experiment in compact arrays: a million of them take about 30 MB.

A closed trial leaves the ledger; what became of it is in the journal.
"""

from __future__ import annotations

import base64
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lighttail.checks import refuse

SEEN, HOLDOUT, FALLBACK, RETURN = 0, 1, 2, 3  # whether the policy sees a trial, or why it does not
TO_POLICY = (SEEN, RETURN)  # the policy sees these trials; a return is a later visit of a sticky unit
_new = tuple.__new__  # faster than calling `OpenTrial`
SMALL = 64  # closed trials that are not worth a tidying
PARTS = ("id", "time", "place", "apart", "memo")
Columns = dict[str, "array[Any]"]
Trials = dict[str, npt.NDArray[Any]]


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
        lists = (self._ids, self._times, self._places, self._apart, self._memos)
        self._columns: Columns = dict(zip(PARTS, lists, strict=True))
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
        memos = [flag for flag in self._alive for _ in range(self.memo)]
        for name, values in self._columns.items():
            leave(values, memos if name == "memo" else self._alive)
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

    def seen(self) -> Trials:
        """The open trials that the policy sees, as arrays by the names of `PARTS`."""
        arrays: dict[str, Any] = {name: np.array(values) for name, values in self._columns.items()}
        arrays["memo"] = arrays["memo"].reshape(len(self._ids), self.memo)
        alive = np.frombuffer(bytes(self._alive), np.int8) == 1
        chosen = alive & np.isin(arrays["apart"], TO_POLICY)
        return {name: values[chosen] for name, values in arrays.items()}

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
        return packed(self._columns)

    @classmethod
    def restored(cls, memo: int, plain: dict[str, Any]) -> Ledger:
        """A ledger from what `to_plain` returned."""
        ledger = cls(memo)
        unpack(plain, ledger._columns)
        count = len(ledger._ids)
        if [len(values) for values in ledger._columns.values()] != [count] * 4 + [count * memo]:
            raise refuse("open", count, "lists of the same length")
        ledger._alive = bytearray(b"\1" * count)
        ledger._open = count
        ledger.open_seen = sum(ledger._apart.count(code) for code in TO_POLICY)
        return ledger


def leave(values: array[Any], chosen: Iterable[Any]) -> None:
    """Leave the chosen values in an array, which stays the same object."""
    values[:] = array(values.typecode, compress(values, chosen))


def packed(columns: Columns) -> dict[str, str]:
    """Arrays as text."""
    return {name: base64.b64encode(values.tobytes()).decode("ascii") for name, values in columns.items()}


def unpack(plain: dict[str, str], columns: Columns) -> None:
    """Fill empty arrays with what `packed` returned."""
    for name, values in columns.items():
        values.frombytes(base64.b64decode(plain[name]))
