"""What a new process costs: the import, and the main job with its kernels in the on-disk cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 7
UNSAVED = "PYTHONDONTWRITEBYTECODE"  # an installed package has its bytecode: so do these processes


def seconds(*command: str) -> float:
    place = {name: value for name, value in os.environ.items() if name != UNSAVED}
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=place)
    return time.perf_counter() - start


def main() -> int:
    pairs = [
        (
            seconds(sys.executable, "-c", "import numpy"),
            seconds(sys.executable, "-c", "import lighttail"),
        )
        for _ in range(ROUNDS)
    ]
    numpy, lighttail = (min(column) for column in zip(*pairs, strict=True))
    added = lighttail - numpy
    print(f"import lighttail: {added:.3f} s on top of NumPy's {numpy:.3f} s (< 0.1 s)")
    program = str(Path(sys.executable).with_name("lighttail"))
    with tempfile.TemporaryDirectory() as folder:
        command = (program, "compare", "--out", folder)
        seconds(*command)  # fills the cache
        warm = min(seconds(*command) for _ in range(3))
    print(f"lighttail compare with its defaults, warm: {warm:.2f} s (< 5 s)")
    return 1 if added >= 0.1 or warm >= 5.0 else 0


if __name__ == "__main__":
    sys.exit(main())
