"""A study file: what it means, and what is wrong in it with its line and key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.reading.numbers import parse_whole
from lighttail.study.file import Study, parse_study, read_study

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLE = (DOCS / "study.toml").read_text()
LINEAR = """
name = "linear"
paths = 5
seeds = [0]
horizons = [20]
sigmas = [0.5]
[[problem]]
name = "sphere"
actions = 10
dim = 3
[[problem]]
name = "ball"
actions = "ball:4"
theta = [0.6, 0.8]
noise = "laplace"
[[policy]]
policy = "lints:1"
"""


def parse(text: str, folder: Path = DOCS) -> Study:
    return parse_study(text, "study.toml", lambda name: folder / name)


def test_the_example_is_the_one_in_the_docs() -> None:
    assert f"```toml\n{EXAMPLE}```" in (DOCS / "studies.md").read_text()


def test_the_example_means_what_it_says() -> None:
    study = read_study(DOCS / "study.toml")
    assert (study.name, study.paths, study.seeds) == ("bonus and noise", 2000, (1, 2))
    assert (study.horizons, study.method, study.threshold) == ((500, 1000), "auto", 0.2)
    assert [(one.name, one.sigma, one.problem) for one in study.problems] == [
        ("two arms", 1.0, lt.Bandit([0.2, 0.8], lt.Gaussian(1.0))),
        ("two arms", 2.0, lt.Bandit([0.2, 0.8], lt.Gaussian(2.0))),
        ("clicks", None, lt.Bandit([0.2, 0.8], lt.Bernoulli())),
    ]
    assert study.policies == {
        "standard": lt.UCB(lt.Standard(0.8)),
        "light-tailed": lt.UCB(lt.LightTailed(0.2)),
        "Thompson": lt.ThompsonSampling(0.8),
    }


def test_linear_bandits_and_shared_sigmas() -> None:
    study = parse(LINEAR)
    sphere, ball = (one.problem for one in study.problems)
    assert isinstance(sphere, lt.LinearBandit)
    assert (sphere.dim, sphere.actions, sphere.noise) == (3, lt.SphereActions(10), lt.Gaussian(0.5))
    assert ball == lt.LinearBandit([0.6, 0.8], lt.BallActions(4), lt.Laplace(0.5))
    assert study.policies == {"lints:1": lt.LinearThompson(1.0)}


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    text = EXAMPLE.replace('means = [0.2, 0.8]\nnoise = "bernoulli"', 'data = "\\u0000.csv"')
    assert text != EXAMPLE
    with pytest.raises(BadInput, match="data must be the path of a file"):
        parse(text, tmp_path)


def test_a_column_of_data_is_suggested_by_the_key_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "rewards.csv").write_text("Arm,reward\nA,1\nB,0\n")
    text = EXAMPLE.replace('means = [0.2, 0.8]\nnoise = "bernoulli"', 'data = "rewards.csv"')
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(BadInput, match=r"did you mean arm_column='Arm'\?$") as caught:
        read_study(tmp_path / "study.toml")
    assert "arm_column='Arm'" in str(caught.value.spelled(lambda argument: "--" + argument.name))


def test_data_beside_the_study_and_names_of_arms(tmp_path: Path) -> None:
    (tmp_path / "rewards.csv").write_text("arm,reward\nA,1\nB,0\nA,2\n")
    text = EXAMPLE.replace('means = [0.2, 0.8]\nnoise = "bernoulli"', 'data = "rewards.csv"')
    text = text.replace("means = [0.2, 0.8]", 'means = [0.2, 0.8]\nlabels = ["old", "new"]')
    (tmp_path / "study.toml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    study = read_study(tmp_path / "study.toml")
    assert study.problems[0].problem.labels == ("old", "new")
    assert study.problems[2].problem.means == (1.5, 0.0)
    assert study.inputs == {"rewards.csv": tmp_path / "rewards.csv"}


def test_whole_numbers_are_written_in_several_ways() -> None:
    text = EXAMPLE.replace("paths = 2000", "paths = 1e5").replace("[500, 1000]", "[5e2, 1_000]")
    study = parse_study(text, "study.toml", Path)
    assert (study.paths, study.horizons) == (100_000, (500, 1000))
    assert {type(number) for number in (study.paths, *study.horizons)} == {int}
    largest = "9007199254740992"  # 2**53
    ways = {"1e5": 10**5, "100_000": 10**5, "1.5e1": 15, "-2e0": -2, "0e999999999": 0, "7.0": 7}
    ways |= {f"{largest}.0": 2**53, "1" * 40: int("1" * 40)}
    for word, number in ways.items():
        assert parse_whole("paths", word) == number
        assert type(parse_whole("paths", word)) is int
    wrong = ["1.5e0", "1e400", "1e999999999", "1e-999999999", "nan", "-inf", "snan", "1e", "", "0x10"]
    wrong += ["9007199254740993.0", "1e16", "1.00000000000000000001"]  # floats would take the last for 1
    for word in wrong:
        with pytest.raises(BadInput, match=f"paths must be a whole number, but is {re.escape(repr(word))}"):
            parse_whole("paths", word)


WRONG: list[tuple[str, str, str]] = [
    (
        "horizons = [500, 1000]",
        "horizon = [500]",
        "line 5: key must be one of name, .*did you mean 'horizons'",
    ),
    ("paths = 2000", 'paths = "2000"', "line 3: paths must be a whole number of at least 1, but is '2000'"),
    ("paths = 2000", "paths = 1.5e0", "line 3: paths must be a whole number of at least 1, but is 1.5"),
    ("paths = 2000", "paths = 1e400", "line 3: paths must be a whole number"),
    ("seeds = [1, 2]", "seeds = [1, nan]", r"line 4: seeds\[1\] must be a whole number"),
    ("seeds = [1, 2]", "seeds = [1, 1e16]", r"line 4: seeds\[1\] must be a whole number"),
    ("paths = 2000", "paths = true", "line 3: paths must be a whole number"),
    ("seeds = [1, 2]", "seeds = 1", "line 4: seeds must be a list"),
    ("seeds = [1, 2]", "seeds = [1, 1]", "line 4: seeds must be different numbers, but 1 is given twice"),
    ("seeds = [1, 2]", "seeds = [1, -2]", r"line 4: seeds\[1\] must be a whole number of at least 0"),
    ("seeds = [1, 2]", "seeds = [1, 2", "line 5: this must be TOML"),
    ("seeds = [1, 2]", "paths = 3", "line 4: a key must be given once, but paths is given again"),
    (
        "horizons = [500, 1000]",
        "horizons = [1e18]",
        r"line 5: horizons\[0\] must be a whole number of at most",
    ),
    ("seeds = [1, 2]", "", "study.toml: seeds must be given"),
    (
        "horizons = [500, 1000]",
        "horizons = [500, 1]",
        "line 5: horizon must be .* at least 2, .*'two arms, sig",
    ),
    ("threshold = 0.2", "threshold = -1", "line 6: threshold must be a finite number above 0"),
    ("threshold = 0.2", 'method = "fast"', "line 6: method must be 'auto', 'step' or 'skip'"),
    ("threshold = 0.2", 'method = "skip"', r"line 6: method must be .* with TS\(0.8\)"),
    ("threshold = 0.2", "sigmas = [1.0]", "line 6: sigmas must stand in the problems that take them"),
    (
        "[[problem]]",
        "[problem]",
        r"line 14: a key must be given once, but .*; several are each written \[\[problem\]\]",
    ),
    ('name = "two arms"\n', "", "line 8: problem.name must be given"),
    ('name = "two arms"', 'nam = "x"', "line 9: key of problem must be one of .*did you mean 'name'"),
    ('name = "two arms"', "name = 3", "line 9: problem.name must be a text in quotes, but is 3"),
    ('name = "two arms"', 'name = "Clicks"', "line 15: problem.name must be different .* 'clicks' twice"),
    ("means = [0.2, 0.8]", "means = [0.2]", "line 10: means must be at least two numbers"),
    (
        "means = [0.2, 0.8]",
        "means = [\n0.2,\n'x']",
        r"line 10: means\[1\] must be a finite number, but is 'x'",
    ),
    ("sigmas = [1.0, 2.0]", "sigmas = [1.0, 1]", "line 12: problem.sigmas must be different numbers"),
    ("sigmas = [1.0, 2.0]", "dim = 4", "line 10: problem.means must be left out in a linear bandit"),
    ('"bernoulli"', '"bernoulli"\nsigmas = [1]', "line 18: problem.sigmas must be left out with bernoulli"),
    ('"bernoulli"', '"binomial"', "line 17: noise must be one of"),
    ('"bernoulli"', '"bernoulli"\ndata = "x"', "line 16: problem.means must be left out with data"),
    ('"bernoulli"', '"gaussian"', "line 14: problem must be different under every name"),
    ('means = [0.2, 0.8]\nnoise = "bernoulli"', 'data = "no.csv"', "line 16: data must be a file"),
    ('name = "standard"', 'name = "Thompson"', "line 28: policy.name must be different for every policy"),
    ('"ucb:standard:0.8"', '"ucb:standrd:0.8"', "line 21: bonus must be one of .*did you mean 'standard'"),
    ('"ucb:standard:0.8"', "8", "line 21: policy.policy must be a text in quotes, but is 8"),
    ('"ucb:standard:0.8"', '"ts:0.8"', "line 29: policy.policy must be different .* are both 'ts:0.8'"),
    ('"ucb:standard:0.8"', '"lints:1"', "line 19: policy must be for arms"),
]


@pytest.mark.parametrize(("good", "bad", "said"), WRONG, ids=[f"{bad}"[:30] for _, bad, _ in WRONG])
def test_what_is_wrong_is_said_with_its_line_and_key(good: str, bad: str, said: str) -> None:
    assert good in EXAMPLE
    parse(EXAMPLE)  # control: without the fault it is read
    with pytest.raises(BadInput, match=said) as refused:
        parse(EXAMPLE.replace(good, bad, 1))
    assert "\n" not in str(refused.value)


TRICKY = '''# name = "not this"
name = """
paths = 3
seeds = [7]""" # a text that looks like keys
"seeds" = [
    1, # paths = 9

    2,
]
policy = [{name = "a"},
    {name = "b", policy = "x"}]
[[problem]]
[[problem]]

  name="x"
[problem.deep]
paths = 4
'''


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("name",), 2),
        (("seeds",), 5),
        (("policy",), 10),
        (("policy", 1, "policy"), 10),
        (("problem",), 12),
        (("problem", 1), 13),
        (("problem", 1, "name"), 15),
        (("problem", 1, "deep", "paths"), 17),
    ],
)
def test_the_line_of_a_key_is_that_of_its_statement(keys: Any, line: int) -> None:
    from lighttail.study.source import Source

    assert Source("study.toml", TRICKY).line(*keys) == line


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="study must be a file that can be read"):
        read_study(tmp_path / "none.toml")
    with pytest.raises(BadInput, match="study must be a file that can be read"):
        read_study(tmp_path)
    (tmp_path / "study.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(BadInput, match="study must be a TOML file in UTF-8"):
        read_study(tmp_path / "study.toml")


ODD = {
    "deep lists": ("[" * 3000, "must be TOML|at most 8 deep"),
    "deep values": (
        "name = " + "[" * 3000,
        "at most 8 levels of tables and lists within each other, but has more",
    ),
    "deep keys": ("paths." * 3000 + "a = 1", "at most 8 levels of tables and lists"),
    "empty": ("", "name must be given, but is missing"),
    "digits": ('name = "a"\npaths = ' + "9" * 5000, "line 2: a whole number must have at most 4,300 digits"),
    "long": ("#" * 1_000_001, "must be at most 1,000,000 characters long, but has 1,000,001"),
    "long line": ("x = " + "y" * 5000, r"line 1: this must be TOML, but is 'x = y+ \.\.\. \(invalid value\)"),
    "a date": (
        'name = "a"\npaths = 1979-05-27',
        "line 2: paths must be a whole number of at least 1, but is",
    ),
    "many seeds": (
        EXAMPLE.replace("[1, 2]", str(list(range(10000)))),
        "cells, .* must be at most 100,000, but are",
    ),
    "many policies": (
        EXAMPLE + "[[policy]]\npolicy = 'ts:1'\n" * 1000,
        "policy must be at most 1,000 tables",
    ),
    "many sigmas": (EXAMPLE.replace("[1.0, 2.0]", str(list(range(2000)))), "problems must be at most 1,000"),
    "endless": (
        EXAMPLE.replace("[500, 1000]", "[500, 1e12]"),
        "horizon must be at most 100000000000 where every",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_texts_are_refused_in_a_sentence(name: str) -> None:
    text, said = ODD[name]
    with pytest.raises(BadInput, match=said) as refused:
        parse(text)
    assert len(str(refused.value)) < 400


def test_a_line_deep_in_a_long_file_is_found() -> None:
    """A long list over many lines is one statement: its lines are not tried one by one."""
    means = "[\n" + "".join(f"{place / 5000},\n" for place in range(5000)) + "]"
    text = EXAMPLE.replace("[0.2, 0.8]", means, 1) + "[[policy]]\npolicy = 'ts:-1'\n"
    with pytest.raises(BadInput, match=rf"line {text.count(chr(10))}: kappa must be"):
        parse(text)


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(BadInput, match="study must be a file of at most 1,000,000 bytes, but is '/dev/zero'"):
        read_study("/dev/zero")
