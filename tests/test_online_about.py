"""What callers note about trials: kept while a trial is open, in every text and in the journal, and unseen by
policies."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from desks import book_of, desk_of, events_of, replayed
from test_desk import refused

import lighttail as lt
from lighttail.live import Journal
from lighttail.live.memory import MemoryJournal

NOTE = {"page": "/cart", "visits": 3, "share": 0.1, "member": True, "from": None, "π": "é\n\"'"}
WRONG: list[tuple[Any, str, str]] = [
    ("text", "about", "an object whose values are text"),
    ([1], "about", "an object"),
    ({"a": [1]}, "about.a", "text, a finite number, true, false or null"),
    ({"a": {"b": 1}}, "about.a", "text, a finite number"),
    ({"a": math.nan}, "about.a", "a finite number"),
    ({"a": -math.inf}, "about.a", "a finite number"),
    ({1: "a"}, "a name in about", "text"),
    ({"a": b"x"}, "about.a", "text"),
    ({"a": "\ud800"}, "about", "that UTF-8 can write"),
    ({"a": 10**5000}, "about", "that UTF-8 can write"),
    ({"a": "x" * 993}, "the size of about", "at most 1000 bytes as JSON, but is 1001"),
    ({"a": "é" * 497}, "the size of about", "at most 1000 bytes"),
]


def experiment(**more: Any) -> lt.Experiment:
    return lt.Experiment(lt.UCB(lt.AnyTime(0.3)), ["A", "B", "C"], seed=3, **more)


def linear() -> lt.LinearExperiment:
    return lt.LinearExperiment(lt.LinearThompson(0.5), dim=2, seed=3)


def test_a_note_is_kept_while_the_trial_is_open() -> None:
    one = experiment()
    trial = one.ask(about=NOTE)
    others = one.ask(2, about={"n": 1})
    assert isinstance(trial, lt.Trial)
    assert one.about(trial.id) == NOTE
    assert [one.about(other.id) for other in others] == [{"n": 1}] * 2
    assert one.about(one.ask().id) is None
    one.tell(trial.id, 1.0)
    assert one.about(trial.id) is None
    with pytest.raises(lt.BadInput, match=r"^id must be the id of a trial"):
        one.about(99)
    found = one.about(2)
    assert found is not None
    found["n"] = 2  # a copy
    assert one.about(2) == {"n": 1}


def test_the_policy_does_not_see_it() -> None:
    one, other = experiment(), experiment()
    for turn in range(40):
        arms = one.ask(about={"turn": turn}).arm, other.ask().arm
        assert arms[0] == arms[1]
        one.tell(turn + 1, turn % 3)
        other.tell(turn + 1, turn % 3)
    assert one.to_json() == other.to_json()  # no trial is open: nothing is left of the notes


@pytest.mark.parametrize("told", [True, False])
def test_it_comes_back_from_a_text_to_the_bit(told: bool) -> None:
    one = experiment()
    one.ask(5, about=NOTE)
    one.tell(2, 1.0)
    text = one.to_json(told)
    again = lt.Experiment.from_json(text)
    assert json.loads(text)["format"] == 4
    assert again.to_json(told) == text
    assert [again.about(id) for id in (1, 3, 4, 5)] == [NOTE] * 4
    assert list(again.about(1) or {}) == list(NOTE)
    for id in (1, 3, 4, 5):
        one.tell(id, 0.5), again.tell(id, 0.5)
    assert one.ask() == again.ask()
    assert json.loads(one.to_json())["format"] == 2


def test_a_linear_experiment_keeps_notes_too() -> None:
    one, rows = linear(), [[1.0, 0.0], [0.6, 0.8]]
    one.ask(rows, about=NOTE)
    one.ask(rows, count=2, about={"n": 1})
    one.tell(2, 1.0)
    text = one.to_json()
    again = lt.LinearExperiment.from_json(text)
    assert (json.loads(text)["format"], again.to_json()) == (3, text)
    assert (again.about(1), again.about(2), again.about(3)) == (NOTE, None, {"n": 1})


@pytest.mark.parametrize(
    ("note", "sentence"),
    [
        ({"9": {"a": 1}}, "an id in about must be the id of an open trial, but is '9'"),
        ({"2": {"a": 1}}, "an id in about must be the id of an open trial, but is '2'"),
        ({"01": {"a": 1}}, "an id in about must be"),
        ({"1": {"a": [1]}}, "about.a must be text"),
        ({"1": 3}, "about must be an object"),
        ([], "about must be an object"),
    ],
)
def test_a_damaged_text_is_refused(note: Any, sentence: str) -> None:
    one = experiment()
    one.ask(2, about={"a": 1})
    one.tell(2, 1.0)
    state = json.loads(one.to_json())
    with pytest.raises(lt.BadInput, match=sentence):
        lt.Experiment.from_json(json.dumps({**state, "about": note}))
    del state["about"]
    with pytest.raises(lt.BadInput, match="about is missing"):
        lt.Experiment.from_json(json.dumps(state))


@pytest.mark.parametrize(("note", "field", "words"), WRONG)
def test_a_wrong_note_is_refused_and_changes_nothing(note: Any, field: str, words: str) -> None:
    one, two = experiment(), linear()
    before = one.to_json(), two.to_json()
    for call in (
        lambda: one.ask(about=note),
        lambda: one.ask(3, about=note),
        lambda: two.ask([[1.0, 0.0]], about=note),
    ):
        refused(call, 400, field, words)
    assert (one.to_json(), two.to_json()) == before
    with desk_of() as desk:
        book = book_of(desk)
        refused(lambda: desk.ask(about=note), 400, field, words)
        assert book_of(desk) == book
    assert one.ask(about={"a": "x" * 992}).id == 1  # control: 1,000 bytes


def test_the_journal_keeps_it_and_a_key_asks_for_the_same(journal: Journal) -> None:
    with desk_of(journal) as desk:
        first = desk.ask(2, key="k", about=NOTE)
        assert desk.ask(2, key="k", about=dict(reversed(NOTE.items()))) == first
        refused(lambda: desk.ask(2, key="k", about={}), 409, "about", "as before with the key 'k'")
        refused(lambda: desk.ask(2, key="k"), 409, "about")
        refused(lambda: desk.ask(2, key="k", about={**NOTE, "member": 1}), 409, "about")  # true is not 1
        desk.ask(key="l")
        refused(lambda: desk.ask(key="l", about={"a": 1}), 409, "about", "must be as before")
        desk.ask(about={})
        book = book_of(desk)
    asks = [event for event in events_of(journal) if event["kind"] == "ask"]
    assert [event.get("about") for event in asks] == [NOTE, NOTE, None, None]
    assert replayed(journal) == book


def test_the_service_plays_the_same_with_and_without_it() -> None:
    books = []
    for about in (NOTE, None):
        journal = MemoryJournal()
        with desk_of(journal, policy="ts:0.5") as desk:
            desk.ask(20, about=about)
            desk.tell([(id, 1.0) for id in range(1, 11)])
            books.append((book_of(desk), desk.state()))
    assert books[0] == books[1]


def test_a_table_shows_it(tmp_path: Any) -> None:
    import pandas as pd

    from lighttail.live.export import export_trials

    journal = MemoryJournal()
    with desk_of(journal) as desk:
        desk.ask(about=NOTE)
        desk.ask()
    for name in ("a.csv", "a.parquet"):
        export_trials(journal, "one", tmp_path / name)
    for table in (pd.read_csv(tmp_path / "a.csv"), pd.read_parquet(tmp_path / "a.parquet")):
        assert json.loads(table["about"][0]) == NOTE
        assert pd.isna(table["about"][1])
