"""Builds the wheel and the sdist, looks into both, and tries the wheel in clean environments.

    python release/dist.py

It needs the dependency group `release`. The supported versions of Python are the classifiers of
`pyproject.toml`. A version that is not on this machine is skipped, and the last lines say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
PACKAGE = ROOT / "src" / "lighttail"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = [name for name in PROJECT["optional-dependencies"] if name != "gpu"]  # needs a GPU
IN_SDIST = (
    *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "SECURITY.md"),
    *("src", "tests", "docs", "examples", "benchmarks", "release"),
)
UNWANTED = ("__pycache__", ".venv", ".pyc", ".git/", "reports/", ".pytest_cache", ".hypothesis")


def main() -> None:
    wheel, sdist = build()
    with zipfile.ZipFile(wheel) as archive:
        check_names("the wheel", wrong_in_wheel(archive.namelist(), package_files()))
    with tarfile.open(sdist) as packed:
        check_names("the sdist", wrong_in_sdist(packed.getnames()))
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    tried = {version: try_wheel(version, wheel) for version in supported(PROJECT["classifiers"])}
    for version, answer in tried.items():
        print(f"Python {version}: {answer}")
    if not any(answer.startswith("works") for answer in tried.values()):
        sys.exit("No supported Python is on this machine: the wheel was not tried.")


def build() -> tuple[Path, Path]:
    """The new wheel and the new sdist, alone in their folder."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def package_files() -> set[str]:
    """The files that a wheel must have, such as lighttail/py.typed."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file())
    names = {path.relative_to(PACKAGE.parent).as_posix() for path in files}
    return {name for name in names if not any(word in name for word in UNWANTED)}


def wrong_in_wheel(names: list[str], wanted: set[str]) -> list[str]:
    """What a wheel has too much or too little.

    >>> wrong_in_wheel(["tests/b.py", "lighttail-1.dist-info/METADATA"], {"lighttail/py.typed"})
    ['too much: tests/b.py', 'missing: lighttail/py.typed']
    """
    inside = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    too_much, missing = sorted(inside - wanted), sorted(wanted - inside)
    return [f"too much: {name}" for name in too_much] + [f"missing: {name}" for name in missing]


def wrong_in_sdist(names: list[str]) -> list[str]:
    """What an sdist has too much or too little. The names begin with the folder of the version."""
    inside = [name.partition("/")[2] for name in names]
    missing = [want for want in IN_SDIST if not any(f"{name}/".startswith(f"{want}/") for name in inside)]
    extra = [name for name in inside if any(word in name for word in UNWANTED)]
    return [f"too much: {name}" for name in extra] + [f"missing: {name}" for name in missing]


def check_names(what: str, wrong: list[str]) -> None:
    if wrong:
        sys.exit(f"{what} is wrong: " + "; ".join(wrong[:20]))


def supported(classifiers: list[str]) -> list[str]:
    """The supported versions.

    >>> supported(["Programming Language :: Python :: 3.11", "Typing :: Typed"])
    ['3.11']
    """
    versions = [text.rpartition(" :: ")[2] for text in classifiers if ":: Python :: 3." in text]
    return sorted(versions, key=lambda version: int(version.partition(".")[2]))


def find_python(version: str) -> str | None:
    """A Python of this version: on the PATH, if it runs, or one that pyenv installed."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(map(str, home.glob(f"versions/{version}.*/bin/python{version}")))
    for candidate in (shutil.which(f"python{version}"), *reversed(installed)):
        words = [str(candidate), "-c", "import venv, ensurepip"]
        if candidate and subprocess.run(words, capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def try_wheel(version: str, wheel: Path) -> str:
    """Install the wheel into a new environment, without and with its extras, and use it."""
    python = find_python(version)
    if python is None:
        return "SKIPPED, because it is not on this machine"
    with tempfile.TemporaryDirectory() as place:
        run(python, "-m", "venv", f"{place}/venv")
        inside = f"{place}/venv/bin/python"
        for extras in ([], EXTRAS):
            named = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
            run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", named)
            run(inside, "-I", ROOT / "release" / "smoke.py", *extras, cwd=place)
    return f"works, without extras and with {', '.join(EXTRAS)}"


def run(*words: object, cwd: str | Path = ROOT) -> None:
    """Run a command, which must end well."""
    print("$", *words, flush=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([str(word) for word in words], cwd=cwd, env=environment, check=True)


if __name__ == "__main__":
    main()
