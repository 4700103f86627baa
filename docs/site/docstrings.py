"""Turns the docstrings of lighttail, which are plain English with light markup, into reStructuredText.

A docstring has paragraphs, `code`, paragraphs that explain arguments ("horizon: pulls per path."), indented
formulas, bullets, and examples that begin with >>>. reStructuredText gives other meanings to backticks,
stars, bars and trailing underscores, so every piece is converted, and the rest is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

NAME = r"(?:[a-z]\w*(?:\([\w, ]*\))?|[A-Z])"  # an argument, a field, a function or a letter of a formula
ITEM = re.compile(rf"({NAME}(?:, {NAME})*): (?=\S)")
NEXT_ITEM = re.compile(rf"(?<=[.;)]) (?={NAME}(?:, {NAME})*: \S)")
PIECE = re.compile(r"`([^`]+)`|\bdocs/([a-z-]+)\.md\b")
FORMULA = re.compile(r" = |\^|\bexp\(|\bsqrt\(")
SPECIAL = re.compile(r"([\\*|]|_(?!\w))")


def to_rst(lines: list[str], links: Mapping[str, str]) -> list[str]:
    """The lines of a docstring as reStructuredText.

    links: the full name of each public object by its short name; `code` that is such a name becomes a link.
    """
    done: list[str] = []
    before = ""
    for paragraph in paragraphs(lines):
        if is_formula(paragraph, before):
            done += ["::", "", *(f"    {line.strip()}" for line in paragraph), ""]
        else:
            done += [*converted(paragraph, links), ""]
        before = paragraph[-1]
    return done


def is_formula(paragraph: list[str], before: str) -> bool:
    """Whether a paragraph is a formula that the paragraph before announces with a colon or a comma."""
    first = paragraph[0]
    return (
        before.endswith((":", ","))
        and not first.startswith((" ", "- ", ">>>"))
        and not ITEM.match(first)
        and bool(FORMULA.search(" ".join(paragraph)))
    )


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines without an empty line."""
    held: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            held.append(line.rstrip())
        elif held:
            yield held
            held = []


def converted(paragraph: list[str], links: Mapping[str, str]) -> list[str]:
    """One paragraph: an example, a formula, bullets, explanations of names, or prose."""
    first = paragraph[0]
    if first.startswith(">>>"):
        return paragraph
    if first.startswith("    "):
        return ["::", "", *paragraph]
    if ITEM.match(first):
        return [line for item in items(paragraph) for line in definition(item, links)]
    if first.startswith("- "):
        return [indent(line) + inline(line.lstrip(), links) for line in paragraph]
    return [inline(line.lstrip(), links) for line in paragraph]


def indent(line: str) -> str:
    """The spaces before a line."""
    return line[: len(line) - len(line.lstrip())]


def items(paragraph: list[str]) -> Iterator[str]:
    """The explanations of a paragraph: each begins a line, or follows the end of a sentence."""
    held = ""
    for line in paragraph:
        if held and ITEM.match(line):
            yield from NEXT_ITEM.split(held)
            held = ""
        held = f"{held} {line.strip()}".strip()
    yield from NEXT_ITEM.split(held)


def definition(item: str, links: Mapping[str, str]) -> list[str]:
    """An entry of a definition list: the names, then what they are."""
    found = ITEM.match(item)
    assert found is not None
    names = ", ".join(f"``{name}``" for name in found[1].split(", "))
    return [names, "    " + inline(item[found.end() :], links)]


def inline(text: str, links: Mapping[str, str]) -> str:
    """A line with its code, its links to pages, and the signs of reStructuredText escaped."""
    done, last = "", 0
    for piece in PIECE.finditer(text):
        done += escaped(text[last : piece.start()]) + apart(marked(piece, links), text, piece)
        last = piece.end()
    return done + escaped(text[last:])


def marked(piece: re.Match[str], links: Mapping[str, str]) -> str:
    """Code, or a link to a page of the site or to a public object."""
    code, page = piece.groups()
    if page is not None:
        return f":doc:`{page.replace('-', ' ')} </{page}>`"
    known = links.get(code.removeprefix("lt."))
    return f":py:obj:`{code} <{known}>`" if known else f"``{code}``"


def apart(mark: str, text: str, piece: re.Match[str]) -> str:
    """The mark, with an empty escape where a letter touches it, as in `simulate`s."""
    before = "\\ " if text[: piece.start()][-1:].isalnum() else ""
    after = "\\ " if text[piece.end() :][:1].isalnum() else ""
    return before + mark + after


def escaped(text: str) -> str:
    """Plain text in which no sign means anything."""
    return SPECIAL.sub(r"\\\1", text)
