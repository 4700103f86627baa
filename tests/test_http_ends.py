"""The end of a server in a process of its own: signals, kills, and another server that goes on."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from journals import new_schema
from served import FIELDS, FIRST, FOREVER, JSON, served

from lighttail.live import open_journal
from lighttail.live.checking import check_journal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_when_accepted_requests_are_done(tmp_path: Path, number: int) -> None:
    """What was answered is in the journal, and every request gets an answer or none at all."""
    store = tmp_path / "one.db"
    with served(store=store) as server:
        server.post("", FIRST)
        answered: list[str] = []

        def work(worker: int) -> None:
            try:
                for turn in range(10**6):
                    found = server.post("/one/ask", {"key": f"{worker}-{turn}"})
                    answered.append(found["trials"][0]["id"])
            except (OSError, AssertionError, json.JSONDecodeError):
                pass  # the server has gone, or said 503

        workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for one in workers:
            one.start()
        while len(answered) < 20:
            time.sleep(0.01)
        assert server.end(number) == (0, "")
        for one in workers:
            one.join()
    journal = open_journal(str(store))
    asked = {json.loads(body)["id"] for body, _ in journal.lines("one", 1)}
    assert set(answered) <= asked
    assert len(answered) == len(set(answered))
    assert check_journal(journal, "one").trials == len(asked)
    journal.close()


def test_a_server_that_ends_finishes_what_it_accepted_and_refuses_the_rest() -> None:
    """A request whose body comes slowly is accepted before the signal; connections that are open, and new
    ones, are answered meanwhile."""
    head = b"POST /v1/experiments/one/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with served() as server:
        server.post("", FIRST)
        opened = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOREVER)
        opened.request("GET", "/healthz")
        assert opened.getresponse().read() == b'{"status":"ok"}'
        with socket.create_connection(("127.0.0.1", server.port), timeout=FOREVER) as slow:
            slow.sendall(head + b"Content-Length: 2\r\n\r\n{")
            while "lighttail_http_requests_inside 2" not in server.call("GET", "/metrics")[1]:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGTERM)
            while server.call("GET", "/readyz")[0] == 200:
                time.sleep(0.01)
            opened.request("POST", "/v1/experiments/one/ask", b"{}", JSON)
            found = opened.getresponse()
            refusals = [(found.status, json.load(found), dict(found.getheaders()))]
            refusals.append(server.call("POST", "/v1/experiments/one/ask", {}))
            for status, body, headers in refusals:
                assert (status, set(body["error"]), body["error"]["field"]) == (503, FIELDS, "server")
                assert (headers["retry-after"], headers["connection"]) == ("1", "close")
            assert server.call("GET", "/healthz")[0] == 200
            slow.sendall(b"}")
            assert slow.recv(65536).startswith(b"HTTP/1.1 200 ")
        opened.close()
        _, said = server.process.communicate(timeout=FOREVER)
        assert (server.process.returncode, said) == (0, "")


def test_a_signal_at_the_first_moment_ends_the_server_too() -> None:
    with served() as server:
        assert server.end(signal.SIGINT) == (0, "")


def test_a_server_that_is_killed_loses_no_answer_and_counts_none_twice(tmp_path: Path) -> None:
    """Clients send again what was not answered, with the same keys and ids."""
    store, arms, counted = tmp_path / "one.db", {}, 0
    for run in range(2):
        with served(store=store) as server:
            server.post("", FIRST)
            for turn in range(10 * run + 10):
                trial = server.post("/one/ask", {"key": f"k{turn}"})["trials"][0]
                assert arms.setdefault(turn, trial) == trial
                counted += server.post("/one/tell", {"rewards": [{"id": trial["id"], "reward": 1}]})[
                    "counted"
                ]
            status, _ = server.end(signal.SIGKILL)
            assert status == -signal.SIGKILL
    assert counted == len(arms) == 20
    journal = open_journal(str(store))
    assert check_journal(journal, "one")[:2] == (41, 20)
    journal.close()


def test_two_servers_share_a_database_and_one_may_die(postgres: str) -> None:
    """A client that was not answered asks the other server, with the same key, and gets the same trial."""
    store = new_schema(postgres)
    with served(store=store) as one, served(store=store) as two:
        assert "a PostgreSQL database at" in one.said[0]
        one.post("", FIRST)
        first = [one.post("/one/ask", {"key": f"k{n}"})["trials"][0] for n in range(5)]
        assert [two.post("/one/ask", {"key": f"k{n}"})["trials"][0] for n in range(5)] == first
        told = {"rewards": [{"id": trial["id"], "reward": 1} for trial in first]}
        assert one.post("/one/tell", told)["counted"] == 5
        one.end(signal.SIGKILL)
        assert two.post("/one/tell", told) == {"counted": 0, "repeated": 5}
        assert two.post("/one/ask", {"count": 2})["trials"][1]["id"] == "7"
        assert two.end() == (0, "")
    journal = open_journal(store)
    assert check_journal(journal, "one")[:2] == (13, 7)
    journal.close()
