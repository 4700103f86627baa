"""A short soak: clients over HTTP, servers that are killed, and totals that agree to the unit."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from journals import new_schema
from soak_live import Said, faulty, reconcile, soak

from lighttail.live.errors import Damaged


def enough(said: Said, seconds: float) -> bool:
    """Two kills, and something of everything."""
    return said.kills >= 2 and len(said.told) > 40 and len(said.arms) >= 1


def harmed(said: Said, seconds: float) -> bool:
    """Two cuts of the network, before which the database was killed, and some trials."""
    return said.cuts >= 2 and len(said.asked) > 20


def test_killed_servers_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    """The totals agree; negative controls: an answer, a reward or an event that is not in the other book."""
    store = str(tmp_path / "a.db")
    said = soak(store, 5, enough, clients=3)
    found = reconcile(store, said)
    assert found["ask"] == found["tell"] + found["default"] + found["open"] == len(said.asked)
    key = max(said.asked)
    asked, told = dict(said.asked), dict(said.told)
    said.asked["9-9"] = (10**6, "A")
    with pytest.raises(AssertionError):
        reconcile(store, said)
    said.asked = {name: value for name, value in asked.items() if name != key}
    with pytest.raises(AssertionError):
        reconcile(store, said)
    said.asked, said.told = asked, told | {max(told): 9.0}
    with pytest.raises(AssertionError):
        reconcile(store, said)
    said.told = told
    assert reconcile(store, said) == found
    with closing(sqlite3.connect(store, isolation_level=None)) as link:
        link.execute("DELETE FROM events WHERE seq = (SELECT MAX(seq) FROM events WHERE trial IS NOT NULL)")
    with pytest.raises((AssertionError, Damaged)):
        reconcile(store, said)


def test_two_servers_on_one_database(postgres: str) -> None:
    store = new_schema(postgres)
    said = soak(store, 6, enough, clients=3)
    reconcile(store, said)


def test_a_database_that_is_killed_and_cut_off_loses_nothing() -> None:
    """PostgreSQL is killed and started again, and the network to it is cut, while clients of two servers send
    again what is not answered. Negative control: an answer that is not in the journal."""
    with faulty() as around:
        said = soak(around.store, 7, harmed, clients=3, around=around)
        found = reconcile(around.store, said)
        assert found["database kills"] >= 2
        assert found["ask"] == len(said.asked) > 20
        assert around.network.connections > 4
        said.asked["9-9"] = (10**6, "A")
        with pytest.raises(AssertionError):
            reconcile(around.store, said)
