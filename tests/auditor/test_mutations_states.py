"""What the states are: what cannot be rewound, caches that wrap, caches that travel as inputs and outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.edits import (
    CONVERTER,
    HYBRID,
    IO,
    RING,
    START,
    STATE_LIST,
    UNKNOWN_KIND,
    UNKNOWN_LOGITS,
    UNKNOWN_ROLE,
    UNKNOWN_STATES,
    WRITE_KEYS,
    Mutation,
    after,
    after_norm,
    before,
    built,
    check_broken,
    may,
    returned,
    third_input,
    third_state,
)

CONV = "conv_state[:] = torch.cat([conv_state, x.transpose(1, 2)], -1)[..., -3:]"
CONV_SHAPE = "1, HIDDEN, 3"
UNSURE = may(HYBRID, UNKNOWN_ROLE, UNKNOWN_STATES, UNKNOWN_KIND)

STATES: dict[str, Mutation] = {
    "a convolution": (third_state("convState", "conv_state", CONV_SHAPE, CONV), may(HYBRID)),
    "a recurrence": (
        third_state("recState", "rec_state", "1, HIDDEN", "rec_state.copy_(rec_state * 0.5 + x.sum(1))"),
        may(HYBRID),
    ),
    "a shifted token": (third_state("shiftState", "shift", "1, 1, HIDDEN", "shift[:] = x[:, -1:]"), may(HYBRID)),
    "a recurrence by another name": (
        third_state("ssmCache", "ssm", "1, HIDDEN", "ssm.mul_(0.5).add_(x.sum(1))"),
        may(HYBRID),
    ),
    "a name that says nothing": (
        third_state("memory", "memory", "1, HIDDEN", "memory.add_(x.sum(1))"),
        may(HYBRID, UNKNOWN_ROLE),
    ),
    "a convolution under the name of a cache": (
        third_state("kvCacheB", "conv_state", CONV_SHAPE, CONV),
        UNSURE,
    ),
    "a recurrence under the name of a cache": (
        third_state("kvState", "carry", "1, HIDDEN", "carry.copy_(carry * 0.5 + x.sum(1))"),
        UNSURE,
    ),
    "names that lie: two states, none a cache": (
        (
            (WRITE_KEYS, "        key_cache.copy_(key_cache * 0.5 + k.sum(2, keepdim=True))\n"),
            ("        value_cache[:, :, start:end] = v\n", "        value_cache.mul_(0.5)\n"),
        ),
        may(HYBRID, RING, UNKNOWN_ROLE, UNKNOWN_STATES, UNKNOWN_KIND),
    ),
    "appended to the list": (
        (
            before(CONVERTER, '    STATES.append("convState")\n'),
            after_norm(CONV),
            *third_input("conv_state", CONV_SHAPE),
        ),
        may(HYBRID),
    ),
    "added by an operator": (
        (
            before(CONVERTER, '    global STATES\n    STATES += ["convState"]\n'),
            after_norm(CONV),
            *third_input("conv_state", CONV_SHAPE),
        ),
        may(HYBRID),
    ),
    "one unknown name in the list": (
        (before(CONVERTER, '    import os\n    STATES.append(os.environ["EXTRA"])\n'),),
        may(UNKNOWN_STATES, UNKNOWN_KIND),
    ),
    "names from a file": (
        ((STATE_LIST, 'STATES = open("states.txt").read().split()'),),
        may(UNKNOWN_STATES, UNKNOWN_KIND),
    ),
    "names from an unread module": (
        ((STATE_LIST, "from missing_package import STATES"),),
        may(UNKNOWN_STATES, UNKNOWN_KIND),
    ),
    "a buffer that forward writes": (
        (
            after(
                "        self.norm = nn.LayerNorm(HIDDEN)\n",
                '        self.register_buffer("carry", torch.zeros(1, HIDDEN))\n',
            ),
            after_norm("self.carry.copy_(self.carry * 0.5 + x.sum(1)); x = x + self.carry"),
            (STATE_LIST, 'STATES = ["recState", "keyCache", "valueCache"]'),
        ),
        may(HYBRID),
    ),
    "a buffer that nobody declares": (
        (
            after(
                "        self.norm = nn.LayerNorm(HIDDEN)\n",
                '        self.register_buffer("carry", torch.zeros(1, HIDDEN))\n',
            ),
            after_norm("self.carry.copy_(self.carry * 0.5 + x.sum(1)); x = x + self.carry"),
        ),
        UNSURE,
    ),
    "a convolution through inputs and outputs": (
        (
            *third_input("conv_in", CONV_SHAPE),
            after_norm("conv_out = torch.cat([conv_in, x.transpose(1, 2)], -1)[..., -3:]"),
            returned("logits, conv_out"),
            ('input_names=["input_ids", "position_ids"]', 'input_names=["input_ids", "position_ids", "conv_in"]'),
            ('output_names=["logits"]', 'output_names=["logits", "conv_out"]'),
        ),
        may(HYBRID, IO, UNKNOWN_ROLE, UNKNOWN_STATES, UNKNOWN_KIND),
    ),
    "a recurrence through inputs and outputs": (
        (
            *third_input("state_in", "1, HIDDEN"),
            after_norm("state_out = state_in * 0.5 + x.sum(1); x = x + 0.1 * state_in[:, None]"),
            returned("logits, state_out"),
            ('input_names=["input_ids", "position_ids"]', 'input_names=["input_ids", "position_ids", "state_in"]'),
            ('output_names=["logits"]', 'output_names=["logits", "state_out"]'),
        ),
        may(HYBRID, IO, UNKNOWN_ROLE, UNKNOWN_STATES, UNKNOWN_KIND),
    ),
    "the cache as inputs and outputs": (
        (
            ("        key_cache[:, :, start:end] = k\n", "        key_cache = torch.cat([key_cache, k], dim=2)\n"),
            (
                "        value_cache[:, :, start:end] = v\n",
                "        value_cache = torch.cat([value_cache, v], dim=2)\n",
            ),
            ("        return x + self.out(y)\n", "        return x + self.out(y), key_cache, value_cache\n"),
            (
                "            x = layer(x, position_ids, key_cache[i], value_cache[i])\n",
                "            x, keys, values = layer(x, position_ids, key_cache[i], value_cache[i])\n",
            ),
            returned("logits, keys, values"),
            (
                'input_names=["input_ids", "position_ids"], output_names=["logits"], state_names=STATES',
                'input_names=["input_ids", "position_ids", "key_cache", "value_cache"], '
                'output_names=["logits", "new_key_cache", "new_value_cache"]',
            ),
        ),
        may(IO),
    ),
}

RINGS: dict[str, Mutation] = {
    "a start modulo the window": (
        (
            (START, "        start = (end - rows) % 64\n        end = start + rows\n"),
            ("position_ids[:, None, start:, None]", "position_ids[:, None, -rows:, None]"),
            ("position_ids[:, None, None, :] <=", "position_ids[:, None, None, :end] <="),
        ),
        may(RING),
    ),
    "index_copy_ modulo the window": (
        ((WRITE_KEYS, "        key_cache.index_copy_(2, position_ids[0, start:] % 64, k)\n"),),
        may(RING),
    ),
    "an index tensor modulo the window": (
        (
            (
                WRITE_KEYS,
                "        slots = torch.remainder(position_ids[0, start:], 64)\n        key_cache[:, :, slots] = k\n",
            ),
        ),
        may(RING),
    ),
    "scatter_ modulo the window": (
        (
            (
                WRITE_KEYS,
                "        slots = torch.fmod(position_ids[0, start:], 64)[None, None, :, None].expand_as(k)\n"
                "        key_cache.scatter_(2, slots, k)\n",
            ),
        ),
        may(RING),
    ),
    "index_put_ modulo the window": (
        (
            (
                WRITE_KEYS,
                "        slots = position_ids[0, start:].remainder(64)\n"
                "        key_cache.index_put_((torch.tensor(0), slice(None), slots), k)\n",
            ),
        ),
        may(RING),
    ),
    "a masked position": (
        ((WRITE_KEYS, "        key_cache.index_copy_(2, position_ids[0, start:] & 63, k)\n"),),
        may(RING),
    ),
    "the window in a helper": (
        (
            before(
                "class Layer(nn.Module):\n", "def slots(positions, window=64):\n    return positions % window\n\n\n"
            ),
            (WRITE_KEYS, "        key_cache.index_copy_(2, slots(position_ids[0, start:]), k)\n"),
        ),
        may(RING),
    ),
    "a remainder by whole windows": (
        (
            (START, "        start = (end - rows) - (end - rows) // 64 * 64\n"),
            ("key_cache[:, :, start:end] = k", "key_cache[:, :, start:start + rows] = k"),
            ("value_cache[:, :, start:end] = v", "value_cache[:, :, start:start + rows] = v"),
        ),
        may(RING, UNKNOWN_LOGITS),
    ),
    "a window that slides": (
        ((WRITE_KEYS, "        key_cache.copy_(torch.cat([key_cache, k], dim=2)[:, :, -64:])\n"),),
        may(RING, HYBRID),
    ),
    "a window that slides, by item": (
        ((WRITE_KEYS, "        key_cache[:] = torch.cat([key_cache, k], dim=2)[:, :, rows:]\n"),),
        may(RING, HYBRID),
    ),
    "rolled rows": (
        (
            (
                WRITE_KEYS,
                "        key_cache.copy_(torch.roll(key_cache, -rows, dims=2))\n        key_cache[:, :, -rows:] = k\n",
            ),
        ),
        may(RING, HYBRID),
    ),
    "one layer of the model": (
        (
            built("model.layers[1].window = 64\n"),
            after("        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)\n", "        self.window = None\n"),
            (
                WRITE_KEYS,
                "        if self.window is not None:\n"
                "            key_cache.index_copy_(2, position_ids[0, start:] % self.window, k)\n"
                "        else:\n            key_cache[:, :, start:end] = k\n",
            ),
        ),
        may(RING),
    ),
}


@pytest.mark.parametrize("name", sorted(STATES))
def test_a_state_that_cannot_be_rewound_costs_the_verdict(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, STATES[name])


@pytest.mark.parametrize("name", sorted(RINGS))
def test_a_cache_that_wraps_costs_the_verdict(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, RINGS[name])
