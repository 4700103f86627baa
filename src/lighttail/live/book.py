"""The book: what the events of an experiment add up to. It is made by replaying a journal, and by nothing
else.

The desk plays a request by making events and entering them here; a replay enters the same events again. Both
go through `enter`, so that a book that was replayed equals a book that was played, bit by bit."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lighttail.checks import BadInput, refuse
from lighttail.live.alarms import MEANS, after_alarm
from lighttail.live.errors import Damaged, conflict
from lighttail.live.hearing import Hearing
from lighttail.live.journal import BINDING, Event
from lighttail.live.ledger import FALLBACK, HOLDOUT, RETURN, SEEN, TO_POLICY, Ledger, OpenTrial
from lighttail.live.settings import Settings, place_of, read_settings
from lighttail.online.base import Label
from lighttail.online.player import ArmPlayer, player_for
from lighttail.reading.words import parse_policy

APART = {"holdout": HOLDOUT, "fallback": FALLBACK}
WHOSE = {**APART, "sticky": RETURN}
FORMAT = 6  # of snapshots: a new number for every change of their fields, or of what a field means
NUMBERS = ("seq", "time", "last", "paused", "stopped", "astray", "alarm", "noted", "rechosen")
NO_MEMO: tuple[float, ...] = ()
Story = Callable[[int], list[Event]]  # all events of a trial
Reward = tuple[Event, OpenTrial | None]  # a reward, and the trial; None if it is not open
Closed = tuple[int, int, tuple[float, ...], float]  # the place, who saw it, the memo and the default


class Tally:
    """The trials of each arm that the policy does not see."""

    def __init__(self, arms: int) -> None:
        self.tries, self.heard, self.total = [0] * arms, [0] * arms, [0.0] * arms

    def grow(self) -> None:
        """One more arm."""
        self.tries.append(0)
        self.heard.append(0)
        self.total.append(0.0)


class Book:
    """The state of an experiment after event `seq`.

    last: the id of the last trial. time: the time of the last event. astray: how often the policy, asked
    again in a replay, chose another arm than the journal says (the journal is followed); 0 unless a machine
    computes other bits. rechosen: whether units that stuck to a retired arm may have got another arm; these
    visits are not marked as later ones."""

    def __init__(self, event: Event) -> None:
        if event.get("kind") != "create" or event.get("seq") != 1:
            raise Damaged("the first event must create the experiment")
        self.first, self.name, self.seed = event, str(event["name"]), int(event["seed"])
        policy, find = parse_policy(event["policy"]), event.get
        self.player = player_for(policy, find("arms"), find("dim"), find("horizon"), event["seed"])
        self.labels: list[Label] | None = self.player.labels if isinstance(self.player, ArmPlayer) else None
        self.retired: dict[int, int] = {}  # the place of each retired arm, and the event that retired it
        self.settings = self.read(event.get("settings"))
        self.rechosen = False
        self.ledger = Ledger(self.player.memo)
        arms = len(self.labels or ())
        self.apart = {HOLDOUT: Tally(arms), FALLBACK: Tally(arms)}
        self.hearing = Hearing()
        self.counts: defaultdict[str, int] = defaultdict(int)  # asks by `by`, and events by kind
        self.seq, self.time, self.last = 1, float(event["time"]), 0
        self.paused = self.stopped = False
        self.astray = 0
        self.alarm: Event | None = None  # the last one about the present risk budget
        self.noted = False  # whether a note says that the rewards contradict the present `settings.means`
        self.names: dict[int, Label] = {}  # the label of each open trial of a linear policy, if it has one

    def read(self, settings: Any) -> Settings:
        """The settings that a user or an event gives. Raises BadInput if they do not fit the experiment."""
        made = read_settings(settings, self.labels, self.player)
        for place in self.retired:
            if (name := made.naming(place)) is not None:
                raise refuse(f"settings.{name}", self.label(place), "an arm in play", found="was retired")
        return made

    def label(self, place: int) -> Label:
        """The name of an arm."""
        return (self.labels or [])[place]

    # Events

    def enter(self, event: Event, story: Story) -> None:
        """Take in the next event. story: finds the events of a trial that was closed before."""
        self._check_next(event)
        kind = event["kind"]
        if kind == "ask":
            self._ask(event)
            return
        if kind in ("tell", "default", "late", "amend"):
            trial = self.ledger.find(int(event["id"]))
            if kind == "tell" and trial is not None:
                self.hear_one(trial, event["reward"], event["time"])
            else:
                self.hear([(event, trial)], story)
            return
        if kind == "settings":
            self.hearing.forget(self._young_since())
            risk, self.settings = self.settings.risk, self.read(event["settings"])
            self.alarm, self.noted = self.alarm if self.settings.risk == risk else None, False
        elif kind in ("pause", "resume"):
            self.paused = kind == "pause"
        elif kind == "stop":
            self.stopped = True
        elif kind == "add":
            self.player.add(event["arm"])
            for tally in self.apart.values():
                tally.grow()
        elif kind == "retire":
            self._retire(event)
        elif kind == "alarm":
            self.alarm = after_alarm(self.alarm, event, self.settings.risk)
            self.noted = self.noted or event.get("about") == MEANS
        else:
            raise Damaged(f"event {event['seq']} is of the kind {kind!r}, which this version does not know")
        self._passed(kind, event["time"])

    def _retire(self, event: Event) -> None:
        place = place_of("arm", event["arm"], self.labels or ())
        if (name := self.settings.naming(place)) is not None:
            allowed = f"an arm without settings.{name}; change this setting first"
            raise conflict("arm", event["arm"], allowed, found="has it")
        self.player.retire(self.label(place))
        self.retired[place] = event["seq"]

    def _check_next(self, event: Event) -> None:
        if event.get("seq") != self.seq + 1:
            raise Damaged(f"event {self.seq + 1} is missing: {event.get('seq')!r} comes after {self.seq}")

    def _passed(self, kind: str, time: float) -> None:
        """The next event was taken in."""
        self.seq += 1
        self.time = time
        self.counts[kind] += 1

    @property
    def policy_decides(self) -> bool:
        """Whether the policy chooses the arm of every ask, and no ask is refused."""
        rails = self.settings
        others = rails.needs_unit or rails.shares or self.paused or self.stopped
        return self.labels is not None and not others

    def pulled(self, time: float) -> Label:
        """Take in a pull that is being played, if `policy_decides`; the arm that the policy chooses."""
        place, label, memo = self.player.choose()
        self._opened("policy", time, place, SEEN, memo)
        return label

    def _opened(self, by: str, time: float, place: int, apart: int, memo: tuple[float, ...]) -> None:
        """Take in an ask, whose arm is known."""
        self.last += 1
        self.ledger.add(self.last, time, place, apart, memo)
        self.counts[by] += 1
        self._passed("ask", time)

    def _ask(self, event: Event) -> None:
        """A pull. Its arm is None while it is being played, and becomes the arm that the policy chooses."""
        by, memo = event["by"], NO_MEMO
        if int(event["id"]) != self.last + 1:
            raise Damaged(f"event {event['seq']} asks for trial {event['id']} after trial {self.last}")
        if by == "policy":
            place, memo = self._chosen(event)
        else:
            place = place_of("arm", event["arm"], self.labels or ())
            if by in APART:
                self.apart[APART[by]].tries[place] += 1
            else:
                memo = self.player.take(place)
        if self.retired and self.settings.sticky and by in BINDING:
            self.rechosen = True
        self._opened(by, event["time"], place, WHOSE.get(by, SEEN), memo)
        if self.labels is None and event.get("labels") is not None:
            self.names[self.last] = event["arm"]

    def _chosen(self, event: Event) -> tuple[int, tuple[float, ...]]:
        place, label, memo = self.player.choose(event)
        if event["arm"] is None:
            event["arm"] = label
        elif event["arm"] != label:
            self.astray += 1
            true = place_of("arm", event["arm"], self.labels or event.get("labels") or range(2**20))
            memo, place = self.player.follow(place, true), true
        return place, memo

    def hear(self, heard: list[Reward], story: Story) -> None:
        """Take in rewards (tell, default, late, amend), all or none. Raises BadInput, and changes nothing, if
        the policy refuses one of them."""
        standing = self.player.standing
        mark = standing.mark() if len(heard) > 1 else None
        closed: dict[str, Closed] = {}  # read before anything is entered, because a journal may fail
        try:
            for event, trial in heard:
                if trial is not None:
                    if trial.apart in TO_POLICY:
                        standing.learn(trial.place, event["reward"], trial.memo)
                elif event["kind"] == "amend":
                    closed[event["id"]] = self._amend(event, story)
                elif event["kind"] != "late":
                    reward = f"event {event['seq']} has a reward for trial {event['id']}"
                    raise Damaged(f"{reward}, which is not open")
        except BadInput:
            if mark is not None:
                standing.back(mark)
            raise
        for event, trial in heard:
            self._check_next(event)
            if trial is not None:
                self._close(trial, event["kind"], event["reward"], event["time"])
            elif (was := closed.get(event["id"])) is not None:
                self._amended(event["reward"], was)
            self._passed(event["kind"], event["time"])

    def hear_one(self, trial: OpenTrial, reward: float, time: float) -> None:
        """`hear` for the first reward of one open trial."""
        if trial.apart in TO_POLICY:
            self.player.standing.learn(trial.place, reward, trial.memo)
        self._close(trial, "tell", reward, time)
        self._passed("tell", time)

    def _close(self, trial: OpenTrial, kind: str, reward: float, time: float) -> None:
        """Count the first reward of a trial, which the policy has learned, or does not see."""
        if trial.apart in TO_POLICY:
            self._note(trial, kind, reward, time)
            if self.names:
                self.names.pop(trial.id, None)
        else:
            self.apart[trial.apart].heard[trial.place] += 1
            self.apart[trial.apart].total[trial.place] += reward
        self.ledger.close(trial.id)

    def _note(self, trial: OpenTrial, kind: str, reward: float, time: float) -> None:
        window, again = self.settings.window, trial.apart == RETURN
        self.hearing.note(reward)
        if again:
            self.hearing.again(trial.place, 1, reward)
        if kind == "default":
            self.hearing.closed()
        elif window is not None:
            same, took = reward == self.settings.default, (time - trial.time) / window
            self.hearing.early(trial.time, -1 if again else trial.place, reward, time - window, took, same)

    def _young_since(self) -> float | None:
        """Trials that were asked after this time are younger than the window; None if there is no window."""
        return None if self.settings.window is None else self.time - self.settings.window

    def _amend(self, event: Event, story: Story) -> Closed:
        """Let the policy learn a reward in place of the default; what the trial was."""
        place, apart, memo, old = closed = self._told(event, story)
        if apart in TO_POLICY:
            self.player.standing.amend(place, old, event["reward"], memo)
        return closed

    def _amended(self, reward: float, was: Closed) -> None:
        """Count a reward in place of the default. was: what the trial was."""
        place, apart, _, old = was
        if apart not in TO_POLICY:
            self.apart[apart].total[place] += reward - old
            return
        self.hearing.note(reward)
        if apart == RETURN:
            self.hearing.again(place, 0, reward - old)

    def _told(self, event: Event, story: Story) -> Closed:
        """The place of a closed trial, who saw it, its memo, and the reward with which it was closed."""
        past = story(int(event["id"]))
        asked = next((one for one in past if one["kind"] == "ask"), None)
        closed = next((one for one in past if one["kind"] == "default"), None)
        if asked is None or closed is None:
            raise Damaged(f"event {event['seq']} amends trial {event['id']}, which no window has closed")
        labels = self.labels or asked.get("labels") or range(len(asked["actions"]))
        place = place_of("arm", asked["arm"], labels)
        memo = () if self.labels else tuple(map(float, asked["actions"][place]))
        return place, WHOSE.get(asked["by"], SEEN), memo, closed["reward"]

    # Answers

    @property
    def heard(self) -> int:
        """How many rewards were counted, defaults included."""
        return self.counts.get("tell", 0) + self.counts.get("default", 0)

    def known(self, now: float) -> tuple[Any, Any]:
        """The number and the sum of the rewards of each arm that are evidence at this time: those of trials
        that are older than the window and, of units that come back, those of the first visit."""
        if not isinstance(self.player, ArmPlayer):
            return (self.heard,), (0.0,)
        window = self.settings.window
        counts, _ = self.player.standing.arrays()
        return self.hearing.known(counts, None if window is None else now - window)

    def state(self) -> str:
        """What the policy knows, as `Experiment.from_json` or `LinearExperiment.from_json` reads it."""
        seen = (trial for trial in self.ledger if trial.apart in TO_POLICY)
        opened = ((trial.id, self.names.get(trial.id, trial.place), trial.memo) for trial in seen)
        return self.player.text(self.last, opened)

    def summary(self) -> dict[str, Any]:
        """The experiment in numbers. `heard` includes the trials that the window closed."""
        kinds = ("tell", "default", "late", "amend")
        asks = ("policy", "floor", "sticky", "holdout", "fallback")
        return {
            **{name: self.first.get(name) for name in ("name", "policy", "dim", "horizon", "seed")},
            "arms": None if self.labels is None else list(self.labels),
            "retired": [self.label(place) for place in sorted(self.retired)],
            "joined": 0 if self.labels is None else len(self.labels) - len(self.first["arms"]),
            **self._seen(),
            "open": self.ledger.open_seen,
            "pulls": self.player.pulls,
            "paused": self.paused,
            "stopped": self.stopped,
            "settings": self.settings.plain,
            "alarm": self.alarm,
            "asked": {by: self.counts.get(by, 0) for by in asks},
            **{name: self._unseen(code) for name, code in APART.items()},
            "events": {kind: self.counts.get(kind, 0) for kind in kinds},
            "seq": self.seq,
            "time": self.time,
            "astray": self.astray,
        }

    def _seen(self) -> dict[str, Any]:
        if not isinstance(self.player, ArmPlayer):
            estimate = self.player.experiment.estimate.tolist()  # type: ignore[union-attr]
            return {"tries": self.player.pulls, "heard": self.heard, "estimate": estimate}
        stands = self.player.standing
        return _by_arm(self.player.labels, stands.tried, stands.heard, stands.total)

    def _unseen(self, code: int) -> dict[str, Any]:
        tally = self.apart[code]
        named = _by_arm(self.labels or [], tally.tries, tally.heard, tally.total)
        return {**named, "open": sum(tally.tries) - sum(tally.heard)}

    # Snapshots

    def to_plain(self) -> dict[str, Any]:
        """The whole book as JSON values: a snapshot, from which `restored` continues to the bit."""
        tallies = {str(code): [one.tries, one.heard, one.total] for code, one in self.apart.items()}
        return {
            **{"format": FORMAT, "order": sys.byteorder, "first": self.first},
            **{name: getattr(self, name) for name in NUMBERS},
            "counts": dict(self.counts),
            "settings": self.settings.plain,
            "apart": tallies,
            "retired": [[place, seq] for place, seq in self.retired.items()],
            "player": self.player.to_plain(),
            "hearing": self.hearing.to_plain(self._young_since()),
            "open": self.ledger.to_plain(),
            "names": list(self.names.items()),
        }

    @classmethod
    def restored(cls, plain: dict[str, Any]) -> Book | None:
        """The book of a snapshot; None if another version or kind of machine wrote it, so that a replay is
        due."""
        if plain["format"] != FORMAT or plain["order"] != sys.byteorder:
            return None
        book = cls(plain["first"])
        book.player.restore(plain["player"])  # with the arms of that time
        book.retired = {int(place): int(seq) for place, seq in plain["retired"]}
        book.settings = book.read(plain["settings"])
        book.ledger = Ledger.restored(book.player.memo, plain["open"])
        book.hearing = Hearing.restored(plain["hearing"])
        book.names = {int(id): label for id, label in plain["names"]}
        for code, (tries, heard, total) in plain["apart"].items():
            tally = book.apart[int(code)]
            tally.tries, tally.heard, tally.total = tries, heard, total
        for name in NUMBERS:
            setattr(book, name, plain[name])
        book.counts.update(plain["counts"])
        return book


def _by_arm(labels: list[Label], tries: Any, heard: Any, total: Any) -> dict[str, Any]:
    """The trials, the rewards and the mean reward of each arm; the mean is None if nothing was heard."""
    means = (value / n if n else None for value, n in zip(total, heard, strict=True))
    columns = {"tries": map(int, tries), "heard": map(int, heard), "means": means}
    return {name: dict(zip(labels, column, strict=True)) for name, column in columns.items()}


def entered_all(events: Iterable[Event]) -> Iterator[Book]:
    """The book of a journal after each of its events; it is one object. Memory: open and defaulted trials."""
    stories: dict[str, list[Event]] = {}
    book: Book | None = None
    for event in events:
        if book is None:
            book = Book(event)
        else:
            book.enter(event, lambda id: stories.get(str(id), []))
            if event["kind"] in ("ask", "default"):
                stories.setdefault(event["id"], []).append(event)
            elif event["kind"] == "tell":
                del stories[event["id"]]
        yield book
