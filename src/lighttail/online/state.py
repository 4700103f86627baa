"""Policies and generators as plain JSON, and back."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from lighttail.bonuses import Bonus
from lighttail.policies import Policy


def encode(settings: Any) -> Any:
    """A policy or bonus as {"type": its class, field: value, ...}."""
    if not is_dataclass(settings):
        return settings
    values = {f.name: encode(getattr(settings, f.name)) for f in fields(settings)}
    return {"type": type(settings).__name__, **values}


def decode(settings: Any) -> Any:
    """What `encode` wrote, made anew from the classes that are loaded."""
    if not isinstance(settings, dict):
        return settings
    values = {name: decode(value) for name, value in settings.items() if name != "type"}
    return _class_named(settings["type"])(**values)


def _class_named(name: str) -> type:
    found = [cls for base in (Policy, Bonus) for cls in _below(base) if cls.__name__ == name]
    if len(found) != 1:
        known = sorted({cls.__name__ for base in (Policy, Bonus) for cls in _below(base)})
        what = "is not known" if not found else f"names {len(found)} classes"
        raise ValueError(
            f"the policy class {name!r} {what}; known are {', '.join(known)}. "
            "Import the module that defines your own class first"
        )
    return found[0]


def _below(base: type) -> set[type]:
    children: set[type] = set(base.__subclasses__())
    nested = {cls for child in children for cls in _below(child)}
    return {cls for cls in children | nested if not cls.__name__.startswith("_")}


def encode_generator(rng: np.random.Generator) -> Any:
    """The generator's exact state."""
    return _to_plain(rng.bit_generator.state)


def decode_generator(state: Any) -> np.random.Generator:
    """A generator that continues from that state."""
    plain = _from_plain(state)
    kinds = ("SFC64", "PCG64", "PCG64DXSM", "Philox", "MT19937")
    if plain["bit_generator"] not in kinds:
        raise ValueError(f"rng must be one of {', '.join(kinds)}, but is {plain['bit_generator']!r}")
    bits = getattr(np.random, plain["bit_generator"])(0)
    bits.state = plain
    return np.random.Generator(bits)


def _to_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype), "values": value.tolist()}
    return int(value) if isinstance(value, np.integer) else value


def _from_plain(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"dtype", "values"}:
        return np.array(value["values"], dtype=value["dtype"])
    if isinstance(value, dict):
        return {name: _from_plain(entry) for name, entry in value.items()}
    return value
