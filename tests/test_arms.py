"""Arms that join and leave while an experiment runs: what the policy chooses then, texts, and the journal."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from cases import MORE_POLICIES, POLICIES
from desks import Clock, book_of, desk_of, events_of, replayed
from hypothesis import given, settings
from hypothesis import strategies as st
from test_desk import refused

import lighttail as lt
from lighttail.inference import BoundedRewards, confidence_sequences
from lighttail.live import Journal
from lighttail.live.memory import MemoryJournal
from lighttail.online.overview import overview

EVERY = [*POLICIES, *MORE_POLICIES]
OPEN = [policy for policy in EVERY if policy.arms_may_change]
CLOSED = [policy for policy in EVERY if not policy.arms_may_change]
HORIZON = 400
# Neither the round nor the number of arms is in their formulas.
TIMELESS: list[lt.Policy] = [
    lt.UCB(lt.Standard(0.8)),
    lt.UCB(lt.LightTailed(0.2)),
    lt.ThompsonSampling(0.5),
    lt.BetaThompson(),
    lt.Imed(),
]


def begun(policy: lt.Policy, arms: str) -> lt.Experiment:
    return lt.Experiment(policy, list(arms), HORIZON, seed=3)


def reward(arm: str, turn: int) -> float:
    """No two arms have the same mean, so that no random number breaks a tie."""
    return {"A": 0.2, "B": 0.5, "C": 0.4, "D": 0.9}[arm] + 0.1 * ((turn * 7) % 3) + 0.001 * turn % 0.01


def lived(one: lt.Experiment, turns: int = 30) -> list[tuple[str, float]]:
    """The arms and rewards of a life of some turns."""
    found = []
    for turn in range(turns):
        trial = one.ask()
        one.tell(trial.id, reward(str(trial.arm), turn))
        found.append((str(trial.arm), reward(str(trial.arm), turn)))
    return found


def with_numbers_of(one: lt.Experiment, other: lt.Experiment) -> None:
    one._rng.bit_generator.state = other._rng.bit_generator.state


def test_there_are_policies_of_both_kinds() -> None:
    names = {type(policy).__name__ for policy in OPEN}
    assert names >= {
        "UCB",
        "KlUcb",
        "BayesUcb",
        "Imed",
        "ThompsonSampling",
        "BetaThompson",
        "InflatedThompson",
    }
    assert {type(policy).__name__ for policy in CLOSED} >= {"SuccessiveElimination", "Exp3IX", "EvenSplit"}


@pytest.mark.parametrize("policy", OPEN, ids=str)
def test_after_an_arm_has_joined_the_policy_plays_as_if_it_had_always_been_there(policy: lt.Policy) -> None:
    """The twin has the arm from the start, and the same pulls and random numbers."""
    one, twin = begun(policy, "AB"), begun(policy, "ABC")
    for arm, value in lived(one):
        twin.tell(twin.take(arm).id, value)
    one.add("C")
    with_numbers_of(twin, one)
    assert one.arms == ["A", "B", "C"]
    assert one.pulls["C"] == 0
    assert lived(one, 60) == lived(twin, 60)
    assert one.pulls["C"] > 0
    assert one.pulls == twin.pulls


@pytest.mark.parametrize("policy", [one for one in OPEN if isinstance(one, lt.IndexPolicy)], ids=str)
def test_an_index_pulls_a_new_arm_at_once(policy: lt.Policy) -> None:
    one = begun(policy, "AB")
    lived(one)
    one.add("C")
    assert one.ask().arm == "C"


@pytest.mark.parametrize("policy", TIMELESS, ids=str)
def test_after_an_arm_has_left_the_policy_plays_as_if_it_had_never_been_there(policy: lt.Policy) -> None:
    one, twin = begun(policy, "ABD"), begun(policy, "AB")
    for arm, value in lived(one, 40):
        if arm != "D":
            twin.tell(twin.take(arm).id, value)
    one.retire("D")
    with_numbers_of(twin, one)
    assert [arm for arm, _ in lived(one, 60)] == [arm for arm, _ in lived(twin, 60)]


@pytest.mark.parametrize("policy", OPEN, ids=str)
def test_a_retired_arm_is_never_chosen_again_and_still_takes_rewards(policy: lt.Policy) -> None:
    one = begun(policy, "ABD")
    lived(one, 40)
    trial = next(trial for trial in (one.ask() for _ in range(300)) if trial.arm == "D")  # D is best by far
    before = one.pulls["D"], one.means["D"]
    one.retire("D")
    assert "D" not in {arm for arm, _ in lived(one, 60)}
    one.tell(trial.id, 0.0)
    assert one.pulls["D"] == before[0]
    assert one.means["D"] < before[1]
    assert one.retired == ["D"]
    one.add("C")
    assert "D" not in {arm for arm, _ in lived(one, 60)}
    for call, words in (
        (lambda: one.take("D"), "was retired"),
        (lambda: one.retire("D"), "was retired before"),
        (lambda: one.add("D"), "retired arms included"),
        (one.beginning, "has retired arms"),
    ):
        with pytest.raises(lt.BadInput, match=words):
            call()


steps = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "tell", "save", "add", "retire", "copy"]), st.integers(0, 99)),
    min_size=20,
    max_size=60,
)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(steps, st.sampled_from(OPEN), st.booleans())
def test_any_life_with_changing_arms_goes_through_text_to_the_bit(
    script: Any, policy: lt.Policy, told: bool
) -> None:
    one, other = begun(policy, "ABD"), begun(policy, "ABD")
    rewards: dict[int, float] = {}
    for step, which in script:
        asked = sum(one.pulls.values())
        if step == "ask":
            assert one.ask() == other.ask()
        elif step == "tell" and one.open_trials:
            id = one.open_trials[which % len(one.open_trials)].id
            for player in (one, other):
                player.tell(id, rewards.setdefault(id, which / 100))
        elif step == "save":
            other = lt.Experiment.from_json(other.to_json(told))
        elif step == "copy":
            other = copy.deepcopy(other)
        elif step == "add" and len(one.arms) < 6:
            name = f"new {len(one.arms)}"
            one.add(name), other.add(name)
        elif step == "retire" and len(one.arms) - len(one.retired) > 2:
            playing = [arm for arm in one.arms if arm not in one.retired]
            gone = playing[which % len(playing)]
            one.retire(gone), other.retire(gone)
        assert sum(other.pulls.values()) == sum(one.pulls.values()) >= asked
    assert one.to_json(False) == other.to_json(False)
    assert one.ask() == other.ask()


@pytest.mark.parametrize("policy", CLOSED, ids=str)
def test_other_policies_refuse(policy: lt.Policy) -> None:
    one = begun(policy, "ABC")
    before = one.to_json()
    for call in (lambda: one.add("D"), lambda: one.retire("A")):
        with pytest.raises(lt.BadInput, match=r"^policy must be a policy whose arms may change"):
            call()
    assert one.to_json() == before


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda one: one.add("A"), "another name"),
        (lambda one: one.add(True), "names that are text or whole numbers"),
        (lambda one: one.add(None), "names that are text or whole numbers"),
        (lambda one: one.retire("X"), "one of 'A', 'B', 'C'"),
        (lambda one: (one.retire("A"), one.retire("B")), "one of at least three arms in play"),
        (lambda one: (one.add("D"), one.add("E")), "the number of arms must be at most 4, but is 5"),
    ],
)
def test_wrong_arms_are_refused(call: Any, words: str) -> None:
    one = lt.Experiment(lt.UCB(lt.Standard(0.8)), ["A", "B", "C"], horizon=4, seed=1)
    with pytest.raises(lt.BadInput, match=words):
        call(one)


def test_a_policy_of_your_own_refuses_unless_it_says_otherwise() -> None:
    class Mine(lt.ThompsonSampling):
        @staticmethod
        def choose(rng: Any, t: Any, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> int:
            return 0

    class Open(Mine):
        arms_may_change = True

    with pytest.raises(lt.BadInput, match="whose arms may change"):
        lt.Experiment(Mine(0.5), ["A", "B"], seed=1).add("C")
    lt.Experiment(Open(0.5), ["A", "B"], seed=1).add("C")


@pytest.mark.parametrize("value", [[3], [1, 0], [0, 0], [0, 1], [True], "A", None, [0.0]])
def test_a_text_with_wrong_retired_arms_is_refused(value: Any) -> None:
    one = begun(lt.ThompsonSampling(0.5), "ABD")
    lived(one)
    one.retire("A")
    state = json.loads(one.to_json())
    assert (state["format"], state["retired"]) == (4, [0])
    with pytest.raises(lt.BadInput, match="retired"):
        lt.Experiment.from_json(json.dumps({**state, "retired": value}))


def test_arms_that_were_added_share_their_part_of_the_error() -> None:
    """Also after a text, a retirement and in the table; the number of arms now does not divide the error."""
    one = lt.Experiment(lt.UCB(lt.AnyTime(0.2)), ["A", "B"], seed=3)
    one.add("C")
    one.add("D")
    for turn in range(300):
        trial = one.ask()
        one.tell(trial.id, float(turn % 3 == len(trial.arm)))
    one.retire("B")
    again = lt.Experiment.from_json(one.to_json())
    short = lt.Experiment.from_json(one.to_json(told=False))
    assert [json.loads(one.to_json())[name] for name in ("format", "joined")] == [4, 2]
    heard = overview(one).heard
    right = confidence_sequences(heard, BoundedRewards(), first=2)
    for each in (one, again, short):
        assert each.began_with == 2
        assert each.intervals() == right
        assert each.summary() == one.summary()
    assert right != confidence_sequences(heard, BoundedRewards())  # control
    assert f"{right.means['A'].high:.3g}" in one.summary()


@pytest.mark.parametrize("value", [0, 2, -1, True, 1.0, "1", None, [1]])
def test_a_text_with_a_wrong_number_of_added_arms_is_refused(value: Any) -> None:
    one = begun(lt.ThompsonSampling(0.5), "AB")
    one.add("D")
    state = json.loads(one.to_json())
    assert lt.Experiment.from_json(json.dumps(state)).began_with == 2
    with pytest.raises(lt.BadInput, match="joined"):
        lt.Experiment.from_json(json.dumps({**state, "joined": value}))
    closed = json.loads(begun(lt.EvenSplit(), "ABD").to_json())
    with pytest.raises(lt.BadInput, match="whose arms may change"):
        lt.Experiment.from_json(json.dumps({**closed, "format": 4, "about": {}, "retired": [], "joined": 1}))


# The service


def test_the_journal_says_who_joined_and_left(journal: Journal) -> None:
    clock = Clock()
    with desk_of(journal, clock) as desk:
        desk.ask(6)
        assert (desk.add("D"), desk.add("D")) == (True, False)
        assert desk.ask()[0].arm == "D"
        clock.now += 1
        assert (desk.retire("C"), desk.retire("C")) == (True, False)
        assert "C" not in {one.arm for one in desk.ask(40)}
        gone = next(int(e["id"]) for e in events_of(journal) if e.get("arm") == "C" and e["kind"] == "ask")
        assert desk.tell([(gone, 1.0)]).counted == 1
        found, book = desk.summary(), book_of(desk)
        assert found["means"]["C"] == 1.0
        assert (found["arms"], found["retired"]) == (["A", "B", "C", "D"], ["C"])
        state = lt.Experiment.from_json(desk.state())
        assert (state.arms, state.retired) == (["A", "B", "C", "D"], ["C"])
    changes = [event for event in events_of(journal) if event["kind"] in ("add", "retire")]
    assert changes == [
        {"seq": 8, "time": 1000.0, "kind": "add", "arm": "D"},
        {"seq": 10, "time": 1001.0, "kind": "retire", "arm": "C"},
    ]
    assert replayed(journal) == book
    with desk_of(journal, clock) as desk:  # another server, from the snapshot
        assert book_of(desk) == book
        assert desk._saved > 0
        assert desk.ask(5) is not None
        book = book_of(desk)
    assert replayed(journal) == book


def test_a_setting_that_names_the_arm_must_be_changed_first() -> None:
    rails = {"shares": {"A": 0.1}, "holdout": {"arm": "B", "share": 0.1}, "fallback": "C"}
    with desk_of(settings=rails) as desk:
        desk.add("D")
        for arm, name in (("A", "shares"), ("B", "holdout"), ("C", "fallback")):
            refused(lambda arm=arm: desk.retire(arm), 409, "arm", f"without settings.{name}; change this")
        desk.set({"fallback": "D"})
        for arm in "AB":
            assert desk.retire(arm)
        refused(lambda: desk.retire("C"), 409, "arm", "is one of two arms in play; pause or stop")
        refused(lambda: desk.set({"shares": {"C": 0.1}}), 400, "settings.fallback", "was retired")
        refused(lambda: desk.set({"shares": {"A": 0.1}, "fallback": "D"}), 400, "settings.shares")
        refused(lambda: desk.set({}), 400, "settings.fallback")  # the first arm would serve
        refused(lambda: desk.add("A"), 409, "arm", "was the name of one")
        refused(lambda: desk.retire("X"), 400, "arm", "one of 'A', 'B', 'C', 'D'")
        desk.stop()
        refused(lambda: desk.add("E"), 409, "experiment")
        refused(lambda: desk.retire("C"), 409, "experiment")


@pytest.mark.parametrize("arm", ["\ud800", 1.5, None, True, ["A"]])
def test_a_wrong_name_is_refused(arm: Any) -> None:
    with desk_of() as desk:
        before = book_of(desk)
        refused(lambda: desk.add(arm), 400, "arm")
        refused(lambda: desk.retire(arm), 400, "arm")
        assert book_of(desk) == before


def test_names_that_read_the_same_are_one_name() -> None:
    with desk_of(arms=[10, 20, 30]) as desk:
        refused(lambda: desk.add("10"), 409, "arm")
        assert desk.retire("30")
        assert desk.summary()["retired"] == [30]


def test_a_policy_that_cannot_is_refused_with_its_name() -> None:
    for policy in ("se:lighttailed:0.1", "exp3ix:loss:1", "etc:3", "egreedy:5:0.1", "evensplit"):
        with desk_of(policy=policy) as desk:
            for call in (lambda desk=desk: desk.add("D"), lambda desk=desk: desk.retire("C")):
                refused(call, 400, "policy", "may have decided for good")
    with desk_of(policy="lints:1", arms=None, dim=2) as desk:
        refused(lambda: desk.add("D"), 400, "policy", "offered actions")
        refused(lambda: desk.retire("D"), 400, "policy", "offered actions")


def test_a_unit_whose_arm_is_retired_gets_another_for_good(journal: Journal) -> None:
    with desk_of(journal, policy="ts:0.5", settings={"sticky": True, "fallback": "A"}) as desk:
        desk.add("D")
        units = [f"u{n}" for n in range(24)]
        first = {unit: desk.ask(unit=unit)[0].arm for unit in units}
        assert set(first.values()) == {"A", "B", "C", "D"}
        desk.retire("D")
        second = {unit: desk.ask(unit=unit)[0] for unit in units}
        moved = [unit for unit in units if first[unit] == "D"]
        assert all(second[unit].by == "policy" for unit in moved)
        assert all((second[u].arm, second[u].by) == (first[u], "sticky") for u in units if u not in moved)
        third = {unit: desk.ask(unit=unit)[0] for unit in units}
        assert all((third[unit].arm, third[unit].by) == (second[unit].arm, "sticky") for unit in units)
        desk.retire("C")  # some units move for the second time
        fourth = {unit: desk.ask(unit=unit)[0] for unit in units}
        assert {one.arm for one in fourth.values()} == {"A", "B"}
        book = book_of(desk)
    assert replayed(journal) == book
    with desk_of(journal, policy="ts:0.5", settings={"sticky": True, "fallback": "A"}) as desk:
        again = {unit: desk.ask(unit=unit)[0].arm for unit in units}
        assert again == {unit: one.arm for unit, one in fourth.items()}


def test_a_retirement_and_asks_in_one_commit() -> None:
    """The unit was looked up before the arm was retired."""
    from lighttail.live.requests import arm_change, ask_for

    journal = MemoryJournal()
    with desk_of(journal, policy="ts:0.5", settings={"sticky": True}) as desk:
        arms = {f"u{n}": desk.ask(unit=f"u{n}")[0].arm for n in range(12)}
        moved = [unit for unit, arm in arms.items() if arm == "C"]
        assert moved
        with journal._of("one").lock:  # requests collect while the desk waits for its turn
            tickets = [desk.submit(arm_change("retire", "C"))]
            tickets += [desk.submit(ask_for(unit=unit)) for unit in (*moved, *moved)]
        served = [ticket.result()[0] for ticket in tickets[1:]]
        assert "C" not in {one.arm for one in served}
        half = len(moved)
        assert [one.arm for one in served[:half]] == [one.arm for one in served[half:]]
        assert {one.by for one in served[half:]} == {"sticky"}
        book = book_of(desk)
    assert replayed(journal) == book


def test_the_unseen_trials_of_a_new_arm_are_counted() -> None:
    with desk_of(settings={"fallback": "A"}) as desk:
        desk.add("D")
        desk.set({"fallback": "D"})
        desk.pause()
        (one,) = desk.ask()
        desk.tell([(one.id, 0.5)])
        assert desk.summary()["fallback"]["means"] == {"A": None, "B": None, "C": None, "D": 0.5}
