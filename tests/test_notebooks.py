"""The notebooks of docs/notebooks run from top to bottom, and hold no outputs.

Their cells run in this process without a kernel, which would take seconds to start. As in a notebook, the
last value of a cell is shown.
"""

from __future__ import annotations

import ast
import json
import linecache
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
SMALLER = {"lecture": ("(250, 500, 1000)", "(50, 100, 200)")}  # what is played instead, to take less time


def cells(name: str, kind: str) -> list[str]:
    found = json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


def play(name: str, sources: list[str], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Run the cells as one module. Returns the last value of every cell that ends with an expression."""
    module = ModuleType(f"notebook_{name.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    shown = []
    for place, source in enumerate(sources):
        file = f"<{name}, cell {place}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # as IPython does
        tree = ast.parse(source, file)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, file, "exec"), module.__dict__)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), file, "eval"), module.__dict__)
            shown += [] if value is None else [value]
    return shown


def test_there_are_three() -> None:
    assert NAMES == ["lecture", "own-policy", "web-test"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_results(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = SMALLER.get(name, ("import", "import"))
    codes = cells(name, "code")
    assert any(old in code for code in codes), f"{name} no longer has {old!r}"
    shown = play(name, [code.replace(old, new) for code in codes], monkeypatch)
    assert len(shown) >= 2
    for value in shown:
        drawn = value._repr_html_() if hasattr(value, "_repr_html_") else None
        assert drawn or value._repr_png_()[0].startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "nan" not in printed
    if name == "web-test":
        found = re.search(r"Lost in this world: (\d+) conversions; limit of the plan: (\d+)", printed)
        assert found is not None
        assert int(found[1]) < int(found[2])  # a chance of 95 % or more, and a fixed seed


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_holds_no_outputs_and_its_links_lead_on(name: str) -> None:
    document = json.loads((FOLDER / f"{name}.ipynb").read_text())
    codes = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in codes)
    for link in re.findall(r"\]\((\.\.[^)#]+)", "\n".join(cells(name, "markdown"))):
        assert (FOLDER / link).exists(), link


def test_a_cell_that_fails_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control."""
    with pytest.raises(ZeroDivisionError):
        play("wrong", ["x = 1", "x / 0"], monkeypatch)
