"""HTML that cannot be made from text by accident: every text is escaped unless it is an `Html` already."""

from __future__ import annotations

import re
from html import escape
from typing import Any

VOID = ("br", "input", "link", "meta")
# Signs that are invisible or turn the text around, so that one name could look like another.
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


class Html(str):
    """A text that is HTML."""

    __slots__ = ()


def shown(value: Any) -> str:
    r"""A text as people can read it: signs that cannot be seen are written with their numbers.

    >>> print(shown("a\tb\u202e"), shown(7))
    a\x09b\u202e 7
    """
    return HIDDEN.sub(lambda sign: _written(ord(sign[0])), str(value))


def _written(number: int) -> str:
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def html(*parts: Any) -> Html:
    """Parts one after another. A text is escaped, a list is its parts, and None is nothing.

    >>> html("<b>", None, [Html("<i>x</i>"), 3])
    '&lt;b&gt;<i>x</i>3'
    """
    return Html("".join(_one(part) for part in parts))


def _one(part: Any) -> str:
    if part is None:
        return ""
    if isinstance(part, Html):
        return part
    if isinstance(part, (list, tuple)):
        return html(*part)
    return escape(shown(part)).replace(" %", "\u00a0%")


def el(name: str, /, *parts: Any, **attributes: Any) -> Html:
    """An element. An attribute that is None or False is left out, one that is True has no value; `class_` is
    `class`, and `aria_label` is `aria-label`. The value of a field stays as it was typed.

    >>> el("a", "A & B", href="/?a=1&b=2", class_="arm", hidden=True, title=None)
    '<a href="/?a=1&amp;b=2" class="arm" hidden>A &amp; B</a>'
    """
    said = "".join(
        f" {key}" if value is True else f' {key}="{escape(str(value) if key == "value" else shown(value))}"'
        for key, value in ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
        if value is not None and value is not False
    )
    if name in VOID:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{html(*parts)}</{name}>")


def note(*parts: Any) -> Html:
    """A paragraph in small letters."""
    return el("p", *parts, class_="note")


def table(caption: str, heads: list[str], rows: list[list[Any]], hidden: bool = False) -> Html:
    """A table whose first column names the rows. hidden: whether the caption is for screen readers alone."""
    head = el("tr", [el("th", one, scope="col") for one in heads])
    body = [el("tr", el("th", row[0], scope="row"), [el("td", cell) for cell in row[1:]]) for row in rows]
    said = el("caption", caption, class_="unseen" if hidden else None)
    whole = el("table", said, el("thead", head), el("tbody", body))
    return el("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)
