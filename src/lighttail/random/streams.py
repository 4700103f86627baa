"""Random numbers: one generator a block, and the two draws that everything is made of.

Every random number in lighttail is `standard_normal(rng)` or `uniform(rng)`. Plain Python takes
them from NumPy's `Generator`; the compiled kernels take the very same numbers from the same
generator (`lighttail.kernels.draws`), so that both see one stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def standard_normal(rng: Any) -> float:
    """One draw of N(0, 1)."""
    return rng.standard_normal()  # type: ignore[no-any-return]


def uniform(rng: Any) -> float:
    """One draw, uniform on [0, 1)."""
    return rng.random()  # type: ignore[no-any-return]


def block_generator(seed: int, block: int) -> np.random.Generator:
    """The generator of one block: a function of the seed and the block's number alone."""
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(block,))
    return np.random.Generator(np.random.SFC64(sequence))


def words_drawn(generator: np.random.Generator) -> int:
    """Random words that a generator has given so far, and a constant: SFC64 keeps a counter in its state."""
    state: Any = generator.bit_generator.state
    return int(state["state"]["state"][3])
