"""An outcome is written whole or not at all, read back exactly, and anything else is refused."""

from __future__ import annotations

import inspect
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lighttail as lt
from lighttail.outcomes.outcome import OF_PATHS
from lighttail.records import Counts, Losses, Record
from lighttail.tails.curve import tail_curve


@pytest.fixture(scope="module")
def out() -> lt.Outcome:
    problem = lt.Bandit([0.2, 0.8], labels=["old", 'näw, "quoted"'])
    return lt.simulate(lt.UCB(lt.LightTailed(0.2)), problem, horizon=100, paths=300, seed=1)


@pytest.fixture
def saved(out: lt.Outcome, tmp_path: Path) -> Path:
    return out.save(tmp_path / "run.npz")


def assert_same(first: lt.Outcome, second: lt.Outcome) -> None:
    for name in ("reward", "pulls", "means"):
        before, after = getattr(first, name), getattr(second, name)
        assert np.array_equal(before, after)
        assert before.dtype == after.dtype
    assert (first.labels, first.horizon, first.settings) == (second.labels, second.horizon, second.settings)


def test_what_is_saved_is_loaded(out: lt.Outcome, saved: Path) -> None:
    assert_same(out, lt.Outcome.load(saved))
    assert_same(out, lt.Outcome.load(str(saved)))
    assert out.cvar(0.95) == lt.Outcome.load(saved).cvar(0.95)


def test_it_is_one_readable_file_without_pickles(saved: Path) -> None:
    assert os.listdir(saved.parent) == ["run.npz"]
    assert saved.stat().st_mode & 0o777 == 0o644
    with np.load(saved, allow_pickle=False) as file:
        assert set(file) == {"about", "reward", "pulls", "means"}
        assert json.loads(str(file["about"]))["settings"]["seed"] == 1


def test_the_name_is_kept_as_given(out: lt.Outcome, tmp_path: Path) -> None:
    path = out.save(tmp_path / "no suffix")
    assert os.listdir(tmp_path) == ["no suffix"]
    assert_same(out, lt.Outcome.load(path))


@pytest.mark.parametrize("whole_number", [int, np.int64, np.int32])
def test_any_whole_number_for_a_horizon_can_be_saved(whole_number: Any, tmp_path: Path) -> None:
    policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    out = lt.simulate(policy, problem, horizon=whole_number(50), paths=whole_number(3), seed=whole_number(1))
    assert_same(out, lt.Outcome.load(out.save(tmp_path / "run.npz")))


def refused(path: Path) -> str:
    """The one sentence with which a file is refused."""
    with pytest.raises(ValueError, match=path.name) as caught:
        lt.Outcome.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert "pickle" not in message
    return message


@pytest.mark.parametrize("content", ["", "reward\n1\n", "{}", "P"], ids=["empty", "csv", "json", "P"])
def test_a_text_file_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "text.npz"
    path.write_text(content)
    assert "is not an outcome that lighttail saved" in refused(path)


def test_a_truncated_file_is_refused(saved: Path) -> None:
    content = saved.read_bytes()
    for kept in (4, 100, len(content) // 2, len(content) - 1):
        saved.write_bytes(content[:kept])
        assert "is not an outcome that lighttail saved" in refused(saved)


def test_a_damaged_file_is_refused_or_read_right(out: lt.Outcome, saved: Path) -> None:
    """Flip each byte in turn: a checksum or a reader notices, unless the byte carries nothing."""
    content = saved.read_bytes()
    noticed = 0
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        saved.write_bytes(damaged)
        try:
            loaded = lt.Outcome.load(saved)
        except ValueError:
            noticed += 1
        else:
            assert_same(out, loaded)
    assert noticed > len(content) // 7 // 2


def rewrite(path: Path, **changes: Any) -> None:
    """Save the same arrays with other words about them."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in ("reward", "pulls", "means")}
        about = {**json.loads(str(file["about"])), **changes}
    np.savez(path, about=np.array(json.dumps(about)), **arrays)


def test_another_format_is_refused(saved: Path) -> None:
    rewrite(saved, format=1)
    lt.Outcome.load(saved)  # the control: this is not what is refused
    rewrite(saved, format=2)
    assert refused(saved).endswith("must be 1, but is 2")


@pytest.mark.parametrize("change", [{"horizon": 51}, {"labels": ["a", "b"]}, {"settings": {"seed": 2}}])
def test_an_edited_file_is_refused(change: dict[str, Any], saved: Path) -> None:
    rewrite(saved, **change)
    assert "its digest does not match its contents" in refused(saved)


@pytest.mark.parametrize("keep", ["paths", "law"])
def test_an_edited_array_is_refused(keep: Any, tmp_path: Path) -> None:
    policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    path = lt.simulate(policy, problem, horizon=20, paths=3, seed=1, keep=keep).save(tmp_path / "run.npz")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file}
    np.savez(path, **arrays)
    lt.Outcome.load(path)  # the control: written anew, but not edited
    np.savez(path, **{**arrays, "means": np.array([0.3, 0.8])})
    assert "its digest does not match its contents" in refused(path)


@pytest.mark.parametrize("keep", ["paths", "law"])
def test_a_kind_of_outcome_loads_only_its_own_files(keep: Any, tmp_path: Path) -> None:
    policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
    path = lt.simulate(policy, problem, horizon=20, paths=3, seed=1, keep=keep).save(tmp_path / "run.npz")
    own, other = (lt.PathsOutcome, lt.LawOutcome)[:: 1 if keep == "paths" else -1]
    assert type(own.load(path)) is type(lt.Outcome.load(path)) is own
    with pytest.raises(ValueError, match=rf"run\.npz: keep must be '{other.keep}', but is '{keep}'$"):
        other.load(path)


def test_a_file_of_an_earlier_version_has_no_digest(out: lt.Outcome, saved: Path) -> None:
    rewrite(saved, digest=None)
    assert_same(out, lt.Outcome.load(saved))
    rewrite(saved, digest=None, horizon="long")
    assert "horizon must be a whole number" in refused(saved)


@pytest.mark.parametrize("about", ["not json", "3", "[]", "{}"])
def test_an_archive_of_something_else_is_refused(about: str, tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, about=np.array(about), reward=np.ones(2), pulls=np.ones((2, 2)), means=np.ones(2))
    assert "is not an outcome that lighttail saved" in refused(path)
    np.savez(path, weights=np.ones(3))
    assert "is not an outcome that lighttail saved" in refused(path)


def test_an_archive_with_pickles_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evil.npz"
    np.savez(path, about=np.array([{}], dtype=object), reward=1, pulls=1, means=1)
    with pytest.raises(ValueError, match="not an outcome"):
        lt.Outcome.load(path)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        lt.Outcome.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_folder_as_it_was(
    out: lt.Outcome, saved: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def fail(file: Any, **arrays: Any) -> None:
        file.write(b"half of it")
        raise error

    monkeypatch.setattr(np, "savez_compressed", fail)
    for name in ("run.npz", "new.npz"):
        with pytest.raises(type(error)):
            out.save(saved.parent / name)
    assert os.listdir(saved.parent) == ["run.npz"]
    assert saved.read_bytes() == before


def test_a_save_onto_a_folder_leaves_nothing_behind(out: lt.Outcome, tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(OSError, match=r"folder\.npz"):
        out.save(tmp_path / "folder.npz")
    assert os.listdir(tmp_path) == ["folder.npz"]


def test_a_save_replaces_an_older_file(out: lt.Outcome, saved: Path) -> None:
    saved.write_text("old")
    out.save(saved)
    assert zipfile.is_zipfile(saved)
    assert_same(out, lt.Outcome.load(saved))


def test_a_frame_has_one_row_a_path(out: lt.Outcome) -> None:
    frame = out.to_frame()
    assert list(frame) == ["reward", "regret", "pseudo_regret", "pulls old", 'pulls näw, "quoted"']
    assert len(frame) == 300
    assert np.array_equal(frame["regret"], out.regret)
    assert np.array_equal(frame["pulls old"], out.pulls[:, 0])


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda out: out.mean("regrets"), "kind"),
        (lambda out: out.mean(level=1.0), "level"),
        (lambda out: out.std(level=95), "level"),
        (lambda out: out.mean(level=0.05), "level"),
        (lambda out: out.quantile(1.0), "q"),
        (lambda out: out.quantile("0.5"), "q"),
        (lambda out: out.cvar(0.0), "q"),
        (lambda out: out.cvar(0.5, level=True), "level"),
        (lambda out: out.exceedance(float("nan")), "x"),
        (lambda out: out.exceedance(1.0, "rewards"), "kind"),
    ],
)
def test_a_bad_question_is_refused_by_name(out: lt.Outcome, call: Any, field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field} must be .*, but is "):
        call(out)


def test_estimates_are_of_the_kind_asked_for(out: lt.Outcome) -> None:
    best = 0.8 * 100
    assert out.mean().value == out.mean("pseudo_regret").value == np.mean(out.pseudo_regret)
    assert out.mean("regret").value == np.mean(out.regret)
    assert out.mean("reward").value == np.mean(out.reward)
    assert out.exceedance(20.0, "regret").value == np.mean(best - out.reward >= 20.0)
    worst = np.sort(out.reward)[:15]
    assert out.cvar(0.95, "reward").value == pytest.approx(np.mean(worst), rel=1e-12)
    assert out.cvar(0.95, "regret").value == pytest.approx(best - np.mean(worst), rel=1e-12)
    assert out.std("reward").value == pytest.approx(np.std(out.reward), rel=1e-12)


def test_every_kind_has_the_same_default() -> None:
    """Losing has one meaning: every function that takes a kind takes the pseudo regret unless told."""
    estimates = ("mean", "std", "quantile", "cvar", "exceedance", "sample")
    functions = [getattr(lt.Outcome, name) for name in estimates]
    functions += [lt.PathsOutcome.reaches, lt.compare, lt.tail_probability, lt.plot_tail, tail_curve]
    functions += [getattr(lt.bounds, name) for name in ("tail", "certificate", "guarantee", "regret")]
    for function in functions:
        assert inspect.signature(function).parameters["kind"].default == "pseudo_regret", function


@pytest.mark.parametrize(("means", "horizon"), [((1e9, 1e9 + 0.5), 101), ((1e6, 1e6 + 0.5), 5000)])
def test_large_means_do_not_blur_a_regret(means: tuple[float, ...], horizon: int) -> None:
    out = lt.simulate(lt.UCB(lt.LightTailed(0.2)), lt.Bandit(means), horizon=horizon, paths=2000, seed=1)
    for x in (5.0, 20.0, 100.0):
        assert out.exceedance(x, "regret").value == np.mean(out.regret >= x)


# Abstract or final


def half(kind: type) -> set[str]:
    """What a class does in another way than a class above it that does it already."""
    above = kind.__mro__[1:-1]
    own = {name for name in vars(kind) if not name.startswith("__")}
    done = {name for base in above for name, part in vars(base).items() if not _declared(part)}
    return own & done


def _declared(part: Any) -> bool:
    return getattr(part, "__isabstractmethod__", False)


@pytest.mark.parametrize("kind", [lt.PathsOutcome, lt.LawOutcome, Counts, Losses])
def test_a_class_is_abstract_or_final(kind: type) -> None:
    assert half(kind) - {"_abc_impl"} == set()
    assert not kind.__subclasses__()
    assert not kind.__abstractmethods__
    for base in (lt.Outcome, Record):
        assert base.__abstractmethods__


def test_a_class_that_is_half_abstract_would_be_noticed() -> None:
    """Negative control: a concrete method that is replaced."""

    class Other(lt.Outcome):
        def mean(self) -> float:
            return 0.0

    assert half(Other) - {"_abc_impl"} == {"mean"}


def test_what_a_law_has_not_is_what_it_says_it_has_not() -> None:
    fields = {"record", "most", "law"}
    public = [
        {name for name in dir(kind) if name[0] != "_"} - fields for kind in (lt.PathsOutcome, lt.LawOutcome)
    ]
    assert public[0] - public[1] == set(OF_PATHS)
    assert public[1] <= public[0]
