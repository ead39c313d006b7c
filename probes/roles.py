"""The role of a state, from its name and shape; and what these cannot tell."""

from __future__ import annotations

import re

from probes.signature import Port, position_axis
from rules.facts import Place, Role, State

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_CONV = frozenset({"conv", "convolution"})
_RECURRENT = frozenset(
    {
        "rec",
        "recurrent",
        "ssm",
        "shift",
        "delta",
        "gdn",
        "lru",
        "prev",
        "wkv",
        "rwkv",
        "mamba",
        "hidden",
        "hs",
        "memory",
    }
)
_LATENT = frozenset({"latent", "latents", "mla", "ckv", "kpe"})
_KEY = frozenset({"k", "key", "keys"})
_VALUE = frozenset({"v", "value", "values"})
_COUNTER = frozenset({"pos", "position", "offset", "counter", "step", "length", "len"})
_CACHE = frozenset({Role.MLA_LATENT, Role.KV_UNIFIED, Role.KV_KEY, Role.KV_VALUE})

FIXED = "fixed shape: a cache of that capacity or a ring; only a rewind past it tells"
NOT_INDEXED = "its name says nothing and no dimension of it counts positions"


def role_of(port: Port) -> tuple[Role, str]:
    """The role and, where a signature leaves room for doubt, the doubt.

    A dynamic dimension outweighs a name: only a position-indexed state grows. A name outweighs the lack of one: a cache
    may have a fixed capacity. Neither is a proof; the gates are.
    """
    named = role_named(port.name)
    if position_axis(port) is not None:
        if named in _CACHE:
            return named, ""
        return Role.KV_UNIFIED, f"named like {named}, and one dimension counts positions"
    if named in _CACHE:
        return named, FIXED
    if named is Role.COUNTER and not (port.is_integer and max(port.shape, default=1) == 1):
        return Role.UNKNOWN, NOT_INDEXED
    return named, "" if named is not Role.UNKNOWN else NOT_INDEXED


def role_named(name: str) -> Role:
    """The role that the words of a name suggest (`keyCache`, `k_cache_3`, `convState`)."""
    words = {word.lower() for word in _WORD.findall(name)}
    key, value = bool(words & _KEY), bool(words & _VALUE)
    if words & _CONV:
        return Role.CONV
    if words & _RECURRENT:
        return Role.RECURRENT
    if words & _LATENT or ("kv" in words and words & {"a", "b"}):
        return Role.MLA_LATENT
    if "kv" in words or (key and value):
        return Role.KV_UNIFIED
    if key or value:
        return Role.KV_KEY if key else Role.KV_VALUE
    return Role.COUNTER if words & _COUNTER else Role.UNKNOWN


def state_of(port: Port, bundle: str) -> State:
    """The state as a fact, citing the bundle."""
    role, reason = role_of(port)
    return State(port.name, role, (Place(bundle, 0, str(port)),), reason, tuple(str(dim) for dim in port.shape))
