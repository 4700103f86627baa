"""What a release says of itself: its Pythons, its version, its citation, and how its archives are judged."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import lighttail as lt

ROOT = Path(__file__).parents[1]
DIST: dict[str, Any] = runpy.run_path(str(ROOT / "release" / "dist.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_workflow_tries_every_supported_python() -> None:
    named = DIST["supported"](PROJECT["project"]["classifiers"])
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", workflow)[1]) == named  # type: ignore[index]
    assert re.findall(r"^ {12}(3\.\d+)$", workflow, re.MULTILINE) == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
    targets = set(re.findall(r"make ([\w-]+) PYTHON", workflow))
    assert targets == {"test", "test-slow", "docs", "dist", "lowest"}
    assert all(f"\n{target}: " in (ROOT / "Makefile").read_text() for target in targets)


def test_no_test_is_left_out_of_both_targets() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target, chosen in (("test", '-m "not slow"'), ("test-slow", "-m slow")):
        recipe = re.search(rf"^{target}: .*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
        assert recipe is not None
        assert recipe[1].splitlines()[0] == f"\t$(BIN)/pytest -n auto --dist worksteal {chosen}"
    assert (ROOT / ".ci" / "run").read_text().endswith("\nmake test\nmake test-slow\n")


def test_the_version_has_one_place() -> None:
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/lighttail/__init__.py"
    assert (
        re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
        == (  # type: ignore[index]
            lt.__version__.partition(".dev")[0]
        )
    )


def test_the_groups_for_development_have_the_floors_of_the_package() -> None:
    """A floor that is raised in one list and not in the other would be tested with other versions."""
    extras = {one for extra in PROJECT["project"]["optional-dependencies"].values() for one in extra}
    floors = {one.partition(">")[0]: one for one in extras}
    told = [one for one in PROJECT["dependency-groups"]["dev"] if isinstance(one, str)]
    assert [one for one in told if floors.get(one.partition(">")[0], one) != one] == []


def test_archives_with_too_much_or_too_little_are_refused() -> None:
    package = {"lighttail/__init__.py", "lighttail/py.typed"}
    about = "lighttail-0.2.0.dist-info/METADATA"
    assert DIST["wrong_in_wheel"]([*package, about], package) == []
    found = DIST["wrong_in_wheel"](["lighttail/__init__.py", "tests/test_cli.py", about], package)
    assert found == ["too much: tests/test_cli.py", "missing: lighttail/py.typed"]
    whole = [f"lighttail-0.2.0/{name}/x" for name in DIST["IN_SDIST"]]
    assert DIST["wrong_in_sdist"](whole) == []
    assert DIST["wrong_in_sdist"]([*whole[1:], "lighttail-0.2.0/src/__pycache__/a.pyc"]) == [
        "too much: src/__pycache__/a.pyc",
        "missing: pyproject.toml",
    ]
    assert "lighttail/py.typed" in DIST["package_files"]()


def test_the_paper_is_cited() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert all(name in text for name in ("Simchi-Levi", "Zheng", "Zhu", "2206.02969"))
