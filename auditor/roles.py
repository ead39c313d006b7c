"""What the inputs and states of a graph are for: the query, the cache, positions; read off names and shapes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import product

from auditor.values import Tensor, Value
from rules.facts import Role

_SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])")

_CONV = {"conv", "convs", "shortconv", "tail", "tails"}
_RECURRENT = {
    "rec",
    "ssm",
    "recurrent",
    "gdn",
    "delta",
    "mamba",
    "rwkv",
    "wkv",
    "shift",
    "lstm",
    "gru",
    "prev",
    "hs",
    "hidden",
    "h0",
    "c0",
    "lin",
    "linear",
}
_COUNTER = {"counter", "offset", "step", "len", "length", "pos", "position", "index", "cursor"}
_KEY = {"k", "key", "keys", "kcache"}
_VALUE = {"v", "value", "values", "vcache"}
_UNIFIED = {"kv", "kvcache", "past", "cache"}
_LATENT = {"latent", "ckv", "lora", "mla"}

_QUERY = (
    "input_ids",
    "inputs_embeds",
    "input_embeds",
    "inputs_embed",
    "token_ids",
    "tokens",
    "ids",
    "inputs",
    "input",
    "token",
    "embeds",
    "embedding",
    "hidden_states",
    "hidden",
    "x",
    "latent",
)
_WHERE = {"position", "positions", "pos", "mask", "rope", "cos", "sin", "step", "offset", "index", "slot"}
_NOT_QUERY = _WHERE | {
    "image",
    "audio",
    "vision",
    "shift",
    "deepstack",
    "pixel",
    "per",
    "temperature",
    "feats",
    "length",
    "len",
    "scale",
    "cache",
    "state",
    # what counts tokens is none of them
    "max",
    "min",
    "num",
    "number",
    "count",
    "limit",
}


LOGIT_NAMES = {"logits", "logit", "scores", "probs", "probabilities"}
_STOP = {"eos", "stop"}
_HIDDEN_OUT = {"hidden", "embed", "embeds", "embedding", "embeddings", "feat", "feats", "feature", "features"} | {
    "latent",
    "latents",
    "cond",
    "condition",
    "conditioning",
}
_SIGNAL = {"pcm", "wav", "waveform", "audio", "mel", "spectrogram", "image", "pixels"}


def words(name: str) -> list[str]:
    """`keyCache_0` -> [`key`, `cache`, `0`]."""
    return [w.lower() for w in _SPLIT.split(name) if w]


_used: ContextVar[frozenset[str]] = ContextVar("used", default=frozenset())


@contextmanager
def used_as_caches(names: Collection[str]) -> Iterator[None]:
    """Meanwhile these names, which say nothing themselves, are those of caches (see `graph_facts/uses.py`)."""
    before = _used.set(_used.get().union(names))  # names are asked for what they say in many unrelated places
    try:
        yield
    finally:
        _used.reset(before)


def role_by_name(name: str) -> Role:
    """The role that a state's name says, or UNKNOWN."""
    role = said_role(name)
    return Role.KV_UNIFIED if role is Role.UNKNOWN and name in _used.get() else role


def said_role(name: str) -> Role:
    """The role that a name says by itself, or UNKNOWN."""
    parts = set(words(name))
    joined = "".join(words(name))
    if parts & _CONV:
        return Role.CONV
    if parts & _COUNTER and not parts & (_KEY | _VALUE | {"kv"}):
        return Role.COUNTER
    if parts & _LATENT:
        return Role.MLA_LATENT
    if parts & _KEY and not parts & {"value", "v"}:
        return Role.KV_KEY
    if parts & _VALUE and not parts & {"key", "k"}:
        return Role.KV_VALUE
    if parts & _RECURRENT:
        return Role.RECURRENT
    if parts & _UNIFIED or "kvcache" in joined:
        return Role.KV_UNIFIED
    if parts & _COUNTER:
        return Role.COUNTER
    return Role.UNKNOWN


_HIDDEN = {"h", "hx", "hidden"}
_CELL = {"c", "cx", "cell"}
_CARRIED = {"state", "states", "cache", "in", "prev", "past"}


def recurrent_inputs(inputs: Sequence[tuple[str, Value]]) -> dict[str, Role]:
    """Ordinary inputs that carry a recurrent or convolutional state: name -> role.

    Either the name says both what it is and that it is a state (`lstm_state`, `conv_cache`), or two inputs of one
    shape are the hidden and the cell state of an LSTM (`h_in` and `c_in`, `hidden_state` and `cell_state`).
    """
    found: dict[str, Role] = {}
    for name, _ in inputs:
        parts = set(words(name))
        if parts & {"lstm", "gru", "rnn", "ssm", "recurrent", "rwkv", "wkv", "mamba"} and parts & _CARRIED:
            found[name] = Role.RECURRENT
        elif parts & {"conv", "shortconv"} and parts & _CARRIED:
            found[name] = Role.CONV
    hidden = [(n, v) for n, v in inputs if set(words(n)) & _HIDDEN]
    cells = [(n, v) for n, v in inputs if set(words(n)) & _CELL]
    for (one, a), (other, b) in product(hidden, cells):
        alike = isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape
        if alike and [w for w in words(one) if w not in _HIDDEN] == [w for w in words(other) if w not in _CELL]:
            found |= {one: Role.RECURRENT, other: Role.RECURRENT}
    return found


_DIRECTION = {"in", "out", "new", "old", "next", "prev", "previous", "past", "present", "updated", "input", "output"}
NO_STATE = {"hidden", "embed", "embeds", "embedding", "embeddings", "mask", "x"}


def carried(inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """Inputs that come out again under the same name, but for the direction: `k_0` and `new_k_0`, `h_in` and `h_out`.

    Hidden states and masks that go through a part of a model are none.
    """

    def plain(name: str) -> tuple[str, ...]:
        return tuple(w for w in words(name) if w not in _DIRECTION)

    given = {plain(name) for name in outputs if set(words(name)) & _DIRECTION}
    both = {plain(name) for name in outputs}
    return [
        name
        for name in inputs
        if (own := plain(name))
        and not set(own) & NO_STATE
        and (own in given or (own in both and set(words(name)) & _DIRECTION))
    ]


def comes_back(inputs: Sequence[str], output: str) -> bool:
    """Whether an output has the name of an input, but for the direction: hidden states of an LSTM included."""
    given = [w for w in words(output) if w not in _DIRECTION]
    return any(given == [w for w in words(name) if w not in _DIRECTION] for name in inputs)


_SAYS_WHERE = {"mask", "masks", "pos", "position", "positions", "offset", "index", "idx", "len", "length"}


def is_cache_name(name: str) -> bool:
    """Whether an ordinary input of that name is a KV cache: it says key, value, kv or past, and cache or state.

    What says where something is written or read (`kv_write_mask`, `kv_cache_len`) is none.
    """
    parts = set(words(name))
    role = role_by_name(name)
    return (
        role.is_kv
        and not parts & _SAYS_WHERE
        and bool(parts & {"cache", "past", "kv", "kvcache", "state"} or "cache" in name.lower())
    )


def says_cache(option: str) -> bool:
    """Whether an option is named for a cache that it adds: `--use_past`, `--kv-cache`, `--stateful`."""
    return bool(set(words(option)) & {"past", "cache", "kv", "kvcache", "stateful"})


def cache_names(names: Sequence[str]) -> list[str]:
    """The names of caches among those of a graph's inputs or outputs: by themselves, or as pairs (`k_0` and `v_0`)."""
    given = {tuple(words(n)): n for n in names}
    pairs = [("k", "v"), ("key", "value"), ("keys", "values")]
    paired = {
        given[parts]
        for parts in given
        for one, other in pairs
        for a, b in ((one, other), (other, one))
        if a in parts
        and ("*" in given[parts] or any(w.isdigit() for w in parts))
        and tuple(b if w == a else w for w in parts) in given
    }
    return [n for n in names if n in paired or is_cache_name(n)]


def is_logits_name(name: str) -> bool:
    """Whether an output of that name is said to be logits; the flag that ends speech (`eos_logit`) is none."""
    parts = set(words(name))
    return bool(parts & LOGIT_NAMES) and not parts & _STOP


def no_logits_name(names: Sequence[str]) -> str | None:
    """The output that is said to be hidden states or a signal, when every other one is a cache or a stop flag."""
    caches = set(cache_names(names))
    said = [n for n in names if set(words(n)) & (_HIDDEN_OUT | _SIGNAL)]
    rest = [n for n in names if n not in said and n not in caches and not set(words(n)) & _STOP]
    return said[0] if said and not rest and not any(map(is_logits_name, names)) else None


_ENCODES = {"encoder", "enc", "conformer", "vocoder", "codec"}
_DECODES = {"decoder", "dec", "decode", "causal", "lm", "llm", "generation"}


def encoder_name(names: Sequence[str]) -> str | None:
    """The name that says a network encodes or makes a signal; None when there is none, or one that says it decodes."""
    parts = [(n, set(words(n))) for n in names]
    if any(p & (_DECODES | LOGIT_NAMES) for _, p in parts):
        return None
    return next((n for n, p in parts if p & _ENCODES), None)


_HIDDEN_STATE = {"hidden", "state"}


def is_recurrent_beside(name: str, others: Sequence[str]) -> bool:
    """Whether `hidden_state` is that of a recurrent network, beside what such a network reads.

    Beside masks and positions alone it is what goes into a part of a model.
    """
    return set(words(name)) == _HIDDEN_STATE and not all(set(words(n)) & _WHERE for n in others)


def query_rank(name: str) -> int:
    """How much a name sounds like the query: lower is better, 1000 and more is no query."""
    lower = name.lower()
    if lower in _QUERY:
        return _QUERY.index(lower)
    parts = set(words(name))
    if parts == _HIDDEN_STATE:
        return 600
    if parts & _NOT_QUERY:
        return 1000
    for n, q in enumerate(_QUERY):
        if q in lower and len(q) > 2:
            return 100 + n
    return 500


def is_state_name(name: str) -> bool:
    """Whether a buffer of that name may be a state: it says cache, past or state, or a recurrent kind of state."""
    parts = set(words(name))
    return is_cache_name(name) or bool(
        parts & {"cache", "state", "states", "past", "ssm", "rec", "shift"} or "cache" in name.lower()
    )
