"""A study's run: the bits of `simulate`, in files that are reused, refused or made again."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.reading.words import parse_noise, parse_policy
from lighttail.running.pool import BlocksFailed
from lighttail.study import Done, folder, load_study, run_study
from lighttail.study import cells as cells_module
from lighttail.study import run as playing
from lighttail.study.cells import Cell, cells_of, formulas_digest, piece_paths
from lighttail.study.file import Study, parse_study

BASE = """
name = "small"
paths = 600
seeds = [1, 2]
horizons = [2000]
[[problem]]
name = "two"
means = [0.2, 0.8]
[[policy]]
policy = "ts:0.8"
[[policy]]
policy = "se:lighttailed:0.1"
"""
LONG = BASE.replace("600", "8000")
LINEAR = """
name = "linear"
paths = 30
seeds = [4]
horizons = [900]
[[problem]]
name = "sphere"
actions = 5
dim = 2
[[problem]]
name = "fixed"
actions = "actions.npy"
theta = [0.5, 0.1]
[[policy]]
policy = "linucb:lighttailed:0.2"
"""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece is then one block: 262 paths of Thompson sampling, 64 of elimination, which skips ahead."""
    monkeypatch.setattr(cells_module, "PIECE_BLOCKS", 1)


def study_of(text: str = BASE, at: Path = Path()) -> Study:
    return parse_study(text, "study.toml", lambda name: at / name)


def run(place: Path, text: str = BASE, at: Path = Path(), **settings: Any) -> Done:
    return run_study(study_of(text, at), place, **{"workers": 2, **settings})


def files(place: Path) -> dict[str, bytes]:
    found = (path for path in sorted(place.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(place)): path.read_bytes() for path in found}


def paths_of(place: Path, cell: Cell) -> tuple[Any, Any]:
    """The columns of a cell as any reader of Parquet sees them."""
    tables = [pyarrow.parquet.read_table(file) for file in sorted((place / "cells" / cell.folder).iterdir())]
    table = pyarrow.concat_tables(tables)
    columns = [table.column(name).to_numpy() for name in table.column_names]
    return columns[0], np.stack(columns[1:], axis=1)


def simulated(cell: Cell) -> lt.Outcome:
    settings: Any = {"horizon": cell.horizon, "paths": cell.paths, "seed": cell.seed}
    return lt.simulate(cell.policy, cell.setting.problem, **settings)


def test_files_hold_the_bits_of_simulate(tmp_path: Path) -> None:
    done = run(tmp_path / "out")
    assert (done.pieces, done.finished, done.played, done.complete) == (2 * 3 + 2 * 10, 26, 26, True)
    for cell in cells_of(study_of()):
        reward, pulls = paths_of(tmp_path / "out", cell)
        out = simulated(cell)
        assert np.array_equal(reward, out.reward)
        assert np.array_equal(pulls, out.pulls)
        assert pulls.dtype == np.int64


def test_a_linear_study_with_its_data(tmp_path: Path) -> None:
    np.save(tmp_path / "actions.npy", [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
    run(tmp_path / "out", LINEAR, tmp_path)
    changing, fixed = cells_of(study_of(LINEAR, tmp_path))
    out = simulated(changing)
    reward, offers = paths_of(tmp_path / "out", changing)
    assert np.array_equal(reward, out.reward)
    assert np.array_equal(offers, np.stack([out.record.best, out.record.lost], axis=1))
    (tmp_path / "actions.npy").unlink()  # the folder has a copy
    results = load_study(tmp_path / "out")
    for name, cell in (("sphere", changing), ("fixed", fixed)):
        found = results.outcome(name, "linucb:lighttailed:0.2", horizon=900)
        if name == "fixed":
            assert found.labels == ("action 1", "action 2", "action 3")
        else:
            assert found.mean("regret") == simulated(cell).mean("regret")
            assert found.exceedance(20, "pseudo_regret") == simulated(cell).exceedance(20, "pseudo_regret")


def test_whole_pieces_keep_their_sizes_within_bounds() -> None:
    two, many = lt.Bandit([0.2, 0.8]), lt.Bandit(list(range(1000)))
    cells_module.PIECE_BLOCKS = 128  # the fixture puts it back
    for problem, horizon, method, block in [
        (two, 500, "step", 1048),
        (two, 10, "step", 4096),
        (two, 10**6, "step", 1),
        (two, 10**9, "step", 1),
        (two, 10**9, "skip", 64),
        (many, 1000, "step", 524),
    ]:
        paths = piece_paths(problem, horizon, method, block)
        assert paths % block == 0
        assert block <= paths <= 128 * block
        assert paths == block or method == "skip" or paths * horizon <= cells_module.PIECE_PULLS
        assert paths == block or paths * (1 + problem.arms) <= cells_module.PIECE_NUMBERS


def test_threads_processes_and_a_cluster_give_the_same_bytes(tmp_path: Path) -> None:
    import distributed

    run(tmp_path / "threads", workers=1)
    run(tmp_path / "processes", executor="processes", workers=1)
    with ThreadPoolExecutor(3) as pool:
        run(tmp_path / "pool", executor=pool, workers=None)
        assert pool.submit(int, 3).result() == 3  # it stays open
    settings: Any = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None, "processes": False}
    with distributed.LocalCluster(**settings, protocol="tcp") as cluster:
        run(tmp_path / "dask", executor=f"dask:{cluster.scheduler_address}", workers=None)
    whole = files(tmp_path / "threads")
    assert len(whole) == 27
    for other in ("processes", "pool", "dask"):
        assert files(tmp_path / other) == whole, other


def test_an_edited_study_reuses_what_still_fits(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run(out)
    assert run(out).played == 0
    more_seeds = run(out, BASE.replace("[1, 2]", "[1, 2, 3]"))
    assert more_seeds.played == 3 + 10
    more_paths = run(out, BASE.replace("600", "700"))
    assert more_paths.played == 2 * (1 + 2)  # 524 and 576 of the 600 paths were whole blocks
    assert (len(more_paths.replaced), len(more_paths.strangers), more_paths.pruned) == (2 * 2, 13, 0)
    renamed = BASE.replace('policy = "ts:0.8"', 'name = "T"\npolicy = "ts:0.8"').replace('"two"', '"2 arms"')
    assert run(out, renamed + "# more\n").played == 0
    run(tmp_path / "fresh", renamed + "# more\n")
    last = run(out, renamed + "# more\n", prune=True)
    assert (last.replaced, last.strangers, last.pruned) == ([], [], 13 + 2 * 3)
    assert files(out) == files(tmp_path / "fresh")  # as if it had never been another
    assert run(out, BASE.replace("ts:0.8", "ts:0.9")).played == 2 * 3
    assert run(out).digest == first.digest


def test_keys_are_the_same_in_every_process() -> None:
    """A formula that refers to something of this process alone would never be found again."""
    script = """
from lighttail.study.cells import formulas_digest
from lighttail.reading.words import BONUSES, NOISES, LINEAR_BONUSES, parse_noise, parse_policy
import lighttail as lt
two = ("armoptimal", "twopart")
for words in ["ucb:%s:1" % b for b in BONUSES if b not in two] + ["ucb:armoptimal:1:1", "se:standard:1",
              "ts:1", "exp3ix:reward", "exp3ix:loss:1", "twopart:1:1", "klucb", "klucb:0:1", "imed", "imed:1",
              "bayesucb:5",
              "betats", "inflated:1", "egreedy:5:0.1", "etc:20", "evensplit"]:
    for noise in NOISES:
        print(words, noise, formulas_digest(parse_policy(words), lt.Bandit([0, 1], parse_noise(noise, None))))
for words in ["linucb:lighttailed:1", "linucb:standard:1", "linucb:oful:1:0.1:1", "lints:1"]:
    for actions in (lt.SphereActions(3), lt.BallActions(3), [[1.0, 0.0], [0.0, 1.0]]):
        print(words, formulas_digest(parse_policy(words), lt.LinearBandit([0.5, 0.5], actions)))
"""
    said = [subprocess.check_output([sys.executable, "-c", script], text=True) for _ in range(2)]
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == 21 * 5 + 4 * 3


def test_a_key_changes_with_a_formula_and_with_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, problem = parse_policy("ucb:standard:1"), lt.Bandit([0.2, 0.8], parse_noise("gaussian", 1.0))
    before = formulas_digest(policy, problem)
    keys = [cell.key for cell in cells_of(study_of())]
    assert keys == [cell.key for cell in cells_of(study_of())]
    monkeypatch.setattr(lt.Standard, "radius", staticmethod(lambda n, clock, scale: scale / n))
    assert formulas_digest(policy, problem) != before
    monkeypatch.setattr(cells_module, "probe_of", lambda *played: b"a last bit that is another")
    assert not set(keys) & {cell.key for cell in cells_of(study_of())}


def test_a_finished_study_is_known_without_pilots_and_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    digest = run(out).digest
    played = []

    def noted(name: str) -> None:
        real = getattr(cells_module, name)
        monkeypatch.setattr(cells_module, name, lambda *setting: played.append(name) or real(*setting))

    noted("choose_method")
    noted("probe_of")
    assert (run(out).digest, played) == (digest, [])
    run(out, BASE.replace("600", "700"))
    assert played == ["probe_of"] * 2  # for more paths; the methods are as they were
    run(out, 'method = "auto"' + BASE.replace('ts:0.8"', 'ts:0.7"'))
    assert played[2:] == ["choose_method", "probe_of", "probe_of"]
    run(out, 'method = "step"' + BASE.replace("600", "700"))
    assert played[5:] == ["choose_method", "probe_of"] * 2  # control: asked for something else
    (out / "manifest.json").unlink()
    run(out, BASE, rebuild=True)
    assert len(played) == 13  # control: nothing is known


def test_a_file_is_not_made_again_by_a_machine_that_rounds_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    digest = run(out).digest
    monkeypatch.setattr(cells_module, "probe_of", lambda *played: b"a last bit that is another")
    assert run(out).digest == digest
    next(out.rglob("*.parquet")).unlink()
    with pytest.raises(
        BadInput, match="must be finished by a machine that rounds like the machine that began it"
    ):
        run(out)


def test_a_damaged_file_is_found_out_and_made_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(out)
    whole = files(out)
    names = [name for name in whole if name.endswith(".parquet")]
    for listed in (True, False):  # in the manifest, or on its own, as after a kill
        for name, harm in zip(names, ("a reward", "cut", "empty", "other", "the middle"), strict=False):
            content = bytearray(whole[name])
            content[100 if harm == "a reward" else len(content) // 2] ^= 1
            damage = {"cut": content[:-9], "empty": b"", "other": whole[names[-1]]}.get(harm, content)
            (out / name).write_bytes(damage)
        if not listed:
            manifest = json.loads(whole["manifest.json"])
            for cell in manifest["cells"]:
                cell["files"] = []
            (out / "manifest.json").write_text(json.dumps(manifest))
        done = run(out)
        assert sorted(str(path.relative_to(out)) for path in done.damaged) == sorted(names[:5])
        assert done.played == 5
        assert files(out) == whole


def test_what_a_killed_run_left_is_cleared_away(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(out)
    whole = files(out)
    (name, *_) = (name for name in whole if name.endswith(".parquet"))
    (out / ".manifest.json.a1b2c3d4").write_text("half")
    (out / name).with_name(f".{Path(name).name}.zz_y1234").write_text("half")
    (out / "notes.txt").write_text("mine")
    run(out)
    assert files(out) == whole | {"notes.txt": b"mine"}


def test_folders_of_others_are_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").touch()
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "manifest.json").write_text('{"name": "my web page"}')
    (tmp_path / "d").touch()
    before = files(tmp_path)
    refusals = [
        ("a", BASE.replace('"small"', '"other"'), "holds study 'small'"),
        ("b", BASE, "without 'thesis.tex'"),
        ("c", BASE, "a folder whose manifest.json is that of a study"),
        ("d", BASE, "out must be a folder"),
    ]
    for place, text, said in refusals:
        with pytest.raises(BadInput, match=said):
            run(tmp_path / place, text)
    for name in folder.versions():
        now = folder.versions() | {name: "9.9"}
        with monkeypatch.context() as patch:
            patch.setattr(folder, "versions", lambda now=now: now)
            with pytest.raises(BadInput, match=rf"made by {name} 9\.9.*was made by"):
                run(tmp_path / "a")
    assert files(tmp_path) == before


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    study = study_of()
    with folder.opened(tmp_path / "out", study, []), pytest.raises(BadInput, match="no other run is at work"):
        run(tmp_path / "out")
    assert run(tmp_path / "out").complete  # the lock is gone with its holder


def test_a_full_disk_leaves_what_was_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "whole")
    whole = files(tmp_path / "whole")
    synced, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        synced(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            folder.NotWritten, match=r"could not be written \(no space left on device\): the finished"
        ):
            run(tmp_path / "out")
    left = files(tmp_path / "out")
    pieces = {name for name in left if name.endswith(".parquet")}
    assert len(pieces) == 7  # the first of the eight was the manifest
    assert all(left[name] == whole[name] for name in pieces)
    assert set(left) == pieces | {"manifest.json"}
    assert run(tmp_path / "out").played == 26 - 7
    assert files(tmp_path / "out") == whole


FULL = """
import resource, sys
from lighttail.study import cells
from lighttail import cli
cells.PIECE_BLOCKS = 1
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
cli.main()
"""


def test_a_file_that_the_system_cuts_short_is_no_file(tmp_path: Path) -> None:
    """The real thing, in a process that may not write more than so many bytes to a file."""
    text = BASE.replace("[2000]", "[2000, 20]")  # at 20 pulls a piece is 4,096 paths, too large for the limit
    run(tmp_path / "whole", text)
    whole = files(tmp_path / "whole")
    limit = max(len(content) for content in whole.values()) + 1000
    (tmp_path / "study.toml").write_text(text.replace("600", "5000"))

    def played(most: int, out: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", FULL, str(most), "run", tmp_path / "study.toml"]
        return subprocess.run(
            [*command, "--out", tmp_path / out], capture_output=True, text=True, check=False
        )

    assert played(resource.RLIM_INFINITY, "larger").returncode == 0  # keeps every kernel that is compiled
    done = played(limit, "out")
    assert done.returncode == 1
    assert done.stderr.startswith(f"lighttail: {tmp_path}/out/cells/two_")
    assert done.stderr.count("\n") == 1
    assert "file too large" in done.stderr
    for name in files(tmp_path / "out"):
        assert Path(name).name == "manifest.json" or name.endswith(".parquet")
    assert run(tmp_path / "out", text.replace("600", "5000")).damaged == []


def test_a_budget_stops_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = folder.Folder.keep

    def slow(*args: Any) -> None:
        time.sleep(0.05)
        keep(*args)

    monkeypatch.setattr(folder.Folder, "keep", slow)
    played, turns = 0, 0
    while True:
        done = run(tmp_path / "out", budget=0.2)
        played, turns = played + done.played, turns + 1
        if done.complete:
            break
        results = load_study(tmp_path / "out")
        assert results.finished == done.finished == played
        counts = [len(cell["files"]) for cell in results.manifest["cells"]]  # of 3, 3, 10 and 10
        ahead = max(counts) - 2
        assert all(count >= min(whole, ahead) for count, whole in zip(counts, (3, 3, 10, 10), strict=True))
    assert played == 26  # nothing twice
    assert turns > 2
    run(tmp_path / "whole")
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_a_task_that_fails_is_tried_again_and_then_named(tmp_path: Path) -> None:
    class Flaky(ThreadPoolExecutor):
        failures = 2

        def submit(self, function: Any, *args: Any) -> Any:  # type: ignore[override]
            if self.failures:
                self.failures -= 1
                return super().submit(divmod, 1, 0)
            return super().submit(function, *args)

    with Flaky(2) as pool:
        assert run(tmp_path / "out", executor=pool, workers=None).complete
        pool.failures = 100
        with pytest.raises(BlocksFailed, match=r"block \d of simulate.*failed 3 times"):
            run(tmp_path / "other", executor=pool, workers=None)
    assert run(tmp_path / "other").complete


def test_a_device_that_cannot_be_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """tests/test_gpu.py plays a study on one."""
    wrong = [
        ({"device": "tpu", "workers": None}, "device must be cpu or cuda"),
        ({"device": "cuda", "workers": 2}, "device must be cpu if"),
        ({"device": "cuda", "workers": None}, "device must be 'cpu' without"),
    ]
    for settings, said in wrong:
        with pytest.raises(BadInput, match=said):
            run(tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"executor": "thread"}, "executor must be threads, processes or dask:ADDRESS, but is 'thread'"),
        ({"executor": 3}, "executor must be a concurrent.futures.Executor"),
        ({"workers": 0}, "workers must be a whole number of at least 1"),
        ({"executor": "dask:tcp://127.0.0.1:1"}, "workers must be left out"),
        ({"budget": 0.0}, "budget must be a finite number above 0"),
        ({"executor": "dask:nowhere", "workers": None}, "scheduler that answers, but is 'dask:nowhere'"),
    ],
)
def test_bad_settings(
    settings: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "CONNECT_SECONDS", 0.5)
    with pytest.raises(BadInput, match=said):
        run(tmp_path / "out", **settings)


def test_a_study_of_too_many_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="paths must be so few that the study has at most 1,000,000 files"):
        run(tmp_path / "out", BASE.replace("600", "1000000000"))


def test_without_pyarrow_one_line_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "lighttail\[studies\]"'):
        run(tmp_path / "out")


CHILD = """
import pathlib, time
from lighttail.study import cells, folder
from lighttail import cli
cells.PIECE_BLOCKS = 1
kept, keep = [], folder.Folder.keep

def few(*given):
    while len(kept) == 6 and not pathlib.Path(GO).exists():
        time.sleep(0.01)
    kept.append(keep(*given))
    return kept[-1]

folder.Folder.keep = few
cli.main()
"""


def test_ctrl_c_ends_a_run_in_one_line_and_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(LONG)
    script = f"GO = {str(tmp_path / 'go')!r}\n{CHILD}"  # it keeps no more than six pieces before the signal
    command = [sys.executable, "-c", script, "run", tmp_path / "study.toml"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            while child.poll() is None and len(list(tmp_path.glob("small/cells/*/0*"))) < 5:
                time.sleep(0.005)
            child.send_signal(signal.SIGINT)
            (tmp_path / "go").touch()
            out, err = child.communicate(timeout=600)
        finally:
            child.kill()
    results = load_study(tmp_path / "small")
    so_far = f"{results.finished} of {results.pieces} files are there"
    again = f"Resume with: lighttail run {tmp_path / 'study.toml'}"
    assert (child.returncode, out, err) == (130, "", f"lighttail: stopped: {so_far}. {again}\n")
    assert 5 <= results.finished < results.pieces
    assert not list(tmp_path.glob("small/**/.0*"))
    done = run(tmp_path / "small", LONG)
    assert done.complete
    assert done.played == done.pieces - results.finished


def test_worker_processes_end_with_a_caller_that_is_killed(tmp_path: Path) -> None:
    script = """
import multiprocessing, sys, time
from lighttail.study.run import pool_of
if __name__ == "__main__":
    with pool_of("processes", 1, "cpu") as pool:
        import os
        print(pool.submit(os.getpid).result(), flush=True)
        time.sleep(600)
"""
    (tmp_path / "caller.py").write_text(script)
    with subprocess.Popen(
        [sys.executable, tmp_path / "caller.py"], stdout=subprocess.PIPE, text=True
    ) as caller:
        worker = int(caller.stdout.readline())
        os.kill(worker, 0)  # it is there
        caller.kill()
    until = time.monotonic() + 300
    while time.monotonic() < until:
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{worker}/stat").exists():
            state = Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[0]
            if state == "Z":
                return  # it ended; nobody has asked for its exit code
        time.sleep(0.05)
    raise AssertionError("the worker is still there")
