"""Who shares a commit: how long a desk waits for callers that were just answered. The clock is scripted,
because who wins a race between real threads is up to the machine."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from desks import desk_of

from lighttail.live import gathering
from lighttail.live.gathering import Gathering
from lighttail.live.requests import Ticket, ask_for


class Times:
    """Stands for the module `time`: the clock goes on while somebody sleeps, and `meanwhile` is called."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, list[float]()
        self.meanwhile: Callable[[], Any] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)
        self.meanwhile()


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    made = Times()
    monkeypatch.setattr(gathering, "time", made)
    return made


def waits(times: Times, callers: int, here: list[int], took: float = 0.008, rows: int = 0) -> list[float]:
    """The sleeps, in milliseconds, of a desk that waits for `callers` after a commit that took so many
    seconds. here: how many callers are there at the first look, at the second one, and so on."""
    one, looks = Gathering(), iter(here)
    one.committed(callers, took, rows)
    before = len(times.slept)
    one.wait(lambda: next(looks, here[-1]))
    return [round(1000.0 * seconds, 6) for seconds in times.slept[before:]]


def test_the_desk_waits_until_all_callers_are_back(times: Times) -> None:
    """An eighth of the time of a commit, then an eighth of the rest."""
    assert waits(times, 2, [1, 2]) == [1.0]
    assert waits(times, 3, [1, 2, 3]) == [1.0, 0.875]


def test_nobody_waits_if_all_are_here_or_if_nobody_is(times: Times) -> None:
    for callers, here in ((2, 2), (2, 3), (2, 0), (1, 1), (0, 1)):
        assert waits(times, callers, [here]) == []
    Gathering().wait(lambda: 1)  # before the first commit
    assert times.slept == []


def test_nobody_waits_for_callers_who_come_too_slowly(times: Times) -> None:
    """The rest must be here in time if they come as fast as the callers before them."""
    assert waits(times, 2, [1, 1]) == [1.0]
    assert waits(times, 9, [1, 2, 9]) == [1.0]
    assert waits(times, 9, [1, 3, 3]) == [1.0, 0.875]  # 2 came within 1 ms: 6 would come in the other 7 ms
    assert waits(times, 9, [1, 3, 9]) == [1.0, 0.875]


def test_callers_who_pause_are_not_waited_for(times: Times) -> None:
    """All but one come back at once, and this one has something else to do: the pace since the last look
    decides, and not the pace since the beginning."""
    assert waits(times, 100, [1, 99]) == [1.0, 0.875]


def test_a_wait_is_no_longer_than_a_commit(times: Times) -> None:
    """Callers come back one after another, and the last one never."""
    slowly = [100 - 64 // 2**look for look in range(7)] + [99] * 99  # half of the rest at each look
    assert 4.0 < sum(waits(times, 100, slowly)) <= 8.0
    assert 5.0 < sum(waits(times, 100, slowly, took=5.0)) <= 10.0  # nor than ten milliseconds
    assert waits(times, 2, [1, 2], rows=500) == [0.625]  # rows take time, which more callers do not save
    assert waits(times, 2, [1, 2], rows=10**6) == [0.25]
    one = Gathering()
    for took in (0.004, *[0.008] * 7):  # the quickest of the last eight commits had a processor at once
        one.committed(2, took, 0)
    one.wait(iter([1, 2]).__next__)
    one.committed(2, 0.008, 0)
    one.wait(iter([1, 2]).__next__)
    assert times.slept[-2:] == pytest.approx([0.0005, 0.001])


def test_without_patience_nobody_waits(times: Times, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    monkeypatch.setattr(gathering, "GATHERING", 0.0)
    assert waits(times, 2, [1, 2]) == []
    assert waits(times, 100, [1, 99], took=5.0) == []


def commits_of_two_callers(times: Times) -> int:
    """The commits in which two callers ask twenty times each. The second one comes back while the desk waits
    for it, or, if the desk does not, after the first one was answered."""
    with desk_of() as desk:
        tickets = [Ticket(ask_for()), Ticket(ask_for())]
        desk.submit_all(tickets)
        for _ in range(19):
            for ticket in tickets:
                ticket.result()
            tickets.clear()
            times.meanwhile = lambda: tickets or tickets.append(desk.submit(ask_for()))
            first = desk.submit(ask_for())
            first.result()
            times.meanwhile()  # unless the desk has called it
            tickets.append(first)
        assert sorted(ticket.result()[0].id for ticket in tickets) == [39, 40]
        return desk.commits


def test_callers_that_come_back_share_a_commit(times: Times, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: without patience, the callers take turns."""
    assert commits_of_two_callers(times) == 20
    monkeypatch.setattr(gathering, "GATHERING", 0.0)
    assert commits_of_two_callers(times) == 1 + 2 * 19


@pytest.mark.parametrize("patience", [0.0, 1.0, 60.0])
def test_threads_are_answered_whatever_the_patience(patience: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real time, and what is certain however threads are scheduled."""
    monkeypatch.setattr(gathering, "GATHERING", patience)
    with desk_of() as desk, ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: [desk.ask()[0].id for _ in range(20)], range(2)))
        assert sorted(found[0] + found[1]) == list(range(1, 41))
        assert 20 <= desk.commits <= 40
        assert desk.written == 40
