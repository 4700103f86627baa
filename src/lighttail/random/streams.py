"""Random numbers: one generator per block, and the two draws from which all others are made.

Every random number in lighttail is made from `standard_normal(rng)` and `uniform(rng)`. Plain Python takes
these draws from NumPy's `Generator`. The compiled kernels take the same numbers from the same generator
(`lighttail.kernels.draws`), so that both see one stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def standard_normal(rng: Any) -> float:
    """One draw of N(0, 1)."""
    return rng.standard_normal()  # type: ignore[no-any-return]


def uniform(rng: Any) -> float:
    """One draw of the uniform law on [0, 1)."""
    return rng.random()  # type: ignore[no-any-return]


def block_generator(seed: int, block: int) -> np.random.Generator:
    """The generator of one block, which depends only on the seed and the number of the block."""
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(block,))
    return np.random.Generator(np.random.SFC64(sequence))


def seed_from(*numbers: int) -> int:
    """A seed of 128 bits that depends on these numbers."""
    state = np.random.SeedSequence(numbers).generate_state(2, np.uint64)
    return int(state[0]) << 64 | int(state[1])


def draws_made(generator: np.random.Generator) -> int:
    """How many numbers a generator has drawn so far, plus a constant: SFC64 keeps a counter in its state."""
    state: Any = generator.bit_generator.state
    return int(state["state"]["state"][3])
