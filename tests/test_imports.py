"""`import lighttail` is light, and a lower layer never imports a higher one."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from cases import BONUSES
from house import ORDER, SOURCES, edges, files, imports_of, room_of

import lighttail as lt

HEAVY = {
    *("numba", "llvmlite", "scipy", "matplotlib", "pandas", "rich", "typer", "pyarrow"),
    *("sqlite3", "psycopg", "fastapi", "uvicorn", "httpx"),
}
FORMULA_FILES = [
    "rules.py",
    "bonuses.py",
    *(f"policies/{file.name}" for file in (SOURCES / "policies").glob("*.py")),
]
PLAIN_MODULES = {
    "__future__",
    "abc",
    "collections",
    "dataclasses",
    "dis",
    "functools",
    "inspect",
    "math",
    "typing",
    "warnings",
}


def loaded_after(statements: str) -> set[str]:
    """Which heavy modules a new process has loaded after these statements."""
    script = f"import sys\n{statements}\nprint(*({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_importing_lighttail_loads_nothing_heavy() -> None:
    assert loaded_after("import lighttail") == set()


def test_importing_the_service_loads_no_database_and_no_web_server() -> None:
    assert loaded_after("import lighttail.live") == set()
    assert loaded_after("import lighttail.live as live; live.open_journal('memory')") == set()
    assert loaded_after("import lighttail.server.keys") == set()


def test_what_is_heavy_is_loaded_where_it_is_used() -> None:
    """Negative control, and a promise: a simulation needs the compiler and no plotting."""
    play = "lt.simulate(lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8]), horizon=10, paths=10, seed=1)"
    loaded = loaded_after(f"import lighttail as lt\n{play}.mean()")
    assert {"numba", "scipy"} <= loaded
    assert not {"matplotlib", "pandas", "rich", "typer"} & loaded


def layer_of(dotted: str) -> str:
    """`lighttail.report.page` -> `report`; a name that the package itself exports -> `lighttail`."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ORDER else "lighttail"


def upward(layer: str, source: str) -> set[str]:
    """What a file of this layer imports although it may not."""
    inside = {layer_of(module) for module in imports_of(source) if module.split(".")[0] == "lighttail"}
    return inside - set(ORDER[: ORDER.index(layer) + 1]) - only_for_its_version(source)


def only_for_its_version(source: str) -> set[str]:
    """Any layer may ask the package for `lighttail.__version__`, and for nothing else."""
    uses = {
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "lighttail"
    }
    return {"lighttail"} if uses == {"__version__"} else set()


def test_every_module_has_its_place_in_the_order() -> None:
    assert {room_of(file) for file in files()} == set(ORDER)


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(SOURCES)))
def test_no_layer_imports_a_higher_one(file: Path) -> None:
    assert upward(room_of(file), file.read_text()) == set()


@pytest.mark.parametrize(
    ("layer", "source", "found"),
    [
        ("outcomes", "from lighttail.running.simulate import simulate", {"running"}),
        ("policies", "def f():\n    from lighttail import kernels", {"kernels"}),
        ("running", "import lighttail.report.page", {"report"}),
        ("online", "from lighttail import simulate, Bandit", {"lighttail"}),
        ("outcomes", "import lighttail\nlighttail.simulate()\nlighttail.__version__", {"lighttail"}),
        ("outcomes", "import lighttail\nlighttail.__version__", set()),
        ("outcomes", "if TYPE_CHECKING:\n    import lighttail.report\nimport lighttail.cli", {"cli"}),
        (
            "report",
            "from lighttail.outcomes.outcome import Outcome\nfrom lighttail.report.page import page",
            set(),
        ),
    ],
)
def test_the_check_notices_an_import_upwards(layer: str, source: str, found: set[str]) -> None:
    """Negative control."""
    assert upward(layer, source) == found


def missing(source: str) -> set[str]:
    """The names that a program imports from lighttail and that are not there."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "lighttail":
            for alias in node.names:
                program = f"from {node.module} import {alias.name}"
                try:
                    exec(program, {})
                except ImportError:
                    found.add(program)
    return found


@pytest.mark.parametrize("folder", ["benchmarks", "docs", "examples", "release"])
def test_programs_that_no_test_runs_import_what_there_is(folder: str) -> None:
    programs = list((SOURCES.parents[1] / folder).rglob("*.py"))
    assert programs
    assert [(file.name, names) for file in programs if (names := missing(file.read_text()))] == []
    control = "from lighttail.kernels.generic import late_kernel, stepping"
    assert missing(control) == {"from lighttail.kernels.generic import stepping"}


def test_a_report_shows_and_plays_nothing() -> None:
    playing = {"random", "kernels", "gpu", "running"}
    assert {room for one, room in edges() if one == "report"} & playing == set()
    assert {room for one, room in edges() if one == "compare"} & playing  # negative control


@pytest.mark.parametrize("file", FORMULA_FILES)
def test_formulas_are_written_with_the_standard_library(file: str) -> None:
    modules = imports_of((SOURCES / file).read_text())
    outside = {module.split(".")[0] for module in modules} - {"lighttail"}
    assert outside <= PLAIN_MODULES


FORMULAS = [
    *(function for bonus in BONUSES for function in (bonus.radius, bonus.clock)),
    *(lt.ThompsonSampling.posterior_mean, lt.ThompsonSampling.posterior_sd),
    *(lt.Exp3IX.weight, lt.Exp3IX.gain),
    *(
        function
        for bonus in (lt.LinearLightTailed, lt.LinearStandard, lt.Oful)
        for function in (bonus.radius, bonus.clock)
    ),
]


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__qualname__)
def test_a_formula_refers_to_math_alone(formula) -> None:
    assert {word for word in formula.__code__.co_names if word in formula.__globals__} <= {"math"}


def test_everything_public_has_a_docstring_and_exists() -> None:
    assert sorted(lt.__all__) == sorted(set(lt.__all__))
    for public in lt.__all__:
        assert getattr(lt, public).__doc__, public
