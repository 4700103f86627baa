"""The on-disk cache of compiled kernels is used when nothing changed and never when something did."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba import types
from numba.core import caching, config
from numba.core.caching import IndexDataCacheFile
from numba.core.registry import cpu_target

import lighttail as lt
from lighttail.kernels import compiled, stepping
from lighttail.kernels.build import compiler

SOURCES = Path(lt.__file__).parents[1]  # what is tested, and not what may be installed

# What a user would write: a formula that refers to a helper, constants and another file.
OWN_BONUS = """
import math
from dataclasses import dataclass

import numpy as np

import lighttail as lt
import elsewhere
import pack.deep
from elsewhere import bend

FACTOR = 0.5
TABLE = np.array([0.1, 0.2, 0.3])
LONG_TABLE = np.arange(2000.0)
INNER = 0.3


def helper(n):
    return math.sqrt(n)


@dataclass(frozen=True)
class OwnBonus(lt.Bonus):
    kappa: float

    @staticmethod
    def radius(n, clock, kappa):
        halves = [INNER * half for half in (0.5, 0.5)]
        extra = TABLE[1] + LONG_TABLE[1000] / 1000.0 + elsewhere.SHIFT + pack.deep.TILT + halves[0]
        return FACTOR * kappa / helper(n) + 1.0 * kappa / bend(n) + extra / n

    def params(self, horizon, arms):
        return (self.kappa,)
"""

ELSEWHERE = """
SHIFT = 0.25


def bend(n):
    return n + 1.0
"""

# Simulates with the kernel and with the plain-Python oracle, and asks the kernel about its cache.
# After the module come folders: each has files of the same names, which are imported anew.
CHILD = """
import importlib, json, sys

def played(module):
    OwnBonus = importlib.import_module(module).OwnBonus
    import lighttail as lt
    from lighttail.kernels import kernel_for
    from oracle import play

    policy, problem = lt.UCB(OwnBonus(0.7)), lt.Bandit([0.2, 0.8])
    out = lt.simulate(policy, problem, horizon=150, paths=30, seed=1, threads=1)
    plain = play(policy, problem, 150, 30, 1)
    stats = kernel_for(policy, problem).stats
    hits, misses = sum(stats.cache_hits.values()), sum(stats.cache_misses.values())
    return dict(kernel=out.reward.tolist(), plain=plain.reward.tolist(), hits=hits, misses=misses)

def in_folder(folder, module):
    for name in {"own_bonus", "elsewhere", "pack", "pack.deep"} & set(sys.modules):
        del sys.modules[name]
    sys.path.insert(0, folder)
    found = played(module)
    assert sys.modules[module].__file__.startswith(folder)
    sys.path.remove(folder)
    return found

module, *folders = sys.argv[1:]
several = {folder: in_folder(folder, module) for folder in folders}
print(json.dumps(several or played(module)))
"""


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with the user's files and the cache that a first process filled, and its results."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "own_bonus.py").write_text(OWN_BONUS)
    (folder / "elsewhere.py").write_text(ELSEWHERE)
    (folder / "pack").mkdir()
    (folder / "pack" / "__init__.py").touch()
    (folder / "pack" / "deep.py").write_text("TILT = 0.2")
    return folder, run_child(folder)


@pytest.fixture
def folder(first_run: tuple[Path, dict[str, Any]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(first_run[0], tmp_path / "copy"))


def run_child(folder: Path, module: str = "own_bonus", others: Any = ()) -> dict[str, Any]:
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join(map(str, (folder, Path(__file__).parent, SOURCES))),
        "PYTHONDONTWRITEBYTECODE": "1",  # two edits within a second must not look alike to Python
    }
    done = subprocess.run(
        [sys.executable, "-c", CHILD, module, *map(str, others)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) | {"notes": done.stderr}


def cache_files(folder: Path) -> dict[str, int]:
    return {str(file): file.stat().st_mtime_ns for file in (folder / "cache").rglob("*.nb[ic]")}


def test_an_unchanged_bonus_is_loaded_and_not_compiled_again(first_run: Any, folder: Path) -> None:
    first, written = first_run[1], cache_files(folder)
    assert (first["hits"], first["misses"]) == (0, 1)
    assert first["kernel"] == first["plain"]
    second = run_child(folder)
    assert (second["hits"], second["misses"]) == (1, 0)
    assert second["kernel"] == first["kernel"]
    assert cache_files(folder) == written
    assert written


EDITS = {
    "formula": ("own_bonus.py", "1.0 * kappa", "1.5 * kappa"),
    "helper": ("own_bonus.py", "math.sqrt(n)", "math.sqrt(n + 2.0)"),
    "constant": ("own_bonus.py", "FACTOR = 0.5", "FACTOR = 0.75"),
    "table": ("own_bonus.py", "[0.1, 0.2, 0.3]", "[0.1, 0.9, 0.3]"),
    "long table": ("own_bonus.py", "np.arange(2000.0)", "np.arange(2000.0)\nLONG_TABLE[1000] = 1700.0"),
    "constant in a comprehension": ("own_bonus.py", "INNER = 0.3", "INNER = 1.9"),
    "helper in another file": ("elsewhere.py", "n + 1.0", "n + 3.0"),
    "constant in another file": ("elsewhere.py", "SHIFT = 0.25", "SHIFT = 0.95"),
    "constant in a package": ("pack/deep.py", "TILT = 0.2", "TILT = 0.9"),
}


@pytest.fixture(scope="module")
def edited(first_run: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What one next process plays of each edit: the files in a folder of their own, the cache the same."""
    home = Path(shutil.copytree(first_run[0], tmp_path_factory.mktemp("edited") / "copy"))
    folders = {edit: home / edit.replace(" ", "_") for edit in EDITS}
    for edit, (file, old, new) in EDITS.items():
        shutil.copytree(first_run[0], folders[edit], ignore=shutil.ignore_patterns("cache"))
        text = (folders[edit] / file).read_text()
        assert text.count(old) == 1
        (folders[edit] / file).write_text(text.replace(old, new))
    after = run_child(home, others=[*folders.values(), home])
    assert after[str(home)]["hits"] == 1  # unedited: the cache is in use
    return {edit: after[str(place)] for edit, place in folders.items()}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_noticed_by_the_next_process(first_run: Any, edited: Any, edit: str) -> None:
    after = edited[edit]
    assert after["plain"] != first_run[1]["plain"]  # the edit matters
    assert after["hits"] == 0
    assert after["kernel"] == after["plain"]


def test_a_bonus_that_moved_to_another_file_still_plays(first_run: Any, folder: Path) -> None:
    (folder / "own_bonus.py").rename(folder / "moved.py")
    assert run_child(folder, "moved")["kernel"] == first_run[1]["kernel"]


SKIP_CHILD = """
import json, sys

import lighttail as lt
from lighttail.kernels import skip_kernel_for

policies = {
    "standard": lt.UCB(lt.Standard(0.2)),
    "light-tailed": lt.UCB(lt.LightTailed(0.2)),
    "any-time": lt.UCB(lt.AnyTime(0.2)),
    "elimination": lt.SuccessiveElimination(lt.Standard(0.4)),
}
problem, rewards, hits = lt.Bandit([0.2, 0.8, 0.5]), {}, {}
for word in sys.argv[1:]:
    out = lt.simulate(policies[word], problem, horizon=2000, paths=20, seed=3, method="skip")
    rewards[word] = out.reward.tolist()
    hits[word] = sum(skip_kernel_for(policies[word], problem).stats.cache_hits.values())
print(json.dumps([rewards, hits]))
"""


@pytest.fixture(scope="module")
def skipped(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """What four processes play that skip ahead, one after the other, and how many kernels each had loaded."""
    known = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("skipped")),
        "PYTHONPATH": str(SOURCES),
    }
    alone = ["standard", "any-time", "elimination"], ["light-tailed"]
    together = ["standard", "light-tailed", "any-time", "elimination"], ["light-tailed", "standard"]
    return [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", SKIP_CHILD, *words], env=known, check=True, capture_output=True
            ).stdout
        )
        for words in (*alone, *together)
    ]


def test_kernels_from_different_processes_keep_to_their_own_helpers(skipped: Any) -> None:
    """Each is compiled alone; together in one process both must still play as they did alone."""
    (one, _), (other, _), (together, _), (reversed_, _) = skipped
    assert together == one | other
    assert reversed_ == other | {"standard": one["standard"]}


def test_a_kernel_that_skips_ahead_is_loaded_and_not_compiled_again(skipped: Any) -> None:
    """Its inner functions are made anew in every process, and still have the same key."""
    assert [set(hits.values()) for _, hits in skipped] == [{0}, {0}, {1}, {1}]


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1  # in the data: machine code that nobody compiled
    file.write_bytes(content)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: dict[str, Any] = {
    "truncated": _truncate,
    "empty": lambda file: file.write_bytes(b""),
    "garbage": lambda file: file.write_bytes(b"\x80\x05garbage" * 9),
    "a bit": _flip,
    "a folder": _folder,
}


def kernel(x: float) -> float:
    return x + 1.0


def fresh(where: pytest.MonkeyPatch, cache: Path) -> Any:
    """The kernel as a new process finds it."""
    where.setattr(config, "CACHE_DIR", str(cache))
    compiled.warn_once.cache_clear()
    return compiler()(kernel)


@pytest.mark.parametrize("harm", DAMAGES)
def test_a_damaged_file_is_a_note_and_a_compilation(
    harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fresh(monkeypatch, tmp_path)(1.0) == 2.0
    (file,) = tmp_path.rglob("*.nb?")
    DAMAGES[harm](file)
    found = fresh(monkeypatch, tmp_path)
    with pytest.warns(compiled.CacheNote) as said:
        answer = found(1.0)
    assert answer == 2.0
    assert not found.stats.cache_hits
    assert f"{file} " in str(said[0].message)
    assert "compiled anew" in str(said[0].message)
    if harm == "a folder":  # nothing can take its place
        assert "compiled kernels cannot be kept in" in str(said[1].message)
        return
    assert len(said) == 1
    again = fresh(monkeypatch, tmp_path)  # no note: it was written anew
    assert again(1.0) == 2.0
    assert sum(again.stats.cache_hits.values()) == 1


def kept_at_once(kind: Any, folder: Path) -> list[Any]:
    """What two processes find afterwards that keep a kernel each at the same time. Both look for a free name
    before either has written; then the second writes all that it has, and the first its data at last."""
    one, other = kind(str(folder), "kernel", "stamp"), kind(str(folder), "kernel", "stamp")
    write = one._save_data

    def late(name: str, data: Any) -> None:
        """The first process is held up after it has chosen its name."""
        (folder / one._index_name).unlink(missing_ok=True)  # the second process read the index before
        other.save("other", "kernel of the other")
        write(name, data)

    one._save_data = late
    one.save("one", "kernel of the one")
    return [one.load("one"), other.load("other")]


def test_two_processes_that_compile_at_once_do_not_take_each_others_kernels(tmp_path: Path) -> None:
    """Control: with numba's index one key leads to the data of the other."""
    assert kept_at_once(compiled._CheckedFile, tmp_path) == ["kernel of the one", "kernel of the other"]
    assert kept_at_once(IndexDataCacheFile, tmp_path)[1] == "kernel of the one"


def test_a_kernel_is_found_again_however_python_came_by_its_bytecode(tmp_path: Path) -> None:
    """The first import compiles the maker of the kernel, and the second one reads bytecode from a file.
    Control: numba's key holds a pickle of what the kernel closes over, which differs."""
    place = shutil.copy(stepping.__file__, tmp_path / "copied.py")
    keys, numbas = set(), set()
    for _ in range(2):
        spec = importlib.util.spec_from_file_location("copied", place)
        copied = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(copied)
        formulas = lt.AnyTime.radius, lt.AnyTime.clock, lt.Gaussian.shock, lt.Gaussian.reward
        kernel = copied.moving_index_kernel(*formulas)  # which closes over a function of its module
        asked = (types.float64,), cpu_target.target_context.codegen()
        keys.add(kernel._cache._index_key(*asked))
        numbas.add(caching.FunctionCache(kernel.py_func)._index_key(*asked))
    assert list(tmp_path.rglob("*.pyc"))
    assert (len(keys), len(numbas)) == (1, 2)


def test_a_kernel_that_closes_over_another_value_is_another_kernel(tmp_path: Path, monkeypatch: Any) -> None:
    """The digest of the parts alone, which are none here, would not tell the two apart (control)."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    def made(step: float) -> Any:
        @compiler()
        def kernel(x: Any) -> Any:
            return x + step

        return kernel

    asked = (types.float64,), cpu_target.target_context.codegen()
    keys = [made(step)._cache._index_key(*asked) for step in (1.0, 2.0, 1.0)]
    assert keys[0] == keys[2] != keys[1]
    assert keys[0][:-1] == keys[1][:-1]
    assert [made(1.0)(1.0), made(2.0)(1.0)] == [2.0, 3.0]


def test_kernels_of_other_sources_are_removed(tmp_path: Path) -> None:
    old, new = (compiled._CheckedFile(str(tmp_path), "kernel", stamp) for stamp in ("old", "new"))
    old.save("key", "old data")
    assert new.load("key") is None
    new.save("key", "new data")
    assert (old.load("key"), new.load("key")) == (None, "new data")
    assert len(list(tmp_path.iterdir())) == 1
    new.flush()
    assert list(tmp_path.iterdir()) == []


def test_a_process_whose_cache_is_damaged_compiles(first_run: Any, folder: Path) -> None:
    """The kernel of a user's own bonus; those of the library are kept in the same way."""
    (file,) = (folder / "cache").rglob("stepping.*.nbc")
    _truncate(file)
    done = run_child(folder)
    assert done["kernel"] == first_run[1]["kernel"]
    assert (done["hits"], done["misses"]) == (0, 1)
    assert f"CacheNote: the compiled kernel in {file} is damaged: it is compiled anew" in done["notes"]


class Full:
    """A file on a disk that is full."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __enter__(self) -> Full:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def write(self, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_a_note_and_a_compilation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, refused = open, []

    def limited(path: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if "w" not in mode or ".nb" not in str(path):
            return real(path, mode, *rest, **more)
        refused.append(path)
        return Full(real(path, mode, *rest, **more))

    found = fresh(monkeypatch, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", limited)
        with pytest.warns(compiled.CacheNote) as said:
            answer = found(1.0)
    assert answer == 2.0
    assert refused
    assert len(said) == 1
    assert "compiled kernels cannot be kept in" in str(said[0].message)
    assert "(no space left on device): every process compiles them anew" in str(said[0].message)
    assert not list(tmp_path.rglob("*.nb*"))
    again = fresh(monkeypatch, tmp_path)
    assert again(1.0) == 2.0
    assert not again.stats.cache_hits


@pytest.mark.parametrize("nowhere", [False, True])
def test_a_cache_that_cannot_be_written_is_a_note(
    nowhere: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file stands in the folder's place; or all folders are of a disk that is only read."""

    def refuses(self: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    (tmp_path / "cache").write_text("in the way")
    if nowhere:
        monkeypatch.setattr(caching._CacheLocator, "ensure_cache_path", refuses)
    with pytest.warns(compiled.CacheNote) as said:
        answer = fresh(monkeypatch, tmp_path / "cache")(1.0)
    assert answer == 2.0
    (note,) = (str(one.message) for one in said)
    if nowhere:
        assert "no folder for them can be written: every process compiles" in note
    else:
        assert note.startswith(f"NUMBA_CACHE_DIR, {tmp_path / 'cache'}, cannot be written")
    assert (tmp_path / "cache").read_text() == "in the way"


NOWHERE = '''
import json, warnings
from pathlib import Path
warnings.simplefilter("error")
import lighttail as lt
from oracle import play
text = """
import lighttail as lt
class Mean(lt.IndexPolicy):
    @staticmethod
    def index(n, mean, clock):
        return mean + 0.5 / n
    def params(self, horizon, arms):
        return ()
"""
names = NAMES
exec(text, names)
exec(compile(Path("own_bonus.py").read_text(), "text", "exec"), names)
problem, found = lt.Bandit([0.2, 0.8]), []
for policy in (names["Mean"](), lt.UCB(names["OwnBonus"](0.7))):
    out = lt.simulate(policy, problem, horizon=50, paths=5, seed=1)
    found.append([out.reward.tolist(), play(policy, problem, 50, 5, 1).reward.tolist()])
print(json.dumps(found))
'''


@pytest.mark.parametrize("names", [{"__name__": "nowhere"}, {}], ids=str)
def test_formulas_that_no_other_process_can_import_are_not_kept(folder: Path, names: dict[str, str]) -> None:
    """An index and a bonus in a module that no import finds, or in none, as in examples that a tool runs. The
    kernel of the index is reached through a rule that can be imported: a second run must not find it."""
    shutil.rmtree(folder / "cache")
    paths = os.pathsep.join(map(str, (folder, Path(__file__).parent, SOURCES)))
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": paths}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", NOWHERE.replace("NAMES", repr(names))],
            env=settings,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        index, bonus = json.loads(done.stdout)
        assert index[0] == index[1]
        assert bonus[0] == bonus[1]
    assert cache_files(folder) == {}
