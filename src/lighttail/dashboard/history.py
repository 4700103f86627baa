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
        self.rows: dict[tuple[str, str], array[int]] = {}

    def add(self, at: float, arm: str, by: str) -> None:
        """Count a trial."""
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
                kept = sorted(totals, key=lambda name: -totals[name])[: len(totals) // 2]
                self.rows = self.joined({*kept, arm})
        row[place] += 1

    def _double(self) -> None:
        """Twice the length per span."""
        self.width *= 2.0
        self.used = (self.used + 1) // 2
        rest = array("q", bytes(8 * (MOST_SPANS // 2)))
        for key, row in self.rows.items():
            self.rows[key] = array("q", map(add, row[::2], row[1::2])) + rest

    def totals(self) -> Counter[str]:
        """The trials of each arm."""
        found: Counter[str] = Counter()
        for (arm, _), row in self.rows.items():
            found[arm] += sum(row)
        return found

    def joined(self, kept: Container[str]) -> dict[tuple[str, str], array[int]]:
        """The rows of the arms that are kept, and the sums of all other arms."""
        found: dict[tuple[str, str], array[int]] = {}
        for (arm, by), row in self.rows.items():
            key = (arm if arm in kept else OTHERS, by)
            before = found.get(key)
            found[key] = row if before is None else array("q", map(add, before, row))
        return found

    def to_plain(self, kept: Container[str] | None = None) -> dict[str, Any]:
        """As JSON: per span a list of arm, who chose it, and how often. kept: the arms that are not among
        the others; None: all."""
        rows = sorted((self.rows if kept is None else self.joined(kept)).items())
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
        """Take in the next event."""
        self.seq = event["seq"]
        kind = event["kind"]
        if kind == "ask":
            self._ask(event)
        elif kind in REWARDS:
            self._reward(event)
        else:
            self._other(event)

    def _ask(self, event: Event) -> None:
        arm, by = str(event["arm"]), str(event["by"])
        self.last_ask = event["time"]
        self.spans.add(event["time"], arm, by)
        self.trials[event["id"]] = {
            **{name: event.get(name) for name in ("id", "time", "arm", "by", "unit")},
            **{"reward": None, "how": None},
        }
        if len(self.trials) > MOST_TRIALS:
            self.trials.popitem(last=False)
        if by in ("policy", "floor"):
            self._floors[str(event["arm"]) if by == "floor" else ""] += 1
        if "holdout" in self._settings and event.get("unit") is not None:
            self._unit(event["unit"], by == "holdout")

    def _unit(self, unit: str, held: bool) -> None:
        mark = int.from_bytes(blake2b(unit.encode(), digest_size=8).digest(), "big")
        if mark not in self._units and len(self._units) < MOST_UNITS:
            self._units.add(mark)
            self._held += held

    def _reward(self, event: Event) -> None:
        if event["kind"] != "default":
            self.last_reward = event["time"]
        if (trial := self.trials.get(event["id"])) is not None:
            trial["reward"], trial["how"] = event["reward"], event["kind"]

    def _other(self, event: Event) -> None:
        kept = {name: value for name, value in event.items() if name not in ("name", "seed", "arms")}
        self.events.append(kept)
        if event["kind"] == "create":
            self.created = event["time"]
            self.arms = [str(arm) for arm in (event.get("arms") or ())[:MOST_ARMS]]
        if event["kind"] in ("create", "settings"):
            self._set(event.get("settings") or {})

    def _set(self, settings: dict[str, Any]) -> None:
        """Shares that changed are checked from here on."""
        if settings.get("shares") != self._settings.get("shares"):
            self._floors.clear()
        if settings.get("holdout") != self._settings.get("holdout"):
            self._units, self._held = set(), 0
        self._settings = settings

    def checks(self) -> list[dict[str, Any]]:
        """Whether floors and holdout have the shares that they should have, with p-values for all looks."""
        found = []
        if shares := self._settings.get("shares"):
            names = list(shares)
            due = [float(shares[name]) for name in names]
            due.append(max(0.0, 1.0 - math.fsum(due)))
            counts = [self._floors[name] for name in (*names, "")]
            found.append(_check("floors", [*names, "the policy"], counts, due))
        if holdout := self._settings.get("holdout"):
            share, units = float(holdout["share"]), len(self._units)
            parts = ["holdout", "other units"]
            found.append(_check("holdout", parts, [self._held, units - self._held], [share, 1.0 - share]))
        return found

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
