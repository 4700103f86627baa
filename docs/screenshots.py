"""Draws the pictures of docs/dashboard.md with the system's Chromium: `make screenshots`.

The experiment is played on a clock of its own, so that the pictures show hours of traffic and, apart from the
versions of the browser and its fonts, are the same every time.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from browsing import chromium, opened  # noqa: E402

from lighttail.live import Office  # noqa: E402
from lighttail.live.memory import MemoryJournal  # noqa: E402
from lighttail.server import build_app  # noqa: E402

IMAGES = DOCS / "images"
MORNING = 1_772_438_400.0  # 2 March 2026, 8 o'clock UTC
RATES = {"control": 0.04, "blue": 0.062, "green": 0.045}
VISITS, EVERY = 2_400, 12.0  # visits of the shop, and seconds between two of them
WIDE, PHONE = {"width": 1000, "height": 900}, {"width": 390, "height": 844}


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = MORNING

    def __call__(self) -> float:
        return self.now


def play(office: Office, clock: Clock) -> None:
    """A shop with a floor, a holdout and a window, before its horizon, and two other experiments."""
    draws = random.Random(5)
    office.create("newsletter", policy="ts:0.5", arms=["short", "long"], horizon=1_000, seed=2)[0].stop()
    office.create("search", policy="ucb:anytime:0.1", arms=["old", "new", "newer"], seed=3)[0].pause()
    settings: dict[str, Any] = {
        "shares": {"control": 0.05},
        "holdout": {"arm": "control", "share": 0.1},
        "window": 3600,
        "default": 0,
        "late": "amend",
        "fallback": "control",
        "risk": {"loss": 60, "chance": 0.01, "then": "warn"},
        "means": {"low": 0.01, "high": 0.15},
    }
    arms = list(RATES)
    desk, _ = office.create(
        "shop", policy="ucb:anytime:0.3", arms=arms, horizon=5_000, seed=4, settings=settings
    )
    waiting: list[tuple[float, int]] = []
    for visit in range(VISITS):
        clock.now += EVERY * draws.expovariate(1.0)
        if visit in (900, 1_000):
            (desk.pause if visit == 900 else desk.resume)()
        (trial,) = desk.ask(unit=f"visitor {visit}")
        if draws.random() < RATES[str(trial.arm)]:
            waiting.append((clock.now + 4_000.0 * draws.random(), trial.id))
        due = [id for at, id in waiting if at <= clock.now]
        waiting = [one for one in waiting if one[0] > clock.now]
        if due:
            desk.tell([(id, 1.0) for id in due])


@contextmanager
def serving(office: Office) -> Iterator[str]:
    """The address of a server of this office in a thread of this process."""
    from lighttail.server.run import listening, server_of

    with listening("127.0.0.1", 0) as door:
        server = server_of(build_app(office))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{door.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def picture(page: Any, name: str, **more: Any) -> None:
    """Keep a picture of the page, with few colours, so that the file stays small."""
    from PIL import Image

    place = IMAGES / f"dashboard-{name}.png"
    page.screenshot(path=str(place), full_page=True, **more)
    with Image.open(place) as found:
        found.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(place, optimize=True)
    print(place)


def draw(browser: Any, at: str) -> None:
    """All pictures."""
    looks = {"wide": (WIDE, "light"), "dark": (WIDE, "dark"), "phone": (PHONE, "light")}
    for name, (size, scheme) in looks.items():
        page = browser.new_page(viewport=size, color_scheme=scheme, timezone_id="UTC", locale="en-GB")
        page.goto(f"{at}/experiments/shop")
        page.wait_for_selector(".large", timeout=60_000)
        picture(page, name)
        if name == "wide":
            page.emulate_media(media="print")
            page.set_viewport_size({"width": 794, "height": 1123})  # A4
            picture(page, "print")
        page.close()
    page = browser.new_page(viewport=WIDE, timezone_id="UTC", locale="en-GB")
    page.goto(at)
    picture(page, "list")
    page.goto(
        f"{at}/?name=checkout&arms=control,blue&policy=ucb:anytime:0.1&horizon=10000&loss=100&chance=1%25"
    )
    page.fill("#f-chance", "120 %")
    page.click("text=Begin the experiment")
    page.wait_for_selector(".field.wrong")
    picture(page, "form")


def main() -> None:
    path = chromium()
    if path is None:
        sys.exit("the pictures need Chromium (Debian: apt-get install chromium)")
    clock = Clock()
    office = Office(MemoryJournal(), clock)
    play(office, clock)
    print(
        json.dumps(
            {name: office.desk("shop").summary()[name] for name in ("tries", "means", "open", "events")}
        )
    )
    begun = time.monotonic()
    with serving(office) as at, opened(path) as browser:
        while office.desk("shop").summary()["alarm"] is None:  # the server watches the risk budget by itself
            time.sleep(0.2)
        draw(browser, at)
    office.close()
    print(f"{time.monotonic() - begun:.0f} seconds")


if __name__ == "__main__":
    main()
