"""A real server in a process of its own: its lines on the screen, its port, slow and oversized clients."""

from __future__ import annotations

import gc
import json
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import FIRST, Server, served

from lighttail.live import open_journal
from lighttail.server.keys import add_key
from lighttail.server.reading import LARGEST_BODY
from lighttail.server.run import YOUNG, quick_switches

HEAD = b"POST /v1/experiments/one/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served() as made:
        made.post("", FIRST)
        yield made


def refused(answer: bytes, status: int) -> dict[str, Any]:
    """The error of an answer as it comes from a connection."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    found: dict[str, Any] = json.loads(body)["error"]
    assert set(found) == {"field", "value", "allowed", "message"}
    return found


def test_the_lines_on_the_screen_work(tmp_path: Path) -> None:
    with served(store=tmp_path / "new.db", limits=None) as server:
        assert "new.db at http://127.0.0.1:" in server.said[0]
        answers = [
            json.loads(subprocess.run(line, shell=True, check=True, capture_output=True).stdout)
            for line in server.said
            if line.startswith("  curl ")
        ]
        assert [answers[0]["name"], answers[1]["trials"][0]["id"], answers[2]["counted"]] == ["first", "1", 1]
        assert server.end() == (0, "")


def test_what_cannot_be_served_is_one_sentence(server: Server, tmp_path: Path) -> None:
    journal = open_journal(str(tmp_path / "one.db"))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"port": server.port}, "is in use; --port 0"),
        ({"store": tmp_path / "one.db"}, "several servers can share a PostgreSQL database"),
    ]
    for options, words in wrong:
        with served(**options) as other:
            said = other.process.communicate()[1]
            assert (other.process.returncode, other.said) == (2, [])
            assert words in said
            assert said.count("\n") == 1
    journal.close()


def test_another_address_with_keys_is_served(tmp_path: Path) -> None:
    text = add_key(tmp_path / "keys.json", "web", "manage")
    with served("--host", "0.0.0.0", "--keys", str(tmp_path / "keys.json")) as server:
        assert "Authorization: Bearer $KEY" in server.said[2]
        foreign = {"Host": "experiments.example"}
        assert server.call("GET", "/v1/experiments", headers=foreign)[0] == 401
        held = foreign | {"Authorization": f"Bearer {text}"}
        assert server.call("GET", "/v1/experiments", headers=held)[:2] == (200, {"experiments": []})
        assert server.call("GET", "/healthz")[0] == 200


def test_oversized_bodies_are_refused(server: Server) -> None:
    told = HEAD + b"Content-Length: %d\r\n\r\n" % (LARGEST_BODY + 1)
    assert refused(server.raw(told, ended=False), 413)["value"] == str(LARGEST_BODY + 1)
    piece = b"10000\r\n" + b" " * 2**16 + b"\r\n"
    answer = server.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", piece * 17, ended=False)
    refused(answer, 413)
    assert server.call("GET", "/healthz")[0] == 200


def test_what_is_no_http_gets_the_same_form(server: Server) -> None:
    assert refused(server.raw(b"\x16\x03\x01\x00\xf0 nonsense\r\n\r\n"), 400)["field"] == "request"
    endless = [b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "] + [b"x" * 2**14] * 4
    assert refused(server.raw(*endless, pause=0.05), 400)["field"] == "the head of the request"


def test_a_client_whose_body_is_slow_gets_408() -> None:
    with served(limits={"server.reading.LONGEST_READ": 0.3}) as server:
        answer = server.raw(HEAD + b"Content-Length: 2\r\n\r\n{", ended=False)
        assert refused(answer, 408)["field"] == "body"
        assert server.call("GET", "/healthz")[0] == 200


@pytest.mark.parametrize("begun", [b"", HEAD])
def test_a_client_whose_head_is_slow_gets_no_answer(begun: bytes) -> None:
    with served(limits={"server.protocol.LONGEST_REQUEST": 0.3}) as server:
        assert server.raw(begun, ended=False) == b""
        assert server.end() == (0, "")


def test_requests_one_after_the_other_and_half_a_connection(server: Server) -> None:
    """Requests that are sent at once are answered one by one; a client may close its side and still hear."""
    one = HEAD + b"Content-Length: 2\r\n\r\n{}"
    assert server.raw(one * 3).count(b"HTTP/1.1 200 ") == 3
    head = server.raw(b"HEAD /v1/experiments HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert head.endswith(b"\r\n\r\n")
    assert server.raw(one[:-1]) == b""
    both = b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    refused(server.raw(HEAD + both), 400)
    twice = b"GET /v1/experiments HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
    assert refused(server.raw(twice), 400)["field"] == "the header Host"


def test_clients_that_go_away_leave_no_trace() -> None:
    with served() as server:
        server.post("", FIRST)
        for part in (HEAD, HEAD + b"Content-Length: 2\r\n\r\n{", HEAD + b"Content-Length: 2\r\n\r\n{}"):
            for linger in (True, False):
                link = socket.create_connection(("127.0.0.1", server.port))
                if not linger:  # the system cuts the connection instead of closing it
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                link.sendall(part)
                link.close()
        assert server.call("GET", "/healthz")[0] == 200
        assert server.end() == (0, "")


def test_tricks_with_paths_reach_nothing(server: Server) -> None:
    for path in ("/v1/experiments/../experiments", "/v1/experiments/%2e%2e/state", "//v1/experiments",
                 "/v1/experiments/one/../../../etc/passwd", "/v1/experiments/%00",
                 "/v1/experiments/1%0d%0aX:1", "/v1/experiments/%ff%fe",
                 "/v1/experiments/%3Cscript%3Ealert(1)%3C/script%3E"):  # fmt: skip
        status, found, headers = server.call("GET", path)
        assert status == 404
        assert headers["content-type"] == "application/json"
        assert headers["x-content-type-options"] == "nosniff"
        assert "x" not in headers
        assert found["error"]["message"].isprintable()


def test_what_a_server_sets_for_all_threads_ends_with_it() -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    with quick_switches():
        assert gc.get_threshold()[0] == YOUNG
        assert gc.isenabled()
    assert (sys.getswitchinterval(), gc.get_threshold()) == before
