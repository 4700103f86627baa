"""What the pages of docs/ show is true: their Python runs, their commands exist, their links lead on."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import shlex
import sys
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import typer
from served import served

import lighttail as lt
from lighttail.cli import app, main
from lighttail.reading.words import parse_policy

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TEXTS = {
    str(page.relative_to(ROOT)): page.read_text()
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))
}

TWO_ARMS = "import lighttail as lt\nproblem, policy = lt.Bandit([0.2, 0.8]), lt.UCB(lt.LightTailed(0.2))\n"
POOL = "from concurrent.futures import ThreadPoolExecutor\nexecutor = ThreadPoolExecutor(2)\n"
RUNNING = """import lighttail as lt
experiment = lt.Experiment(lt.UCB(lt.LightTailed(0.05)), arms=["A", "B"], horizon=20_000, seed=1)
for _ in range(50):
    experiment.tell(experiment.ask().id, 0.0)
"""
# page: what stands before its first block; what is played instead, so that it takes less time
RUN: dict[str, tuple[str, dict[str, str]]] = {
    "bounds": (TWO_ARMS, {}),
    "choosing-kappa": ("", {}),
    "cluster": (
        TWO_ARMS + POOL,
        {
            "paths=10**8": "paths=100",
            "paths=10**6": "paths=100",
            'if __name__ == "__main__":': "if True:",
            "ProcessPoolExecutor(4": "ProcessPoolExecutor(1",
            "LocalCluster(n_workers=4)": "LocalCluster(n_workers=1, processes=False, dashboard_address=None)",
        },
    ),
    "delays": (TWO_ARMS, {"paths=20_000": "paths=200"}),
    "first-experiment": ("", {}),
    "first-study": ("", {}),
    "forecasts": (RUNNING, {"horizon=20_000, loss=150": "horizon=200, loss=8, paths=100"}),
    "gpu": (TWO_ARMS, {"paths=10**9": "paths=100", 'device="cuda"': 'device="cpu"'}),
    "inference": ("", {}),
    "live": ("", {}),
    "online": ("", {}),
    "own-noises": ("", {}),
    "planning": (
        "",
        {"horizon=20_000, loss=150, chance=0.001": "horizon=300, loss=6, chance=0.3, effort=0.02"},
    ),
    "rare-events": (TWO_ARMS, {}),
    "streaming": (TWO_ARMS, {"paths=10**8": "paths=10**4"}),
    "tails": (TWO_ARMS, {}),
}
WORDS = {"forecasts", "planning"}  # pages whose comments behind `print(...)` describe what is printed
# page: the test that runs all of its Python blocks
ELSEWHERE = {
    "client": "test_pages.py",
    "linear": "test_linear_report.py",
    "own-policies": "test_own_policies.py",
    "serving": "test_serving_docs.py",
    "studies": "test_study_report.py",
}


FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def fenced(text: str, language: str) -> list[str]:
    return [body for found, body in FENCE.findall(text) if found == language]


def unfenced(text: str) -> str:
    return FENCE.sub("", text)


def python_of(text: str) -> list[str]:
    return fenced(text, "python")


def promised(code: str) -> list[str]:
    """What the comments behind `print(...)` say that is printed."""
    return re.findall(r"^\s*print\(.*\) +# (.*)$", code, re.MULTILINE)


def kept(printed: str, promise: str) -> bool:
    """Whether a line is what a comment says, which may go on after a colon or a semicolon."""
    return promise == printed or promise.startswith((f"{printed}:", f"{printed};"))


def run(code: str, page: str, names: dict[str, Any]) -> None:
    """Run a block, which may await."""
    made = compile(code, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if made.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(made, names))
    else:
        exec(made, names)


@pytest.mark.parametrize("page", RUN)
def test_the_python_of_a_page_prints_what_its_comments_say(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before, smaller = RUN[page]
    blocks = python_of(TEXTS[f"docs/{page}.md"])
    names: dict[str, Any] = {"__name__": "page"}
    run(before, page, names)
    for old in smaller:
        assert any(old in block for block in blocks), f"{page}.md no longer has {old!r}"
    for block in blocks:
        run(reduce(lambda code, change: code.replace(*change), smaller.items(), block), page, names)
    if getattr(names.get("executor"), "shutdown", None):
        names["executor"].shutdown()
    printed = iter(capsys.readouterr().out.splitlines())  # the promises stand there in their order
    for promise in () if page in WORDS else promised("\n".join(blocks)):
        assert any(kept(line, promise) for line in printed), f"{page}.md promises {promise!r}"


def test_a_wrong_comment_is_noticed() -> None:
    """Negative control."""
    (promise,) = promised("print(out.mean())            # 12.37 [12.23, 12.62]: of 5,000 paths\n")
    assert kept("12.37 [12.23, 12.62]", promise)
    assert not kept("12.38 [12.23, 12.62]", promise)


def test_the_python_of_the_client_runs(tmp_path: Path) -> None:
    with served(store=tmp_path / "shop.db") as server:
        live, coroutine = (
            block.replace(":8710", f":{server.port}") for block in python_of(TEXTS["docs/client.md"])
        )
        names: dict[str, Any] = {"__name__": "page"}
        run(live, "client", names)
        with names["service"] as service:
            run(coroutine, "client", {"lt": lt})
            assert service["checkout"].summary()["events"]["tell"] == 2


def test_every_python_block_of_a_page_is_run() -> None:
    """Put a new page with Python into RUN, with what must stand before its first block."""
    written = {Path(page).stem for page, text in TEXTS.items() if python_of(text)} - {"README"}
    assert written == RUN.keys() | ELSEWHERE.keys()
    assert not RUN.keys() & ELSEWHERE.keys()
    for page, test in ELSEWHERE.items():
        assert f"{page}.md" in (ROOT / "tests" / test).read_text()


def test_python_stands_in_blocks_that_say_so() -> None:
    """Python in an indented block would be run by nobody."""
    for page, text in TEXTS.items():
        found = re.findall(
            r"^ {4}(?:import |from \w+ import |\w+ = lt\.|print\().*", unfenced(text), re.MULTILINE
        )
        assert found == [], f"{page}: {found}"


def test_the_pages_name_one_policy_for_the_plan_of_the_readme() -> None:
    """The plan itself takes minutes; its policy stands on the page on planning."""
    (planned,) = re.findall(r"The first\s+command chooses `(\S+)`", TEXTS["docs/planning.md"])
    serving = TEXTS["docs/serving.md"]
    (words,) = re.findall(r"web test of the README are\s+`(\S+)`", serving)
    (sent,) = re.findall(r'"name": "shop", "policy": "(\S+)"', serving)
    assert words == sent == planned
    command = "lighttail plan --rates 3%..5% --arms 3 --horizon 20000 --lose-at-most 150 --chance 0.1%"
    assert command in TEXTS["README.md"]
    assert f"```\n{command}\n" in TEXTS["docs/planning.md"]  # the first command
    parse_policy(planned, sigma=1.0)


# Commands. A fence without a language has nothing but commands; a fence of output says ```text.
PROGRAMS = {"lighttail", "make", "python", "pip", "curl", "sqlite3"}
COMMANDS = typer.main.get_command(app)


def commands_of(text: str) -> Iterator[list[str]]:
    """The commands in fences without a language, as lists of words. A quoted text may have several lines."""
    for block in fenced(text, ""):
        held = ""
        for line in block.splitlines():
            held += line + "\n"
            try:
                words = shlex.split(held, comments=True)
            except ValueError:  # a quote is still open
                continue
            held = ""
            if words:
                yield words
        assert not held, f"a quote is never closed in {held!r}"


def check_command(words: list[str]) -> None:
    """Raise click's own error if a command or an option does not exist, or lacks its value."""
    command, rest = COMMANDS, words[1:]
    context = command.context_class(command)
    while hasattr(command, "commands") and rest and rest[0] in command.commands:
        command, rest = command.commands[rest[0]], rest[1:]
        context = command.context_class(command, parent=context)
    assert not hasattr(command, "commands"), f"no such command: {words}"
    command.make_parser(context).parse_args(list(rest))
    for option, value in pairwise(words):
        if option == "--policy" and ".py:" not in value and "module:" not in value:
            parse_policy(value, sigma=1.0)


def test_every_command_of_a_page_can_be_typed() -> None:
    seen = [words for text in TEXTS.values() for words in commands_of(text)]
    assert {words[0] for words in seen} <= PROGRAMS
    ours = [words for words in seen if words[0] == "lighttail"]
    assert len(ours) > 20
    for words in ours:
        check_command(words)


# Other tests run the commands that are left: plan, tail, run, report, paper, serve.
QUICK = ("lighttail bound ", "lighttail journal ", "lighttail keys ")
VISITS = "variant,converted\n" + "A,0\nA,1\nB,1\nB,1\nB,0\n"
OWN = """
from dataclasses import dataclass
import lighttail as lt

@dataclass(frozen=True)
class KlUcb(lt.KlUcb):
    pass

@dataclass(frozen=True)
class MyBonus(lt.LightTailed):
    pass

@dataclass(frozen=True)
class Pareto(lt.StudentT):
    pass

@dataclass(frozen=True)
class Class(lt.EpsilonGreedy):
    def __init__(self, c, name):
        super().__init__(c, 0.5)
"""


def run_commands(monkeypatch: pytest.MonkeyPatch, commands: list[list[str]]) -> None:
    for words in commands:
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0, words


def test_commands_that_take_no_time_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in python_of(TEXTS["docs/live.md"]):
        run(block, "live", {"__name__": "page"})
    seen = [words for text in TEXTS.values() for words in commands_of(text)]
    seen = [words for words in seen if "lighttail.db" not in words]  # of the server in test_serving_docs.py
    quick = [words for words in seen if " ".join(words).startswith(QUICK)]
    assert len(quick) >= 7
    run_commands(monkeypatch, quick)


def test_comparisons_of_the_pages_run_with_few_pulls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lighttail.cli.compare.write_report", lambda result, out, command: Path(out))
    page = "\n".join(python_of(TEXTS["docs/own-policies.md"])[:3])
    Path("my_policies.py").write_text(page.replace("5000", "5") + OWN)
    copytree(ROOT / "examples", "examples")
    Path("my_noises.py").write_text(OWN)
    Path("package").mkdir()
    Path("package/module.py").write_text(OWN)
    Path("visits.csv").write_text(VISITS)
    Path("rewards.csv").write_text(VISITS.replace("variant,converted", "arm,reward"))
    seen = [words for text in TEXTS.values() for words in commands_of(text)]
    compared = [words for words in seen if words[:2] == ["lighttail", "compare"]]
    assert len(compared) >= 10
    few = ["--horizon", "40", "--paths", "20", "--no-growth"]
    run_commands(monkeypatch, [[*without(words, "--horizon"), *few] for words in compared])


def without(words: list[str], option: str) -> list[str]:
    """The words without an option and its value."""
    place = words.index(option) if option in words else len(words)
    return words[:place] + words[place + 2 :]


@pytest.mark.parametrize("line", ["compare --horizont 5", "compart", "compare --policy ucb:light:1"])
def test_a_command_that_cannot_be_typed_is_noticed(line: str) -> None:
    """Negative control."""
    with pytest.raises(Exception, match=r"--horizont|no such command|'light'"):
        check_command(["lighttail", *line.split()])


# Links, without Sphinx: to files, and to headings by the names that the forge gives them.
def anchors(text: str) -> set[str]:
    """The names of the headings: lower case, without signs, with hyphens for spaces."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} +(.+?) *$", unfenced(text), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found[f"{name}-{found[name]}"] = 0
    return found.keys()


def broken(page: str, text: str) -> list[str]:
    """The relative links of a page that lead nowhere."""
    here, lost = (ROOT / page).parent, []
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", unfenced(text)):
        file, _, anchor = target.partition("#")
        place = (here / file).resolve() if file else ROOT / page
        if not place.exists() or (anchor and anchor not in anchors(place.read_text())):
            lost.append(target)
    return lost


def test_links_lead_somewhere() -> None:
    assert {page: lost for page, text in TEXTS.items() if (lost := broken(page, text))} == {}
    assert sum(text.count("](") for text in TEXTS.values()) > 200


def test_a_broken_link_is_noticed() -> None:
    """Negative control."""
    good = "[a](proved.md) [b](bounds.md#the-certificate) [c](../README.md)"
    assert broken("docs/index.md", good) == []
    bad = good + " [d](nowhere.md) [e](bounds.md#the-pretence) [f](#none)"
    assert broken("docs/index.md", bad) == ["nowhere.md", "bounds.md#the-pretence", "#none"]
