"""The dashboard in a real browser: people create, watch, pause and resume an experiment, also on a phone,
with the keyboard alone, in the dark, on paper, and while the server is away."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import SLOW, needed, opened
from served import Server, kept_port, served

from lighttail.server.keys import add_key

HOSTILE = "<script>document.title='x'</script>\"'&\x01\u202e"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    pytest.importorskip("playwright.sync_api")
    with opened(needed()) as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    needed()
    made = Server(store=tmp_path_factory.mktemp("store") / "pages.db")
    made.post(
        "", {"name": "shop", "policy": "ucb:anytime:0.5", "arms": ["A", "B"], "horizon": 500, "seed": 1}
    )
    odd = {"sticky": True, "shares": {HOSTILE: 0.1}}
    made.post("", {"name": "odd", "policy": "ts:0.5", "arms": [HOSTILE, "B"], "seed": 1, "settings": odd})
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
        made.process.communicate()


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    """A page whose scripts must not fail, and that may load nothing from elsewhere."""
    found = browser.new_page(
        base_url=f"http://127.0.0.1:{server.port}", viewport={"width": 1000, "height": 800}
    )
    found.set_default_timeout(SLOW)
    faults: list[str] = []
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on("console", lambda line: faults.append(line.text) if "Content Security" in line.text else None)
    found.on("request", lambda one: faults.append(one.url) if "127.0.0.1" not in one.url else None)
    yield found
    found.close()
    assert faults == []


MINUTE = r"\d{4}-\d\d-\d\d \d\d:\d\d"
MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(all times: [A-Z][\w/+-]+\)"


def play(server: Server, name: str, times: int, **more: Any) -> None:
    """Ask and tell some trials."""
    for _ in range(times):
        (trial,) = server.post(f"/{name}/ask", more)["trials"]
        reward = 1 if trial["arm"] == "B" else 0
        server.post(f"/{name}/tell", {"rewards": [{"id": trial["id"], "reward": reward}]})


def wait_for_text(page: Any, where: str, pattern: str) -> None:
    page.locator(where).filter(has_text=re.compile(pattern)).first.wait_for()


def findings(page: Any) -> list[str]:
    """What axe finds that is serious."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['html'][:120]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def test_an_experiment_is_begun_watched_paused_and_resumed(page: Any, server: Server) -> None:
    page.goto("/")
    page.fill("#f-name", "checkout")
    page.fill("#f-arms", "A\nB")
    page.fill("#f-policy", "ucb:anytime:0.5")
    page.fill("#f-horizon", "300")
    page.fill("#f-loss", "20")
    page.fill("#f-chance", "1 %")
    page.click("text=Begin the experiment")
    page.wait_for_url("**/experiments/checkout")
    settings = server.call("GET", "/v1/experiments/checkout")[1]["settings"]
    assert settings == {"risk": {"loss": 20, "chance": 0.01, "then": "warn"}}
    wait_for_text(page, "[data-part=sum]", "No reward has come yet")
    play(server, "checkout", 12)
    wait_for_text(page, "[data-part=sum]", "12 of 300 pulls")  # without loading the page again
    wait_for_text(page, "[data-part=arms]", "B is better than A: not shown")
    wait_for_text(page, ".large", "%")
    assert page.input_value("input[name=loss]") == "20"
    assert page.locator("[data-part=traffic] rect").count() > 0
    for act, status in (("pause", "paused"), ("resume", "running")):
        page.click(f"button.{act} >> text=…")
        page.click("text=No, leave it >> visible=true")  # the question may be answered with no
        assert page.locator("[data-part=status]").inner_text() != status
        page.click(f"button.{act} >> text=…")
        page.click(f"text=Yes, {act}")
        wait_for_text(page, "[data-part=status]", status)
        assert server.call("GET", "/v1/experiments/checkout")[1]["paused"] is (act == "pause")
    wait_for_text(page, "[data-part=events]", "resumed")
    page.fill("input[name=loss]", "30")
    page.click("button >> text=Forecast")
    wait_for_text(page, "[data-part=risk]", "losing 30 or more")


def test_a_wrong_form_has_the_servers_sentence_beside_its_field(page: Any, server: Server) -> None:
    page.goto("/?policy=ucb:anytime:0.5&arms=A,B&name=wrong&horizon=100&window=60")
    assert page.input_value("#f-arms") == "A\nB"
    page.click("text=Begin the experiment")
    message = page.locator("#e-default")
    assert "Reward of a closed trial must be the reward of a trial" in message.inner_text()
    assert page.locator("#f-default").get_attribute("aria-invalid") == "true"
    assert "e-default" in str(page.locator("#f-default").get_attribute("aria-describedby"))
    assert page.input_value("#f-name") == "wrong"  # nothing that was typed is lost
    assert page.input_value("#f-arms") == "A\nB"
    assert findings(page) == []
    page.fill("#f-name", "a b")
    page.click("text=Begin the experiment")
    assert "1 to 100 letters" in page.locator("#e-name").inner_text()
    assert "wrong" not in server.call("GET", "/v1/experiments")[1]["experiments"]


def test_hostile_names_are_text(page: Any, server: Server) -> None:
    play(server, "odd", 3, unit=f"u{HOSTILE}")
    for width in (1000, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto("/experiments/odd")
        text = page.locator("main").inner_text()
        assert "<script>document.title='x'</script>\"'&\\x01\\u202e" in text
        assert page.title() == "odd · lighttail"
        assert page.locator("main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_long_names_of_arms_leave_the_numbers_whole_on_a_phone(page: Any, server: Server) -> None:
    """A name has its row's whole width, no table of arms or settings is wider than the screen, and no number
    is broken into two lines."""
    arms = ["Checkout button, green, with the free-shipping banner and a countdown", "K" * 60, "B"]
    settings = {"shares": {arms[1]: 0.1}, "means": {"low": 0, "high": 1}}
    server.post("", {"name": "long", "policy": "ts:0.5", "arms": arms, "seed": 1, "settings": settings})
    play(server, "long", 6, unit="visitor " + "0123456789abcdef" * 3)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/experiments/long")
    for part in ("arms", "settings"):
        fits = f"[...document.querySelectorAll('.{part} .scroll')].map(e => e.scrollWidth <= e.clientWidth)"
        assert set(page.evaluate(fits)) == {True}, part
    widths = (
        "[...document.querySelectorAll('.arms tbody tr')].map(e => e.children[0].clientWidth / e.clientWidth)"
    )
    assert min(page.evaluate(widths)) > 0.95
    heights = "[...document.querySelectorAll('.arms td')].map(e => e.clientHeight)"
    assert max(page.evaluate(heights)) < 30  # one line, of 20 pixels and padding
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert findings(page) == []
    assert json.loads(page.locator(".settings pre").text_content()) == settings
    wait_for_text(page, ".rewards", rf"asked at {MINUTE}:\d\d\. The last reward came at {MINUTE}:\d\d\.")


def test_a_lost_connection_is_said_and_its_return_too(browser: Any, tmp_path: Path) -> None:
    with kept_port() as port:  # which the second server takes over
        leave_and_return(browser, tmp_path / "lost.db", port)


def leave_and_return(browser: Any, store: Path, port: int) -> None:
    first = Server(store=store, port=port)
    page = browser.new_page(base_url=f"http://127.0.0.1:{first.port}")
    page.set_default_timeout(SLOW)
    try:
        first.post("", {"name": "shop", "policy": "ts:0.5", "arms": ["A", "B"], "seed": 1})
        page.goto("/experiments/shop")
        wait_for_text(page, "#fresh", rf"^As of {MOMENT}$")
        assert first.end()[0] == 0
        wait_for_text(page, "#fresh.lost", rf"^Connection lost\. Shown is the state of {MOMENT}\.$")
        assert page.locator("#fresh").get_attribute("role") == "status"
        second = Server(store=store, port=port)
        try:
            play(second, "shop", 2)
            wait_for_text(page, "[data-part=sum]", "2 pulls")
            wait_for_text(page, "#fresh:not(.lost)", "As of")
        finally:
            second.end()
    finally:
        page.close()
        if first.process.poll() is None:
            first.end()


def test_a_browser_is_asked_for_a_key_once(browser: Any, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys.json", "anna", "manage")
    with served("--keys", str(tmp_path / "keys.json")) as guarded:
        body = {"name": "shop", "policy": "ts:0.5", "arms": ["A", "B"], "seed": 1}
        held = {"Authorization": f"Bearer {key}"}
        assert guarded.call("POST", "/v1/experiments", body, held)[0] == 201
        context = browser.new_context(base_url=f"http://127.0.0.1:{guarded.port}")
        page = context.new_page()
        page.set_default_timeout(SLOW)
        page.goto("/experiments/shop")
        page.fill("input[name=key]", "lt_wrong")
        page.keyboard.press("Enter")
        assert "no key of this server" in page.locator("#key-error").inner_text()
        assert findings(page) == []
        page.fill("input[name=key]", key)
        page.keyboard.press("Enter")
        page.click("a >> text=shop")
        assert page.evaluate("document.cookie") == ""
        page.click("button.stop >> text=…")
        page.click("text=Yes, stop")
        wait_for_text(page, "[data-part=status]", "stopped")
        page.click("text=Forget my key")
        page.wait_for_selector("input[name=key]")
        context.close()


@pytest.mark.parametrize("path", ["/", "/experiments/shop"])
def test_a_page_fits_a_phone_and_is_fit_for_screen_readers(page: Any, server: Server, path: str) -> None:
    play(server, "shop", 4)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(path)
        if path != "/":
            page.wait_for_selector(".large")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert findings(page) == []
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != paper


def test_axe_finds_faults(page: Any) -> None:
    """Negative control."""
    page.goto("/experiments/shop")
    page.evaluate(
        "document.querySelector('input[name=loss]').parentNode.replaceWith(document.createElement('input'))"
    )
    assert findings(page)


def test_the_keyboard_is_enough(page: Any, server: Server) -> None:
    page.goto("/experiments/shop")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('pause')"):
            break
    page.keyboard.press("Enter")
    page.locator("#box-pause").wait_for(state="visible")
    page.keyboard.press("Escape")
    page.locator("#box-pause").wait_for(state="hidden")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Yes, pause"
    page.keyboard.press("Enter")
    wait_for_text(page, "[data-part=status]", "paused")
    assert server.call("GET", "/v1/experiments/shop")[1]["paused"] is True


def test_a_page_prints_and_is_readable_without_scripts(browser: Any, server: Server) -> None:
    context = browser.new_context(java_script_enabled=False, base_url=f"http://127.0.0.1:{server.port}")
    page = context.new_page()
    page.set_default_timeout(SLOW)
    page.goto("/experiments/shop?loss=10")
    assert "pulls of ucb:anytime:0.5" in page.locator("main").inner_text()
    assert "does not update" in page.locator("main").inner_text()
    assert page.locator("svg.chart").count() > 0
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="print")
    assert not page.locator(".controls").is_visible()
    assert not page.locator("form.ask").is_visible()
    context.close()
