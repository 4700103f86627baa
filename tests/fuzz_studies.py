"""Study files and study folders that were damaged in ways nobody thought of.

    python tests/fuzz_studies.py --files 2000 --seed 1

Half of the cases change a study file, as text or value by value; half change the folder of a finished study:
its manifest, its copies of data, its pieces. A command then reads what is left. A run that ends well on
a damaged folder must have brought back every byte.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzzing import Answer, Tree, call, fault, judge, report, some

from lighttail.study import cells as cells_module

KEYS = {"name": '"s"', "paths": "130", "seeds": "[1]", "horizons": "[1200]", "threshold": "0.2"}
PROBLEM = {"name": '"p"', "means": "[0.2, 0.8]", "noise": '"gaussian"', "sigmas": "[1.0]"}
RESAMPLED = {"name": '"q"', "data": '"data.csv"', "arm_column": '"arm"'}
LINEAR = {"name": '"l"', "actions": "3", "dim": "2"}
POLICY, LINEAR_POLICY = {"policy": '"ts:0.8"'}, {"policy": '"lints:1"'}
NASTY = (
    '""', '"a"', "-1", "0", "1", "3", "1.5", "nan", "inf", "-inf", "1e400", "1e16", "9" * 30, "9" * 5000,
    "true", "[]", "[[]]", "[1, [2]]", "[nan]", "[0]", "[-1]", "{}", "{a = 1}", "[{}]", "1979-05-27",
    "07:32:00", "1979-05-27T07:32:00Z", '"\\u0000"', '"\\u202e"', '"' + "a" * 3000 + '"', "[1, 1]", '["a"]',
    "0x10", "1e5", '"gaussian"', '"missing.csv"', '"folder"', '"/dev/null"', '"../data.csv"',
    '"ucb:standard:0"', '"ts:"', '"ts:0.8s"', '"etc:5s"', '"ts:infs"', '"lints:1s"',
    "[" * 50 + "]" * 50, "[" * 3000, "{a=" * 3000, "[" + "1," * 3000 + "]", '"ball:3"', '"bad.npy"', "'", '"',
    "[1e15]", "[1000000000000]", "[1e-320]", "[1e300]", "''''''", '"[red]"', '"💥"', '"."', '" "',
)  # fmt: skip
LINES = ("[[problem]]", "[[policy]]", "[problem]", "[a.b]", "paths = 1", "x = 1", "[" * 3000,
         "a." * 5000 + "b = 1", "paths." * 3000 + "b = 1", "= 1", "\x00", "# 💥", "name = '''",
         "[[problem.data]]", "\r", "policy = 3")  # fmt: skip
Values = list[tuple[str, dict[str, str]]]  # a header, and its keys with their values


def written(values: Values) -> str:
    return "".join(
        header + "".join(f"{key} = {value}\n" for key, value in keys.items()) for header, keys in values
    )


def good(rng: random.Random) -> Values:
    """A valid study."""
    linear = rng.random() < 0.25
    problems = [LINEAR] if linear else rng.choice(([PROBLEM], [RESAMPLED], [PROBLEM, RESAMPLED]))
    policies = [LINEAR_POLICY] if linear else [POLICY, {"name": '"u"', "policy": '"ucb:lighttailed:0.2"'}]
    tables = [("[[problem]]\n", dict(one)) for one in problems] + [
        ("[[policy]]\n", dict(one)) for one in policies
    ]
    return [("", dict(KEYS)), *tables]


def changed_values(rng: random.Random) -> str:
    """One or two values replaced, keys dropped, moved or made up."""
    values = good(rng)
    for _ in range(some(rng, 1, 3)):
        _, keys = rng.choice(values)
        key = rng.choice(list(keys)) if keys else "x"
        what = rng.random()
        if what < 0.6:
            keys[key] = rng.choice(NASTY)
        elif what < 0.75:
            keys.pop(key, None)
        elif what < 0.85:
            keys[rng.choice(("kappa", "sigmas", "labels", "theta", "method", "data", "dim"))] = rng.choice(
                NASTY
            )
        elif what < 0.95:
            values.append(rng.choice(values))
        else:
            values.remove(rng.choice(values)) if len(values) > 1 else None
    return written(values)


def changed_text(rng: random.Random) -> bytes:
    """Lines dropped, doubled, swapped or put in; bytes changed; the end cut off."""
    lines = written(good(rng)).split("\n")
    for _ in range(some(rng, 1, 4)):
        place, what = rng.randrange(len(lines)), rng.randrange(5)
        if what == 0 and len(lines) > 1:
            del lines[place]
        elif what == 1:
            lines.insert(place, rng.choice(lines))
        elif what == 2:
            lines.insert(place, rng.choice(LINES))
        elif what == 3:
            lines[place] = lines[place][: rng.randrange(len(lines[place]) + 1)]
        else:
            rng.shuffle(lines)
    content = bytearray("\n".join(lines).encode())
    for _ in range(rng.choice((0, 0, 1, 3))):
        if content:
            content[rng.randrange(len(content))] = rng.randrange(256)
    if rng.random() < 0.1:
        content = content[: rng.randrange(len(content) + 1)]
    return bytes(content) * (200 if rng.random() < 0.02 else 1)


def change_file(rng: random.Random, here: Path) -> list[str]:
    """Change the study file; the words that read it. What is played is small, and mostly nothing is."""
    if rng.random() < 0.5:
        (here / "study.toml").write_bytes(changed_text(rng))
        return ["run", "study.toml", "--out", "new", "--dry-run"]
    text = changed_values(rng)
    (here / "study.toml").write_text(text)
    played = [] if "horizons = [1200]" in text and rng.random() < 0.5 else ["--dry-run"]
    return ["run", "study.toml", "--out", "new", "--workers", "1", "--budget", "1s", *played]


NODES: tuple[Any, ...] = (
    None,
    0,
    -1,
    3.5,
    True,
    "",
    "a",
    "a" * 3000,
    [],
    {},
    [[]],
    {"a": 1},
    "../../x",
    10**30,
)


def change_manifest(rng: random.Random, file: Path) -> None:
    """One node of the manifest replaced or dropped; or its text cut, emptied or filled with other things."""
    what, text = rng.random(), file.read_bytes()
    if what < 0.6:
        try:
            manifest = json.loads(text)
        except (ValueError, RecursionError):  # damaged before
            return
        node: Any = manifest
        if not isinstance(node, dict) or not node:
            return
        while True:
            key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
            if not isinstance(node[key], (dict, list)) or not node[key] or rng.random() < 0.3:
                break
            node = node[key]
        if rng.random() < 0.3:
            del node[key]
        else:
            node[key] = rng.choice(NODES)
        file.write_text(json.dumps(manifest))
    elif what < 0.9:
        damage(rng, file)
    else:
        file.write_bytes(rng.choice((b"[" * 9000, b"null", b"{}", b"[]", b'{"format": "lighttail study 1"}')))


def damage(rng: random.Random, path: Path) -> None:
    """Damage any file or folder."""
    if path.is_dir():
        what = rng.randrange(3)
        shutil.rmtree(path)
        if what == 1:
            path.touch()
        elif what == 2:
            path.mkdir()
        return
    content = bytearray(path.read_bytes())
    what = rng.randrange(7)
    if what == 0:
        path.unlink()
    elif what == 1:
        path.unlink()
        path.mkdir()
    elif what == 2:
        path.write_bytes(content[: rng.randrange(len(content) + 1)])
    elif what == 3:
        path.write_bytes(content + b"more")
    elif what == 4:
        path.write_bytes(b"")
    else:
        for _ in range(rng.choice((1, 20))):
            if content:
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)


def change_folder(rng: random.Random, here: Path) -> list[str]:
    """Damage the folder of a finished study; the words that look at it."""
    for _ in range(some(rng, 1, 4)):
        if rng.random() < 0.4 and (here / "done" / "manifest.json").is_file():
            change_manifest(rng, here / "done" / "manifest.json")
        else:
            places = [path for path in sorted((here / "done").rglob("*")) if path.name != ".lock"]
            if places:
                damage(rng, rng.choice(places))
        if rng.random() < 0.3:
            break
    again = ["run", "study.toml", "--out", "done", "--workers", "1"]
    return rng.choice(
        (again, [*again, "--rebuild"], [*again, "--rebuild"], [*again, "--dry-run"], ["report", "done"])
    )


def furnish(folder: Path) -> None:
    """A finished study with data of its own."""
    (folder / "data.csv").write_text("arm,reward\na,0\na,1\nb,0.5\nb,2\n")
    (folder / "bad.npy").write_bytes(b"\x93NUMPY garbage")
    (folder / "folder").mkdir()
    policies = [("[[policy]]\n", POLICY), ("[[policy]]\n", {"policy": '"ucb:lighttailed:0.2"'})]
    (folder / "study.toml").write_text(written([("", KEYS), ("[[problem]]\n", RESAMPLED), *policies]))
    made = call(["run", "study.toml", "--out", "done", "--workers", "1"], folder)
    assert made.code == 0, made.err


def lost(answer: Answer, whole: Tree) -> str:
    """What of a folder that was damaged is not as it was, though the command ended well."""
    played = answer.words[0] == "run" and "--dry-run" not in answer.words
    if answer.code != 0 or not played:
        return ""
    names = [name for name in whole if name.startswith("done/") and answer.after.get(name) != whole[name]]
    return f"a run that ended well, and other bytes in {names[:3]}" if names else ""


def answers(files: int, seed: int, folder: Path) -> Iterator[Answer]:
    """The answers to so many cases, each in a fresh copy of the same folder."""
    cells_module.PIECE_NUMBERS = 200  # a piece is then one block, and a cell a few of them
    start = folder / "start"
    start.mkdir()
    furnish(start)
    whole = call(["--version"], start).after
    for turn in range(files):
        rng = random.Random(f"{seed} {turn}")
        here = Path(shutil.copytree(start, folder / "here"))
        change: Callable[[random.Random, Path], list[str]] = change_folder if turn % 2 else change_file
        answer = call(change(rng, here), here)
        answer.error = answer.error or (lost(answer, whole) if turn % 2 and not fault(answer) else "")
        answer.words.append(f"# case {turn}")
        yield answer
        shutil.rmtree(here)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return report(judge(answers(chosen.files, chosen.seed, Path(folder)), shown=True), "study files")


if __name__ == "__main__":
    sys.exit(main())
