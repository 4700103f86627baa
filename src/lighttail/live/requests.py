"""What a caller may want of an experiment: requests, which are checked before they wait for their turn,
tickets that wait for the answers, and the verbs of callers that wait, too."""

from __future__ import annotations

from _thread import allocate_lock
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from numbers import Integral
from typing import Any, NamedTuple

from lighttail.checks import array_of, refuse, whole
from lighttail.live.alarms import Found
from lighttail.live.errors import unavailable
from lighttail.online.base import Label, check_name
from lighttail.online.state import LARGEST, checked_about, checked_reward

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

    def fields(self) -> dict[str, Any]:
        """What an event and the body of a request say of the wish besides its key."""
        said: dict[str, Any] = {} if self.unit is None else {"unit": self.unit}
        if self.about:
            said["about"] = self.about
        return said | self.offer


class Tell(NamedTuple):
    """Rewards by trial; the id is None if no trial can have it."""

    rewards: list[tuple[int | None, Any, float]]


class Change(NamedTuple):
    """A pause, resume, stop, alarm, new settings, or an arm that joins ("add") or leaves ("retire")."""

    kind: str
    fields: dict[str, Any]


class Weigh(NamedTuple):
    """What a forecast found for the risk budget: an alarm begins, is over, or stays as it is."""

    chance: Found


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


Then = Callable[[list["Ticket"]], None]


class Ticket:
    """A request that waits for its answer. then: called in a thread of the desk, once per commit, with all
    tickets that are done and have this `then`. holder: whatever the caller wants to find again. quiet: nobody
    calls `result`, because `then` says when there is an answer."""

    __slots__ = ("_done", "answer", "error", "holder", "request", "then")

    def __init__(
        self, request: Request, then: Then | None = None, holder: Any = None, quiet: bool = False
    ) -> None:
        self.request, self.then, self.holder = request, then, holder
        self.answer: Any = None
        self.error: BaseException | None = None
        self._done: Any = None
        if not quiet:
            self._done = allocate_lock()
            self._done.acquire()

    def result(self, timeout: float | None = None) -> Any:
        """The answer, which is on disk, or the refusal as an exception. After `timeout` seconds: Refused
        (503); it is then not known whether the request counts, and it may be sent again with the same key or
        ids."""
        if not self._done.acquire(timeout=-1 if timeout is None else timeout):
            raise unavailable("the answer did not come in time; send the request again", "timeout")
        self._done.release()
        if self.error is not None:
            raise self.error
        return self.answer


def finish(tickets: Iterable[Ticket]) -> None:
    """Wake those who wait for these tickets, whose answers are on disk or whose errors are final."""
    called: defaultdict[Then, list[Ticket]] = defaultdict(list)
    for ticket in tickets:
        if ticket._done is not None:
            ticket._done.release()
        if (then := ticket.then) is not None:
            called[then].append(ticket)
    for then, done in called.items():
        with suppress(Exception):  # the caller's mistake must not end the desk
            then(done)


class Verbs(ABC):
    """Requests that are checked, wait for their turn, and return their answers, which are on disk."""

    @abstractmethod
    def submit(self, request: Request) -> Ticket:
        """Let a request wait for its turn."""

    def ask(
        self,
        count: Any = None,
        key: Any = None,
        unit: Any = None,
        actions: Any = None,
        labels: Any = None,
        about: Any = None,
    ) -> list[Served]:
        """The next trials, on disk. The same key again gives the same trials. about: a small object that is
        kept in the journal with each of them (`Experiment.ask`)."""
        asked: list[Served] = self.submit(ask_for(count, key, unit, actions, labels, about)).result()
        return asked

    def tell(self, rewards: Any) -> Told:
        """Count rewards, given as pairs of an id and a reward: all of them, or none and a refusal."""
        told: Told = self.submit(tell_of(rewards)).result()
        return told

    def pause(self) -> bool:
        """Serve the fall-back arm from now on; False if the experiment is paused already."""
        return bool(self.submit(Change("pause", {})).result())

    def resume(self) -> bool:
        """Let the policy choose again; False if the experiment is not paused."""
        return bool(self.submit(Change("resume", {})).result())

    def stop(self) -> bool:
        """Ask no more, for good; rewards still count. False if the experiment is stopped already."""
        return bool(self.submit(Change("stop", {})).result())

    def set(self, settings: Any) -> bool:
        """Have these settings from now on, in place of all that there were; False if they are the same."""
        return bool(self.submit(settings_change(settings)).result())

    def add(self, arm: Any) -> bool:
        """Let one more arm join; False if there is such an arm already."""
        return bool(self.submit(arm_change("add", arm)).result())

    def retire(self, arm: Any) -> bool:
        """Never choose this arm again, for good; its rewards still count. False if it was retired before."""
        return bool(self.submit(arm_change("retire", arm)).result())

    def alarm(self, **fields: Any) -> bool:
        """Write an alarm into the journal."""
        return bool(self.submit(Change("alarm", fields)).result())

    def summary(self) -> dict[str, Any]:
        """The experiment in numbers."""
        found: dict[str, Any] = self.submit(Look("summary")).result()
        return found

    def state(self) -> str:
        """What the policy knows, as `Experiment.from_json` reads it."""
        return str(self.submit(Look("state")).result())

    def tick(self) -> None:
        """Close the trials whose window is over."""
        self.submit(Look("tick")).result()
