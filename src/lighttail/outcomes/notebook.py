"""Results as small HTML tables, which a notebook shows in place of their `repr`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

Cell = str | tuple[str, str]  # a text, or a value and its interval

LINE = "1px solid rgba(128, 128, 128, .5)"  # grey can be seen on a light and on a dark page
NUMBER = "text-align: right; padding: .2em .6em; vertical-align: top"
TEXT = "text-align: left; padding: .2em .6em; vertical-align: top"
FADED = "opacity: .75; font-size: .85em"  # a part of the page's own colour, whatever that is


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *below: str) -> str:
    """A table whose first column is text and whose other columns are numbers, as HTML without scripts.

    The colours are those of the page, light or dark. Every text is escaped. below: paragraphs.

    >>> print(table("", ("x", "y"), [("<b>", "1")]).count("&lt;b&gt;"))
    1
    """
    caption = f'<caption style="{TEXT}; caption-side: top">{escape(title)}</caption>' if title else ""
    head = "".join(_cell("th", place, name, f"; border-bottom: {LINE}") for place, name in enumerate(columns))
    lines = ("".join(_cell("td", place, cell) for place, cell in enumerate(row)) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in below if text)
    return (
        f'<div><table style="border-collapse: collapse; font-variant-numeric: tabular-nums">{caption}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{paragraphs}</div>"
    )


def _cell(tag: str, place: int, content: Cell, more: str = "") -> str:
    value, limits = (content, "") if isinstance(content, str) else content
    small = f'<br><span style="{FADED}">{escape(limits)}</span>' if limits else ""
    return f'<{tag} style="{NUMBER if place else TEXT}{more}">{escape(value)}{small}</{tag}>'
