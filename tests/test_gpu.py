"""The device's kernels in numba's simulator of one: `make test` runs this file with NUMBA_ENABLE_CUDASIM=1.

In double precision a path equals the one that plain Python plays from the same stream, to the last bit; in
single precision the law is compared with the CPU's. benchmarks/gpu.py shows what only hardware can.
"""

from __future__ import annotations

import math
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from cases import POLICIES, name, problems, spread_means
from device import PathStream, on_simulator
from device_policies import WOBBLE, Own, shrink
from oracle import play
from scipy import stats

import lighttail as lt
from lighttail import cli
from lighttail.gpu import draws
from lighttail.gpu.formulas import in_precision, on_device
from lighttail.gpu.run import precision_for
from lighttail.outcomes.law import Law, layout_of
from lighttail.random.streams import standard_normal, uniform
from lighttail.records import Counts
from lighttail.study import run_study
from lighttail.study.file import parse_study

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
ARMS = (2, 3, 5, 9)  # nine are played on a tree


@pytest.mark.parametrize("arms", ARMS)
@pytest.mark.parametrize("policy", [*POLICIES, lt.UCB(Own(0.4))], ids=name)
def test_a_path_equals_plain_python(policy: lt.Policy, arms: int) -> None:
    for problem in problems(arms):
        reward, pulls = on_simulator(policy, problem, arms + 24, 3, 5, "float64")
        plain = play(policy, problem, arms + 24, 3, 5, own=lambda path: PathStream(5, path))
        assert np.array_equal(pulls, plain.pulls)
        assert np.array_equal(reward, plain.reward)


@pytest.mark.parametrize("bonus", [lt.LightTailed(0.2), lt.Standard(0.3)], ids=name)
def test_a_tree_with_ties_equals_plain_python(bonus: lt.Bonus) -> None:
    problem = lt.Bandit(spread_means(16), lt.Bernoulli())  # hundreds of ties
    reward, pulls = on_simulator(lt.UCB(bonus), problem, 150, 4, 3, "float64")
    plain = play(lt.UCB(bonus), problem, 150, 4, 3, own=lambda path: PathStream(3, path))
    assert np.array_equal(pulls, plain.pulls)
    assert np.array_equal(reward, plain.reward)


def test_philox_gives_the_published_numbers() -> None:
    """Known answers of Random123 for philox4x32-10: all zeros, all ones, and the digits of pi."""
    ones = 0xFFFFFFFF
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)
    answers = {
        (0,) * 6: (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
        (ones,) * 6: (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        pi: (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    }
    for given, answer in answers.items():
        assert draws.scrambled(*(np.uint64(word) for word in given)) == answer


def test_sfc32_steps_as_its_author_wrote_it() -> None:
    state = np.array([1, 2, 0x80000001, 0xFFFFFFFF, 0], np.uint32)
    a, b, c, count = (int(part) for part in state[:4])
    for _ in range(1000):
        result = (a + b + count) % 2**32
        count = (count + 1) % 2**32
        a = b ^ (b >> 9)
        b = (c + (c << 3)) % 2**32
        c = (((c << 21) | (c >> 11)) + result) % 2**32
        assert draws.next_bits(state) == result


def stream_of(real, seed: int, path: int, count: int):
    """So many normals and uniforms of a path in turn."""
    state, spare = np.zeros(5, np.uint32), np.zeros(1, real)
    draws.begin(state, draws.seed_state(seed), np.uint64(path))
    normal, unit = draws.draws_for(real, lambda function: function)
    rng = (state, spare)
    return np.array([(normal(rng), unit(rng)) for _ in range(count)]).T


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_streams_are_normal_uniform_and_independent(real) -> None:
    rows = [stream_of(real, 11, path, 300) for path in range(60)]
    normals = np.concatenate([row[0] for row in rows])
    uniforms = np.concatenate([row[1] for row in rows])
    assert stats.kstest(normals, "norm").pvalue > 1e-4
    assert stats.kstest(uniforms, "uniform").pvalue > 1e-4
    assert stats.kstest(1.1 * normals, "norm").pvalue < 1e-4  # the test's power
    bound = 4.0 / math.sqrt(normals.size)
    for shift in (1, 2, 300):  # neighbours, the halves of a pair, and other paths
        assert abs(np.corrcoef(normals[:-shift], normals[shift:])[0, 1]) < bound
        assert abs(np.corrcoef(normals[:-shift] ** 2, normals[shift:] ** 2)[0, 1]) < bound
    assert uniforms.min() >= 0.0
    assert uniforms.max() < 1.0


def test_paths_and_seeds_have_streams_of_their_own() -> None:
    first = [stream_of(np.float64, seed, path, 4).tobytes() for seed in (1, 2) for path in (0, 1, 2**32)]
    assert len(set(first)) == len(first)


def test_single_precision_leaves_no_double_behind() -> None:
    def formula(n: float, clock: float) -> float:
        return max(0.5, WOBBLE * n) + shrink(2.0, n)

    single = in_precision(formula, np.float32, lambda part: on_device(part, np.float32, lambda f: f, {}))
    constants = [constant for constant in single.__code__.co_consts if constant is not None]
    assert all(isinstance(constant, np.float32) for constant in constants)
    assert isinstance(single.__globals__["WOBBLE"], np.float32)
    assert isinstance(single(np.float32(3.0), np.float32(0.0)), np.float32)
    assert isinstance(WOBBLE, float)  # the caller's own is as it was


@pytest.mark.parametrize(
    "policy", [POLICIES[0], POLICIES[3], POLICIES[4], POLICIES[7], POLICIES[9]], ids=name
)
def test_the_law_in_single_precision_is_the_cpus(policy: lt.Policy) -> None:
    problem = lt.Bandit([0.2, 0.8])
    reward, pulls = on_simulator(policy, problem, 25, 800, 2, "float32")

    def distance(noise: float) -> float:
        cpu = lt.simulate(policy, lt.Bandit([0.2, 0.8], lt.Gaussian(noise)), horizon=25, paths=40_000, seed=4)
        p_reward = stats.ks_2samp(reward, cpu.reward).pvalue
        return min(p_reward, stats.ks_2samp(pulls[:, 0], cpu.pulls[:, 0]).pvalue)

    assert distance(1.0) > 1e-4
    assert distance(1.5) < 1e-4  # the test's power


def test_single_precision_is_for_sums_that_it_can_hold() -> None:
    assert precision_for(None, lt.Bandit([0.2, 0.8]), 500) == "float32"
    assert precision_for(None, lt.Bandit([0.2, 0.8]), 10**6) == "float64"
    assert precision_for(None, lt.Bandit([1e4, 1e4 + 0.6]), 500) == "float64"
    assert precision_for(None, lt.Bandit([0.2, 0.8], lt.Gaussian(0.0)), 500) == "float64"
    nothing = lt.Bandit([0.0, 0.0], lt.Gaussian(0.0))  # no sum is rounded, but counts end at 2^24
    assert [precision_for(None, nothing, horizon) for horizon in (1 << 24, 1 << 25)] == ["float32", "float64"]
    assert precision_for(None, lt.Bandit.from_samples({"a": [1e6], "b": [0.0, 1.0]}), 500) == "float64"
    assert precision_for("float32", lt.Bandit([0.2, 0.8]), 10**6) == "float32"
    for noise in (lt.StudentT(2.5), lt.Laplace(1.0)):  # tails that 23 bits cut off
        assert precision_for(None, lt.Bandit([0.2, 0.8], noise), 500) == "float64"
    assert precision_for(None, lt.Bandit([0.2, 0.8], lt.Bernoulli()), 500) == "float32"
    assert precision_for(None, lt.Bandit([0.2, 1e-5], lt.Bernoulli()), 500) == "float64"


def test_launches_of_any_size_play_the_same_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = lt.Bandit([0.2, 0.8])
    whole = on_simulator(POLICIES[0], problem, 10, 50, 9, "float32")
    monkeypatch.setattr("lighttail.gpu.run.FEWEST_LAUNCHED", 7)
    monkeypatch.setattr("lighttail.gpu.run.MOST_LAUNCHED", 7)
    parts = on_simulator(POLICIES[0], problem, 10, 50, 9, "float32")
    assert all(np.array_equal(a, b) for a, b in zip(whole, parts, strict=True))


def test_draws_of_the_family_are_replaced() -> None:
    known = {standard_normal: "normal", uniform: "uniform"}
    shock = on_device(lt.Gaussian.shock, np.float32, lambda function: function, known)
    assert shock.__globals__["standard_normal"] == "normal"


@pytest.mark.parametrize("means", [(0.2, 0.8), (0.1, 0.3, 0.6), (0.1, 0.2, math.pi / 10)], ids=str)
@pytest.mark.parametrize("noise", [lt.Gaussian(1.0), lt.StudentT(2.5), lt.Bernoulli()], ids=name)
def test_a_law_counted_on_the_device_is_that_of_its_paths(
    means: tuple[float, ...], noise: lt.Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts, ends of bins and largest values to the bit, sums but for rounding; in several launches."""
    monkeypatch.setattr("lighttail.gpu.run.FEWEST_LAUNCHED", 90)
    monkeypatch.setattr("lighttail.gpu.run.MOST_LAUNCHED", 90)
    monkeypatch.setattr("lighttail.gpu.tally.PARTS", 64)
    monkeypatch.setattr("lighttail.outcomes.tally.TOP", 40)
    problem = lt.Bandit(means, noise)
    settings = {"horizon": 12, "paths": 200, "seed": 3, "device": "cuda"}
    paths = lt.simulate(POLICIES[1], problem, **settings)
    out = lt.simulate(POLICIES[1], problem, **settings, keep="law")
    law = Law.empty(layout_of(problem, 12))
    law.add(Counts(paths.reward, paths.pulls))
    mine, plain = out.law.state(), law.state()
    assert mine[1].keys() == plain[1].keys()
    assert all(np.array_equal(mine[1][key], plain[1][key]) for key in plain[1])
    assert out.settings["keep"] == "law"
    for kind in ("regret", "pseudo_regret", "reward"):
        for estimate in ("mean", "std"):
            value, other = (getattr(o, estimate)(kind).value for o in (out, paths))
            assert value == pytest.approx(other, rel=1e-12, abs=1e-12)


def test_a_small_scatter_around_a_large_mean_keeps_its_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.gpu.tally.PARTS", 64)
    problem = lt.Bandit([1e6, 2e6], lt.Gaussian(1e-3))
    settings = {"horizon": 12, "paths": 200, "seed": 3, "device": "cuda"}
    paths, law = (lt.simulate(POLICIES[1], problem, **settings, keep=keep) for keep in ("paths", "law"))
    assert law.std("regret").value == pytest.approx(paths.std("regret").value, rel=1e-12) != 0.0


def test_the_outcome_says_where_it_was_played() -> None:
    out = lt.simulate(POLICIES[0], lt.Bandit([0.2, 0.8]), horizon=10, paths=4, seed=1, device="cuda")
    assert out.settings["device"] == "cuda"
    assert out.settings["precision"] == "float32"
    assert out.settings["gpu"]
    assert out.method == "step"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"device": "gpu"}, "device must be 'cpu' or 'cuda', but is 'gpu'"),
        ({"precision": "half"}, "precision must be 'float32' or 'float64', but is 'half'"),
        ({"method": "skip"}, "method must be 'auto' or 'step' with device='cuda'"),
        ({"executor": ThreadPoolExecutor(1)}, "executor must be left out with device='cuda'"),
        ({"threads": 2}, "threads must be left out with device='cuda'"),
        ({"horizon": 2**25, "precision": "float32"}, "precision must be 'float64' beyond 16777216 pulls"),
        ({"horizon": 2**31}, "horizon must be a whole number of at most 2147483647"),
        ({"problem": lt.Bandit([0.5] * 65), "horizon": 100}, "'cpu' with more than 64 arms"),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
def test_what_no_gpu_plays_is_refused(given: dict, said: str) -> None:
    settings = {"policy": POLICIES[0], "problem": lt.Bandit([0.2, 0.8]), "horizon": 10, "paths": 4}
    with pytest.raises(ValueError, match=re.escape(said)):
        lt.simulate(**{**settings, "device": "cuda", **given})


def test_the_command_line_compares_on_the_device(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["lighttail", "compare", "--horizon", "10", "--paths", "20", "--device", "cuda"]
    words += ["--out", str(tmp_path / "r"), "--policy", "ucb:lighttailed:0.2", "--policy", "ts:0.8"]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    assert "UCB + LightTailed(0.2)" in capsys.readouterr().out


STUDY = """
name = "device"
paths = 40
seeds = [1, 2]
horizons = [12]
[[problem]]
name = "two"
means = [0.2, 0.8]
[[policy]]
policy = "ts:0.8"
"""


def test_a_study_is_played_on_the_device_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lighttail.study.cells.PIECE_NUMBERS", 45)  # 15 paths a file
    study = parse_study(STUDY, "study.toml", Path)
    done = run_study(study, tmp_path / "out", device="cuda")
    assert (done.pieces, done.complete) == (6, True)
    again = run_study(study, tmp_path / "out", device="cuda")
    assert (again.played, again.digest) == (0, done.digest)
    out = lt.simulate(
        lt.ThompsonSampling(0.8), lt.Bandit([0.2, 0.8]), horizon=12, paths=40, seed=1, device="cuda"
    )
    rows = sorted((tmp_path / "out").glob("**/*seed-1*/*.parquet"))
    stored = np.concatenate([pyarrow.parquet.read_table(file)["reward"].to_numpy() for file in rows])
    assert np.array_equal(stored, out.reward)
