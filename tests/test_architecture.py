"""The page on the architecture shows the layers that the tests hold."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from house import LAYERS, SOURCES

import lighttail as lt
from lighttail.reading.words import parse_policy

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"


def script():
    found = importlib.util.spec_from_file_location("layers", ROOT / "docs" / "layers.py")
    assert found is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_picture_and_the_table_are_those_of_today() -> None:
    """Run `make layers` if this fails."""
    drawn = script()
    assert drawn.PICTURE.read_text() == drawn.picture()
    assert drawn.with_table(PAGE.read_text()) == PAGE.read_text()


def test_a_page_of_another_day_is_noticed() -> None:
    """Negative control."""
    drawn = script()
    old = PAGE.read_text().replace(f"| `{LAYERS['Ground'][0]}` |", "| `elsewhere` |")
    assert drawn.with_table(old) != old
    assert drawn.with_table(old) == PAGE.read_text()


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", PAGE.read_text())
    assert len(named) > 20
    assert [name for name in named if not (SOURCES / name).exists() and not (ROOT / name).exists()] == []


def test_the_command_that_the_page_follows_can_be_typed() -> None:
    (line,) = re.findall(r"^`lighttail compare (.*)`$", PAGE.read_text(), re.M)
    words = line.split()
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert parse_policy(options.pop("--policy")) == lt.UCB(lt.LightTailed(0.2))
    assert options == {"--means": "0.2,0.8", "--horizon": "500", "--paths": "5000"}


def test_every_page_that_a_docstring_or_a_page_names_exists() -> None:
    texts = [*SOURCES.rglob("*.py"), *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    named = {page for file in texts for page in re.findall(r"docs/[a-z-]+\.md", file.read_text())}
    assert len(named) > 10
    assert sorted(page for page in named if not (ROOT / page).exists()) == []
