"""The versions of the software that computed a result: a table for its file, and a line for its page."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

NEEDED = ("numpy", "numba", "scipy", "matplotlib", "typer", "rich")
EXTRAS = {  # the packages that an extra of pyproject.toml names
    "frames": ("pandas",),
    "cluster": ("dask", "distributed"),
    "gpu": ("numba-cuda",),
    "studies": ("pyarrow",),
    "serve": ("fastapi", "uvicorn", "httptools", "psycopg"),
}


def used_versions() -> dict[str, str]:
    """The versions of everything that may change a bit of a path, by name, in the order of the pages."""
    import numba
    import numpy

    import lighttail

    return {
        "lighttail": lighttail.__version__,
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }


def versions_line(versions: dict[str, str]) -> str:
    """The versions in one line, such as "lighttail 0.1.0, numpy 2.3.0"."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def installed_parts() -> list[str]:
    """Lines that name lighttail, Python, what lighttail needs, and each extra with its packages."""
    import lighttail

    found = {name: _version(name) for name in (*NEEDED, *sum(EXTRAS.values(), ()))}
    lines = [
        f"lighttail {lighttail.__version__}",
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        versions_line({name: found[name] or "is missing" for name in NEEDED}),
    ]
    for extra, names in EXTRAS.items():
        there = versions_line({name: found[name] for name in names if found[name]})
        whole = all(found[name] for name in names)
        missing = f'not installed (pip install "lighttail[{extra}]")'
        lines.append(f"{extra}: {there if whole else missing}")
    return lines


def _version(package: str) -> str:
    """The version of an installed package, without importing the package; empty if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
