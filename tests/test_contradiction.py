"""Rewards that contradict `settings.means`: no chance of a loss is shown, and an alarm says so."""

from __future__ import annotations

import asyncio
import pickle
import re
from html import unescape
from typing import Any

import pytest
from desks import Clock, book_of, events_of, replayed
from served import FIRST, Client, client_of, refusal

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.dashboard import panels
from lighttail.dashboard.view import experiment_view
from lighttail.inference import Contradicted
from lighttail.live import Office
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.book import Book
from lighttail.live.checking import check_journal
from lighttail.live.memory import MemoryJournal
from lighttail.server.forecasts import Forecaster, Forecasts
from lighttail.server.watch import Watch

ONE = "/v1/experiments/one"
RISK = {"loss": 10, "chance": 0.5, "then": "warn"}
MEANS = {"low": 0.02, "high": 0.08}
WISH: dict[str, Any] = FIRST | {"policy": "ucb:anytime:0.1", "horizon": 2000}
WISH["settings"] = {"means": MEANS, "rewards": {"low": 0, "high": 1}, "risk": RISK}
SAID = (
    r"the mean of [AB] lies from 0\.\d+ to 1 \(limits that hold at all times\), and not from 0\.02 to 0\.08"
)
CAUSE = "the likely cause is that conversions were told without the zeros"


@pytest.fixture(autouse=True)
def here(monkeypatch: Any) -> None:
    """Forecast in this process, which has loaded the kernels."""
    monkeypatch.setattr(Forecaster, "forecast", lambda _, outlook, wish: outlook.forecast(wish).to_dict())


def play(client: Client, every: int) -> None:
    """100 visitors, of whom each `every`-th converts; 1: conversions alone are told."""
    assert client.post("/v1/experiments", json=WISH).status_code == 201
    trials = client.post(f"{ONE}/ask", json={"count": 100}).json()["trials"]
    rewards = [{"id": trial["id"], "reward": int(trial["id"]) % every == 0} for trial in trials]
    assert client.post(f"{ONE}/tell", json={"rewards": rewards}).json()["counted"] == 100


def sentences(page: str) -> tuple[str, str]:
    """The first sentences of a page, and all of its text."""
    (first,) = re.findall(r'<p class="sum">(.*?)</p>', page)
    return unescape(first), unescape(re.sub("<[^>]+>", " ", page))


def test_conversions_without_zeros_have_no_chance_of_a_loss() -> None:
    with client_of() as client:
        play(client, 1)
        error = refusal(client.get(f"{ONE}/forecast?paths=200"), 409, "settings.means")
        assert "the rewards contradict settings.means" in error["message"]
        assert re.search(SAID, error["message"])
        assert CAUSE in error["message"]
        first, text = sentences(client.get("/experiments/one").text)
        assert first.startswith("The rewards contradict settings.means, and no chance of a loss is shown: ")
        assert re.search(SAID, first)
        assert CAUSE in first
        assert "The chance of losing" not in text
        found = client.get(f"{ONE}/view").json()
        assert found["risk"]["forecast"] is None
        assert "contradict settings.means" in found["risk"]["why"]
        wide = client.get(
            f"{ONE}/forecast?paths=200&low=0.02&high=1"
        ).json()  # other limits, no contradiction
        assert wide["chance"]["value"] >= 0.0
        narrow = client.get(f"{ONE}/forecast?paths=200&low=0.02&high=0.08")
        assert "contradict the range from low to high" in refusal(narrow, 409)["message"]


def test_rewards_that_fit_have_a_forecast_which_says_which_number_to_act_on() -> None:
    """Negative control."""
    with client_of() as client:
        play(client, 20)
        assert client.get(f"{ONE}/forecast?paths=200").json()["chance"]["value"] < 1.0
        for _ in range(100):
            first, text = sentences(client.get("/experiments/one").text)
            if "The chance of losing" in text:
                break
        assert "contradict" not in text
        assert (
            "This is the number to act on; on the worst problem found that they do not exclude, it is "
            in first
        )
        assert panels.WHY_WORST in text
        assert "for all means in the stated range that the rewards do not exclude" in text


def test_means_that_are_too_low_have_another_cause() -> None:
    experiment = lt.Experiment(lt.UCB(lt.LightTailed(0.1)), ["A", "B"], horizon=5000, seed=1)
    for _ in range(600):
        experiment.tell(experiment.ask().id, 0.0)
    with pytest.raises(Contradicted, match="a window that is too short") as refused:
        experiment.forecast(loss=100, between=(0.2, 0.4), paths=100)
    assert refused.value.field == "between"
    view = experiment_view(experiment, between=(0.2, 0.4))
    assert view["contradiction"] is not None
    shown = panels.panels(view)
    assert "The rewards contradict the stated limits of all means" in shown["sum"]
    assert 'class="warning"' in shown["risk"]


def watched(office: Office, posted: list[Any]) -> Any:
    class Hook:
        post = posted.append

        def lines(self) -> list[str]:
            return []

    async def opened(name: str) -> AsyncDesk:
        return AsyncDesk(office.desk(name))

    watch = Watch(office, opened, Forecasts(), Hook())  # type: ignore[arg-type]

    def look() -> None:
        watch.changed("one")
        asyncio.run(watch.look())

    return watch, look


def test_an_alarm_is_not_quiet_about_it_and_says_it_once(caplog: Any) -> None:
    journal, posted = MemoryJournal(), list[Any]()
    office = Office(journal, Clock())
    desk, _ = office.create(**WISH)
    watch, look = watched(office, posted)
    trials = desk.ask(count=100)
    desk.tell([(trial.id, 1.0) for trial in trials])
    look()
    look()
    watched(office, posted)[1]()  # another server, or the same one after a restart
    (note,) = [event for event in events_of(journal) if event["kind"] == "alarm"]
    assert note["about"] == "settings.means"
    assert note["message"].startswith("The rewards contradict settings.means: the mean of ")
    assert [post["message"] for post in posted] == [note["message"]]
    assert posted[0]["experiment"] == "one"
    assert "contradict settings.means" in caplog.text
    assert 'lighttail_experiment_unwatched{experiment="one"} 1' in list(watch.lines())
    assert book_of(desk) == replayed(journal)  # the note is replayed, and a snapshot has it
    assert Book.restored(desk._book.to_plain()).noted  # type: ignore[union-attr]
    check_journal(journal, "one")
    desk.set(WISH["settings"] | {"sticky": False})
    look()
    assert len(posted) == 2  # other settings: somebody may believe that they help
    office.close()


def test_the_page_shows_the_alarm_while_the_rewards_contradict() -> None:
    with client_of() as client:
        play(client, 1)
        text = client.get("/experiments/one").text
        view = client.get(f"{ONE}/view").json()
    note = {"seq": 9, "time": 5.0, "kind": "alarm", "about": "settings.means", "message": "so it is"}
    view["history"]["events"].insert(0, note)
    assert "so it is" in str(panels.alarm(view))
    assert panels.alarm({**view, "contradiction": None}) is None  # zeros were told since
    assert 'class="warning"' in text


def test_what_was_lost_so_far_keeps_to_the_stated_range() -> None:
    experiment = lt.Experiment(lt.UCB(lt.LightTailed(0.1)), ["A", "B"], horizon=2000, seed=1)
    for turn in range(400):
        experiment.tell(experiment.ask().id, float(turn % 20 == 0))
    wide = experiment.forecast(loss=30, paths=100, seed=1, threads=1)
    stated = experiment.forecast(loss=30, paths=100, seed=1, threads=1, between=(0.03, 0.07))
    most = 0.04 * max(experiment.pulls.values())
    assert stated.so_far.high <= most + 1e-9 < wide.so_far.high
    assert stated.so_far.low >= 0.0


def test_a_contradiction_travels_between_processes() -> None:
    error = Contradicted("between", (0.1, 0.2), "so it is")
    again: BadInput = pickle.loads(pickle.dumps(error))
    assert (str(again), again.detail) == (str(error), "so it is")  # type: ignore[attr-defined]
