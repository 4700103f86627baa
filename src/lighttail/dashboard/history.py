"""The history of an experiment: what the events of its journal add up to, taken in one by one.

The work per event and the memory are bounded, so that a page can be shown every other second beside a
journal of millions of events: traffic is counted in at most `MOST_SPANS` spans of equal length, which doubles
when the spans are used up."""

from __future__ import annotations

import math
from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Container
from hashlib import blake2b
from operator import add
from typing import Any

from lighttail.inference import share_mismatch

Event = dict[str, Any]
Rows = dict[tuple[str, str], "array[int]"]  # counts per span, by arm and who chose it
BYS = ("policy", "floor", "holdout", "sticky", "fallback")  # who may have chosen an arm
MOST_SPANS = 80
MOST_ARMS = 24  # arms that are shown one by one, the busiest; the others are shown together
MOST_ROWS = 2_000  # arms, by who chose them, that are counted one by one
OTHERS = "other arms"
MOST_EVENTS, MOST_TRIALS = 50, 20  # that are kept
MOST_UNITS = 100_000  # units among which the share of the holdout is checked
REWARDS = ("tell", "default", "late", "amend")


class Spans:
    """Counts by arm and by who chose it, in spans of equal length.

    start: where the first span begins. last: where the last trial was. width: the length of a span, in
    seconds or pulls. used: the spans up to that of the last trial. rows: the counts of an arm by who
    chose the arm.

    If there are more than `MOST_ROWS` rows, the less busy half of the arms joins the others, so that the
    memory is bounded and the busiest arms stay.

    >>> spans = Spans(1.0)
    >>> for place in range(200):
    ...     spans.add(float(place), "A", "policy")
    >>> spans.width, spans.used, spans.rows["A", "policy"][0]
    (4.0, 50, 4)
    """

    def __init__(self, width: float) -> None:
        self.start: float | None = None
        self.last: float | None = None
        self.width = width
        self.used = 0
        self.rows: Rows = {}

    def add(self, at: float, arm: str, by: str) -> None:
        if self.start is None:
            self.start = math.floor(at / self.width) * self.width
        self.last = at
        while (place := int((at - self.start) // self.width)) >= MOST_SPANS:
            self._double()
        place = max(0, place)
        self.used = max(self.used, place + 1)
        if (row := self.rows.get((arm, by))) is None:
            row = self.rows[arm, by] = array("q", bytes(8 * MOST_SPANS))
            if len(self.rows) > MOST_ROWS:
                totals = self.totals()
                busy = sorted(totals, key=lambda name: -totals[name])[: len(totals) // 2]
                self.rows = self.joined({*busy, arm})
        row[place] += 1

    def _double(self) -> None:
        self.width *= 2.0
        self.used = (self.used + 1) // 2
        rest = array("q", bytes(8 * (MOST_SPANS // 2)))
        for key, row in self.rows.items():
            self.rows[key] = array("q", map(add, row[::2], row[1::2])) + rest

    def totals(self) -> Counter[str]:
        totals: Counter[str] = Counter()
        for (arm, _), row in self.rows.items():
            totals[arm] += sum(row)
        return totals

    def joined(self, named: Container[str]) -> Rows:
        """The rows of the arms that are named, and the sums of all other arms."""
        rows: Rows = {}
        for (arm, by), row in self.rows.items():
            key = (arm if arm in named else OTHERS, by)
            before = rows.get(key)
            rows[key] = row if before is None else array("q", map(add, before, row))
        return rows

    def to_plain(self, named: Container[str] | None = None) -> dict[str, Any]:
        """As JSON: per span a list of arm, who chose it, and how often. named: the arms that are not among
        the others; None: all."""
        rows = sorted((self.rows if named is None else self.joined(named)).items())
        spans = [
            [[arm, by, row[place]] for (arm, by), row in rows if row[place]] for place in range(self.used)
        ]
        return {"start": self.start, "last": self.last, "width": self.width, "spans": spans}


class History:
    """What a page shows of a journal besides the summary. seq: the last event that was taken in."""

    def __init__(self) -> None:
        self.seq = 0
        self.created: float | None = None
        self.spans = Spans(1.0)
        self.arms: list[str] = []  # the first ones, which are named although no trial had them
        self.events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self.trials: OrderedDict[str, Event] = OrderedDict()
        self.last_ask: float | None = None
        self.last_reward: float | None = None
        self._settings: dict[str, Any] = {}
        self._floors: Counter[str] = Counter()
        self._units: set[int] = set()
        self._held = 0

    def take(self, event: Event) -> None:
        self.seq = event["seq"]
        kind = event["kind"]
        take = self._ask if kind == "ask" else self._reward if kind in REWARDS else self._other
        take(event)

    def _ask(self, event: Event) -> None:
        arm, by = str(event["arm"]), str(event["by"])
        self.last_ask = event["time"]
        self.spans.add(event["time"], arm, by)
        trial = {name: event.get(name) for name in ("id", "time", "arm", "by", "unit")}
        self.trials[event["id"]] = {**trial, "reward": None, "how": None}
        if len(self.trials) > MOST_TRIALS:
            self.trials.popitem(last=False)
        if by in ("policy", "floor"):
            self._floors[arm if by == "floor" else ""] += 1
        if "holdout" in self._settings and event.get("unit") is not None:
            mark = int.from_bytes(blake2b(event["unit"].encode(), digest_size=8).digest(), "big")
            if mark not in self._units and len(self._units) < MOST_UNITS:
                self._units.add(mark)
                self._held += by == "holdout"

    def _reward(self, event: Event) -> None:
        if event["kind"] != "default":
            self.last_reward = event["time"]
        if (trial := self.trials.get(event["id"])) is not None:
            trial["reward"], trial["how"] = event["reward"], event["kind"]

    def _other(self, event: Event) -> None:
        self.events.append({name: event[name] for name in event if name not in ("name", "seed", "arms")})
        if event["kind"] == "create":
            self.created = event["time"]
            self.arms = [str(arm) for arm in (event.get("arms") or ())[:MOST_ARMS]]
        if event["kind"] in ("create", "settings"):  # shares that changed are checked from here on
            before, self._settings = self._settings, event.get("settings") or {}
            if self._settings.get("shares") != before.get("shares"):
                self._floors.clear()
            if self._settings.get("holdout") != before.get("holdout"):
                self._units, self._held = set(), 0

    def checks(self) -> list[dict[str, Any]]:
        """Whether floors and holdout have the shares that they should have, with p-values for all looks."""
        checks = []
        if shares := self._settings.get("shares"):
            due = list(map(float, shares.values()))
            due.append(max(0.0, 1.0 - math.fsum(due)))
            counts = [self._floors[name] for name in (*shares, "")]
            checks.append(_check("floors", [*shares, "the policy"], counts, due))
        if holdout := self._settings.get("holdout"):
            share, units = float(holdout["share"]), len(self._units)
            groups = ["holdout", "other units"]
            checks.append(_check("holdout", groups, [self._held, units - self._held], [share, 1.0 - share]))
        return checks

    def busiest(self) -> list[str]:
        """The arms that are shown one by one, in the order in which they were named or tried."""
        totals = self.spans.totals()
        names = dict.fromkeys((*self.arms, *(arm for arm in totals if arm != OTHERS)))
        busy = set(sorted(names, key=lambda arm: -totals[arm])[:MOST_ARMS])
        return [arm for arm in names if arm in busy]

    def to_plain(self) -> dict[str, Any]:
        """Everything as JSON values."""
        names = ("seq", "created", "last_ask", "last_reward")
        arms = self.busiest()
        return {
            **{name: getattr(self, name) for name in names},
            "traffic": {**self.spans.to_plain(arms), "unit": "seconds", "arms": arms},
            "by": [[arm, by, sum(row)] for (arm, by), row in self.spans.joined(arms).items()],
            "events": list(reversed(self.events)),
            "trials": [dict(trial) for trial in reversed(self.trials.values())],
            "checks": self.checks(),
        }


def _check(what: str, groups: list[str], counts: list[int], shares: list[float]) -> dict[str, Any]:
    p = share_mismatch(counts, shares)
    return {"what": what, "groups": groups, "counts": counts, "shares": shares, "p": p}
