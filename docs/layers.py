"""Draws docs/images/layers.svg and the table in docs/architecture.md from the layers that the tests hold.

`make layers` writes both. A test fails if either of them differs from what this script would write.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from house import LAYERS, purpose  # noqa: E402

PICTURE, PAGE = DOCS / "images" / "layers.svg", DOCS / "architecture.md"
BEGIN, END = "<!-- rooms -->", "<!-- end of rooms -->"
WIDTH, ROW, BAR, LEFT, GAP = 880, 58, 40, 120, 8  # pixels
FILLS = ("#eef2f7", "#dfe8f3")


def picture() -> str:
    """One row per layer, the highest on top; a room may import from the rows below and from its left."""
    height = ROW * len(LAYERS) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="14">',
        "<title>The layers of lighttail, the lowest at the bottom</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for row, (layer, rooms) in enumerate(reversed(LAYERS.items())):
        top, wide = 8 + row * ROW, (WIDTH - LEFT - GAP * len(rooms)) / len(rooms)
        parts.append(f'<text x="12" y="{top + 25}" fill="#333333">{escape(layer)}</text>')
        for place, room in enumerate(rooms):
            x = LEFT + place * (wide + GAP)
            parts.append(
                f'<rect x="{x:.1f}" y="{top}" width="{wide:.1f}" height="{BAR}" rx="4" '
                f'fill="{FILLS[row % 2]}" stroke="#6b7f99"/>'
                f'<text x="{x + wide / 2:.1f}" y="{top + 25}" text-anchor="middle" '
                f'fill="#16202c">{escape(room)}</text>'
            )
    parts.append(
        f'<text x="{LEFT}" y="{height - 8}" font-size="12" fill="#555555">'
        "A room imports from the rows below it, and from the rooms to its left.</text></svg>"
    )
    return "\n".join(parts) + "\n"


def table() -> str:
    """Every room with what its docstring says. A room imports from the rooms below it alone."""
    rows = [
        f"| {layer} | `{room}` | {purpose(room).rstrip('.')} |"
        for layer, rooms in reversed(LAYERS.items())
        for room in reversed(rooms)
    ]
    return "\n".join([BEGIN, "| layer | room | what it holds |", "|---|---|---|", *rows, END])


def with_table(page: str) -> str:
    """The page with the table of today."""
    before, _, rest = page.partition(BEGIN)
    return before + table() + rest.partition(END)[2]


def main() -> None:
    PICTURE.write_text(picture())
    PAGE.write_text(with_table(PAGE.read_text()))


if __name__ == "__main__":
    main()
