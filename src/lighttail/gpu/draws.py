"""Random numbers on the device: one stream per path, a function of the seed and the path's number alone.

A path's stream is SFC32 (Doty-Humphrey 2010), the 32-bit sister of the generator that the CPU uses: nine
operations per draw. Its state of four numbers comes from Philox4x32-10 (Salmon et al. 2011) with the seed as
the key and the path's number as the counter, so that no path needs the stream of another path. A normal
number is one of a pair (Box and Muller 1958). In single precision a uniform number has 23 random bits and the
radius of a pair has 32, so that no normal number exceeds 6.8; in double precision both have 53.

Every function is plain Python on `state`, uint32[5], and `spare`, an array in the precision of the kernel:
the device, numba's simulator of a device and the oracle of the tests run the same source.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

BITS = np.uint32
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)  # of Philox4x32
STEPS = (0x9E3779B9, 0xBB67AE85)  # of its key
ROUNDS = 10
WARM_UP = 8  # draws of SFC32 that are thrown away, so that all of its state depends on all of the seed
MASK = 0xFFFFFFFF


def seed_state(seed: int) -> Any:
    """The four numbers that stand for a seed: Philox's key, and the upper half of its counter."""
    return np.random.SeedSequence(seed).generate_state(4, np.uint32)


def scrambled(a: Any, b: Any, c: Any, d: Any, key: Any, other: Any) -> Any:
    """Philox4x32-10 of the counter a, b, c, d under a key of two numbers; all are uint64 below 2^32."""
    mask, half = np.uint64(MASK), np.uint64(32)
    first, second = np.uint64(MULTIPLIERS[0]), np.uint64(MULTIPLIERS[1])
    for _ in range(ROUNDS):
        left, right = first * a, second * c
        a, b, c, d = (right >> half) ^ b ^ key, right & mask, (left >> half) ^ d ^ other, left & mask
        key = (key + np.uint64(STEPS[0])) & mask
        other = (other + np.uint64(STEPS[1])) & mask
    return a, b, c, d


def begin(state: Any, seed: Any, number: Any) -> None:
    """Set `state` to the beginning of the stream of a path, whose number is below 2^64."""
    low, high = np.uint64(number & np.uint64(MASK)), np.uint64(number >> np.uint64(32))
    key, other = np.uint64(seed[0]), np.uint64(seed[1])
    upper, uppermost = np.uint64(seed[2]), np.uint64(seed[3])
    a, b, c, d = scrambled(low, high, upper, uppermost, key, other)
    state[0], state[1], state[2], state[3] = BITS(a), BITS(b), BITS(c), BITS(d)
    state[4] = BITS(0)  # whether a normal number is left over
    for _ in range(WARM_UP):
        next_bits(state)


def next_bits(state: Any) -> Any:
    """One step of SFC32."""
    a, b, c, count = state[0], state[1], state[2], state[3]
    result = BITS((np.uint64(a) + np.uint64(b) + np.uint64(count)) & np.uint64(MASK))
    rotated = BITS(c << BITS(21)) | BITS(c >> BITS(11))
    state[0] = b ^ BITS(b >> BITS(9))
    state[1] = BITS((np.uint64(c) * np.uint64(9)) & np.uint64(MASK))
    state[2] = BITS((np.uint64(rotated) + np.uint64(result)) & np.uint64(MASK))
    state[3] = BITS((np.uint64(count) + np.uint64(1)) & np.uint64(MASK))
    return result


def draws_for(real: Any, device: Any) -> tuple[Any, Any]:
    """standard_normal(rng) and uniform(rng) of `lighttail.random` in one precision; rng = (state, spare).

    device: makes a function callable on the device.
    """
    bits = device(next_bits)
    single = real is np.float32
    half, tiny = real(0.5), real(2.0**-32)
    fine, coarse = real(2.0**-53), real(2.0**-23)
    circle, minus_two, nothing = real(2.0 * math.pi), real(-2.0), real(0.0)

    def uniform(rng: Any) -> Any:
        """Between 0 and 1: with 23 bits neither 0 nor 1, with 53 bits 0 but not 1."""
        state, _ = rng
        if single:
            return (real(np.int32(bits(state) >> BITS(9))) + half) * coarse
        upper = np.int64(bits(state) >> BITS(5))
        lower = np.int64(bits(state) >> BITS(6))
        return real(upper * np.int64(67108864) + lower) * fine

    unit = device(uniform)

    def standard_normal(rng: Any) -> Any:
        """One of the two normals that two uniforms give; the other one is kept for the next call."""
        state, spare = rng
        if state[4] != BITS(0):
            state[4] = BITS(0)
            return spare[0]
        state[4] = BITS(1)
        share = (real(bits(state)) + half) * tiny if single else real(1.0) - unit(rng)  # never 0
        radius = math.sqrt(max(nothing, minus_two * math.log(share)))  # an approximate log may pass 0
        angle = circle * unit(rng)
        spare[0] = radius * math.sin(angle)
        return radius * math.cos(angle)

    return device(standard_normal), unit
