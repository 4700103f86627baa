"""Playing requests: each becomes events, which are entered into the book at once and on disk together
later."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from lighttail.checks import BadInput, refuse
from lighttail.live.alarms import MEANS, ON, Found, alarm_fields, is_on, verdict
from lighttail.live.book import Book, Reward
from lighttail.live.errors import conflict, unknown
from lighttail.live.journal import BINDING, Event, Row, as_row, ask_line, digest_after, event_of, reward_line
from lighttail.live.requests import Ask, Change, Look, Note, Request, Served, Tell, Told
from lighttail.live.settings import place_of
from lighttail.live.writer import Past, Stories
from lighttail.online.base import Label

_new = tuple.__new__  # faster than calling `Served`
MOST_CLOSED = 2_000  # trials that one commit closes because their window is over


def keys_of(requests: list[Request]) -> set[str]:
    """The keys of all asks that have one."""
    return {request.key for request in requests if type(request) is Ask and request.key is not None}


class Round:
    """The requests that are played in one turn, on one book, and the rows of the events that they make.

    A request that is refused leaves the book as it was. The rows are not on disk: nobody may be answered
    before they are, and the book must be thrown away if they cannot be written. digest: that of all lines
    before. keys: the lines of the asks of each key that was found or used."""

    def __init__(self, book: Book, past: Past, now: float, digest: bytes) -> None:
        self.book, self.past = book, past
        self.now = max(now, book.time)  # a clock that was set back stands still until it has caught up
        self.rows: list[Row] = []
        self.keys: dict[str, list[str]] = {}
        self._digest, self._shown = digest, repr(self.now)
        self._freely = book.policy_decides
        self._units: dict[str, Label | None] = {}
        self._gone: set[Label | None] = set()  # arms that were retired in this round
        self._stories = Stories(self.rows)

    def look_up(self, requests: list[Request]) -> None:
        """Find the keys and the units of all requests in the journal, in two questions."""
        if keys := keys_of(requests):
            self.keys = self.past.with_keys(keys)
        if self.book.settings.sticky:
            units = {request.unit for request in requests if type(request) is Ask} - {None}
            if units:
                self._find_units(list(units))  # type: ignore[arg-type]

    def _find_units(self, units: list[str], after: int = 0) -> None:
        """Note the arm to which each unit sticks. A unit whose arm was retired sticks to the first arm that
        it got since."""
        found = {event["unit"]: event["arm"] for event in self.past.of_units(units, after)}
        self._units |= {unit: found.get(unit) for unit in units}
        for place, seq in self.book.retired.items():
            label = self.book.label(place)
            if moved := [unit for unit, arm in found.items() if arm == label]:
                self._find_units(moved, seq)

    def _arm_of(self, unit: str) -> Label | None:
        if unit not in self._units or self._units[unit] in self._gone:
            self._find_units([unit])
        return self._units[unit]

    def story(self, id: int) -> list[Event]:
        """All events of a trial, those of this round included."""
        return [*self.past.of_trial(id), *self._stories.of(id)]

    def play(self, request: Request) -> Any:
        """The answer to a request. Raises BadInput if it is refused."""
        kind = type(request)
        if kind is Ask:
            return self._ask(request)  # type: ignore[arg-type]
        if kind is Tell:
            return self._tell(request)  # type: ignore[arg-type]
        if isinstance(request, Look):
            return self._look(request)
        if isinstance(request, Note):
            return self._note(request)
        answer = self._change(request) if isinstance(request, Change) else self._weigh(request.chance)  # type: ignore[union-attr]
        self._freely = self.book.policy_decides
        return answer

    def _enter(self, event: Event) -> None:
        self.book.enter(event, self.story)
        self._keep(event)

    def _keep(self, event: Event) -> None:
        """Make the row of an event that was entered."""
        row = as_row(event, self._digest)
        self._digest = row.digest
        self.rows.append(row)

    def _keep_plain(self, seq: int, id: int, key: str | None, body: str) -> None:
        """Make the row of an event that was entered and has a trial, and no unit."""
        self._digest = digest = digest_after(self._digest, body)
        self.rows.append(_new(Row, (seq, id, key, None, body, digest)))

    def _made(self, kind: str, fields: dict[str, Any], after: int = 0) -> Event:
        return {"seq": self.book.seq + 1 + after, "time": self.now, "kind": kind, **fields}

    # Asks

    def _ask(self, ask: Ask) -> list[Served]:
        if ask.key is not None and (before := self.keys.get(ask.key)):
            return self._asked_before(ask, [event_of(body) for body in before])
        if self._freely and ask.times == 1 and ask.unit is None and not ask.offer and not ask.about:
            return self._ask_policy(ask.key)
        self._check_ask(ask)
        more: Event = ({} if ask.key is None else {"key": ask.key}) | ask.fields()
        made = [self._pull(ask, more) for _ in range(ask.times)]
        if ask.key is not None:
            self.keys[ask.key] = [row.body for row in self.rows[-len(made) :]]
        return [served(event, self.book.labels is None) for event in made]

    def _ask_policy(self, key: str | None) -> list[Served]:
        """`_ask` as it mostly is: one trial, and nothing but the policy chooses its arm."""
        book = self.book
        arm = book.pulled(self.now)
        id = book.last
        body = ask_line(book.seq, self._shown, id, arm, "policy", key)
        self._keep_plain(book.seq, id, key, body)
        if key is not None:
            self.keys[key] = [body]
        return [_new(Served, (id, arm, "policy", None))]

    def _asked_before(self, ask: Ask, before: list[Event]) -> list[Served]:
        """The answer that was given to this key, if the request is the same. A refusal does not say what
        another caller has sent: whoever may ask may not read."""
        first = before[0]
        if len(before) != ask.times:
            raise conflict("count", ask.times, f"{len(before)}, as before with the key {ask.key!r}")
        if first.get("unit") != ask.unit:
            raise conflict("unit", ask.unit, f"as before with the key {ask.key!r}")
        if any(first.get(name) != ask.offer.get(name) for name in ("actions", "labels")):
            raise conflict("actions", ask.offer, f"those given before with the key {ask.key!r}")
        if not same_json(first.get("about", {}), ask.about):
            raise conflict("about", ask.about, f"as before with the key {ask.key!r}")
        return [served(event, self.book.labels is None) for event in before]

    def _check_ask(self, ask: Ask) -> None:
        book = self.book
        self._check_not_stopped()
        if book.settings.needs_unit and ask.unit is None:
            why = "sticky" if book.settings.sticky else "holdout"
            raise refuse("unit", None, f"given, because the experiment has the setting {why}")
        if book.labels is None and "actions" not in ask.offer:
            raise refuse("actions", None, "given: the policy chooses one of the actions that it is offered")
        if book.labels is not None and ask.offer:
            raise refuse("actions", ask.offer, f"left out with {book.first['policy']}, which has arms")

    def _pull(self, ask: Ask, more: Event) -> Event:
        by, arm = self._decided(ask.unit)
        book = self.book
        event: Event = {"seq": book.seq + 1, "time": self.now, "kind": "ask", "id": str(book.last + 1)}
        event |= {"arm": arm, "by": by, **more}
        self._enter(event)  # writes the arm if the policy chooses it
        if ask.unit is not None and by in BINDING and book.settings.sticky:
            self._units[ask.unit] = event["arm"]
        return event

    def _decided(self, unit: str | None) -> tuple[str, Label | None]:
        """Who chooses the arm, and which; None if the policy does."""
        book, rails = self.book, self.book.settings
        labels = book.labels
        if labels is None:
            if book.paused:
                found = "is paused and has no fall-back"
                raise conflict("experiment", book.name, "resumed first", found=found)
            return "policy", None
        if rails.holdout is not None and unit is not None and rails.in_holdout(book.name, unit):
            return "holdout", labels[rails.holdout[0]]
        if book.paused:
            return "fallback", labels[rails.fallback]
        if rails.sticky and unit is not None and (arm := self._arm_of(unit)) is not None:
            return "sticky", arm
        if rails.shares and (place := rails.floor(book.seed, book.last + 1)) is not None:
            return "floor", labels[place]
        return "policy", None

    # Rewards

    def _tell(self, tell: Tell) -> Told:
        if len(tell.rewards) == 1:  # as most are: one reward of an open trial
            id, _, reward = tell.rewards[0]
            if id is not None and (trial := self.book.ledger.find(id)) is not None:
                self.book.settings.check_reward(reward)
                self.book.hear_one(trial, reward, self.now)
                seq = self.book.seq
                self._keep_plain(seq, id, None, reward_line(seq, self._shown, "tell", id, reward))
                return COUNTED
        return self._tell_all(tell)

    def _tell_all(self, tell: Tell) -> Told:
        counted = repeated = late = 0
        given: dict[int, float] = {}
        heard: list[Reward] = []
        for id, written, reward in tell.rewards:
            if id is None or id > self.book.last:
                so_far = f"1 to {self.book.last}" if self.book.last else "no trial was asked yet"
                raise unknown(written, "id", f"the id of a trial that was asked ({so_far})")
            if id in given:
                if given[id] != reward:
                    allowed = f"{given[id]!r}, as before in the same list for trial {id}"
                    raise conflict("reward", reward, allowed)
                repeated += 1
                continue
            given[id] = reward
            trial = self.book.ledger.find(id)
            kind = "tell" if trial is not None else self._kind_of(id, reward)
            counted += kind in ("tell", "amend")
            late += kind == "late"
            repeated += kind is None
            if kind is not None:
                self.book.settings.check_reward(reward)
                heard.append((self._made(kind, {"id": str(id), "reward": reward}, len(heard)), trial))
        self._hear(heard)
        return Told(counted, repeated, late)

    def _kind_of(self, id: int, reward: float) -> str | None:
        """The kind of event that a reward of a closed trial makes; None if it is known. Raises Refused if it
        contradicts, without the reward that is known: whoever may tell may not read."""
        last = self.story(id)[-1]
        if last["kind"] == "default":
            return "amend" if self.book.settings.late == "amend" else "late"
        if last["reward"] != reward:
            raise conflict("reward", reward, f"the reward that was told before for trial {id}")
        return None

    def _hear(self, heard: list[Reward]) -> None:
        """Enter rewards, all or none."""
        self.book.hear(heard, self.story)
        for event, _ in heard:
            self._keep(event)

    def close_due(self) -> int:
        """Close trials that were open for longer than the window; how many. At most `MOST_CLOSED` at once."""
        rails, closed = self.book.settings, 0
        if rails.window is None:
            return 0
        due = self.book.ledger.due(self.now - rails.window, MOST_CLOSED)
        try:
            self._hear([self._defaulted(id, place) for place, id in enumerate(due)])
        except BadInput:  # the policy could not go on with one of them: it stays open
            for id in due:
                with suppress(BadInput):
                    self._hear([self._defaulted(id)])
                    closed += 1
            return closed
        return len(due)

    def _defaulted(self, id: int, after: int = 0) -> Reward:
        event = self._made("default", {"id": str(id), "reward": self.book.settings.default}, after)
        return event, self.book.ledger.find(id)

    # Everything else

    def _change(self, change: Change) -> bool:
        """Whether anything changed: a repeated request writes nothing."""
        book = self.book
        if change.kind in ("add", "retire"):
            return self._change_arms(change.kind, change.fields["arm"])
        if change.kind in ("pause", "resume"):
            self._check_not_stopped()
        done = {"pause": book.paused, "resume": not book.paused, "stop": book.stopped}
        done["settings"] = change.fields.get("settings") == book.settings.plain
        if done.get(change.kind):
            return False
        if change.kind == "settings":
            book.read(change.fields["settings"]).check_new(book.first.get("horizon"))
        self._enter(self._made(change.kind, change.fields))
        return True

    def _check_not_stopped(self) -> None:
        if self.book.stopped:
            allowed, found = "one that was not stopped", "was stopped for good"
            raise conflict("experiment", self.book.name, allowed, found=found)

    def _change_arms(self, kind: str, arm: Label) -> bool:
        """Let an arm join or leave; False if it is so already."""
        book, labels = self.book, self.book.labels or []
        self._check_not_stopped()
        if not labels:
            book.player.add(arm)  # refuses
        same = [place for place, label in enumerate(labels) if str(label) == str(arm)]
        if kind == "retire":
            arm = book.label(place_of("arm", arm, labels))
            if labels.index(arm) in book.retired:
                return False
            if len(labels) - len(book.retired) <= 2:
                found, more = "is one of two arms in play", "; pause or stop the experiment instead"
                raise conflict("arm", arm, "one of at least three", found=found, more=more)
        elif same and (labels[same[0]] != arm or same[0] in book.retired):
            raise conflict("arm", arm, "a name that no arm has, and had", found="was the name of one")
        elif same:
            return False
        self._enter(self._made(kind, {"arm": arm}))
        if kind == "retire":
            self._gone.add(arm)
        return True

    def _weigh(self, chance: Found) -> Event | None:
        """Write an alarm, and the pause that it calls for, if the forecast changes the state; the event of
        the alarm, or None. Another server may have done so before."""
        book, risk = self.book, self.book.settings.risk
        if risk != chance.risk or risk is None or book.stopped:
            return None
        if book.alarm is not None and chance.seq < book.alarm["after"]:  # a newer forecast has decided
            return None
        state = verdict(risk["chance"], chance.low, chance.high, is_on(book.alarm))
        if state is None:
            return None
        made = [self._made("alarm", alarm_fields(chance, state))]
        if state == ON and risk["then"] == "pause" and not book.paused:
            made.append(self._made("pause", {"by": "alarm"}, 1))
        for event in made:
            self._enter(event)
        return made[0]

    def _note(self, note: Note) -> Event | None:
        """Write that the rewards contradict `settings.means`, once until the settings change; the event, or
        None."""
        book = self.book
        if book.noted or book.stopped or book.settings.risk != note.risk or book.settings.means is None:
            return None
        event = self._made("alarm", {"about": MEANS, "message": note.message})
        self._enter(event)
        return event

    def _look(self, look: Look) -> Any:
        if look.what == "summary":
            return self.book.summary()
        if look.what in ("outlook", "heard"):
            from lighttail.live import outlook  # what it imports is slow to import

            read = outlook.outlook if look.what == "outlook" else outlook.known_of
            return read(self.book, self.now)
        if look.what == "risk":
            risk = None if self.book.stopped else self.book.settings.risk
            return risk, 0 if risk is None else int(sum(self.book.known(self.now)[0]))
        return self.book.state() if look.what == "state" else None


def same_json(first: Any, second: Any) -> bool:
    """Whether two values are the same in JSON, where 1 and true differ."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


COUNTED = Told(1, 0, 0)


def served(event: Event, linear: bool) -> Served:
    """A trial as a caller gets it."""
    if not linear:
        return _new(Served, (int(event["id"]), event["arm"], event["by"], None))
    labels = event.get("labels")
    place = labels.index(event["arm"]) if labels is not None else event["arm"]
    action = tuple(map(float, event["actions"][place]))
    return Served(int(event["id"]), event["arm"], event["by"], action)
