"""What a caller may want of an experiment, checked before it waits for its turn."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

from lighttail.checks import array_of, refuse, whole
from lighttail.live.alarms import Found
from lighttail.online.state import LARGEST, checked_about, checked_reward
from lighttail.online.trials import Label, check_name

MOST_AT_ONCE = 1_000  # trials per ask, and rewards per tell
LONGEST_TEXT = 200  # characters of a key, a unit, or the name of an arm
LONGEST_ID = 18  # digits
MOST_ID = 10**LONGEST_ID


class Served(NamedTuple):
    """A trial as a caller gets it: `by` says who chose the arm; action: that of a linear experiment."""

    id: int
    arm: Label
    by: str
    action: tuple[float, ...] | None = None


class Told(NamedTuple):
    """What became of the rewards of a `tell`: counted, known before, or after the window and not counted."""

    counted: int
    repeated: int
    late: int


class Ask(NamedTuple):
    """The wish for trials. offer: the actions, and their labels, of a linear experiment. about: what the
    caller notes about each of them; empty if nothing is."""

    times: int
    key: str | None
    unit: str | None
    offer: dict[str, Any]
    about: dict[str, Any]


class Tell(NamedTuple):
    """Rewards by trial; the id is None if no trial can have it."""

    rewards: list[tuple[int | None, Any, float]]


class Change(NamedTuple):
    """A pause, resume, stop, alarm, new settings, or an arm that joins ("add") or leaves ("retire")."""

    kind: str
    fields: dict[str, Any]


class Weigh(NamedTuple):
    """What a forecast found for the risk budget: an alarm begins, is over, or stays as it is."""

    found: Found


class Note(NamedTuple):
    """Why the risk budget `risk` cannot be watched: the rewards contradict `settings.means`."""

    risk: dict[str, Any]
    message: str


class Look(NamedTuple):
    """A look at the book: "summary", "state", "outlook" (what a forecast needs), "heard" (which rewards are
    evidence), "risk" (whether a forecast is due), or "tick", which only lets time pass."""

    what: str


Request = Ask | Tell | Change | Weigh | Note | Look


def ask_for(
    count: Any = None,
    key: Any = None,
    unit: Any = None,
    actions: Any = None,
    labels: Any = None,
    about: Any = None,
) -> Ask:
    """A checked wish for trials."""
    times = 1 if count is None else whole("count", count, 1, most=MOST_AT_ONCE)
    unit = None if unit is None else text_of("unit", unit)
    if unit is not None and times != 1:
        raise refuse("count", times, "1 if a unit is given")
    offer: dict[str, Any] = {}
    if actions is not None:
        offer["actions"] = array_of("actions", actions, "rows of numbers").tolist()
    if labels is not None:
        offer["labels"] = list(labels) if isinstance(labels, Iterable) else labels
    noted = {} if about is None else checked_about(about)
    return Ask(times, None if key is None else text_of("key", key), unit, offer, noted)


def arm_change(kind: str, arm: Any) -> Change:
    """The checked wish that an arm joins ("add") or leaves ("retire")."""
    return Change(kind, {"arm": shown_label("arm", check_name("arm", arm))})


def settings_change(settings: Any) -> Change:
    """The wish for other settings, in place of all that there were; the book checks what is in them."""
    if not isinstance(settings, dict):
        raise refuse("settings", settings, "an object with the settings")
    given = {name: value for name, value in settings.items() if value is not None}
    return Change("settings", {"settings": given})


def shown_label(field: str, label: Any) -> Any:
    """The name of an arm, which every page and database can show and every event can repeat."""
    if isinstance(label, str) and any("\ud800" <= sign <= "\udfff" for sign in label):
        raise refuse(field, label, "names without halves of characters")
    if isinstance(label, str) and len(label) > LONGEST_TEXT:
        raise refuse(field, label, f"names of at most {LONGEST_TEXT} characters")
    return label


def tell_of(rewards: Any) -> Tell:
    """Checked rewards from pairs of an id and a reward."""
    pairs = rewards.items() if isinstance(rewards, dict) else rewards
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        raise refuse("rewards", rewards, "a list of ids and rewards")
    found = []
    for id, reward in pairs:
        found.append((id if type(id) is int and 0 < id < MOST_ID else number_of(id), id, _reward(reward)))
    if not 1 <= len(found) <= MOST_AT_ONCE:
        raise refuse("the number of rewards", len(found), f"1 to {MOST_AT_ONCE}")
    return Tell(found)


def _reward(value: Any) -> float:
    if type(value) is float and -LARGEST <= value <= LARGEST:
        return value
    return float(value) if isinstance(value, bool) else checked_reward("reward", value)


def number_of(id: Any) -> int | None:
    """The number of a trial. An id is text in JSON; a number that reads the same is accepted. None if the
    text is no number, so that no trial can have it."""
    if isinstance(id, str):
        plain = id.isascii() and id.isdigit() and len(id) <= LONGEST_ID and not id.startswith("0")
        return int(id) if plain else None
    if isinstance(id, bool) or not isinstance(id, Integral):
        raise refuse("id", id, "the id of a trial, as text or as a whole number")
    return int(id) if 1 <= int(id) < MOST_ID else None


def text_of(field: str, value: Any) -> str:
    """A key or a unit: any text that every database can keep."""
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_TEXT:
        raise refuse(field, value, f"a text of 1 to {LONGEST_TEXT} characters")
    try:
        value.encode("utf-8")
        if "\0" not in value:
            return value
    except UnicodeEncodeError:
        pass
    raise refuse(field, value, "a text without zero bytes and halves of characters")
