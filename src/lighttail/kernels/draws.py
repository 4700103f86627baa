"""The two draws of `lighttail.random.streams`, compiled: NumPy's numbers without NumPy's call.

A kernel receives the address of the state of an SFC64 bit generator and changes the state in place, so that
the generator continues in Python where the kernel left it. `standard_normal` and `uniform` return the same
bits as `Generator.standard_normal` and `Generator.random` (a test compares millions of draws). numba's own
support for `Generator` calls back through a function pointer for every number and takes twice as long.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import config
from numba.extending import intrinsic, overload

# The tables of NumPy's ziggurat, as numba keeps them for its own Generator support.
from numba.np.random._constants import fi_double, ki_double, wi_double, ziggurat_nor_inv_r, ziggurat_nor_r

from lighttail.kernels.build import inlined, inner
from lighttail.random.streams import standard_normal, uniform

ONE = np.uint64(1)
EIGHT = np.uint64(8)
ELEVEN = np.uint64(11)
LAYER = np.uint64(0xFF)
MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
INLINED = {"forceinline": True, "no_cfunc_wrapper": True}
UNIT = 1.0 / 9007199254740992.0  # 2^-53


def stream(generator: np.random.Generator) -> Any:
    """The argument `rng` of a kernel; `generator` must live until the call of the kernel ends."""
    if config.DISABLE_JIT:
        return generator
    return np.uint64(generator.bit_generator.ctypes.state_address)


@intrinsic
def next_bits(typingctx: Any, address: Any) -> Any:
    """One step of SFC64 (Doty-Humphrey 2010) on the state at `address`: four numbers of 64 bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = ir.IntType(64)

        def constant(value: int) -> Any:
            return ir.Constant(bits, value)

        base = builder.inttoptr(args[0], bits.as_pointer())
        places = [builder.gep(base, [constant(i)]) for i in range(4)]
        a, b, c, count = (builder.load(place) for place in places)
        result = builder.add(builder.add(a, b), count)
        rotated = builder.or_(builder.shl(c, constant(24)), builder.lshr(c, constant(40)))
        builder.store(builder.xor(b, builder.lshr(b, constant(11))), places[0])
        builder.store(builder.add(c, builder.shl(c, constant(3))), places[1])
        builder.store(builder.add(rotated, result), places[2])
        builder.store(builder.add(count, constant(1)), places[3])
        return result

    return types.uint64(types.uint64), codegen


@inner
def next_uniform(rng: Any) -> Any:
    return np.int64(next_bits(rng) >> ELEVEN) * UNIT


@inlined
def candidate(address: Any) -> Any:
    """A point of the ziggurat, its magnitude as an integer, and its layer."""
    bits = next_bits(address)
    layer = bits & LAYER
    bits >>= EIGHT
    magnitude = (bits >> ONE) & MANTISSA
    sign = np.int64(bits & ONE)
    # The sign is given to the integer, because a branch on a fair coin would be mispredicted.
    return float((np.int64(magnitude) ^ -sign) + sign) * wi_double[layer], magnitude, layer


@inner
def reject(address: Any, x: Any, magnitude: Any, layer: Any) -> Any:
    """The rest of the ziggurat for the 1.5 % of draws that miss its core."""
    while True:
        if layer == 0:
            while True:
                xx = -ziggurat_nor_inv_r * math.log1p(-next_uniform(address))
                yy = -math.log1p(-next_uniform(address))
                if yy + yy > xx * xx:
                    far = ziggurat_nor_r + xx
                    return -far if (magnitude >> EIGHT) & ONE else far
        drop = fi_double[layer - ONE] - fi_double[layer]
        if drop * next_uniform(address) + fi_double[layer] < math.exp(-0.5 * x * x):
            return x
        x, magnitude, layer = candidate(address)
        if magnitude < ki_double[layer]:
            return x


@intrinsic
def reject_out_of_line(typingctx: Any, address: Any, x: Any, magnitude: Any, layer: Any) -> Any:
    """Call `reject` without inlining it, because its registers would spill in every caller's hot loop."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        compiled = context.compile_subroutine(builder, reject, signature)
        function = context.declare_function(builder.module, compiled.fndesc)
        _, result = context.call_conv.call_function(
            builder, function, signature.return_type, signature.args, args, attrs=("noinline",)
        )
        return result

    return types.float64(address, x, magnitude, layer), codegen


@overload(standard_normal, jit_options=INLINED)
def _standard_normal(rng: Any) -> Any:
    def draw(rng: Any) -> Any:
        x, magnitude, layer = candidate(rng)
        return x if magnitude < ki_double[layer] else reject_out_of_line(rng, x, magnitude, layer)

    return draw


@overload(uniform, jit_options=INLINED)
def _uniform(rng: Any) -> Any:
    return next_uniform
