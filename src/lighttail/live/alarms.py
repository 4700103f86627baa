"""The risk budget of an experiment: when a forecast is an alarm, and when the alarm is over.

`settings.risk` = {loss, chance, then}. A forecast finds the chance of losing `loss` or more by the end, with
a 95 % interval [low, high] for the error of the simulation. The alarm begins if low > `chance`, and is over
if high < `chance`. In between, the state stays as it is: luck in the simulation must neither pause an
experiment nor let an alarm come and go, whichever of several servers has simulated.

If the rewards contradict `settings.means`, there is no chance to compare, and the alarm is a note: an event
of the kind "alarm" without a state, `about` the setting, with a sentence (`message`). It is written once
until the settings change."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

from lighttail.live.errors import Damaged
from lighttail.live.journal import Event

ON, OVER = "on", "over"
MEANS = "settings.means"  # an alarm without a chance may be about it: the rewards contradict it
Risk = dict[str, Any]


class Found(NamedTuple):
    """What a forecast found for a risk budget: the chance and its interval, after event `seq`."""

    risk: Risk
    value: float
    low: float
    high: float
    seq: int

    @classmethod
    def of(cls, risk: Risk, chance: dict[str, Any], seq: int) -> Found:
        """From the chance of a forecast."""
        return cls(risk, chance["value"], chance["low"], chance["high"], seq)


def verdict(chance: float, low: float, high: float, on: bool) -> str | None:
    """The new state of an alarm; None if it stays as it is. chance: the limit. on: the state before.

    >>> verdict(0.01, 0.011, 0.015, on=False), verdict(0.01, 0.009, 0.015, on=False)
    ('on', None)
    >>> verdict(0.01, 0.002, 0.011, on=True), verdict(0.01, 0.001, 0.004, on=True)
    (None, 'over')
    """
    if on:
        return OVER if high < chance else None
    return ON if low > chance else None


def alarm_fields(chance: Found, state: str) -> Event:
    """The fields of the event. after: the event after which the forecast began. limit: the chance that was
    allowed."""
    risk, numbers = chance.risk, {"chance": chance.value, "low": chance.low, "high": chance.high}
    allowed = {"loss": risk["loss"], "limit": risk["chance"], "then": risk["then"]}
    return {"state": state, **allowed, **numbers, "after": chance.seq}


def is_on(alarm: Event | None) -> bool:
    """Whether the last alarm is not over."""
    return alarm is not None and alarm["state"] == ON


def after_alarm(before: Event | None, event: Event, risk: Risk | None) -> Event | None:
    """The last alarm after an event of the kind "alarm". Raises Damaged if the event contradicts the
    settings, the state before, or itself. An event without a state is a note that a program wrote."""
    if "state" not in event:
        return before
    here = f"the alarm of event {event['seq']}"
    allowed = None if risk is None else (risk["loss"], risk["chance"], risk["then"])
    if (event.get("loss"), event.get("limit"), event.get("then")) != allowed:
        raise Damaged(f"{here} is not about the risk budget of the experiment")
    numbers = [event.get(name) for name in ("chance", "low", "high")]
    if not all(isinstance(one, Real) and math.isfinite(one) for one in numbers):
        raise Damaged(f"{here} has no chance")
    value, low, high = numbers
    if not isinstance(event.get("after"), int):
        raise Damaged(f"{here} does not say after which event its forecast began")
    if not 0.0 <= low <= value <= high <= 1.0:  # type: ignore[operator]
        raise Damaged(f"{here} has a chance outside its interval")
    if event["state"] != verdict(event["limit"], low, high, is_on(before)):  # type: ignore[arg-type]
        raise Damaged(f"{here} does not follow from its chance and the state before")
    names = ("seq", "time", "state", "loss", "limit", "then", "chance", "low", "high", "after")
    return {name: event[name] for name in names}
