"""The documentation site: `make docs` builds it from docs/*.md, strictly and without the network."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

from docstrings import to_rst

import lighttail as lt

PUBLIC = ("", "bounds", "inference", "forecasting", "live", "server", "study", "linear")  # rooms with pages
OUTSIDE = {"../CONTRIBUTING.md": "reference/contributing.md", "../CHANGELOG.md": "reference/changelog.md"}
LONGEST_WORD = 40  # letters of code that a line of a phone holds

project = "lighttail"
author = "the authors of lighttail"
version = release = lt.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["site"]
highlight_language = "text"
smartquotes = False  # "regret" in a docstring is a value
nitpicky = True

myst_heading_anchors = 4  # the links page.md#heading of the forge work here, too

autodoc_typehints = "none"  # docstrings say in words what an argument is
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "lighttail"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}


def public_names() -> dict[str, str]:
    """The full name of every public object by its short name; `lighttail` itself comes first."""
    found: dict[str, str] = {}
    for room in PUBLIC:
        module = importlib.import_module(f"lighttail.{room}".rstrip("."))
        for name in module.__all__:
            found.setdefault(name, f"{module.__name__}.{name}")
    return found


NAMES = {name: full for name, full in public_names().items() if name[0].isupper() or len(name) > 4}


def convert_docstring(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Before autodoc reads a docstring."""
    lines[:] = to_rst(lines, {key: full for key, full in NAMES.items() if full != name})


def show_constants(
    app: Any, kind: str, name: str, thing: Any, options: Any, signature: Any, returns: Any
) -> Any:
    """A default that is written as a constant of its module is shown as its value."""
    known = vars(sys.modules.get(getattr(thing, "__module__", None) or "", lt))
    shown = re.sub(r"=([A-Z][A-Z_]+)\b", lambda found: f"={known.get(found[1], found[1])!r}", signature or "")
    return (shown, returns) if signature else None


def point_inside(app: Any, page: str, source: list[str]) -> None:
    """Links of the pages to files at the top of the repository lead to the pages that show these files."""
    for outside, inside in OUTSIDE.items():
        source[0] = source[0].replace(f"]({outside}", f"]({inside}")


def keep_words(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Mark the words of code within which no line may end: all that fit into a line of a phone, and in code
    boxes those with a hyphen."""

    def marked(box: re.Match[str]) -> str:
        pieces = re.split("(<[^>]*>)", box[0])  # text, tag, text, ...
        word = rf"(?<!\S)(?=\S*-\w)\S{{1,{LONGEST_WORD}}}(?!\S)"
        pieces[::2] = [re.sub(word, r'<span class="word">\g<0></span>', text) for text in pieces[::2]]
        return "".join(pieces)

    body = context.get("body", "")
    if body:
        short = rf'<span class="pre">(?=[^<]{{1,{LONGEST_WORD}}}<)'
        body = re.sub(short, '<span class="pre word">', body)
        context["body"] = re.sub(r"(?<=<pre>).*?(?=</pre>)", marked, body, flags=re.DOTALL)


def keep_percents(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """No line of a text ends between a number and its percent sign. Code, which people copy, stays."""
    apart = re.compile(r"(<(pre|code)\b.*?</\2>)|(?<=\d) %", re.DOTALL)
    if context.get("body"):
        context["body"] = apart.sub(lambda found: found[1] or "\N{NO-BREAK SPACE}%", context["body"])


def setup(app: Any) -> None:
    app.connect("html-page-context", keep_percents)
    app.connect("html-page-context", keep_words)
    app.connect("autodoc-process-docstring", convert_docstring)
    app.connect("autodoc-process-signature", show_constants)
    app.connect("source-read", point_inside)
