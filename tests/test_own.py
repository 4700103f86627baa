"""Policies, bonuses and noises of a user's own, named in words: on the command line and in studies."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lighttail as lt
from lighttail import cli
from lighttail.checks import BadInput
from lighttail.reading import own
from lighttail.reading.words import parse_noise, parse_policy
from lighttail.running.pool import to_bytes
from lighttail.study import load_study, read_study, report_study, run_study
from lighttail.study.cells import cells_of

FILE = Path(__file__).with_name("user_classes.py")
LOAD = own.loader(lambda name: FILE.parent / name, FILE.parent)


def policy(words: str, load: own.Load = LOAD) -> lt.Policy:
    return parse_policy(words, load)


def test_words_make_the_objects_that_python_would_make() -> None:
    mine = sys.modules[type(policy("user_classes.py:RootIndex")).__module__]
    assert policy("user_classes.py:RootIndex(0.5)") == mine.RootIndex(0.5)
    assert policy(" user_classes.py:RootIndex(-1e-3, name='a, b:(c)') ") == mine.RootIndex(-1e-3, "a, b:(c)")
    assert policy("user_classes.py:RootIndex(c=2)") == mine.RootIndex(2)
    assert policy("user_classes.py:OneOverN(0.3)") == lt.UCB(mine.OneOverN(0.3))
    assert policy("UCB:user_classes.py:OneOverN(0.3)") == lt.UCB(mine.OneOverN(0.3))
    assert policy("se:user_classes.py:OneOverN(0.3)") == lt.SuccessiveElimination(mine.OneOverN(0.3))
    assert policy("user_classes.py:Around(LightTailed(0.2))") == mine.Around(lt.LightTailed(0.2))
    assert policy("user_classes.py:Around(OneOverN(kappa=1.5))") == mine.Around(mine.OneOverN(1.5))
    assert parse_noise("user_classes.py:Skewed(3)", None, LOAD) == mine.Skewed(3)
    assert policy("lighttail:UCB(LightTailed(0.2))") == lt.UCB(lt.LightTailed(0.2))
    assert type(policy("user_classes:RootIndex(0.5)")).__module__ == "user_classes"  # as Python imports it


def test_a_file_runs_once_for_each_content(tmp_path: Path) -> None:
    load = own.loader(lambda name: tmp_path / name, tmp_path)
    text = FILE.read_text()
    (tmp_path / "mine.py").write_text(text)
    first = policy("mine.py:RootIndex(0.5)", load)
    assert type(policy("mine.py:RootIndex(0.7)", load)) is type(first)
    (tmp_path / "mine.py").write_text(text.replace("LEVEL = 1.0", "LEVEL = 2.0"))
    edited = policy("mine.py:RootIndex(0.5)", load)
    assert edited != first  # another class
    assert type(edited).index(1.0, 0.0, 1.0, 1.0) == 2.0 * type(first).index(1.0, 0.0, 1.0, 1.0)


def test_a_noise_level_that_is_assumed_scales_what_is_in_its_units() -> None:
    own_bonus = policy("ucb:user_classes.py:OneOverN(1.5)")
    assert own_bonus.for_noise(2.0) == policy("ucb:user_classes.py:OneOverN(3.0)")
    plain = policy("user_classes.py:RootIndex(0.5)")
    assert plain.for_noise(2.0) is plain
    assert lt.UCB(lt.ArmOptimal(0.4, 0.2)).for_noise(2.0) == lt.UCB(lt.ArmOptimal(0.8, 0.4))
    assert lt.LinearUCB(lt.Oful(1, 0.05, 1)).for_noise(2.0) == lt.LinearUCB(lt.Oful(2, 0.05, 1))


LISTED = "RootIndex, OneOverN, Around, Plain"
WRONG = [
    ("none.py:A(1)", "Python file that can be read, but is 'none.py': there is no such file"),
    ("user_classes.py", rf"user_classes.py: and one of its classes \({LISTED}\), but is 'user_classes.py'"),
    (
        "user_classes.py:RotIndex(1)",
        rf"policy in user_classes.py must be one of {LISTED}, but is 'RotIndex'; did you mean 'RootIndex'",
    ),
    ("user_classes.py:NotOne()", f"derived from lighttail.Policy.*but NotOne of user_.* there is {LISTED}"),
    ("user_classes.py:Skewed(1)", "derived from lighttail.Policy.*but Skewed of user_classes.py is not"),
    ("ucb:user_classes.py:RootIndex(1)", "bonus must be .* derived from lighttail.Bonus, but RootIndex"),
    ("user_classes.py:RootIndex(1, 'a', 3)", r"arguments of RootIndex must be \(c, name\).*too many"),
    ("user_classes.py:RootIndex(d=1)", "unexpected keyword argument 'd'"),
    ("user_classes.py:OneOverN()", "missing a required argument: 'kappa'"),
    ("user_classes.py:Around(LightTailed(-1))", "kappa must be a finite number above 0, but is -1"),
    ("user_classes.py:Around(Popen('ls'))", "of user_classes.py or of lighttail, but there is no class"),
    ("user_classes.py:Around(dataclass())", "there is no class 'dataclass'"),
    ("user_classes.py:RootIndex(__import__('os').getpid())", "an argument of RootIndex must be a number, a"),
    ("user_classes.py:RootIndex(LEVEL)", "an argument of RootIndex must be a number, a text.*'LEVEL'"),
    ("user_classes.py:RootIndex([1.0])", r"a tuple of these.*but is \[1.0\]"),
    ("user_classes.py:RootIndex(1j)", "must be a number, a text"),
    ("user_classes.py:RootIndex(*(1, 2))", "must be a number, a text"),
    ("user_classes.py:RootIndex(**{'c': 1})", "must be a number, a text"),
    ("user_classes.py:RootIndex(1", r"of the form FILE.py:Class\(arguments\)"),
    ("user_classes.py:RootIndex(1).c", "of the form"),
    ("user_classes.py:math.sqrt(1)", "of the form"),
    ("user_classes.py:RootIndex(" + "(" * 300 + ")" * 300 + ")", "must be a number, a text|of the form"),
    ("user_classes.py:RootIndex(" + "1" * 5000 + ")", "of the form"),
    ("user_classes.py:Plain", r"frozen dataclass.*but Plain of user_classes.py is not"),
    ("no.such.module:A(1)", "there is no module 'no'"),
    ("json.decoder:JSONDecoder()", "derived from lighttail.Policy.*but JSONDecoder of json.decoder is not"),
    ("ucbx:standard:0.8", "must be one of ucb, .*did you mean 'ucb'"),
    ("exp3x:reward", "must be one of ucb, .*did you mean 'exp3ix'"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[words[:40] for words, _ in WRONG])
def test_every_mistake_gets_a_sentence(words: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        policy(words)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import lighttail as lt\nx = (1,\n", "line 2 of a.py is not: '\\(' was never closed"),
        ("x = 1\n\nraise KeyError('a\\nb')\n", "line 3 of a.py raises KeyError: 'a.*b'"),
        ("def f():\n    return 1 / 0\n\n\nf()\n", "line 2 of a.py raises ZeroDivisionError"),
        ("import sys\nsys.exit(3)\n", "line 2 of a.py raises SystemExit: 3"),
        ("import nothing_like_it\n", "line 1 of a.py raises ModuleNotFoundError: No module named"),
        ("x = 1\n", "class of a.py derived from lighttail.Policy.*but there is none in it"),
        ("x = 'a\0b'\n", "a.py"),
        ("#" * (own.LONGEST_FILE + 1), "a file of at most 1,000,000 bytes"),
    ],
)
def test_a_file_that_does_not_run_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.py").write_text(text)
    before = set(sys.modules)
    with pytest.raises(BadInput, match=said) as caught:
        policy("a.py:A(1)", own.loader(lambda name: tmp_path / name, tmp_path))
    assert "\n" not in str(caught.value)
    assert not [
        name for name in set(sys.modules) - before if name.startswith(own.NAMES) and "none" not in said
    ]


def test_words_run_nothing_unless_a_loader_is_handed_over(tmp_path: Path) -> None:
    for words in ("user_classes.py:RootIndex(1)", "ucb:user_classes.py:OneOverN(1)", "a.b:C(1)"):
        with pytest.raises(BadInput, match="in lighttail's own words here"):
            parse_policy(words)
    with pytest.raises(BadInput, match="in lighttail's own words here"):
        parse_noise("user_classes.py:Skewed(1)", None)


def test_a_class_of_a_file_travels_to_processes(tmp_path: Path) -> None:
    """Workers run the file's text, under the same name, even where they do not have the file."""
    (tmp_path / "gone.py").write_text(FILE.read_text())
    load = own.loader(lambda name: tmp_path / name, tmp_path)
    mine, noise = policy("gone.py:RootIndex(0.5)", load), parse_noise("gone.py:Skewed(2)", None, load)
    (tmp_path / "gone.py").unlink()
    problem = lt.Bandit([0.2, 0.8], noise)
    here = lt.simulate(mine, problem, horizon=60, paths=9000, seed=3)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        there = lt.simulate(mine, problem, horizon=60, paths=9000, seed=3, executor=executor)
    assert np.array_equal(here.reward, there.reward)
    assert np.array_equal(here.pulls, there.pulls)
    assert pickle.loads(to_bytes(mine)) == mine
    with pytest.raises(ModuleNotFoundError):  # negative control: plain pickle names a module that nobody has
        _in_a_new_process(f"import pickle; pickle.loads({pickle.dumps(mine)!r})")
    _in_a_new_process(f"import pickle; assert str(pickle.loads({to_bytes(mine)!r})) == {str(mine)!r}")


def _in_a_new_process(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if "ModuleNotFoundError" in done.stderr:
        raise ModuleNotFoundError(done.stderr)
    assert done.returncode == 0, done.stderr


def test_kernels_of_a_file_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process with the same file compiles nothing. One with an edited file does, and one with a file
    of another name: a kernel names the modules of its formulas, which other processes may not have."""
    file = tmp_path / "kept.py"
    file.write_text(FILE.read_text())
    script = f"""
import sys; from pathlib import Path
import lighttail as lt; from lighttail.reading import own; from lighttail.kernels import kernel_for
from lighttail.reading.words import parse_policy
load = own.loader(lambda name: Path({str(tmp_path)!r}) / name, Path())
policy = parse_policy(sys.argv[1] + ":RootIndex(0.5)", load)
problem = lt.Bandit([0.2, 0.8])
lt.simulate(policy, problem, horizon=20, paths=5, seed=1)
stats = kernel_for(policy, problem).stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))

    def counts(name: str = "kept.py") -> str:
        command = [sys.executable, "-W", "error", "-c", script, name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert [counts(), counts()] == ["0 1", "1 0"]
    file.write_text(FILE.read_text().replace("LEVEL = 1.0", "LEVEL = 2.0"))
    assert counts() == "0 1"
    file.rename(tmp_path / "moved.py")
    assert [counts("moved.py"), counts("moved.py")] == ["0 1", "1 0"]


STUDY = """
name = "own"
paths = 300
seeds = [1]
horizons = [60]
[[problem]]
name = "skewed"
means = [0.2, 0.8]
noise = "mine.py:Skewed(2)"
[[policy]]
name = "root"
policy = "mine.py:RootIndex(0.5)"
[[policy]]
policy = "se:mine.py:OneOverN(0.3)"
[[policy]]
policy = "ucb:lighttailed:0.2"
"""
MARK = "\nimport pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\n"


@pytest.fixture
def study_folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(FILE.read_text() + MARK)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def ran(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.ran"))


def test_a_study_plays_resumes_and_reports_without_running_what_its_folder_holds(study_folder: Path) -> None:
    place = study_folder / "results"
    study = read_study(study_folder / "study.toml")
    assert ran(study_folder) == [study_folder / "mine.ran"]
    assert study.inputs == {"mine.py": study_folder / "mine.py"}
    done = run_study(study, place, workers=1)
    assert (done.finished, done.played) == (3, 3)
    (copy,) = (place / "inputs").iterdir()
    assert copy.read_text() == (study_folder / "mine.py").read_text()
    assert run_study(read_study(study_folder / "study.toml"), place, workers=1).played == 0  # resumes

    for mark in ran(study_folder):
        mark.unlink()
    (study_folder / "mine.py").unlink()
    results = load_study(place)
    told = results.study.policies["root"]
    real = study.policies["root"]
    assert (repr(told), str(told), told.light_tailed) == (repr(real), str(real), False)
    with pytest.raises(BadInput, match="loaded from the code that defines it"):
        lt.simulate(told, lt.Bandit([0.2, 0.8]), horizon=20, paths=2, seed=1)
    problem: Any = results.study.problems[0].problem
    assert repr(problem) == repr(study.problems[0].problem)
    with pytest.raises(BadInput, match=r"Skewed\(scale=2\) must be loaded from the code"):
        lt.simulate(lt.ThompsonSampling(1), problem, horizon=20, paths=2, seed=1)
    expected = lt.simulate(real, study.problems[0].problem, horizon=60, paths=300, seed=1)
    assert np.array_equal(results.outcome("skewed", "root", horizon=60).reward, expected.reward)
    page = report_study(results).read_text()
    assert "RootIndex(c=0.5" in page
    assert "No theorem covers Skewed noise" in next(place.glob("report/*/report.html")).read_text()
    assert ran(study_folder) == []  # nothing of all this ran a line of the copy


def test_an_edited_file_plays_what_its_formulas_change_and_no_more(study_folder: Path) -> None:
    place, file = study_folder / "results", study_folder / "mine.py"
    run_study(read_study(study_folder / "study.toml"), place, workers=1)
    before = {cell.policy_name: cell.key for cell in cells_of(read_study(study_folder / "study.toml"))}
    file.write_text("# a comment\n" + file.read_text())
    assert run_study(read_study(study_folder / "study.toml"), place, workers=1).played == 0
    file.write_text(file.read_text().replace("LEVEL = 1.0", "LEVEL = 2.0"))
    after = {cell.policy_name: cell.key for cell in cells_of(read_study(study_folder / "study.toml"))}
    assert [name for name in before if before[name] != after[name]] == ["root"]
    assert run_study(read_study(study_folder / "study.toml"), place, workers=1).played == 1


def test_a_study_says_what_is_wrong_with_its_line(study_folder: Path) -> None:
    file = study_folder / "study.toml"
    for old, new, said in (
        ("mine.py:RootIndex", "none.py:RootIndex", "line 12: policy must be .* 'none.py': there is no such"),
        ("mine.py:RootIndex", "mine.py:RotIndex", "line 12: policy in mine.py must be one of .*did you mean"),
        ("mine.py:Skewed", "mine.py:Skew", "line 9: noise in mine.py must be one of Skewed"),
        ("[[policy]]\nname", "sigmas = [1.0]\n[[policy]]\nname", "line 10: problem.sigmas must be left out"),
    ):
        file.write_text(STUDY.replace(old, new))
        with pytest.raises(BadInput, match=f"study.toml, {said}"):
            read_study(file)


def test_a_folder_that_does_not_tell_of_a_class_is_damaged(study_folder: Path) -> None:
    place = study_folder / "results"
    run_study(read_study(study_folder / "study.toml"), place, workers=1)
    manifest = json.loads((place / "manifest.json").read_text())
    for cell in manifest["cells"]:
        cell["played"].pop("own")
    from lighttail.study.manifest import _digest

    manifest["digest"] = _digest(manifest["cells"])
    (place / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(OSError, match="does not tell what the noise of 'skewed' is"):
        load_study(place)


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["lighttail", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_command_line_takes_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(FILE.parent)
    words = [
        "--policy",
        "user_classes.py:RootIndex(0.5, name='a,b')",
        "--policy",
        "user_classes.py:OneOverN(1)",
    ]
    words += [
        "--noise",
        "user_classes.py:Skewed(2)",
        "--paths",
        "200",
        "--horizon",
        "50",
        "--out",
        str(tmp_path),
    ]
    assert run(monkeypatch, "compare", *words) == 0
    capsys.readouterr()
    told = json.loads((tmp_path / "results.json").read_text())
    assert [one["policy"] for one in told["policies"]] == [
        "RootIndex(c=0.5, name='a,b')",
        "UCB(bonus=OneOverN(kappa=1))",
    ]
    assert "Skewed(scale=2)" in told["problem"]
    assert run(monkeypatch, "compare", *words, "--sigma", "2") == 2
    assert "sigma must be left out with user_classes.py:Skewed(2)" in capsys.readouterr().err


def test_an_error_within_a_file_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FILE.read_text().replace("return (float(self.c),)", "return (1.0 / 0.0,)")
    (tmp_path / "bad.py").write_text(text)
    words = ["--policy", f"{tmp_path}/bad.py:RootIndex(0.5)", "--out", str(tmp_path / "out")]
    assert run(monkeypatch, "compare", *words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "params of RootIndex failed with 2 arms and horizon 500: ZeroDivisionError" in said
    assert own.blame(KeyError("not of a file")) == ""  # negative control


def test_a_class_without_params_is_told_to_have_them(tmp_path: Path) -> None:
    text = FILE.read_text().replace("def params(", "def parameters(")
    (tmp_path / "bad.py").write_text(text)
    said = r"^RootIndex of \S+bad.py must have params\(horizon, arms\), but has none$"
    with pytest.raises(BadInput, match=said):
        policy(f"{tmp_path}/bad.py:RootIndex(0.5)")
