"""The house as data: its layers, which module imports which, and which files a call enters.

`test_imports.py` holds the layers, `test_ways.py` the ways through them; `docs/layers.py` draws the layers.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lighttail as lt

SOURCES = Path(lt.__file__).parent

# From the lowest layer to the highest: a module imports from those before it alone.
LAYERS = {
    "Ground": ("checks", "members", "system", "random", "records"),
    "Formulas": ("noises", "rules", "delays", "bonuses", "policies", "course", "rehearsal"),
    "Problems": ("problems", "families", "linear", "reading"),
    "Machinery": ("kernels", "outcomes", "gpu"),
    "Simulation": ("running",),
    "Answers": ("inference", "forecasting", "online", "bounds", "tails", "compare", "planning"),
    "Showing": ("report", "paper", "study", "dashboard"),
    "Service": ("live", "server", "client"),
    "Door": ("cli",),
}
ORDER = [room for rooms in LAYERS.values() for room in rooms]


def files() -> list[Path]:
    """Every source file but the package's own `__init__.py`, which exports and does nothing else."""
    return [file for file in sorted(SOURCES.rglob("*.py")) if file != SOURCES / "__init__.py"]


def room_of(file: Path) -> str:
    """The package, or the module at the top, that a file belongs to."""
    return file.relative_to(SOURCES).parts[0].removesuffix(".py")


def purpose(room: str) -> str:
    """The first line of a room's docstring, which says what the room is for."""
    file = SOURCES / room / "__init__.py"
    text = ast.get_docstring(ast.parse((file if file.exists() else SOURCES / f"{room}.py").read_text()))
    assert text is not None, room
    return text.splitlines()[0]


def imports_of(source: str) -> set[str]:
    """Dotted names of all modules that a file imports anywhere, other than for type checking."""
    found = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= parts if node.module == "lighttail" else {str(node.module)}
    return found


def edges() -> set[tuple[str, str]]:
    """Which room imports from which other room."""
    found = set()
    for file in files():
        for module in imports_of(file.read_text()):
            parts = module.split(".")
            if parts[0] == "lighttail" and len(parts) > 1 and parts[1] in ORDER:
                found.add((room_of(file), parts[1]))
    return {(one, other) for one, other in found if one != other}


def entered(work: Callable[[], Any]) -> Counter[str]:
    """The files of the package that a call enters, and how often it comes to each from another file."""
    found: Counter[str] = Counter()
    here = str(SOURCES)

    def look(frame: Any, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(here):
            return
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(here):
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename != name:
            found[str(Path(name).relative_to(SOURCES))] += 1

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found
