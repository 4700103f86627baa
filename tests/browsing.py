"""A real browser for the tests and for the pictures of the docs: Playwright with the system's Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]
SLOW = 300_000  # milliseconds that anything may take on a busy machine
MISSING = (
    "THE TESTS OF THE PAGES DID NOT RUN: there is no Chromium on this machine. Install it "
    "(Debian: apt-get install chromium) to test the dashboard."
)


def chromium() -> str | None:
    """The path of the system's Chromium; Playwright must never download a browser."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def needed() -> str:
    """The path of Chromium. Without it the tests are skipped loudly; on a build server that is a failure."""
    path = chromium()
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING, pytrace=False)
        pytest.skip(MISSING)
    return path


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """A browser that is closed at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=path, headless=True, args=FLAGS, timeout=SLOW)
        try:
            yield browser
        finally:
            browser.close()
