"""The commands `serve` and `keys` in this process: keys are printed once, and what is wrong is one line."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
from test_cli import run

from lighttail.dashboard.form import FIELDS
from lighttail.server.keys import Keys, read_keys
from lighttail.server.run import greeting


def test_keys_are_made_listed_and_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--keys", str(tmp_path / "keys.json")]
    assert run(monkeypatch, "keys", "add", "web", "--role", "manage", *place) == 0
    text = capsys.readouterr().out.strip()
    found = Keys(tmp_path / "keys.json").find(text)
    assert found is not None
    assert (found.name, found.role) == ("web", "manage")
    assert run(monkeypatch, "keys", "add", "worker", *place) == 0
    assert run(monkeypatch, "keys", "list", *place) == 0
    screen = capsys.readouterr().out
    assert "manage" in screen
    assert text not in screen
    assert [key.role for key in read_keys(tmp_path / "keys.json")] == ["manage", "ask"]
    assert run(monkeypatch, "keys", "remove", "web", *place) == 0
    assert Keys(tmp_path / "keys.json").find(text) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["keys", "add", "a b", "--keys", "k.json"], "name must be"),
        (["keys", "add", "web", "--role", "boss", "--keys", "k.json"], "role must be"),
        (["keys", "list", "--keys", "k.json"], "keys must be"),
        (["keys", "remove", "web", "--keys", "k.json"], "keys must be"),
        (["keys", "add", "web", "--keys", "no/such/folder/k.json"], "keys must be"),
        (["serve", "--host", "0.0.0.0"], "without --keys"),
        (["serve", "--port", "65536"], "port must be"),
        (["serve", "--port", "x"], "port must be"),
        (["serve", "--keys", "k.json"], "keys must be"),
        (["serve", "--host", "", "--port", "0"], "host must be"),
    ],
)
def test_what_is_wrong_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *words) == 2
    screen = capsys.readouterr()
    assert said in screen.err
    assert (screen.err.count("\n"), screen.out, list(tmp_path.iterdir())) == (1, "", [])


def test_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = builtins.__import__

    def missing(name: str, *more: Any) -> Any:
        if name.partition(".")[0] == "fastapi":
            raise ImportError(name)
        return plain(name, *more)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert run(monkeypatch, "serve") == 1
    assert 'pip install "lighttail[serve]"' in capsys.readouterr().err


def test_the_policy_that_is_suggested_suits_conversions() -> None:
    said = greeting("http://127.0.0.1:8710", "lighttail.db", keys=False)
    (hint,) = [field.help for field in FIELDS if field.name == "policy"]
    page = (Path(__file__).parents[1] / "docs" / "dashboard.md").read_text()
    for text in ("\n".join(said), hint, page):
        assert "ucb:anytime:0.1" in text
        assert "anytime:0.5" not in text
        assert "kappa, in units of the reward" in text


def test_the_help_shows_the_port(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "serve", "--help") == 0
    assert "8710" in capsys.readouterr().out


def test_a_wrong_webhook_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "serve", "--store", "memory", "--port", "0", "--webhook", "foo") == 2
    assert "but is 'foo'" in " ".join(capsys.readouterr().err.split())
