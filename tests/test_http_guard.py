"""Who may come in: keys and their roles, and the hosts and origins of a server without keys."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from served import FIRST, JSON, client_of, refusal

import lighttail as lt
from lighttail.server.guard import Guard
from lighttail.server.keys import ROLES, Keys, add_key, digest_of, read_keys, remove_key

ONE = "/v1/experiments/one"
NEEDS = {
    ("POST", "/v1/experiments"): "manage",
    ("GET", "/v1/experiments"): "read",
    ("GET", ONE): "read",
    ("POST", f"{ONE}/ask"): "ask",
    ("POST", f"{ONE}/tell"): "ask",
    ("POST", f"{ONE}/pause"): "manage",
    ("POST", f"{ONE}/resume"): "manage",
    ("POST", f"{ONE}/stop"): "manage",
    ("POST", f"{ONE}/arms"): "manage",
    ("POST", f"{ONE}/settings"): "manage",
    ("GET", f"{ONE}/state"): "read",
    ("GET", f"{ONE}/forecast"): "read",
    ("GET", f"{ONE}/journal"): "read",
    ("GET", f"{ONE}/view"): "read",
    ("GET", "/metrics"): "read",
}


def held(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, str]:
    """A key of each role, in the file `keys.json`."""
    return {role: add_key(tmp_path / "keys.json", role, role) for role in ROLES}


def test_a_key_that_may_ask_learns_nothing_that_others_sent(tmp_path: Path, texts: dict[str, str]) -> None:
    with client_of(keys=Keys(tmp_path / "keys.json"), at="experiments.example") as client:
        asker = held(texts["ask"])
        client.post("/v1/experiments", json=FIRST, headers=held(texts["manage"]))
        first = {"key": "k", "unit": "patient 7134", "about": {"city": "Oulu"}}
        id = client.post(f"{ONE}/ask", json=first, headers=asker).json()["trials"][0]["id"]
        client.post(f"{ONE}/tell", json={"rewards": [{"id": id, "reward": 0.8125}]}, headers=asker)
        guesses = {
            "unit": ("ask", first | {"unit": "guess"}),
            "about": ("ask", first | {"about": {}}),
            "reward": ("tell", {"rewards": [{"id": id, "reward": 0.5}]}),
        }
        for field, (verb, body) in guesses.items():
            answer = client.post(f"{ONE}/{verb}", json=body, headers=asker)
            refusal(answer, 409, field)
            assert not any(word in answer.text for word in ("7134", "Oulu", "0.8125")), answer.text


def test_each_role_may_do_its_own_and_manage_may_do_all(tmp_path: Path, texts: dict[str, str]) -> None:
    with client_of(keys=Keys(tmp_path / "keys.json"), at="experiments.example") as client:
        documented = {
            (method.upper(), path.replace("{name}", "one"))
            for path, methods in client.get("/openapi.json", headers=held(texts["read"]))
            .json()["paths"]
            .items()
            for method in methods
        }
        assert documented == NEEDS.keys() | {("GET", "/healthz"), ("GET", "/readyz")}
        assert client.post("/v1/experiments", json=FIRST, headers=held(texts["manage"])).status_code == 201
        for (method, path), needed in NEEDS.items():
            for role in ROLES:
                answer = client.request(method, path, headers=JSON | held(texts[role]))
                if role in (needed, "manage"):
                    assert answer.status_code not in (401, 403), (method, path, role)
                else:
                    refusal(answer, 403, "Authorization")


def test_everything_but_the_probes_needs_a_key(tmp_path: Path, texts: dict[str, str]) -> None:
    other = add_key(tmp_path / "others.json", "other", "manage")
    with client_of(keys=Keys(tmp_path / "keys.json")) as client:
        for path in ("/healthz", "/readyz"):
            assert client.get(path).status_code == 200
        wrong = ["", "Bearer", f"Bearer {other}", f"Basic {texts['manage']}", texts["manage"], "Bearer \xff",
                 f"Bearer {texts['manage'][:-1]}", f"Bearer {texts['manage']}x"]  # fmt: skip
        for method, path in [
            *NEEDS,
            ("GET", "/"),
            ("GET", "/docs"),
            ("GET", "/openapi.json"),
            ("GET", "/no"),
        ]:
            answer = client.request(method, path)
            error = refusal(answer, 401, "Authorization")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert error["value"] is None
        for given in wrong:
            answer = client.get("/v1/experiments", headers={"Authorization": given.encode("latin-1")})  # type: ignore[dict-item]
            refusal(answer, 401, "Authorization")
            assert texts["manage"] not in answer.text
        for path in ("/docs", "/openapi.json"):
            assert client.get(path, headers=held(texts["ask"])).status_code == 200
        refusal(client.get("/", headers=held(texts["ask"])), 403)  # it names experiments
        assert client.get("/", headers=held(texts["read"])).status_code == 200


def test_the_file_keeps_digests_and_is_read_again(tmp_path: Path, texts: dict[str, str]) -> None:
    place = tmp_path / "keys.json"
    assert stat.S_IMODE(os.stat(place).st_mode) == 0o600
    assert not any(text in place.read_text() for text in texts.values())
    assert len(set(texts.values())) == 3
    with client_of(keys=Keys(place)) as client:
        new = add_key(place, "new", "read")
        assert client.get("/v1/experiments", headers=held(new)).status_code == 200
        remove_key(place, "new")
        refusal(client.get("/v1/experiments", headers=held(new)), 401)
        assert client.get("/v1/experiments", headers=held(texts["read"])).status_code == 200
        place.write_text("damaged")
        refusal(client.get("/v1/experiments", headers=held(texts["read"])), 503, "server")
        assert client.get("/healthz").status_code == 200


def test_wrong_keys_files_and_names_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "keys.json"
    for words in (("../x", "ask"), ("", "ask"), ("web", "root"), ("web", "")):
        with pytest.raises(lt.BadInput):
            add_key(place, *words)
    assert not place.exists()
    with pytest.raises(lt.BadInput, match="keys add"):
        Keys(place)
    add_key(place, "web", "ask")
    with pytest.raises(lt.BadInput, match="name must be a name that no key"):
        add_key(place, "web", "read")
    with pytest.raises(lt.BadInput, match=": web, but is 'web2'"):
        remove_key(place, "web2")
    remove_key(place, "web")
    with pytest.raises(lt.BadInput, match="at least one key"):
        Keys(place)
    good = {"name": "web", "role": "ask", "digest": digest_of("x"), "made": "today"}
    for wrong in ({"role": "root"}, {"digest": "00"}, {"digest": 5}, {"name": "a b"}, {"more": 1}):
        place.write_text(json.dumps({"format": 1, "keys": [good | wrong]}))
        with pytest.raises(lt.BadInput, match="keys must be a keys file"):
            read_keys(place)
    place.write_text(json.dumps({"format": 1, "keys": [good]}))
    assert [key.name for key in read_keys(place)] == ["web"]  # negative control
    with pytest.raises(lt.BadInput, match=r"x \.\.\. cannot be read \(") as caught:
        read_keys("x" * 300)  # too long for the name of a file: the sentence repeats its beginning alone
    assert "x" * 101 not in str(caught.value)


HOSTS = {
    "localhost": True, "localhost:8710": True, "127.0.0.1": True, "[::1]:8710": True, "LOCALHOST:1": True,
    "evil.example": False, "evil.example:8710": False, "127.0.0.1.evil.example": False, "": False,
    "localhost.evil.example": False, "localhost:8710@evil.example": False, "0.0.0.0:8710": False,
    "192.168.0.1": False, "localhost:": False,
}  # fmt: skip


@pytest.mark.parametrize(("host", "fits"), HOSTS.items())
def test_a_foreign_host_is_refused_without_keys(host: str, fits: bool) -> None:
    """A name that an attacker points at this machine (DNS rebinding) is not a name of the server."""
    guard = Guard()
    headers = {b"host": host.encode()}
    if fits:
        assert guard.admitted("/v1/experiments", headers)
    else:
        with pytest.raises(lt.BadInput, match="Host must be"):
            guard.admitted("/v1/experiments", headers)
    with pytest.raises(lt.BadInput, match="Host must be"):
        guard.admitted("/v1/experiments", {})


def test_a_foreign_page_can_neither_read_nor_change() -> None:
    with client_of(at="localhost:8710") as client:
        client.post("/v1/experiments", json=FIRST)
        for origin in ("http://evil.example", "null", "https://localhost:8710", "http://localhost:3000", ""):
            for method, path in (("POST", f"{ONE}/stop"), ("GET", ONE)):
                answer = client.request(method, path, headers=JSON | {"Origin": origin})
                refusal(answer, 403, "Origin")
        form: Any = {"Content-Type": "text/plain", "Origin": "http://localhost:8710"}
        refusal(client.post(f"{ONE}/stop", content="{}", headers=form), 415)
        assert client.get(ONE).json()["stopped"] is False
        own = JSON | {"Origin": "http://localhost:8710"}
        assert client.post(f"{ONE}/stop", headers=own).json() == {"changed": True}  # negative control
        refusal(client.get("/v1/experiments", headers={"Host": "evil.example"}), 403, "Host")
        assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 200
