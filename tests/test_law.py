"""A law says of its paths what they say themselves, within its bins, in any order and in fixed memory."""

from __future__ import annotations

import json
import math
import pickle
import threading
import tracemalloc
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import problems, spread_means
from linear_cases import LIGHT, problem_of

import lighttail as lt
from lighttail import simulate as simulate_function
from lighttail.outcomes import estimates as statistics
from lighttail.outcomes import tally
from lighttail.outcomes.law import Law, Layout, lattice_of, layout_of
from lighttail.outcomes.outcome import OF_PATHS, LawOutcome, PathsOutcome
from lighttail.outcomes.tally import Sample
from lighttail.system import memory

simulation: Any = __import__("sys").modules[simulate_function.__module__]

UCB = lt.UCB(lt.LightTailed(0.2))
GAMBLE = lt.UCB(lt.Standard(0.1))  # two humps
CASES: dict[str, tuple[lt.Policy, Any, int]] = {
    "two arms": (GAMBLE, lt.Bandit([0.2, 0.8]), 300),
    "heavy noise": (GAMBLE, lt.Bandit(spread_means(4), lt.StudentT(2.5, 1.0)), 200),
    "Bernoulli": (GAMBLE, lt.Bandit([0.31, 0.5, 0.52, 0.8], lt.Bernoulli()), 200),
    "own data": (lt.ThompsonSampling(0.5), problems(3)[-1], 100),
    "sixteen arms": (UCB, lt.Bandit(np.linspace(0.2, 0.8, 16)), 200),
    "no common step": (UCB, lt.Bandit([0.2, 0.8, math.sqrt(0.5), math.pi / 4]), 200),
    "equal arms": (UCB, lt.Bandit([0.5, 0.5, 0.5]), 50),
    "no noise": (UCB, lt.Bandit([0.1, 0.2, 0.4], lt.Gaussian(0.0)), 100),
    "tiny units": (UCB, lt.Bandit([1e-9, 3e-9], lt.Gaussian(1e-8)), 100),
    "long horizon": (UCB, lt.Bandit([0.2, 0.8]), 600_000),
    "longer horizon": (UCB, lt.Bandit([0.2, 0.8]), 3_000_000),
    "fixed actions": (LIGHT, problem_of("fixed", 3, 6), 50),
    "changing actions": (LIGHT, problem_of("sphere", 3, 6), 50),
    "contexts": (LIGHT, problem_of("contexts", 2, 4), 50),
}
KINDS: tuple[Any, ...] = ("regret", "pseudo_regret", "reward")
QS = (0.01, 0.25, 0.5, 0.9, 0.99)
PATHS = 1500


@pytest.fixture(autouse=True)
def few_at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the bins have something to say."""
    monkeypatch.setattr(tally, "TOP", 16)


@cache
def both(case: str) -> tuple[PathsOutcome, LawOutcome]:
    """The same paths, kept and counted."""
    policy, problem, horizon = CASES[case]
    settings: Any = {"horizon": horizon, "paths": 300 if horizon > 10**6 else PATHS, "seed": 3}
    law = lt.simulate(policy, problem, **settings, keep="law")
    assert isinstance(law, LawOutcome)
    return lt.simulate(policy, problem, **settings), law


def width(out: LawOutcome, x: float, kind: str) -> float:
    """The widest that the bin of x may be: what docs/streaming.md promises."""
    layout, rounding = out.law.layout, 1e-9 * (abs(x) + abs(out.law.best).max())
    if kind == "reward" and layout.gaps:
        x = layout.best - x
    unit = layout.unit
    if kind == "pseudo_regret":
        if layout.factors:
            return rounding
        unit = layout.small
    return max(unit, abs(x) / 1024) + rounding


each = pytest.mark.parametrize("case", CASES)


@each
def test_pulls_are_counted_exactly(case: str) -> None:
    paths, out = both(case)
    law = out.law
    assert (law.paths, out.paths, out.keep, paths.keep) == (paths.paths, paths.paths, "law", "paths")
    assert out.settings == {**paths.settings, "keep": "law"}
    if paths.pulls is None:
        assert law.pulls.size == 0
        return
    bins = law.layout.pull_bins
    assert (law.layout.width == 1) == (case not in {"long horizon", "longer horizon"})
    for arm, counts in enumerate(law.pulls):
        assert np.array_equal(counts, np.bincount(paths.pulls[:, arm] // law.layout.width, minlength=bins))
    if law.layout.factors:
        steps = paths.pulls @ np.array(law.layout.factors)
        assert np.array_equal(law.lattice, np.bincount(steps, minlength=law.lattice.size))
        assert law.layout.step * steps == pytest.approx(paths.pseudo_regret, rel=1e-12)


@each
@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_those_of_the_paths(case: str, kind: Any) -> None:
    paths, out = both(case)
    values = getattr(paths, kind)
    scale = float(np.abs(values).max())
    for what in ("mean", "std"):
        plain, ours = getattr(paths, what)(kind), getattr(out, what)(kind)
        assert ours.value == pytest.approx(plain.value, rel=1e-12, abs=1e-13 * scale)
        half = 0.5 * (plain.high - plain.low) + 1e-12 * scale
        allowed = 0.01 * half  # a part in a thousand for the bins, and for the skew of so few
        assert -1e-3 * half <= plain.low - ours.low <= allowed
        assert -1e-3 * half <= ours.high - plain.high <= allowed


@each
@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_are_within_a_bin_and_their_limits_on_the_safe_side(case: str, kind: Any) -> None:
    paths, out = both(case)
    for q in QS:
        plain, ours = paths.quantile(q, kind), out.quantile(q, kind)
        assert abs(ours.value - plain.value) <= width(out, plain.value, kind)
        for ahead, end, other in [(-1, ours.low, plain.low), (1, ours.high, plain.high)]:
            if math.isinf(other):
                assert end == other
            else:
                room = width(out, other, kind)
                assert -1e-9 * room <= ahead * (end - other) + 1e-9 * abs(out.law.best).max()
                assert ahead * (end - other) <= room


@each
@pytest.mark.parametrize("kind", KINDS)
def test_cvars_are_within_a_bin_and_their_limits_on_the_safe_side(case: str, kind: Any) -> None:
    paths, out = both(case)
    worst = float(np.abs(getattr(paths, kind)).max())
    for q in (0.5, 0.95):
        plain, ours = paths.cvar(q, kind), out.cvar(q, kind)
        room = width(out, worst, kind) + width(out, -worst, kind)
        assert abs(ours.value - plain.value) <= room
        rounding = 1e-9 * abs(out.law.best).max() + 1e-9 * worst
        assert plain.low - room <= ours.low <= plain.low + rounding
        assert plain.high - rounding <= ours.high <= plain.high + room


@each
@pytest.mark.parametrize("kind", KINDS)
def test_chances_are_those_of_the_paths_up_to_one_bin(case: str, kind: Any) -> None:
    paths, out = both(case)
    values = getattr(paths, kind)
    marks = [*np.quantile(values, [0.05, 0.5, 0.95]), *values[:4], values.max(), values.max() + 1.0, 0.0]
    for x in map(float, marks):
        plain, ours = paths.exceedance(x, kind), out.exceedance(x, kind)
        assert ours.low <= plain.low
        assert ours.high >= plain.high
        near = np.mean(np.abs(values - x) <= 2.0 * width(out, x, kind))
        assert abs(ours.value - plain.value) <= near
        if kind == "pseudo_regret" and out.law.layout.factors:
            assert ours == plain


def test_whole_rewards_and_few_paths_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    paths, out = both("Bernoulli")
    for kind in KINDS:
        for x in (-3.0, 10.0, 44.0, 120.0):
            assert out.exceedance(x, kind) == paths.exceedance(x, kind)
        for q in QS:
            assert out.quantile(q, kind).value == pytest.approx(paths.quantile(q, kind).value, rel=1e-12)
    monkeypatch.setattr(tally, "TOP", 4096)
    law = counted(both("heavy noise")[0])
    for q in QS:
        assert law.quantile(q, "regret") == both("heavy noise")[0].quantile(q, "regret")


def counted(paths: PathsOutcome, layout: Layout | None = None, size: int = 100) -> LawOutcome:
    """The law of given paths with arms, added in blocks."""
    if layout is None:
        layout = layout_of(lt.Bandit(paths.means), paths.horizon)
    law = Law.empty(layout)
    for first in range(0, paths.paths, size):
        law.add(paths.record.rows(slice(first, first + size)))
    return LawOutcome(law, paths.means, paths.labels, paths.horizon, {})


# Coverage, with bins so wide that they matter


def wide(layout: Layout) -> Layout:
    return Layout(**{**vars(layout), "unit": 32.0, "factors": (), "small": 16.0})


def naive(sample: Sample) -> Sample:
    """Negative control: as if every value were at the lower end of its bin."""
    return Sample(sample.low, sample.low, sample.low, sample.counts)


def test_intervals_cover_the_truth_although_bins_are_wide() -> None:
    """At least 93 % of 250 repetitions with 400 paths each: z = 1.5 below 95 %, and bins make it more."""
    whole = lt.simulate(GAMBLE, lt.Bandit([0.2, 0.8]), horizon=300, paths=100_000, seed=5)
    values, rng = whole.regret, np.random.default_rng(6)
    layout = wide(layout_of(lt.Bandit([0.2, 0.8]), 300))
    questions: dict[str, tuple[Any, float]] = {
        "mean": (lambda sample, ends: statistics.mean(sample, ends, 0.95), values.mean()),
        "std": (lambda sample, ends: statistics.std(sample, ends, 0.95), values.std()),
        "median": (lambda sample, ends: statistics.quantile(sample, 0.5, 0.95), np.median(values)),
        "chance": (lambda sample, ends: statistics.exceedance(sample, 21.0, 0.95), np.mean(values >= 21.0)),
        "cvar": (
            lambda sample, ends: statistics.cvar(sample, 0.9, ends, False, 0.95),
            np.sort(values)[90_000:].mean(),
        ),
    }
    covered, control = dict.fromkeys(questions, 0), dict.fromkeys(questions, 0)
    for turn in range(250):
        pick = rng.integers(0, whole.paths, 400)
        out = counted(replace(whole, record=whole.record.rows(pick)), layout)
        ends = out._ends("regret")
        for what, (ask, truth) in questions.items():
            if what == "cvar" and turn >= 100:
                continue  # which is dear
            for tally_of, sample in [(covered, out.sample("regret")), (control, naive(out.sample("regret")))]:
                found = ask(sample, ends)
                tally_of[what] += int(found.low <= truth <= found.high)
    assert covered.pop("cvar") >= 93
    assert min(covered.values()) >= 0.93 * 250, covered
    assert max(control[what] for what in ("mean", "median", "chance")) < 0.5 * 250, control


# Any order, any executor


def bytes_of(out: Any) -> bytes:
    about, arrays = out.law.state()
    return json.dumps(about).encode() + b"".join(arrays[name].tobytes() for name in sorted(arrays))


@pytest.mark.parametrize("case", ["heavy noise", "no common step", "changing actions"])
def test_any_order_and_any_split_give_the_same_bytes(case: str) -> None:
    _, problem, horizon = CASES[case]
    paths, _ = both(case)
    rng = np.random.default_rng(7)
    blocks = [slice(first, first + 70) for first in range(0, PATHS, 70)]

    def law(order: Any, pieces: int) -> Law:
        laws = [Law.empty(layout_of(problem, horizon)) for _ in range(pieces)]
        for block in order:
            laws[rng.integers(pieces)].add(paths.record.rows(blocks[block]))
        first, *rest = rng.permutation(np.array(laws, dtype=object))
        for other in rest:
            first.merge(other)
        return first  # type: ignore[no-any-return]

    def as_bytes(law: Law) -> bytes:
        return bytes_of(LawOutcome(law, paths.means, (), horizon, {}))

    plain = as_bytes(law(range(len(blocks)), 1))
    for pieces in (1, 2, 5):
        assert as_bytes(law(rng.permutation(len(blocks)), pieces)) == plain
    sums = {sum(paths.regret[blocks[b]].sum() for b in rng.permutation(len(blocks))) for _ in range(20)}
    assert len(sums) > 1  # negative control: sums of floats depend on the order


class Sent:
    """An executor whose results travel as bytes, the last task first."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(2)

    def submit(self, function: Any, *task: Any) -> Future[Any]:
        return self.pool.submit(lambda: pickle.loads(pickle.dumps(function(*task))))


@pytest.mark.parametrize("case", ["two arms", "heavy noise", "changing actions"])
def test_threads_and_executors_give_the_same_bytes(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.running.prepare.block_paths", lambda *args: 5)
    policy, problem, _ = CASES[case]
    settings: Any = {"horizon": 40, "paths": 58, "seed": 4, "keep": "law"}
    alone = lt.simulate(policy, problem, threads=1, **settings)
    for where in ({"threads": 2}, {"threads": 9}, {"executor": Sent()}):
        assert bytes_of(lt.simulate(policy, problem, **settings, **where)) == bytes_of(alone)
    other = lt.simulate(policy, problem, **{**settings, "seed": 5})
    assert bytes_of(other) != bytes_of(alone)  # the control


def test_an_error_ends_a_simulation_of_a_law() -> None:
    def fail(done: int, total: int) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        lt.simulate(UCB, lt.Bandit([0.2, 0.8]), horizon=200, paths=10**5, seed=1, keep="law", progress=fail)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lighttail")]


# Files


@pytest.mark.parametrize("case", ["two arms", "no common step", "changing actions", "long horizon"])
def test_what_is_saved_is_loaded(case: str, tmp_path: Path) -> None:
    _, out = both(case)
    again = lt.Outcome.load(out.save(tmp_path / "law.npz"))
    assert bytes_of(again) == bytes_of(out)
    assert (again.labels, again.horizon, again.settings) == (out.labels, out.horizon, out.settings)
    for kind in KINDS:
        assert again.mean(kind) == out.mean(kind)
        assert again.cvar(0.9, kind) == out.cvar(0.9, kind)
    again.law.merge(out.law)
    assert again.law.paths == 2 * out.paths


@pytest.mark.parametrize("name", ["regret_counts", "regret_low", "pulls_counts", "lattice_counts", "paths"])
def test_a_file_whose_counts_do_not_fit_is_refused(name: str, tmp_path: Path) -> None:
    path = both("two arms")[1].save(tmp_path / "law.npz")
    with np.load(path) as file:
        arrays = {entry: file[entry] for entry in file}
    if name == "paths":
        about = json.loads(str(arrays["about"]))
        about["law"]["paths"] += 1
        arrays["about"] = np.array(json.dumps(about))
    else:
        arrays[name] = arrays[name] + 1
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="is not an outcome that lighttail saved"):
        lt.Outcome.load(path)


# Memory


def peak(keep: Any, paths: int) -> int:
    tracemalloc.start()
    out = lt.simulate(UCB, lt.Bandit([0.2, 0.8]), horizon=3, paths=paths, seed=1, keep=keep)
    assert [out.mean(), out.quantile(0.9), out.cvar(0.9), out.exceedance(1.0)]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_memory_does_not_grow_with_the_paths() -> None:
    peak("law", 10**3)  # loads what is loaded once
    assert peak("law", 10**6) < 1.1 * peak("law", 10**5)
    assert peak("paths", 10**6) > 1.5 * peak("paths", 10**5)  # the control


def test_what_does_not_fit_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.running.prepare.free_memory", lambda: 12e9)
    monkeypatch.setattr(simulation, "run_blocks", lambda *args: pytest.fail("work was done"))
    settings: Any = {"horizon": 500, "seed": 1}
    with pytest.raises(ValueError, match=r"^paths must be so few .*, but is 4000000000$") as caught:
        lt.simulate(UCB, lt.Bandit([0.2, 0.8]), paths=4 * 10**9, **settings)
    assert "(about 384 GB, of which 12 GB are free; keep='law' needs " in str(caught.value)
    assert "MB whatever the paths)" in str(caught.value)
    monkeypatch.setattr("lighttail.running.prepare.free_memory", lambda: 1e6)
    with pytest.raises(ValueError, match=r"^horizon must be so short .*, but is 500$"):
        lt.simulate(UCB, lt.Bandit([0.2, 0.8]), paths=10**12, keep="law", **settings)


def test_free_memory_is_the_machines_or_the_containers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limit, use, details, info = (tmp_path / name for name in ("limit", "use", "details", "info"))
    monkeypatch.setattr(memory, "MEMINFO", info)
    monkeypatch.setattr(memory, "GROUPS", ((limit, use, details),))
    assert memory.free_memory() == math.inf
    info.write_text("MemTotal:       2000 kB\nMemAvailable:    1000 kB\n")
    assert memory.free_memory() == 1024e3
    limit.write_text("max\n")
    use.write_text("5000\n")
    assert memory.free_memory() == 1024e3
    limit.write_text("9000\n")
    assert memory.free_memory() == 4000
    details.write_text("anon 2000\ninactive_file 500\n")  # of files, which would make room
    assert memory.free_memory() == 4500
    details.write_text("odd")
    info.write_text("odd")
    assert memory.free_memory() == 4000


@pytest.mark.parametrize(("arms", "horizon"), [(2, 500), (16, 262_143), (1000, 10**6), (5, 10**12)])
def test_a_law_is_as_large_as_it_says_and_never_large(arms: int, horizon: int) -> None:
    layout = layout_of(lt.Bandit(spread_means(arms)), horizon)
    law = Law.empty(layout)
    arrays = [law.pulls, law.lattice]
    for counts in (law.regret, law.pseudo_regret):
        arrays += [] if counts is None else [counts.counts, counts.low, counts.high]
    assert sum(array.nbytes for array in arrays) == pytest.approx(layout.bytes, rel=1e-3)
    assert layout.bytes < 50e6


# What a law cannot say, and what nobody can


@pytest.mark.parametrize("name", OF_PATHS)
def test_paths_that_were_not_kept_are_said_not_to_be(name: str) -> None:
    _, out = both("two arms")
    with pytest.raises(ValueError, match=r"^keep must be 'paths' .*, but is 'law': .* are known"):
        getattr(out, name)
    assert not hasattr(out, name)
    assert name not in dir(out)
    with pytest.raises(AttributeError, match=r"^'LawOutcome' object has no attribute 'rewards'$"):
        out.rewards  # noqa: B018


def test_a_law_survives_its_travels() -> None:
    _, out = both("two arms")
    assert repr(out) == "LawOutcome(paths=1500, labels=('arm 1', 'arm 2'), horizon=300)"
    assert pickle.loads(pickle.dumps(out)).mean() == out.mean()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keep": "all"}, r"^keep must be 'paths' or 'law', but is 'all'$"),
        ({"keep": None}, r"^keep must be 'paths' or 'law', but is None$"),
        ({"keep": "law", "paths": 10**12 + 1}, r"^paths must be .* at most 1000000000000, but is "),
        ({"keep": "law", "paths": 0}, r"^paths must be .* at least 1, but is 0$"),
    ],
)
def test_bad_input_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lt.simulate(UCB, lt.Bandit([0.2, 0.8]), **{"horizon": 10, "paths": 10, "seed": 1, **changes})


def test_a_bad_question_is_refused_by_name() -> None:
    _, out = both("two arms")
    for call in (
        lambda: out.mean("regrets"),
        lambda: out.exceedance(1.0, "x"),
        lambda: out.quantile(0.5, "y"),
    ):
        with pytest.raises(ValueError, match=r"^kind must be .*, but is "):
            call()


def test_laws_of_different_problems_do_not_merge() -> None:
    with pytest.raises(ValueError, match=r"^laws must be of one problem"):
        both("two arms")[1].law.merge(both("Bernoulli")[1].law)


@pytest.mark.parametrize(
    ("means", "horizon", "factors", "step"),
    [
        ([0.2, 0.8], 500, (1, 0), 0.8 - 0.2),
        ([0.2, 0.1 + 0.2, 0.8], 500, (6, 5, 0), 0.1),
        ([1 / 3, 0.5], 10**6, (1, 0), 0.5 - 1 / 3),
        ([1 / 3, 0.5, 0.6], 500, (), 0.0),
        ([0.5, 0.5, 0.5], 500, (0, 0, 0), 0.0),
        ([1.0, 1.0, 3.0], 500, (1, 1, 0), 2.0),
        ([0.2, 0.8], 2**20, (), 0.0),
        ([0.001, 0.5, 1.0], 2000, (), 0.0),
        ([1e15, 1e15 + 1, 1e15 + 3], 500, (), 0.0),  # of which 15 digits are not enough
        ([-2.5, 10.0, 0.0], 500, (5, 0, 4), 2.5),
    ],
)
def test_steps_are_found_where_there_are_any(
    means: list[float], horizon: int, factors: tuple[int, ...], step: float
) -> None:
    assert lattice_of(tuple(means), horizon) == (factors, pytest.approx(step, rel=1e-15))
