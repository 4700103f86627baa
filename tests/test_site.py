"""The documentation site: a place for every page, all public names in the reference, nothing from outside."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import lighttail as lt

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
INDEX = (DOCS / "index.md").read_text()
REFERENCE = "\n".join(page.read_text() for page in sorted((DOCS / "reference").glob("*.md")))
DOCUMENTED = set(re.findall(r"^\.\. (?:auto\w+|py:\w+):: (lighttail[\w.]*)", REFERENCE, re.MULTILINE))
# Public modules: those of which the pages tell people to import something.
MODULES = ("bounds", "client", "forecasting", "inference", "linear", "live", "noises", "online", "planning")
MODULES += ("policies", "report", "server", "study", "tails")

sys.path.insert(0, str(DOCS / "site"))
from conf import keep_percents, keep_words  # noqa: E402
from docstrings import to_rst  # noqa: E402


def listed() -> list[str]:
    """The pages of the toctrees of the front page, in their order."""
    trees = re.findall(r"```\{toctree\}\n(.*?)```", INDEX, re.DOTALL)
    lines = [line.strip() for tree in trees for line in tree.splitlines()]
    return [re.sub(r".*<(.+)>$", r"\1", line) for line in lines if line and not line.startswith(":")]


def without_script(images: Iterable[str], scripts: str) -> list[str]:
    """The pictures whose names, as they are or as f-strings, stand in no script."""
    made = [
        re.sub(r"\\{\w+\\}", r"[\\w-]+", re.escape(name))
        for name in re.findall(r"[\w{}-]+\.(?:png|svg)", scripts)
    ]
    return [image for image in images if not any(re.fullmatch(name, image) for name in made)]


def test_a_script_makes_every_picture() -> None:
    images = [image.name for image in sorted((DOCS / "images").iterdir())]
    scripts = "".join(script.read_text() for script in DOCS.glob("*.py"))
    assert without_script(images, scripts) == []
    assert without_script(["tails.png", "drawn-by-hand.png"], scripts) == ["drawn-by-hand.png"]  # control


def test_every_page_has_one_place() -> None:
    """Put a new page into one of the lists at the end of docs/index.md."""
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    inside = {f"reference/{name}" for name in ("index", "contributing", "changelog")}
    assert sorted(listed()) == sorted(pages | inside)
    assert re.findall(r":caption: (.*)", INDEX)[1:] == ["Tutorials", "How to", "Explanations", "Reference"]


def test_the_three_ways_lead_through_all_four_kinds() -> None:
    for way in ("run-an-experiment", "study-a-policy", "read-the-paper"):
        assert f"]({way}.md)" in INDEX
        text = (DOCS / f"{way}.md").read_text()
        assert re.findall(r"^\*\*(.*)\*\*$", text, re.MULTILINE) == [
            "Learn it",
            "Do it",
            "Understand it",
            "Look it up",
        ]


def missing(documented: set[str]) -> list[str]:
    """The public names that the reference does not have. A name may stand under `lighttail` or its module."""
    wanted: dict[str, tuple[str, ...]] = dict.fromkeys(dir(lt), ("lighttail",))
    for module in MODULES:
        for name in set(importlib.import_module(f"lighttail.{module}").__all__):
            wanted.setdefault(name, ("lighttail", f"lighttail.{module}"))
    del wanted["bounds"]  # a module, which has a page
    return sorted(n for n, places in wanted.items() if not {f"{p}.{n}" for p in places} & documented)


def test_every_public_name_is_in_the_reference() -> None:
    assert missing(DOCUMENTED) == []
    assert missing(DOCUMENTED - {"lighttail.UCB", "lighttail.live.Desk"}) == [
        "Desk",
        "UCB",
    ]  # negative control


def test_names_that_pages_import_are_in_the_reference() -> None:
    texts = [page.read_text() for page in DOCS.glob("*.md")]
    lines = re.findall(r"^from (lighttail[\w.]*) import (.*)$", "\n".join(texts), re.MULTILINE)
    assert len(lines) >= 4
    for module, names in lines:
        for name in names.split(", "):
            assert {f"{module}.{name}", f"lighttail.{name}"} & DOCUMENTED, f"{module}.{name}"


def test_docstrings_become_restructured_text() -> None:
    plain = [
        "Play `policy` on a `Bandit` | see docs/gpu.md * 2.",
        "",
        "horizon: pulls per path.",
        "    At least one. seed, T: whole numbers.",
        "",
        "    radius(n) = kappa * n",
        "",
        "The radius, in other words:",
        "",
        "kappa * sqrt(n)",
        "",
        ">>> 1 * 2",
        "2",
    ]
    assert to_rst(plain, {"Bandit": "lighttail.Bandit"}) == [
        "Play ``policy`` on a :py:obj:`Bandit <lighttail.Bandit>` \\| see :doc:`gpu </gpu>` \\* 2.",
        "",
        "``horizon``",
        "    pulls per path. At least one.",
        "``seed``, ``T``",
        "    whole numbers.",
        "",
        "::",
        "",
        "    radius(n) = kappa * n",
        "",
        "The radius, in other words:",
        "",
        "::",
        "",
        "    kappa * sqrt(n)",
        "",
        ">>> 1 * 2",
        "2",
        "",
    ]


# What a page loads by itself: scripts, styles, fonts, pictures. A link that people click is not loaded.
LOADS = re.compile(
    r"<(?:script|img|iframe|source|embed)\b[^>]*?\bsrc=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|<link\b(?=[^>]*\brel=[\"'](?:stylesheet|preload|preconnect|icon|modulepreload)[\"'])[^>]*?\bhref=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|(?:@import\s+(?:url\()?|url\()\s*[\"']?((?:https?:)?//[^\"')\s]+)"
)


def loaded(text: str) -> list[str]:
    """The addresses outside from which a page or a style loads something."""
    return ["".join(found) for found in LOADS.findall(text)]


def test_a_load_from_outside_is_noticed() -> None:
    """Negative control."""
    assert loaded('<a href="https://arxiv.org">x</a><script src="_static/a.js"></script>') == []
    assert loaded('<script async src="https://cdn.example/a.js"></script>') == ["https://cdn.example/a.js"]
    assert loaded('<link href="//cdn.example/a.css" rel="stylesheet">') == ["//cdn.example/a.css"]
    assert loaded("@font-face { src: url(https://fonts.example/a.woff2) }") == [
        "https://fonts.example/a.woff2"
    ]


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_outside(tmp_path: Path) -> None:
    """The command of `make docs`, into another folder: about 10 CPU seconds."""
    (command,) = re.findall(
        r"^\t\$\(BIN\)/sphinx-build (.*) build/docs$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    words = [sys.executable, "-m", "sphinx", *command.split(), str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 40
    for file in [*pages, *tmp_path.rglob("*.css")]:
        assert loaded(file.read_text()) == [], file.name
    assert "searchtools.js" in (tmp_path / "search.html").read_text()
    assert "holdout" in (tmp_path / "searchindex.js").read_text()
    built = "".join(page.read_text() for page in (tmp_path / "reference").glob("*.html"))
    shown = set(re.findall(r'id="(?:module-)?([\w.]+)"', built))
    assert sorted(DOCUMENTED - shown) == []


def test_no_line_ends_within_a_word_of_code() -> None:
    long = "x-" * 30
    plain = '<code><span class="pre">--arms</span> <span class="pre">LONG</span></code> a-b'
    box = '<pre><span class="go-on">plan</span> --arms 3 a - b LONG</pre>'
    context = {"body": (plain + box).replace("LONG", long)}
    keep_words(None, "page", "page.html", context, None)
    shown = '<code><span class="pre word">--arms</span> <span class="pre">LONG</span></code> a-b'
    shown += '<pre><span class="go-on">plan</span> <span class="word">--arms</span> 3 a - b LONG</pre>'
    assert context["body"] == shown.replace("LONG", long)
    assert ".word { white-space: nowrap; }" in (DOCS / "site" / "static" / "style.css").read_text()


def test_no_line_ends_between_a_number_and_its_percent_sign() -> None:
    code = "<pre>a = 7 % 3</pre><code>7 % 3</code>"
    context = {"body": f"<p>3 % to 5 % of it, T %</p>{code}<p>1 %</p>"}
    keep_percents(None, "page", "page.html", context, None)
    assert context["body"] == f"<p>3\xa0% to 5\xa0% of it, T %</p>{code}<p>1\xa0%</p>"
