"""The base class of live experiments: numbered trials, rewards that come late or twice, and the text."""

from __future__ import annotations

import json
import math
import reprlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import islice, pairwise
from numbers import Integral
from threading import RLock
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from lighttail.checks import EXACT, BadInput, refuse, whole
from lighttail.online.standing import plain_rows
from lighttail.online.state import (
    FOREIGN,
    LARGEST,
    checked_about,
    checked_reward,
    decode_generator,
    decode_settings,
    encode_generator,
    encode_settings,
    fields_of,
    generator_of,
    listed,
    parse,
)
from lighttail.policies import Policy

SMALLEST = -LARGEST  # the smallest reward
HISTORY = "history"  # the field of a text for what its trials do not say
ABOUT = "about"  # the field with what callers noted about open trials
MOST_AT_ONCE = 10**6  # pulls per ask at most
SHARED = ("lighttail", "format", "policy", "horizon", "rng", "trials", "rule")  # the fields of every text
LONGEST_REASON = 300  # characters: a longer reason is cut, because a user's class may quote all of its fields
MOST_NAMES = 10**6  # arms, or actions per round, at most
Label = str | int
Asked = TypeVar("Asked")


class LiveExperiment(ABC):
    """A policy, its random numbers, and the reward of every trial; the reward is None while the trial is
    open.

    Threads may share an experiment: every method that reads or changes the state holds the lock.

    Besides its reward, an arm and a memo are kept of each trial: the place of its arm and the policy's memo,
    or, with a linear policy, the label and the entries of its action. Trial `id` has the place `id - _first`
    in the lists. An experiment that was restored from a text without told trials knows only the open trials
    before `_first`; their places are negative.
    """

    kind: ClassVar[str]  # the kind of experiment, as the text of `to_json` names it
    version: ClassVar[int]  # the format of this text; one more with a history, two more with notes of callers
    _offered: ClassVar[str]  # the attribute, and the field of this text, with what the policy chooses from
    _columns: ClassVar[tuple[str, ...]]  # the columns of this text's trials, in their order
    _names: ClassVar[tuple[str, str]]  # the two of them that have the arms and the memos
    policy: Policy
    horizon: int | None
    _standing: Any  # the state of the policy's rule

    def __init__(self, policy: Policy, horizon: int | None, seed: int | np.random.Generator | None) -> None:
        self.policy, self.horizon = policy, horizon
        self._rng = generator_of(seed)
        self._arm_of: list[Any] = []
        self._reward_of: list[float | None] = []
        self._memo_of: list[Any] = []
        self._waiting: list[int] = []  # the ids of the trials that were open at the last `_open_ids`
        self._looked = 0  # how many places of the lists the last `_open_ids` looked at
        self._first = 1  # the id of the trial in the first place of the lists
        self._pulls_before = 0  # pulls before it
        self._older: dict[int, tuple[Any, Any]] = {}  # the open trials before it: their arms and memos
        self._taken = 0  # pulls that the policy did not choose
        self._about: dict[int, dict[str, Any]] = {}  # what callers noted about open trials
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        """The state for a copy or a pickle, without the lock, which belongs to one object in one process."""
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = RLock()

    @classmethod
    @abstractmethod
    def _begun(cls, policy: Any, state: dict[str, Any], rng: np.random.Generator) -> Self:
        """An experiment without trials that was made with what a text says."""

    @abstractmethod
    def _read_pulls(self, where: str, columns: dict[str, Any], count: int | None) -> tuple[Any, Any]:
        """The arms and the memos in these columns of a text, which must have so many rows if it is known."""

    @abstractmethod
    def _restore_rule(self, state: dict[str, Any]) -> None:
        """Continue from the rule of a text, after its trials. Raises BadInput if they cannot have led to
        it."""

    def _pulled(self) -> int:
        """The number of pulls, including open trials."""
        return self._pulls_before + len(self._reward_of)

    def _pull_of(self, id: int) -> tuple[Any, Any]:
        """The arm and the memo of the pull of a trial."""
        place = id - self._first
        return (self._arm_of[place], self._memo_of[place]) if place >= 0 else self._older[id]

    def _record(self, arm: Any, memo: Any) -> int:
        """Append a trial to the lists; its id."""
        self._arm_of.append(arm)
        self._reward_of.append(None)
        self._memo_of.append(memo)
        return self._first + len(self._arm_of) - 1

    def _ask_more(self, ask: Callable[[], Asked], count: int | None, about: Any) -> Asked | list[Asked]:
        """The trials of an ask with a count, or with a note, or with both."""
        times = 1 if count is None else whole("count", count, 1, most=MOST_AT_ONCE)
        noted = None if about is None else checked_about(about)
        with self._lock:
            trials = [ask() for _ in range(times)]
            if noted:
                end = self._first + len(self._reward_of)
                self._about |= dict.fromkeys(range(end - times, end), noted)
        return trials[0] if count is None else trials

    def _warn_if_over(self) -> None:
        """Warn once, before the first trial after the horizon."""
        if self._pulled() == self.horizon:
            said = f"the horizon of {self.horizon} pulls is over; the policy continues without its guarantees"
            warnings.warn(said, stacklevel=3)

    def tell(self, id: int, reward: float) -> None:
        """Tell the reward of the trial with this id: a finite number, or True or False."""
        if type(reward) is not float or not SMALLEST <= reward <= LARGEST:
            reward = _told(reward)
        self._lock.acquire()  # `with` takes twice as long
        try:
            rewards = self._reward_of
            if type(id) is int and 0 <= (place := id - self._first) < len(rewards):
                known = rewards[place]
            else:
                place = self._place(id)
                known = rewards[place] if place >= 0 else None
            if known is None:
                if place >= 0:
                    self._standing.learn(self._arm_of[place], reward, self._memo_of[place])
                    rewards[place] = reward
                else:
                    arm, memo = self._older[int(id)]
                    self._standing.learn(arm, reward, memo)
                    del self._older[int(id)]
                if self._about:
                    self._about.pop(int(id), None)
            elif known != reward:
                raise refuse("reward", reward, f"{known!r}, which was told before for trial {id}")
        finally:
            self._lock.release()

    def amend(self, id: int, reward: float) -> None:
        """Replace the reward that was told for the trial with this id.

        From now on the policy knows the sums that it would know if it had been told this reward at first,
        apart from rounding; the choices that it has made stay. A policy that decides for good because of a
        reward (`SuccessiveElimination`, `ExploreThenCommit`) or that adds up more than rewards (`Exp3IX`)
        refuses to replace a reward.
        """
        reward = _told(reward)
        with self._lock:
            place = self._place(id)
            known = self._reward_of[place] if place >= 0 else None
            if known is None:
                raise refuse("id", id, "the id of a trial whose reward was told; tell the first reward")
            if known != reward:
                self._standing.amend(self._arm_of[place], known, reward, self._memo_of[place])
                self._reward_of[place] = reward

    def about(self, id: int) -> dict[str, Any] | None:
        """What was noted about an open trial with `ask(about=...)`; None if nothing was, or if the trial has
        its reward."""
        with self._lock:
            noted = self._about.get(self._first + self._place(id))
            return None if noted is None else dict(noted)

    def _open_ids(self) -> list[int]:
        """The ids of the open trials, in their order. Only trials that were open at the last call, and newer
        trials, are looked at, so that the work does not grow with the finished trials."""
        first, rewards, older = self._first, self._reward_of, self._older
        waiting = [id for id in self._waiting if (id in older if id < first else rewards[id - first] is None)]
        asked = len(rewards)
        waiting += [first + place for place in range(self._looked, asked) if rewards[place] is None]
        self._waiting, self._looked = waiting, asked
        return waiting

    def _place(self, id: Any) -> int:
        """The place of a trial in the lists; negative if the trial is older than the lists."""
        asked = self._first - 1 + len(self._reward_of)
        if isinstance(id, bool) or not isinstance(id, Integral) or not 1 <= int(id) <= asked:
            which = f"the ids so far are 1 to {asked}" if asked else "no trial was asked yet"
            raise refuse("id", id, f"the id of a trial that was asked ({which})")
        place = int(id) - self._first
        if place < 0 and int(id) not in self._older:
            raise refuse("id", id, "the id of a trial that is open or that this experiment remembers")
        return place

    def to_json(self, told: bool = True) -> str:
        """The state as text, from which another process can continue with exactly the same choices.

        told: whether the text has the trials whose reward was told. Without them the size of the text and the
        time to write it depend on the open trials alone; an experiment that continues from such a text
        refuses a reward that is told again.
        """
        with self._lock:
            history, more = self._history(told), self._more()
            state = {
                "lighttail": self.kind,
                "format": self.version + (2 if more else history is not None),
                "policy": encode_settings(self.policy),
                "horizon": self.horizon,
                "rng": encode_generator(self._rng),
                self._offered: getattr(self, self._offered),
                "trials": self._trials(told),
                "rule": self._standing.to_plain(),
                **({} if history is None else {HISTORY: history}),
                **more,
            }
            try:
                return json.dumps(state, allow_nan=False)
            except (TypeError, ValueError):  # every other part is made of checked numbers and names
                fit = "made of numbers, text, True, False and None alone in order to be saved"
                raise refuse("policy", self.policy, fit) from None

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Continue from the text that `to_json` returned. A policy class of your own must be imported."""
        try:
            state = parse(text)
            if not isinstance(state, dict) or "lighttail" not in state or "format" not in state:
                raise BadInput(FOREIGN, field="the text", value=text)
            cls._check_kind(state["lighttail"], state["format"])
            try:
                fields_of("the text", state, (*SHARED, cls._offered, *cls._further(state)))
                made = cls._begun(decode_settings(state["policy"]), state, decode_generator(state["rng"]))
                made._restore(state)
                return made
            except BadInput as error:
                raise error.within("the text is not a whole experiment", LONGEST_REASON) from None
        except RecursionError:
            raise BadInput(f"{FOREIGN}: it is nested too deeply", field="the text", value=text) from None

    def _trials(self, told: bool) -> dict[str, Any]:
        """The columns of the trials, of which the text without told trials has none."""
        if not told:
            return {name: [] for name in self._columns}
        arms, memos = self._names
        lists = {arms: self._arm_of, "reward": self._reward_of, memos: plain_rows(self._memo_of)}
        return {name: lists[name] for name in self._columns}

    def _history(self, told: bool) -> dict[str, Any] | None:
        """The history: what the trials of the text do not say; None if they say everything."""
        asked = 0 if told else len(self._reward_of)
        counts = {"ids": self._first - 1 + asked, "pulls": self._pulls_before + asked, "taken": self._taken}
        replaced = self._standing.replaced.tolist()
        if not any(counts.values()) and not np.any(replaced):
            return None
        ids = [id for id in self._open_ids() if id <= counts["ids"]]
        pulls, (arms, memos) = [self._pull_of(id) for id in ids], self._names
        opened = {"id": ids, arms: [arm for arm, _ in pulls], memos: plain_rows([memo for _, memo in pulls])}
        return {**counts, "replaced": replaced, "open": opened}

    def _more(self) -> dict[str, Any]:
        """What only the highest format has; empty if a text needs nothing of it."""
        return {ABOUT: {str(id): about for id, about in self._about.items()}} if self._about else {}

    @classmethod
    def _further(cls, state: dict[str, Any]) -> tuple[str, ...]:
        """The fields of a text that only a higher format has."""
        if state["format"] == cls.version + 2:
            return (*((HISTORY,) if HISTORY in state else ()), ABOUT)
        return (HISTORY,) if state["format"] > cls.version else ()

    def _restore_about(self, noted: Any) -> None:
        if not isinstance(noted, dict):
            raise refuse(ABOUT, noted, "an object with what was noted about open trials")
        waiting = {str(id): id for id in self._open_ids()} if noted else {}
        for id, about in noted.items():
            if id not in waiting:
                raise refuse("an id in about", id, "the id of an open trial")
            self._about[waiting[id]] = checked_about(about)

    def _restore(self, state: dict[str, Any]) -> None:
        """Continue from a text."""
        trials = fields_of("trials", state["trials"], self._columns)
        self._arm_of, self._memo_of = self._read_pulls("trials", trials, None)
        rewards = listed("trials.reward", trials["reward"], len(self._arm_of))
        self._reward_of = [r if r is None else checked_reward("trials.reward", r) for r in rewards]
        if HISTORY in state:
            self._restore_history(state[HISTORY])
        self._restore_rule(state)
        self._restore_about(state.get(ABOUT, {}))

    def _restore_history(self, history: Any) -> None:
        """Continue with a history. The ids of its open trials grow, and are below those of the text's
        trials."""
        fields_of(HISTORY, history, ("ids", "pulls", "taken", "replaced", "open"))
        self._first = 1 + whole("history.ids", history["ids"], 0, most=EXACT)
        self._pulls_before = whole("history.pulls", history["pulls"], 0, most=self._first - 1)
        self._taken = whole("history.taken", history["taken"], 0, most=EXACT)
        self._standing.restore_replaced("history.replaced", history["replaced"])
        opened = fields_of("history.open", history["open"], ("id", *self._names))
        ids = listed("history.open.id", opened["id"])
        for id in ids:
            whole("history.open.id", id, 1, most=self._first - 1)
        if any(later <= sooner for sooner, later in pairwise(ids)):
            raise refuse("history.open.id", ids, "ids that grow")
        pulls = self._read_pulls("history.open", opened, len(ids))
        self._older = dict(zip(ids, zip(*pulls, strict=True), strict=True))
        self._waiting = ids

    @classmethod
    def _check_kind(cls, kind: Any, version: Any) -> None:
        """Raise BadInput if the text is of another kind or version. A version of True or 1.0 is not 1."""
        known = (cls.version, cls.version + 1, cls.version + 2)
        if kind != cls.kind or type(version) is not int or version not in known:
            article = "an" if cls.kind[0] in "aeiou" else "a"
            found = f"{reprlib.repr(version)} of {reprlib.repr(kind)}"
            allowed = f"{known[0]}, {known[1]} or {known[2]} of {article} {cls.kind}"
            raise refuse("format", version, allowed, found=f"is {found}")


def _told(reward: Any) -> float:
    return float(reward) if isinstance(reward, (bool, np.bool_)) else checked_reward("reward", reward)


def known_horizon(policy: Policy, horizon: Any, least: int, why: str, otherwise: str) -> int | None:
    """The horizon as an int, or None if the policy needs no horizon and none is given.

    least: the smallest horizon that is allowed, and why. otherwise: what the message recommends if the
    horizon is missing.
    """
    if horizon is None and policy.needs_horizon:
        raise refuse("horizon", None, f"given with {policy}", found="is missing", more=f"; {otherwise}")
    return None if horizon is None else whole("horizon", horizon, least, why, most=EXACT)


def or_nan(horizon: int | None) -> float:
    """The horizon for formulas: nan if there is none."""
    return math.nan if horizon is None else horizon


def check_names(field: str, names: Any, least: int, allowed: str) -> list[Label]:
    """The names as a list. Raises BadInput unless they are different texts or whole numbers."""
    if isinstance(names, (str, bytes, set, frozenset)) or not isinstance(names, Iterable):
        raise refuse(field, names, allowed)
    try:
        listed = list(islice(names, MOST_NAMES + 1))
    except TypeError:  # an array without dimensions
        raise refuse(field, names, allowed) from None
    if len(listed) > MOST_NAMES:
        raise refuse(f"the number of {field}", f"more than {MOST_NAMES}", f"at most {MOST_NAMES}")
    if len(listed) < least:
        raise refuse(field, listed, allowed)
    checked = [check_name(field, name) for name in listed]
    if len(set(checked)) < len(checked):
        raise refuse(field, checked, "different from each other")
    return checked


def row_names(labels: Any, count: int) -> list[Label]:
    """The names of the rows: the labels, or the places of the rows if there are no labels."""
    if labels is None:
        return list(range(count))
    allowed = f"a list of {count} names, one per action"
    names = check_names("labels", labels, 1, allowed)
    if len(names) != count:
        raise refuse("labels", names, allowed)
    return names


def check_name(field: str, name: Any) -> Label:
    """One name as a str or an int."""
    if isinstance(name, str):
        return str(name)
    if isinstance(name, bool) or not isinstance(name, Integral) or abs(int(name)) >= 10**20:
        raise refuse(field, name, "names that are text or whole numbers of at most 20 digits")
    return int(name)
