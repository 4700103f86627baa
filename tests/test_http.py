"""The routes in this process: what each answers, and the sentence of every refusal."""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from desks import Clock
from journals import FailingJournal
from served import FIRST, FOREVER, JSON, Client, client_of, refusal

import lighttail as lt
from lighttail.live import Office
from lighttail.live.errors import unavailable
from lighttail.live.journal import Row
from lighttail.live.memory import MemoryJournal
from lighttail.server import gate, reading
from lighttail.server.keys import ROLES, Keys, add_key
from lighttail.server.reading import LARGEST_BODY, json_of

ONE = "/v1/experiments/one"


@pytest.fixture
def client() -> Iterator[Client]:
    with client_of() as made:
        assert made.post("/v1/experiments", json=FIRST).status_code == 201
        yield made


def sent(client: Client, path: str, text: str | bytes) -> Any:
    """The answer to a body that is written by hand."""
    return client.post(path, content=text, headers=JSON)


def test_an_experiment_from_its_creation_to_its_end(client: Client) -> None:
    assert client.post("/v1/experiments", json=FIRST).status_code == 200  # the same again
    refusal(client.post("/v1/experiments", json=FIRST | {"arms": ["A", "C"]}), 409, "arms")
    asked = client.post(f"{ONE}/ask", json={"count": 3}).json()["trials"]
    assert [trial["id"] for trial in asked] == ["1", "2", "3"]
    assert {trial["arm"] for trial in asked} <= {"A", "B"}
    rewards = [{"id": "1", "reward": 0.5}, {"id": 2, "reward": True}]
    told = client.post(f"{ONE}/tell", json={"rewards": rewards}).json()
    assert told == {"counted": 2, "repeated": 0}
    assert client.post(f"{ONE}/tell", json={"rewards": rewards}).json()["repeated"] == 2
    summary = client.get(ONE).json()
    assert (summary["open"], sum(summary["tries"].values()), sum(summary["heard"].values())) == (1, 3, 2)
    assert client.get("/v1/experiments").json() == {"experiments": ["one"]}
    assert client.post(f"{ONE}/pause", headers=JSON).json() == {"changed": True}
    assert client.post(f"{ONE}/pause", json={}).json() == {"changed": False}
    assert client.post(f"{ONE}/ask", json={}).json()["trials"][0]["by"] == "fallback"
    assert client.post(f"{ONE}/resume", json={}).json() == {"changed": True}
    assert client.post(f"{ONE}/stop", json={}).json() == {"changed": True}
    refusal(client.post(f"{ONE}/ask", json={}), 409, "experiment")
    assert client.post(f"{ONE}/tell", json={"rewards": [{"id": "3", "reward": 1}]}).json()["counted"] == 1


def test_settings_change_so_that_an_arm_can_leave(client: Client) -> None:
    client.post(f"{ONE}/arms", json={"add": "C"})
    refused = refusal(client.post(f"{ONE}/arms", json={"retire": "A"}), 409, "arm")  # A is the fall-back
    assert "change this setting first" in refused["message"]
    wish = {"settings": {"fallback": "B", "window": 60, "default": 0}}
    assert client.post(f"{ONE}/settings", json=wish).json() == {"changed": True}
    assert client.post(f"{ONE}/settings", json=wish).json() == {"changed": False}
    assert client.post(f"{ONE}/arms", json={"retire": "A"}).json() == {"changed": True}
    for wrong, field in (
        ({}, "settings"),
        ({"settings": []}, "settings"),
        ({"settings": {"colour": 1}}, "the name of a setting"),
        ({"settings": {"fallback": "A"}}, "settings.fallback"),
        ({"settings": {}, "name": "x"}, "a field of the body"),
    ):
        refusal(client.post(f"{ONE}/settings", json=wrong), 400, field)
    assert client.get(ONE).json()["settings"] == wish["settings"]
    refusal(client.post("/v1/experiments/two/settings", json=wish), 404, "name")


def test_the_same_key_gives_the_same_answer(client: Client) -> None:
    first = client.post(f"{ONE}/ask", json={"key": "k", "count": 2}).json()
    assert client.post(f"{ONE}/ask", json={"key": "k", "count": 2}).json() == first
    assert client.post(f"{ONE}/ask", json={"count": 2}).json() != first  # control
    refusal(client.post(f"{ONE}/ask", json={"key": "k"}), 409, "count")


def test_the_state_is_an_experiment(client: Client) -> None:
    client.post(f"{ONE}/tell", json={"rewards": [{"id": client_ask(client), "reward": 1}]})
    experiment = lt.Experiment.from_json(client.get(f"{ONE}/state").text)
    assert sum(experiment.pulls.values()) == 1
    assert max(mean for mean in experiment.means.values() if not math.isnan(mean)) == 1.0


def client_ask(client: Client) -> str:
    return str(client.post(f"{ONE}/ask", json={}).json()["trials"][0]["id"])


def test_the_journal_comes_as_lines_after_a_number(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.server.routes.PAGE", 4)  # so that it comes in several pages
    client.post(f"{ONE}/ask", json={"count": 10})
    lines = client.get(f"{ONE}/journal")
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["seq"] for line in lines.text.splitlines()] == list(range(1, 12))
    assert [json.loads(line)["seq"] for line in client.get(f"{ONE}/journal?after=9").text.splitlines()] == [
        10,
        11,
    ]
    assert client.get(f"{ONE}/journal?after=11").text == ""
    for query in (
        "after=x",
        "after=-1",
        "after=1.5",
        "after=",
        "after=99999999999999999",
        "befor=1",
        "after=1&after=2",
    ):
        refusal(client.get(f"{ONE}/journal?{query}"), 400)
    refusal(client.get("/v1/experiments/two/journal"), 404, "name")


class PickyJournal(MemoryJournal):
    """A journal that cannot even look for a name with a zero byte, like some databases."""

    def rows(self, name: str, after: int = 0, most: int = 100) -> list[Row]:
        if "\0" in name:
            raise unavailable("the name cannot be written")
        return super().rows(name, after, most)


def test_a_name_that_no_experiment_can_have_is_unknown_everywhere() -> None:
    with client_of(PickyJournal()) as client:
        for path in ("", "/journal", "/state"):
            refusal(client.get(f"/v1/experiments/%00{path}"), 404, "name")


def test_a_linear_experiment_is_offered_actions(client: Client) -> None:
    body = {"name": "lin", "policy": "linucb:lighttailed:0.2", "dim": 2, "horizon": 100, "seed": 1}
    assert client.post("/v1/experiments", json=body).status_code == 201
    offer = {"actions": [[1.0, 0.0], [0.0, 1.0]], "labels": ["x", "y"]}
    trial = client.post("/v1/experiments/lin/ask", json=offer).json()["trials"][0]
    assert trial["action"] == offer["actions"][["x", "y"].index(trial["arm"])]  # type: ignore[index]
    refusal(client.post("/v1/experiments/lin/ask", json={}), 400, "actions")
    refusal(client.post(f"{ONE}/ask", json=offer), 400, "actions")
    for wrong in (5, "x", {"a": 1}, [1], [[1, 2], [3]], [[None, 1]], [["a", 1]], [[10**400, 1]]):
        refusal(client.post("/v1/experiments/lin/ask", json={"actions": wrong}), 400, "actions")
    for labels in ("xy", {"x": 1, "y": 2}, ["x"], ["x", "x"], [["x"], ["y"]], ["x", "\ud800"]):
        text = json.dumps(offer | {"labels": labels})
        refusal(sent(client, "/v1/experiments/lin/ask", text), 400, "labels")
    many = {"actions": [[0.5] * 2] * 300, "count": 1000}
    refusal(client.post("/v1/experiments/lin/ask", json=many), 400)
    refusal(client.post("/v1/experiments", json=body | {"name": "big", "dim": 10**6}), 400, "dim")


def test_names_do_not_fill_the_disk(client: Client) -> None:
    body = {"name": "lin", "policy": "linucb:lighttailed:0.2", "dim": 1, "horizon": 100, "seed": 1}
    assert client.post("/v1/experiments", json=body).status_code == 201
    ask = "/v1/experiments/lin/ask"
    offer = {"actions": [[1.0], [0.5]], "labels": ["x" * 200, "y"]}
    assert client.post(ask, json=offer | {"count": 10}).status_code == 200
    refusal(client.post(ask, json=offer | {"labels": ["x" * 201, "y"]}), 400, "labels")
    many = {"actions": [[0.5]] * 20, "labels": [f"{place:0200}" for place in range(20)]}
    assert client.post(ask, json=many | {"count": 100}).status_code == 200
    refusal(client.post(ask, json=many | {"count": 1000}), 400, "count times the characters of labels")
    refusal(client.post(f"{ONE}/arms", json={"add": "x" * 201}), 400, "arm")
    long = FIRST | {"name": "long", "arms": ["x" * 201, "y"]}
    refusal(client.post("/v1/experiments", json=long), 400, "arms")
    assert client.post(f"{ONE}/arms", json={"add": "x" * 200}).status_code == 200


def test_a_late_reward_is_kept_and_not_counted() -> None:
    clock = Clock()
    with client_of(clock=clock) as client:
        settings = {"window": 60, "default": 0}
        assert client.post("/v1/experiments", json=FIRST | {"settings": settings}).status_code == 201
        id = client_ask(client)
        clock.now += 61
        late = client.post(f"{ONE}/tell", json={"rewards": [{"id": id, "reward": 1}]}).json()
        assert late == {"counted": 0, "repeated": 0, "late": 1}


class SharedJournal(MemoryJournal):
    """A journal to which other servers may write."""

    shared = True


def test_windows_of_a_server_that_has_ended_are_closed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.server.app.LOOK_EVERY", 0.01)
    journal, clock = SharedJournal(), Clock()
    with client_of(journal, clock=clock) as client:
        other = Office(journal, clock)
        settings = {"window": 60, "default": 0}
        desk, _ = other.create("later", "ts:0.5", arms=["A", "B"], settings=settings)
        desk.ask(2)
        desk.close()
        clock.now += 61
        end = time.monotonic() + FOREVER
        while journal.head("later")[0] < 5 and time.monotonic() < end:
            time.sleep(0.01)
        assert journal.head("later")[0] == 5
        assert client.get("/v1/experiments/later").json()["events"]["default"] == 2


WRONG = [
    ("", "{", 400, "body"),
    ("", "[]", 400, "body"),
    ("", "null", 400, "body"),
    ("", b"\xff", 400, "body"),
    ("", "{}", 400, "name"),
    ("", '{"name": "x", "policy": "ts:0.5", "arms": ["A", "B"], "colour": 1}', 400, "a field of the body"),
    ("", '{"name": "x", "name": "y", "policy": "ts:0.5", "arms": ["A", "B"]}', 400, "a field of the body"),
    ("", '{"name": "..", "policy": "ts:0.5", "arms": ["A", "B"]}', 400, "name"),
    ("", '{"name": "a/b", "policy": "ts:0.5", "arms": ["A", "B"]}', 400, "name"),
    ("", '{"name": "<b>", "policy": "ts:0.5", "arms": ["A", "B"]}', 400, "name"),
    ("", '{"name": "x", "policy": "own.py:Mine()", "arms": ["A", "B"]}', 400, "policy"),
    ("", '{"name": "x", "policy": "os:system(1)", "arms": ["A", "B"]}', 400, "policy"),
    ("", '{"name": "x", "policy": "\\ud800", "arms": ["A", "B"]}', 400, None),
    ("", '{"name": "x", "policy": "ts:0.5", "arms": "AB"}', 400, "arms"),
    ("", '{"name": "x", "policy": "ts:0.5", "arms": [1, "1"]}', 400, "arms"),
    ("", '{"name": "x", "policy": "ts:0.5", "arms": ["A", "B"], "settings": {"window": NaN}}', 400, "body"),
    ("", '{"name": "x", "policy": "ts:0.5", "arms": ["A", "B"], "settings": {"colour": 1}}', 400, None),
    ("/one/ask", '{"count": 0}', 400, "count"),
    ("/one/ask", '{"count": 1001}', 400, "count"),
    ("/one/ask", '{"count": true}', 400, "count"),
    ("/one/ask", '{"key": ""}', 400, "key"),
    ("/one/ask", '{"key": "\\u0000"}', 400, "key"),
    ("/one/ask", '{"key": "\\ud800"}', 400, "key"),
    ("/one/ask", json.dumps({"key": "x" * 201}), 400, "key"),
    ("/one/ask", '{"kee": "x"}', 400, "a field of the body"),
    ("/one/tell", "{}", 400, "rewards"),
    ("/one/tell", '{"rewards": []}', 400, "the number of rewards"),
    ("/one/tell", '{"rewards": {"1": 1}}', 400, "rewards"),
    ("/one/tell", '{"rewards": [{"id": "1"}]}', 400, "rewards[0]"),
    ("/one/tell", '{"rewards": [{"id": "1", "reward": 1, "x": 1}]}', 400, "rewards[0]"),
    ("/one/tell", '{"rewards": [{"id": "1", "reward": 1e400}]}', 400, "reward"),
    ("/one/tell", '{"rewards": [{"id": "1", "reward": Infinity}]}', 400, "body"),
    ("/one/tell", '{"rewards": [{"id": "1", "reward": "1"}]}', 400, "reward"),
    ("/one/tell", '{"rewards": [{"id": 1.5, "reward": 1}]}', 400, "id"),
    ("/one/tell", '{"rewards": [{"id": "99", "reward": 1}]}', 404, "id"),
    ("/one/tell", f'{{"rewards": [{{"id": {"9" * 5000}, "reward": 1}}]}}', 400, "body"),
    ("/one/pause", '{"why": "x"}', 400, "a field of the body"),
    ("/two/ask", "{}", 404, "name"),
    ("/%2e%2e/ask", "{}", 404, "name"),
    ("/one%2fask/ask", "{}", 404, "path"),
    ("/one%00/ask", "{}", 404, "name"),
    ("/%3Cscript%3E/ask", "{}", 404, "name"),
    ("/" + "n" * 101 + "/ask", "{}", 404, "name"),
    ("/one/ask", "[" * 100_000, 400, "body"),
    ("/one/ask", '{"key": ' + "[" * 20 + "]" * 20 + "}", 400, "body"),
]


@pytest.fixture(scope="module")
def steady() -> Iterator[Client]:
    """A client for tests that change nothing."""
    with client_of() as made:
        assert made.post("/v1/experiments", json=FIRST).status_code == 201
        yield made


@pytest.mark.parametrize(("path", "text", "status", "field"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_named(steady: Client, path: str, text: Any, status: int, field: str | None) -> None:
    before = steady.get(f"{ONE}/journal").text
    refusal(sent(steady, f"/v1/experiments{path}", text), status, field)
    assert steady.get(f"{ONE}/journal").text == before


@pytest.mark.parametrize(
    ("path", "given", "hint"),
    [
        ("", {"name": "x", "polciy": "ts:0.5"}, "; did you mean 'policy'?"),
        ("", {"name": "x", "policy": "ts:0.5", "setings": {}}, "; did you mean 'settings'?"),
        ("/one/ask", {"Key": "x"}, "; did you mean 'key'?"),
        ("/one/settings", {"settings": {"windw": 1}}, "; did you mean 'window'?"),
        ("/one/ask", {"xyzzy": "x"}, ""),
    ],
)
def test_a_field_that_is_nearly_right_is_named(
    steady: Client, path: str, given: dict[str, Any], hint: str
) -> None:
    said = refusal(sent(steady, f"/v1/experiments{path}", json.dumps(given)), 400)["message"]
    assert said.endswith(hint) if hint else "did you mean" not in said


def test_brackets_in_a_text_are_no_depth() -> None:
    """Negative control of the check of depth."""
    assert json_of(json.dumps({"key": '[{"\\' * 40}).encode()) == {"key": '[{"\\' * 40}
    deep = "[" * reading.DEEPEST + "]" * reading.DEEPEST
    assert json_of(deep.encode())
    with pytest.raises(lt.BadInput, match="within one another"):
        json_of(f"[{deep}]".encode())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"[" * 17 + b'"' + b'\\"' * 500_000, "within one another"),
        (b"[" * 16 + b'"' + b'\\"' * 500_000, "JSON"),
        (b"{" + b"".join(b'"%x":0,' % place for place in range(100_000)) + b'"1869f":0}', "named once"),
    ],
)
def test_no_body_takes_long_to_refuse(text: bytes, why: str) -> None:
    """A time that grows with the square of the length would let these bodies hold the server for an hour."""
    assert len(text) <= LARGEST_BODY
    with pytest.raises(lt.BadInput, match=why):
        json_of(text)


def test_unknown_routes_and_methods_are_named(client: Client) -> None:
    refusal(client.get("/v2"), 404, "path")
    refusal(client.get("/v1/experiments/"), 404, "path")
    error = refusal(client.request("PUT", "/v1/experiments", json={}), 405, "method")
    assert error["allowed"] == "GET, POST"
    assert client.request("DELETE", ONE).headers["allow"] == "GET"
    assert client.request("HEAD", "/healthz").status_code == 200


def test_a_body_that_is_no_json_or_too_large_is_refused(client: Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""):
        refusal(client.post(f"{ONE}/ask", content="{}", headers={"Content-Type": kind}), 415, "Content-Type")
    good = client.post(
        f"{ONE}/ask", content="{}", headers={"Content-Type": "Application/JSON; charset=utf-8"}
    )
    assert good.status_code == 200  # negative control
    assert sent(client, f"{ONE}/ask", "{}".ljust(LARGEST_BODY)).status_code == 200
    refusal(sent(client, f"{ONE}/ask", "{}".ljust(LARGEST_BODY + 1)), 413)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(17):
            yield b" " * 2**16

    refusal(client.post(f"{ONE}/ask", content=pieces(), headers=JSON), 413)


def test_a_full_server_and_a_failing_journal_say_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = FailingJournal()
    with client_of(journal) as client:
        client.post("/v1/experiments", json=FIRST)
        journal.broken = True
        failed = client.post(f"{ONE}/ask", json={"key": "k"})
        refusal(failed, 503, "journal")
        assert failed.headers["retry-after"] == "1"
        journal.broken = False
        assert client.post(f"{ONE}/ask", json={"key": "k"}).json()["trials"][0]["id"] == "1"
        monkeypatch.setattr(gate, "MOST_INSIDE", 0)
        full = client.post(f"{ONE}/ask", json={})
        refusal(full, 503, "server")
        assert full.headers["retry-after"] == "1"
        assert client.get("/healthz").status_code == 200
        refusal(client.get("/readyz"), 503, "server")


def test_a_mistake_of_ours_is_a_sentence_without_secrets(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise KeyError("a secret")

    monkeypatch.setattr("lighttail.live.office.Office.names", lambda self: broken())
    answer = client.get("/v1/experiments")
    assert "secret" not in refusal(answer, 500, "server")["message"]


def test_pages_escape_names_and_load_nothing(client: Client) -> None:
    for path in ("/", "/docs"):
        page = client.get(path)
        assert page.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        text = page.text.replace('<script src="/static/page.js" defer></script>', "")  # its own file
        for outside in ("<script", "src=", "@import", "https://", "//"):
            assert outside not in text
        assert "\\x0a" not in text  # a line break in a description is a space
    assert "/v1/experiments/{name}/ask" in client.get("/docs").text
    assert ">one<" in client.get("/").text


def test_metrics_count_what_happened(client: Client) -> None:
    id = client_ask(client)
    for _ in range(3):
        client.post(f"{ONE}/tell", json={"rewards": [{"id": id, "reward": 1}]})
    client.get("/nowhere")
    client.post(f"{ONE}/pause", json={})
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    named = {
        "asks_total": 1, "tells_total": 1, "repeated_total": 2, "open": 0, "paused": 1, "late_total": 0,
        "defaults_total": 0, "commits_total": 3, "events_total": 3, "waiting": 0,
    }  # fmt: skip
    for name, value in named.items():
        assert found[f'lighttail_experiment_{name}{{experiment="one"}}'] == str(value), name
    route = "/v1/experiments/{name}/tell"
    assert found[f'lighttail_http_requests_total{{method="POST",route="{route}",status="200"}}'] == "3"
    assert found['lighttail_http_requests_total{method="any",route="unknown",status="404"}'] == "1"
    assert found[f'lighttail_http_request_seconds_bucket{{route="{route}",le="+Inf"}}'] == "3"
    assert found[f'lighttail_http_request_seconds_count{{route="{route}"}}'] == "3"


def test_probes(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}

    def cut(self: Any) -> None:
        raise unavailable("the database cannot be reached")

    monkeypatch.setattr(MemoryJournal, "names", cut)
    refusal(client.get("/readyz"), 503, "journal")
    assert client.get("/healthz").status_code == 200
    assert client.post(f"{ONE}/ask", json={}).status_code == 200  # an experiment that is known is served


class LateJournal(SharedJournal):
    """A journal that cannot be read at first, like a database that is gone for a moment."""

    gone = 0  # reads that fail

    def names(self) -> list[str]:
        if self.gone > 0:
            self.gone -= 1
            raise unavailable("the database cannot be reached at this moment")
        return super().names()


def test_a_server_begins_although_its_database_is_gone_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.server.app.LOOK_SOON", 0.01)
    journal, clock = LateJournal(), Clock()
    settings = {"window": 60, "default": 0}
    desk, _ = Office(journal, clock).create("before", "ts:0.5", arms=["A", "B"], settings=settings)
    desk.ask(2)
    desk.close()
    clock.now += 61
    journal.gone = 2
    with client_of(journal, clock=clock):
        end = time.monotonic() + FOREVER
        while journal.head("before")[0] < 5 and time.monotonic() < end:
            time.sleep(0.01)
    assert journal.head("before")[0] == 5  # both windows were closed, although nobody asked


def test_refusals_say_what_to_send(client: Client) -> None:
    one = refusal(client.post(f"{ONE}/tell", json={"id": "1", "reward": 1}), 400, "rewards")
    assert one["message"].endswith(
        'given in the body, as {"rewards": [{"id": "1", "reward": 1}]}, but is missing'
    )
    bare = refusal(client.post(f"{ONE}/pause"), 415, "Content-Type")
    assert 'but is missing; add -H "Content-Type: application/json"' in bare["message"]
    assert not client.get(ONE).json()["paused"]
    light = {"name": "two", "policy": "ucb:lighttailed:0.056", "arms": ["A", "B"]}
    short = refusal(client.post("/v1/experiments", json=light), 400, "horizon")
    assert "horizon must be given with UCB + LightTailed(0.056), but is missing" in short["message"]
    assert "None" not in short["message"]
    nameless = refusal(client.post("/v1/experiments", json={"policy": "ts:0.5"}), 400, "name")
    assert nameless["message"] == "name must be given, but is missing"


def test_whoever_may_read_learns_which_name_was_meant(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    keys = {role: {"Authorization": f"Bearer {add_key(file, role, role)}"} for role in ROLES}
    with client_of(keys=Keys(file), at="experiments.example") as client:
        manage = keys["manage"]
        none = refusal(client.get("/v1/experiments/web", headers=manage), 404, "name")
        assert none["message"].endswith("but is 'web'; there is none yet")
        client.post("/v1/experiments", json=FIRST | {"name": "web"}, headers=manage)
        wrong = "name must be the name of an experiment, but is 'webb'"
        for path in ("", "/journal", "/state", "/view"):
            told = refusal(client.get(f"/v1/experiments/webb{path}", headers=keys["read"]), 404, "name")
            assert told["message"] == f"{wrong}; did you mean 'web'?"
        far = refusal(client.get("/v1/experiments/shop", headers=keys["read"]), 404, "name")
        assert far["message"].endswith("; there is 'web'")
        ask = refusal(client.post("/v1/experiments/webb/ask", json={}, headers=keys["ask"]), 404, "name")
        assert ask["message"] == wrong  # whoever may only ask must not learn names
        both = refusal(client.post("/v1/experiments/webb/ask", json={}, headers=manage), 404, "name")
        assert both["message"] == f"{wrong}; did you mean 'web'?"
        page = client.get("/experiments/webb", headers=keys["read"] | {"Accept": "text/html"})
        assert page.status_code == 404
        assert "did you mean" in page.text
