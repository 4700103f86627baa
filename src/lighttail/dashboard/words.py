"""What a page says in words."""

from __future__ import annotations

import math
import time as clock
from itertools import pairwise
from typing import Any

from lighttail.outcomes.format import chance, chance_limits, counted, outward, rounded

View = dict[str, Any]
WRONG_SHARES = 0.001  # a p-value below which shares of traffic are called wrong (docs/inference.md)
SECONDS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"), (1.0, "second"))
KINDS = {
    "create": "begun",
    "pause": "paused",
    "resume": "resumed",
    "stop": "stopped for good",
    "settings": "settings changed",
    "add": "an arm joined",
    "retire": "an arm was retired",
    "alarm": "ALARM",
}


def exactly(value: float) -> str:
    """A number that somebody typed, with all of its digits.

    >>> exactly(60.0), exactly(1234.5)
    ('60', '1,234.5')
    """
    return f"{value:,.15g}"


def lasting(seconds: float) -> str:
    """A length of time with one unit, or two if the first is 1.

    >>> lasting(0.4), lasting(75), lasting(7_300)
    ('less than a second', '1 minute 15 seconds', '2 hours')
    """
    for (unit, name), (less, other) in pairwise((*SECONDS, (math.inf, ""))):
        if seconds >= unit:
            whole, more = int(seconds // unit), int((seconds - unit) // less)
            return counted(whole, name) + (f" {counted(more, other)}" if whole == 1 and more > 0 else "")
    return "less than a second"


def moment(time: float, seconds: bool = False) -> str:
    """A time in UTC, with minutes or seconds. The page names the time zone once.

    >>> moment(61.5), moment(61.5, seconds=True)
    ('1970-01-01 00:01', '1970-01-01 00:01:01')
    """
    return clock.strftime(f"%Y-%m-%d %H:%M{':%S' if seconds else ''}", clock.gmtime(time))


def number(value: float | None) -> str:
    """A number, or a dash if there is none."""
    return "–" if value is None else rounded(value)


def limits(one: View) -> str:
    """The two limits of a number.

    >>> limits({"low": 0.1, "high": None}), limits({"low": None, "high": None})
    ('0.1 to ∞', 'no limits yet')
    """
    low, high = one.get("low"), one.get("high")
    if low is None and high is None:
        return "no limits yet"
    return f"{'−∞' if low is None else rounded(low)} to {'∞' if high is None else rounded(high)}"


def chance_of(estimate: View) -> str:
    """A chance in large type: the estimate, or its upper limit if no simulated end was counted."""
    if estimate["value"] == 0.0:
        return f"< {outward(estimate['high'])}"
    return chance(estimate["value"])


def chance_range(estimate: View) -> str:
    """The interval of a chance, which is about the simulation and not about the means."""
    if estimate["value"] == 0.0:
        return "none of the simulated ends lost as much"
    limits = chance_limits(estimate["value"], estimate["low"], estimate["high"])
    return f"{limits}: this is the error of the simulation alone"


def sentence(view: View) -> str:
    """The experiment in one or two sentences."""
    horizon = view["horizon"]
    due = "" if horizon is None else f" of {horizon:,}"
    begun = {"running": "is running", "paused": "is paused", "stopped": "was stopped"}[view["status"]]
    said = f"{view['name']} {begun} after {view['pulls']:,}{due} pulls of {view['policy']}."
    return f"{contradicting(view)} {said} {leading(view)} {losing(view)}".strip()


def contradicting(view: View) -> str:
    """That the rewards contradict the stated limits of all means, so that no chance of a loss is right."""
    if view["contradiction"] is None:
        return ""
    name = "settings.means" if "means" in view["settings"] else "the stated limits of all means"
    return f"The rewards contradict {name}, and no chance of a loss is shown: {view['contradiction']}."


def leading(view: View) -> str:
    """Which arm looks best, and over which arms that is shown."""
    best = view["best"]
    if best is None:
        return nothing_shown(view) if view["arms"] else ""
    mean = next((one["value"] for one in view["arms"] if one["arm"] == best), None)
    equal = [one["arm"] for one in view["arms"] if one["value"] == mean and one["arm"] != best]
    too = f" and of {equal[0] if len(equal) == 1 else counted(len(equal), 'other arm')}" if equal else ""
    said = f"The best mean so far is that of {best}{too} ({number(mean)})"
    over, others = view["beats"], view["arms_count"] - 1
    if over == others:
        named = "the other arm" if over == 1 else "every other arm"
        return f"{said}, and it is shown that {best} is better than {named}."
    if over:
        return f"{said}; it is shown to be better than {counted(over, 'arm')} of {others:,}."
    return f"{said}, but {best} is not shown to be better than a single other arm."


def nothing_shown(view: View) -> str:
    """Why nothing is said about which arm is better."""
    told = view["rewards"]["told"]
    if view["no_limits"]:
        return "Nothing is shown about which arm is better, because there are no limits of the means."
    if not told:
        return "No reward has come yet."
    said = f"{counted(told, 'reward')} {'has' if told == 1 else 'have'} come, but nothing is shown yet: no "
    if view.get("old_alone"):
        window = lasting(view["settings"]["window"])
        return f"{said}reward is that of a trial of the policy that is older than the window ({window})."
    return f"{said}reward is that of a trial of the policy."


def made_after(view: View) -> str:
    """The number of pulls after which the forecast was made, if more were made since; empty if not. People
    would otherwise take an old chance for that of the pulls beside it."""
    pulls = view["risk"]["forecast"]["pulls"]
    return counted(pulls, "pull") if pulls < view["pulls"] else ""


def the_chance(view: View) -> str:
    """The beginning of a sentence about the chance of the forecast."""
    old = made_after(view)
    return f"By the forecast after {old} (a newer one follows), the chance" if old else "The chance"


def losing(view: View) -> str:
    """What may be lost by the end."""
    forecast = view["risk"]["forecast"]
    if forecast is None or view["contradiction"] is not None:
        return ""
    lost, end = f"{exactly(forecast['loss'])} or more", f"{forecast['horizon']:,} pulls"
    average, worst = chance_of(forecast["chance"]), chance_of(forecast["worst"])
    return (
        f"{the_chance(view)} of losing {lost} by the end, after {end}, is {average} on average over what the "
        "rewards say. This is the number to act on; on the worst problem found that they do not exclude, "
        f"it is {worst}."
    )


def limit_words(view: View) -> tuple[str, bool] | None:
    """The limit that the settings have for the chance, and whether the average chance is above it: for sure
    if all of its interval is, as an alarm has it. None if the forecast is about another loss or end."""
    forecast, limit = view["risk"]["forecast"], view["settings"].get("risk")
    if forecast is None or limit is None or forecast["loss"] != limit["loss"]:
        return None
    if view["status"] != "stopped" and forecast["horizon"] != max(view["horizon"] or 1, view["pulls"]):
        return None
    low, high, allowed = forecast["chance"]["low"], forecast["chance"]["high"], limit["chance"]
    where = "above" if low > allowed else "within" if high <= allowed else "too close to tell from"
    said = f"The settings allow a chance of {chance(allowed)} (then: {limit['then']})"
    return f"{said}; the average chance is {where} this limit.", bool(low > allowed)


def alarm_words(event: View) -> str:
    """An alarm as a sentence. An alarm without a state is a note that a program wrote.

    >>> alarm_words({"state": "on", "loss": 60.0, "limit": 0.01, "chance": 0.02, "low": 0.017, "high": 0.023})
    'The chance of losing 60 or more is 2 % (between 1.7 % and 2.3 %), above the limit of 1 %.'
    """
    if event.get("state") not in ("on", "over"):
        rest = {name: value for name, value in event.items() if name not in ("seq", "time", "kind")}
        return str(event.get("message") or plainly(rest))
    limits = chance_limits(event["chance"], event["low"], event["high"])
    where = "above" if event["state"] == "on" else "below"
    found = f"The chance of losing {exactly(event['loss'])} or more is {chance(event['chance'])}"
    return f"{found} ({limits}), {where} the limit of {chance(event['limit'])}."


def so_far(lost: View, stated: bool = False) -> str:
    """The range of what was lost up to now. stated: whether the range of all means was stated."""
    which = "all means in the stated range" if stated else "all means"
    return f"between {limits(lost).replace(' to ', ' and ')} for {which} that the rewards do not exclude"


def event_words(event: View) -> str:
    """What happened, from an event of the journal that is no trial and no reward."""
    kind = event["kind"]
    said = KINDS.get(kind, str(kind))
    if kind in ("add", "retire"):
        return f"{said}: {event['arm']}"
    if kind == "create":
        return f"{said} with {event.get('policy')}"
    if kind == "alarm":
        return f"{'The alarm is over' if event.get('state') == 'over' else said}: {alarm_words(event)}"
    if kind == "pause" and event.get("by") == "alarm":
        return "paused by the alarm"
    rest = {name: value for name, value in event.items() if name not in ("seq", "time", "kind")}
    return f"{said}: {plainly(rest)}" if rest else said


def plainly(value: Any) -> str:
    """A value of JSON in words.

    >>> plainly({"shares": {"A": 0.05}, "sticky": True, "arms": ["A", "B"]})
    'shares (A 0.05), sticky yes, arms A and B'
    """
    if isinstance(value, dict):
        parts = (
            f"{name} ({plainly(one)})" if isinstance(one, dict) and one else f"{name} {plainly(one)}"
            for name, one in value.items()
        )
        return ", ".join(parts) or "none"
    if isinstance(value, list):
        return " and ".join(map(plainly, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
