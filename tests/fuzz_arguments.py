"""Argument lists that nobody would type, for every command.

    python tests/fuzz_arguments.py --lists 2000 --seed 1

A list begins with small sizes, so that what is valid is quick, and goes on with values drawn from good and
nasty ones; later values of an option replace earlier ones.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fuzzing import Answer, call, judge, report, some

import lighttail as lt
from lighttail.live import Office, open_journal
from lighttail.reading.words import NOISES as SHIPPED_NOISES
from lighttail.tails import curve as tail_module

BUDGET = 20_000  # pulls of an estimate, in place of thousands of millions
NASTY = (
    "", " ", "-1", "0", "-0.0", "nan", "inf", "-inf", "1e400", "1e-400", "5e-324", "1e308", "-1e308", "1e16",
    "1e18", "9" * 40, "9" * 5000, "-" + "9" * 5000, "1e999999999", "0x10", "1_0", "_1", "１２", "½", "٣",
    "1.5", "1,5", ",", "0.2,", ",,", "1;2", "a", "a" * 300, "a" * 5000, "None", "True", "[]", "[red]",
    "[/]", "{}", "%s", "\\", "'", '"', "\n", "\t", "a\nb", "💥", "\u202e", "\x1b[31m", "\udcff", "--", "-",
    "--json", "..", ":", "::", "ucb:", "1:2:3", "ucb:standard:1e200", "ucb:lighttailed:5e-324", "0.5 ", "+3",
    "1e3", "1E-3",
)  # fmt: skip
POLICIES = (
    "ucb:standard:0.8", "se:standard:0.4", "ucb:lighttailed:0.2", "se:lighttailed:0.1", "ts:0.8", "ts:3:10:5",
    "exp3ix:reward", "exp3ix:loss:1", "ucb:anytime:0.3", "ucb:armoptimal:0.4:0.2", "UCB:Standard:1",
    "ts:1e-300", "ucb:standard:0", "ts:1e200", "ucb:standard:nan", "se:anytime:1", "exp3ix:loss:-1",
    "linucb:standard:1", "klucb:0.5", "klucb:1e300:5e-324", "etc:20", "etc:1e300", "egreedy:5:0.1",
    "bayesucb:1e300", "twopart:0.5:1:0.6:0.3", "moss", "eqo:1e308", "inflated:0", "evensplit:1",
    "ucb:lighttailed:0.2s", "ts:0.8s:0.04:1s", "ts:infs", "ts:1e308s", "ucb:armoptimal:0.4s:0s", "klucb:1s",
    "etc:5s", "se:anytime:0.2s", "eqo:s", "moss:-1s", "ucb:standard:" + "9" * 5000 + "s", "twopart:1s:1s:1s",
)  # fmt: skip
LINEAR = ("linucb:lighttailed:0.2", "linucb:oful:1:0.05:1", "linucb:standard:1", "lints:1", "lints:0",
          "linucb:oful:1:2:1", "linucb:standard:1e300", "ucb:standard:1", "lints:1s", "linucb:oful:1s:0.05:1",
          "linucb:oful:1:0.05s:1", "linucb:lighttailed:1e-320s")  # fmt: skip
MEANS = ("0.2,0.8", "0,1,0.5", "0.5,0.5", "1e-300,2e-300", "1e307,0", "1e308,-1e308", "0.2", "nan,1",
         "-1e-5,1e-5", "3%,5 %", "3%,500%", "%,1", "1e999999999%,2",
         ",".join("0.1" for _ in range(40)), ",".join("0.1" for _ in range(3000)))  # fmt: skip
NOISES = (*SHIPPED_NOISES, "studentt:3", "studentt:2", "gausian", "gaussian:1", "Bernoulli")
SIGMAS = ("1", "0", "0.001", "1e-320", "1e300", "2", "-1", "1e6")
FILES = (
    "good.csv",
    "missing.csv",
    "empty.csv",
    "binary.csv",
    "one.csv",
    "wide.csv",
    "named.csv",
    "long.csv",
    "folder",
    "nul.csv",
)
ARRAYS = ("good.npy", "missing.npy", "garbage.npy", "object.npy", "wide.npy", "nan.npy", "cut.npy",
          "flat.npy", "rounds.npy", "empty.npy")  # fmt: skip
PLACES = ("out", "new/deep/er", "taken.txt", "taken.txt/below", "x" * 300, "mine", "o ut", "")
HUGE = ("1e12", "1e15", "1e16", "123456789012345678901234567890")
COLUMNS = ("arm", "reward", "when", "Reward", " arm ", "a" * 5000)
PROBLEM = {"--means": MEANS, "--noise": NOISES, "--sigma": SIGMAS, "--data": FILES, "--arm-column": COLUMNS,
           "--reward-column": COLUMNS}  # fmt: skip
LATE = {"--delay": ("0", "5", "uniform:0:9", "geometric:3", "good.csv", "1e12", "uniform:9:0"),
        "--never": ("0.1", "1", "2", "5%"), "--batch": ("1", "4", *HUGE)}  # fmt: skip
KIND = {"--kind": ("pseudo-regret", "regret", "pseudo_regret", "regrets")}
LOSSES = ("3", "1,2", "0", "-5", "1e9", ",".join(map(str, range(5000))))
COMMON = {"--horizon": ("30", "3", "2", *HUGE), "--seed": ("7", "0", "1e5"), "--threads": ("1", "2", *HUGE)}
COMMANDS: dict[str, dict[str, tuple[str, ...]]] = {
    "compare": PROBLEM | COMMON | LATE | KIND | {
        "--policy": POLICIES, "--paths": ("5", "1", "200", *HUGE), "--threshold": ("0.2", "1e-300", "1e300"),
        "--loss": ("3", "1e-300", "1e300", "0"),
        "--assumed-sigma": ("0.5,2", "1", "1e-300", "1e300", ",".join(map(str, range(1, 3000)))),
        "--keep": ("paths", "law", "laws"), "--device": ("cpu", "gpu"), "--out": PLACES, "--json": (),
        "--linear": (), "--no-growth": (),
    },
    "linear": COMMON | {
        "--noise": NOISES, "--sigma": SIGMAS, "--policy": LINEAR, "--dim": ("2", "1", "3", *HUGE),
        "--theta": ("0.5,0.5", "1", "0,0", "2,2", "1e200,1"), "--paths": ("5", "1", *HUGE),
        "--actions": ("3", "ball:3", "sphere:2", "1", "cube:3", *HUGE, *ARRAYS), "--out": PLACES,
        "--means": ("0,1",), "--keep": ("paths", "law"), "--json": (),
    },
    "tail": PROBLEM | COMMON | LATE | KIND | {
        "--policy": POLICIES, "--loss": LOSSES, "--regret": LOSSES,
        "--relative-error": ("0.5", "1e9", "0"),
        "--method": ("auto", "exact", "importance", "plain", "splitting", "best"),
        "--out": PLACES, "--json": (),
    },
    "bound": PROBLEM | KIND | {
        "--horizon": ("30", "3", "2", *HUGE), "--policy": POLICIES, "--loss": LOSSES, "--regret": LOSSES,
        "--exact": (), "--json": (),
    },
    "plan": PROBLEM | COMMON | LATE | {
        "--rates": ("3%..5%", "0.2..0.9", "0..1", "5..3", "0.1", "1e-320..1", "4%..4%", "..", "-5%..5%"),
        "--gaps": ("0.1..0.5", "0..0", "0..1e300", "1e-300..2e-300", "0.5..0.1"), "--arms": ("2", "1", *HUGE),
        "--arm-column": ("arm", "variant"), "--reward-column": ("reward", "x"), "--policy": POLICIES,
        "--lose-at-most": ("3", "1e-300", "1e300", "0"), "--loss": ("3", "0"),
        "--loss-per-pull": ("0.1", "0", "1e9"),
        "--chance": ("5%", "50 %", "0%", "100%", "1e-9", "0.999999", "%"), "--also": POLICIES,
        "--over": ("everywhere", "average", "nowhere"), "--effort": ("0.001", "0.002", "0", "1e300"),
        "--out": PLACES, "--json": (),
    },
    "paper": {
        "--paths": ("1", "0", *HUGE), "--seed": ("-1", "x"), "--only": ("table-99", "table-1,", "figure"),
        "--threads": HUGE, "--out": PLACES,
    },
    "run": {
        "--out": PLACES, "--executor": ("threads", "thread", "dask:"), "--workers": ("1", *HUGE),
        "--device": ("cpu", "tpu"), "--budget": ("1h", "0", "soon", "1e9d"), "--dry-run": (), "--prune": (),
        "--rebuild": (),
    },
    "report": KIND,
    "watch": {
        "--out": ("page.html", "page.txt", *PLACES), "--loss": ("3", "1e-300", "1e300", "0"),
        "--horizon": ("30", "3", "2", *HUGE), "--rewards": ("0..1", "-1..5", "1..0", "..", "0.5..0.6"),
        "--seed": ("7", "0", "1e5"),
    },
    "serve": {
        "--store": PLACES, "--port": ("8710", "0", "-1", "65536", *HUGE), "--keys": PLACES,
        "--host": ("0.0.0.0", "::"), "--webhook": ("http://127.0.0.1:9/alarm", "ftp://a", "a b", "http://"),
    },
    "keys add": {"--keys": ("keys.json", *PLACES), "--role": ("ask", "read", "manage", "root")},
    "keys list": {"--keys": ("keys.json", *PLACES)},
    "keys remove": {"--keys": ("keys.json", *PLACES)},
    "journal check": {},
    "journal export": {"--out": ("a.csv", "a.parquet", "a.txt", "kept.db", "a.CSV", *PLACES)},
}  # fmt: skip
STORES = ("kept.db",) * 3 + ("missing.db", "good.csv", "folder", "memory", "postgresql://", "taken.txt")
OFTEN = {
    "compare": 30,
    "linear": 15,
    "tail": 15,
    "bound": 15,
    "plan": 10,
    "paper": 5,
    "run": 12,
    "report": 8,
    "watch": 5,
    "serve": 3,
    "keys add": 3,
    "keys list": 1,
    "keys remove": 2,
    "journal check": 3,
    "journal export": 5,
}
BARE = (["--help"], ["--version"], ["compair"], ["compare", "--help"], ["run", "--help"], ["-h"], [],
        ["tail", "--help", "x"], ["--nonsense", "3"])  # fmt: skip
FIRST = {
    "compare": ["--horizon", "30", "--paths", "5", "--threads", "1", "--out", "out"],
    "linear": ["--linear", "--horizon", "10", "--paths", "5", "--dim", "2", "--actions", "3",
               "--threads", "1", "--out", "out"],
    "tail": ["--horizon", "12", "--relative-error", "0.9", "--threads", "1", "--out", "out"],
    "bound": ["--horizon", "30"],
    "plan": ["--horizon", "30", "--chance", "20%", "--effort", "0.001", "--threads", "1", "--out", "out",
             "--policy", "ucb:lighttailed:0.2"],
    "paper": ["--only", "table-1", "--paths", "0"],
    "run": ["--workers", "1"],
    "report": [],
    "watch": ["--seed", "1"],
    "journal check": [],
    "journal export": ["--out", "a.csv"],
    "serve": ["--host", "0.0.0.0"],  # refused without keys: nothing may begin to serve here
    "keys add": ["--keys", "keys.json"],
    "keys list": ["--keys", "keys.json"],
    "keys remove": ["--keys", "keys.json"],
}  # fmt: skip
STUDY = """name = "s"
paths = 5
seeds = [1]
horizons = [20]
[[problem]]
name = "p"
means = [0.2, 0.8]
[[policy]]
policy = "ts:0.8"
"""


def furnish(folder: Path) -> None:
    """The files that the lists name."""
    (folder / "good.csv").write_text("arm,reward\na,0\na,1\nb,0.5\nb,2\n")
    (folder / "empty.csv").write_text("")
    (folder / "binary.csv").write_bytes(bytes(range(256)))
    (folder / "one.csv").write_text("arm,reward\na,0\n")
    (folder / "wide.csv").write_text("arm,reward\n" + "a" * 200_000 + ",1\n")
    (folder / "long.csv").write_text("arm,reward\na," + "1" * 5000 + "\nb," + "x" * 5000 + "\n")
    (folder / "named.csv").write_text("when,Reward,reward, arm \n1,a,2,x\n3,b,4,y\n")
    (folder / "nul.csv").write_text("arm,reward\na,\0\n")
    (folder / "folder").mkdir()
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("mine")
    (folder / "taken.txt").write_text("in the way")
    np.save(folder / "good.npy", [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
    np.save(folder / "wide.npy", np.ones((2, 5)))
    np.save(folder / "nan.npy", [[np.nan, 0.0], [0.0, 1.0]])
    np.save(folder / "flat.npy", np.ones(4))
    np.save(folder / "empty.npy", np.ones((0, 2)))
    np.save(folder / "rounds.npy", np.ones((4, 2, 2)) * [[[1.0, 0.0], [0.0, 1.0]]])
    np.save(folder / "object.npy", np.array([{}, 3], dtype=object), allow_pickle=True)
    (folder / "garbage.npy").write_bytes(b"\x93NUMPY garbage")
    (folder / "cut.npy").write_bytes((folder / "good.npy").read_bytes()[:-9])
    (folder / "study.toml").write_text(STUDY)
    old = {"name": "old", "role": "read", "digest": "0" * 64, "made": "2026-01-01"}
    (folder / "keys.json").write_text(json.dumps({"format": 1, "keys": [old]}))
    (folder / "broken.toml").write_text("[" * 3000)
    office = Office(open_journal(str(folder / "kept.db")))
    office.create("one", "ts:1", ["A", "B"], seed=1)[0].ask(3)
    office.close()
    experiment = lt.Experiment(lt.UCB(lt.LightTailed(0.2)), ["A", "B"], horizon=30, seed=1)
    for trial in experiment.ask(5):
        experiment.tell(trial.id, 1.0)
    (folder / "state.json").write_text(experiment.to_json())


def draw(rng: random.Random) -> list[str]:
    """One argument list."""
    if rng.random() < 0.05:
        return rng.choice((*BARE, [rng.choice(NASTY)]))
    command = rng.choices(list(COMMANDS), [OFTEN[name] for name in COMMANDS])[0]
    known, words = COMMANDS[command], ["compare"] if command == "linear" else command.split()
    if command == "run":
        words.append(rng.choice(("study.toml",) * 3 + ("broken.toml", "missing.toml", "folder", "good.npy")))
    if command == "report":
        words.append(
            rng.choice(("done", "done", "folder", "mine", "missing", "study.toml", rng.choice(NASTY)))
        )
    if command.startswith("journal"):
        words.append(rng.choice((*STORES, rng.choice(NASTY))))
    if command == "journal export":
        words.append(rng.choice(("one", "one", "two", rng.choice(NASTY))))
    if command in ("keys add", "keys remove"):
        words.append(rng.choice(("web", "old", "..", rng.choice(NASTY))))
    if command == "watch":
        words.append(rng.choice(("state.json",) * 4 + ("broken.toml", "binary.csv", "folder", "missing")))
    words += FIRST[command]
    for _ in range(some(rng, 0, 6)) if known else ():
        option = rng.choice(list(known))
        words.append(option if rng.random() < 0.98 else option + rng.choice(("x", "=3", "")))
        if known[option]:
            words.append(rng.choice(known[option] if rng.random() < 0.7 else NASTY))
    if rng.random() < 0.05:
        words.insert(rng.randrange(1, len(words) + 1), rng.choice(NASTY))
    return words


def answers(lists: int, seed: int, folder: Path) -> Iterator[Answer]:
    """The answers to so many lists, each in a fresh copy of the same folder."""
    start = folder / "start"
    start.mkdir()
    furnish(start)
    made = call(["run", "study.toml", "--out", "done", "--workers", "1"], start)
    assert made.code == 0, made.err
    tail_module.tail_curve.__kwdefaults__["most_pulls"] = BUDGET
    for turn in range(lists):
        rng = random.Random(f"{seed} {turn}")
        here = Path(shutil.copytree(start, folder / "here"))
        yield call(draw(rng), here)
        shutil.rmtree(here)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lists", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return report(judge(answers(chosen.lists, chosen.seed, Path(folder)), shown=True), "argument lists")


if __name__ == "__main__":
    sys.exit(main())
