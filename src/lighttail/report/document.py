"""What all pages share: their style, their frame, and tables and figures within the page."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from html import escape

from lighttail.system.versions import versions_line

BREAKS = re.compile(r"\S*[-/?!|}]\S*")  # words within which a browser may end a line
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; max-width: 68rem; margin: 2rem auto;
  padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin-top: 2.2rem }
p.verdict { font-size: 1.1rem; border-left: .3rem solid #08306b; padding-left: .8rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100% }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap }
th { border-bottom: 2px solid #555; white-space: normal; vertical-align: bottom }
th:first-child, td:first-child, .text { text-align: left }
td:has(.swatch) { white-space: normal; min-width: 14rem }
td.words { white-space: normal }
td.source { white-space: normal }
td small { display: block; color: #666; font-size: .8em }
td.marked { background: #fdf0e6; font-weight: bold }
tr.heavy td { background: #fdf0e6 }
.swatch { display: inline-block; width: 2.2em; border-top: .28em solid; vertical-align: middle;
  margin-right: .5em }
img { max-width: 100%; height: auto } figure { margin: 1rem 0 }
figcaption { color: #555; font-size: .92rem }
pre { background: #f4f4f4; padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere }
.word { display: inline-block; max-width: 100% }
@media print { html { font-size: 12px } body { font-size: 1rem; margin: 0 } .scroll { overflow: visible }
  th, td { white-space: normal; padding: .25rem .35rem } td small { white-space: nowrap }
  pre, figure, tr, p.verdict { break-inside: avoid } h1, h2, h3, thead { break-after: avoid }
  p:has(+ pre), pre:has(+ p:last-child) { break-after: avoid }
  h2:has(+ pre + p:last-child) { break-before: avoid }
  p { orphans: 3; widows: 3 } table:not(:has(tbody tr:nth-child(9))) { break-inside: avoid }
  tr.heavy td, td.marked, pre { print-color-adjust: exact } }
"""


def document(title: str, body: str) -> str:
    """A whole HTML page."""
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
{body}</html>
"""


def made_by(command: str, versions: dict[str, str], seeds: str = "", more: str = "") -> str:
    """The last section of a page. seeds: with which the command gives the same numbers again. more: HTML."""
    again = f"; {seeds}. The same command with the same versions gives the same numbers" if seeds else ""
    used = f"{escape(versions_line(versions))}{again}."
    return f"<h2>Made by</h2>\n<pre>{code(command)}</pre>\n<p>{used}{more}</p>\n"


def unbroken(text: str) -> str:
    """A text as HTML, in which no line ends before a percent sign.

    >>> unbroken("< 0.1 % of paths")
    '&lt; 0.1&nbsp;% of paths'
    """
    return escape(text).replace(" %", "&nbsp;%")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], texts: int = 1) -> str:
    """A table. rows: the cells of each row, made by `cell`. texts: how many columns, from the left, are text
    and not numbers."""
    head = "".join(
        cell(name, kind="text" if 0 < place < texts else "", tag="th") for place, name in enumerate(heads)
    )
    body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n{body}</table></div>'


def cell(value: str, *small: str, kind: str = "", tag: str = "td") -> str:
    """A cell of a table. small: lines below the value; empty ones are left out.

    >>> cell("< 1 %", "", "exact", kind="marked")
    '<td class="marked">&lt; 1&nbsp;%<small>exact</small></td>'
    """
    marked = f' class="{kind}"' if kind else ""
    lines = "".join(f"<small>{unbroken(line)}</small>" for line in small if line)
    return f"<{tag}{marked}>{unbroken(value)}{lines}</{tag}>"


def code(text: str) -> str:
    """Code as HTML for a `pre`, whose long lines end between words and never after a hyphen. A copy of the
    code is the text: the marks add nothing to it.

    >>> code("plan --arms 2")
    'plan <span class="word">--arms</span> 2'
    """
    return BREAKS.sub(r'<span class="word">\g<0></span>', escape(text))


def figure(svg: bytes, caption: str) -> str:
    """An SVG picture and its caption, as HTML that needs no other file."""
    data = base64.b64encode(svg).decode()
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{escape(caption)}.</figcaption></figure>"
    )
