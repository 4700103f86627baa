"""One word for one thing: a name in the table of docs/architecture.md has the types that stand there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import SOURCES, files, room_of

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| ((?:`\w+` ?)+) \|$", re.MULTILINE)
UNSAID = {"Any", "None", "Required"}  # parts of a type that say nothing about what the name means
OPTIONS = ("cli", "server")  # their names are the words of users: the types are those of options and of JSON


def words() -> dict[str, set[str]]:
    """The names of the table, with the types that each may have."""
    table = PAGE.read_text().split("## Words in names")[1].split("\n## ")[0]
    return {name: set(re.findall(r"`(\w+)`", types)) for name, types in ROW.findall(table)}


def typed(source: str) -> Iterator[tuple[str, str]]:
    """Every parameter, field and method of a file that has a type, with this type."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg) and node.annotation is not None:
            yield node.arg, ast.unparse(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.name, ast.unparse(node.returns)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, ast.unparse(node.annotation)


def strangers(source: str) -> list[str]:
    """The names of the table that have another type in this file."""
    allowed = words()
    return [
        f"{name}: {kind}"
        for name, kind in typed(source)
        if name in allowed and not set(re.findall(r"\w+", kind)) <= allowed[name] | UNSAID
    ]


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(SOURCES)))
def test_a_name_of_the_table_has_the_types_of_the_table(file: Path) -> None:
    if room_of(file) not in OPTIONS:
        assert strangers(file.read_text()) == []


def test_every_word_of_the_table_is_used() -> None:
    assert len(words()) > 12
    used = {name for file in files() for name, _ in typed(file.read_text())}
    assert words().keys() <= used


def test_a_word_with_a_second_meaning_is_noticed() -> None:
    """Negative controls: the meanings that these words had before."""
    assert strangers("def f(place: str, level: float) -> None: ...") == ["place: str"]
    assert strangers("class A:\n    kept: list[Any] | None = None") == ["kept: list[Any] | None"]
    assert strangers("@property\ndef family(self) -> Tilts: ...") == ["family: Tilts"]
