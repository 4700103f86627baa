"""Uses an installed lighttail for a few seconds. The arguments are the extras that are installed with it.

    python -I release/smoke.py serve studies

-I keeps the sources beside this file out of the way.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import lighttail as lt

MODULES = {  # what must be importable with an extra
    "frames": ("pandas",),
    "cluster": ("dask", "distributed"),
    "gpu": ("numba_cuda",),
    "studies": ("pyarrow.parquet", "lighttail.study"),
    "serve": ("fastapi", "uvicorn", "httptools", "psycopg", "lighttail.server.app", "lighttail.live"),
}
COMMANDS = {"studies": (["run"], ["report"]), "serve": (["serve"], ["keys"], ["journal"])}


def main(extras: list[str]) -> None:
    assert "site-packages" in lt.__file__, lt.__file__
    folder = Path(lt.__file__).parent
    assert (folder / "py.typed").exists()
    use()
    assert f"lighttail {lt.__version__}" in command("--version")
    for words in (["compare"], ["plan"], ["tail"]):
        assert "--help" in command(*words, "--help")
    for extra in extras:
        for module in MODULES[extra]:
            importlib.import_module(module)
        for words in COMMANDS.get(extra, ()):
            assert "--help" in command(*words, "--help")
    print(f"lighttail {lt.__version__} works on Python {sys.version.split()[0]}", *extras)


def use() -> None:
    """Simulate, ask for a tail, and play a live experiment."""
    policy, problem = lt.UCB(lt.LightTailed(kappa=0.2)), lt.Bandit([0.2, 0.8])
    out = lt.simulate(policy, problem, horizon=100, paths=500, seed=1)
    assert 0.0 < float(out.mean()) < 60.0
    chance = lt.tail_probability(policy, problem, horizon=100, regret=30, seed=1)
    assert 0.0 < chance.low <= float(chance) <= chance.high < 0.2
    experiment = lt.Experiment(lt.UCB(lt.AnyTime(kappa=0.5)), arms=["A", "B"], seed=1)
    trial = experiment.ask()
    experiment.tell(trial.id, reward=1.0)
    assert sum(experiment.pulls.values()) == 1


def command(*words: str) -> str:
    """What the program prints. It lies beside this Python."""
    program = Path(sys.executable).with_name("lighttail")
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(sys.argv[1:])
