"""The small parts of the service: lines of events, open trials in arrays, draws by hashes, and players."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from desks import desk_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

import lighttail as lt
from lighttail.live.journal import NO_DIGEST, event_of, line_of, rows_of
from lighttail.live.ledger import FALLBACK, HOLDOUT, SEEN, Ledger, OpenTrial
from lighttail.live.requests import number_of
from lighttail.live.settings import drawn, place_of, read_settings
from lighttail.online.player import ArmPlayer

texts = st.text(max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(texts | st.integers(), texts, numbers, st.booleans(), st.integers(1, 10**12))
def test_a_line_is_what_json_writes(arm: Any, key: str, reward: float, plain: bool, seq: int) -> None:
    asked = {"seq": seq, "time": 1.5, "kind": "ask", "id": "7", "arm": arm, "by": "policy"}
    asked |= {} if plain else {"key": key}
    told = {"seq": seq, "time": abs(reward), "kind": "tell", "id": "7", "reward": reward}
    for event in (asked, {**asked, "unit": key}, told, {"seq": 1, "kind": "create", "arms": [key]}):
        assert line_of(event) == json.dumps(event, separators=(",", ":"))


@pytest.mark.parametrize(
    "rails", [{}, {"shares": {"1": 0.5}}, {"sticky": True}, {"window": 9.0, "default": 0.0}]
)
def test_the_rows_of_a_desk_are_those_of_its_events(rails: dict[str, Any]) -> None:
    """Most rows are made without the events; all are as if they had been made from them."""
    with desk_of(arms=["A", '\u00e4 "b"', 1], settings=rails) as desk:
        for turn in range(40):
            key = None if turn % 3 else f"key {turn}"
            (trial,) = desk.ask(key=key, unit=str(turn % 7) if turn % 2 or rails else None)
            if turn % 4:
                desk.tell([(trial.id, -0.1 * turn)])
        desk.pause()
        desk.ask(2, key="paused") if not rails.get("sticky") else desk.ask(unit="5")
        rows = desk.journal.rows("one")
    assert rows == rows_of([event_of(row.body) for row in rows], NO_DIGEST)
    assert [json.dumps(event_of(row.body), separators=(",", ":")) for row in rows] == [r.body for r in rows]


class Counted(list[Any]):
    """A list that counts how often it is walked through."""

    walks = 0

    def __iter__(self) -> Any:
        self.walks += 1
        return super().__iter__()


@pytest.mark.parametrize("kind", [int, str])
def test_many_shares_walk_through_the_arms_twice(kind: type) -> None:
    labels = Counted(kind(place) for place in range(50))
    player = ArmPlayer(lt.UCB(lt.AnyTime(0.5)), list(labels), None, 1)
    labels.walks = 0
    made = read_settings({"shares": {str(place): 0.01 for place in range(49, -1, -1)}}, labels, player)
    assert made.shares == tuple((place, 0.01) for place in range(50))
    assert labels.walks == 2


@pytest.mark.parametrize("memo", [0, 2])
def test_the_ledger_keeps_open_trials_and_forgets_closed_ones(memo: int) -> None:
    """Against a plain dictionary, through many closings and a copy through text."""
    ledger, plain = Ledger(memo), dict[int, OpenTrial]()
    for id in range(1, 600):
        apart = (SEEN, SEEN, HOLDOUT, FALLBACK)[id % 4]
        memos = tuple(id + place / 4 for place in range(memo)) if apart == SEEN else ()
        trial = OpenTrial(id, float(id // 3), id % 5, apart, memos)
        ledger.add(*trial)
        plain[id] = trial._replace(memo=memos or (0.0,) * memo)
        if id % 3:
            gone = sorted(plain)[(id * id) % len(plain)]
            ledger.close(gone)
            del plain[gone]
        if id % 100 == 0:
            ledger = Ledger.restored(memo, json.loads(json.dumps(ledger.to_plain())))
        if id % 50 == 0:
            assert list(ledger) == list(plain.values())
            assert [ledger.find(one) for one in range(id + 2)] == [plain.get(one) for one in range(id + 2)]
            assert (len(ledger), ledger.oldest) == (len(plain), min(one.time for one in plain.values()))
            assert ledger.open_seen == sum(one.apart == SEEN for one in plain.values())
            due = [one.id for one in plain.values() if one.time <= id / 6]
            assert ledger.due(id / 6, 10**6) == due
            assert ledger.due(id / 6, 3) == due[:3]
    assert len(ledger._ids) < 3 * len(plain) + 100  # closed trials take no room


def test_an_empty_ledger() -> None:
    ledger = Ledger(0)
    assert (len(ledger), ledger.oldest, ledger.find(1), ledger.due(9.0, 5), list(ledger)) == (
        0,
        None,
        None,
        [],
        [],
    )


def test_draws_by_hashes_are_uniform_and_differ_by_every_word() -> None:
    """Kolmogorov-Smirnov at a chance of 1e-4 (fixed draws), and a negative control."""
    draws = [drawn("floor", "7", str(id)) for id in range(5_000)]
    assert kstest(draws, "uniform").pvalue > 1e-4
    assert kstest([x * x for x in draws], "uniform").pvalue < 1e-4
    others = [drawn("floor", "8", str(id)) for id in range(5_000)]
    both = sum(one < 0.5 and other < 0.5 for one, other in zip(draws, others, strict=True))
    assert abs(both - 1_250) < 4.0 * math.sqrt(5_000 * 0.25 * 0.75)  # z = 4
    assert drawn("a", "bc") != drawn("ab", "c")


@pytest.mark.parametrize(
    ("id", "found"),
    [
        ("1", 1),
        (1, 1),
        ("17", 17),
        (0, None),
        ("01", None),
        ("+1", None),
        ("1.0", None),
        (" 1", None),
        ("٣", None),
    ],
)
def test_ids_are_text_and_numbers_that_read_the_same(id: Any, found: int | None) -> None:
    assert number_of(id) == found


def test_an_arm_that_is_a_number_may_be_written_as_text() -> None:
    assert place_of("arm", "10", [10, 20]) == place_of("arm", 10, [10, 20]) == 0
    assert place_of("arm", "10", [10, "10"]) == 1  # the text itself comes first
    for wrong in ("30", 10.0, None, True):
        with pytest.raises(lt.BadInput, match=r"^arm must be one of 10, 20"):
            place_of("arm", wrong, [10, 20])


def test_a_player_plays_like_an_experiment() -> None:
    """With rewards in another order than the pulls, a pull of others, and a state through text."""
    player = ArmPlayer(lt.ThompsonSampling(0.5), ["A", "B", "C"], None, 3)
    experiment = lt.Experiment(lt.ThompsonSampling(0.5), ["A", "B", "C"], seed=3)
    memos = {}
    for turn in range(30):
        trial = experiment.take("B") if turn % 5 == 0 else experiment.ask()
        if turn % 5 == 0:
            place, memo = 1, player.take(1)
        else:
            place, label, memo = player.choose()
            assert label == trial.arm
        memos[trial.id] = (place, memo)
        if turn % 2:
            id = min(memos)
            experiment.tell(id, float(id))
            place, memo = memos.pop(id)
            player.standing.learn(place, float(id), memo)
        if turn == 15:
            again = ArmPlayer(lt.ThompsonSampling(0.5), ["A", "B", "C"], None, 99)
            again.restore(json.loads(json.dumps(player.to_plain())))
            player = again
    opened = [(id, *kept) for id, kept in memos.items()]
    assert player.text(30, opened) == experiment.to_json(told=False)
