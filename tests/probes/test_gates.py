"""Each defect is refuted by the gate made for it, for the reason that the gate gives; right graphs pass all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from probes.backend import CapacityError, NotExecutable, OpenOptions, Session
from probes.gates import NAMES, gate
from probes.gates.bench import Bench, BenchOptions
from probes.gates.gate import GateResult
from probes.ports import Positions

coreai = pytest.importorskip("probes.coreai_backend")
pytest.importorskip("coreai.runtime")

Opened = Callable[..., Session]


@pytest.fixture(scope="module")
def opened(bundle: Callable[[str], Path]) -> Iterator[Opened]:
    backend = coreai.CoreAI()

    def make(name: str, graph: str = "main", capacity: int = 96) -> Any:
        return backend.open(str(bundle(name)), graph, OpenOptions(capacity))

    yield make
    backend.close()


def run(session: Session, name: str, **options: int) -> GateResult:
    return gate(name).run(Bench(session, BenchOptions(**{"width": 8, **options})))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("good", ["dense", "fixed", "masked_reads", "start", "counter", "suppressed"])
def test_right_graphs_pass(opened: Opened, good: str, name: str) -> None:
    assert run(opened(good), name).verdict == "confirmed"


@pytest.mark.parametrize("good", ["dense", "dense_f16"])
def test_right_graphs_have_no_delta_at_all(opened: Opened, good: str) -> None:
    session = opened(good)
    rows = run(session, "rows", width=16)
    assert rows.numbers["max_delta_relative"] == 0.0
    assert set(rows.numbers["widths"]) == {str(width) for width in range(2, 17)}
    rewind = run(session, "rewind")
    assert [item["max_delta"] for item in rewind.numbers["rejected"]] == [0.0, 0.0]
    assert rewind.numbers["poison"]["tried"]["nan"]["max_delta"] == 0.0


@pytest.mark.parametrize(
    ("defect", "name", "says"),
    [
        ("last_token", "shape", "1 row for S=2"),
        ("wrong_mask", "rows", "S=2: delta"),
        ("late_mask", "rows", "S=2: delta"),
        ("block_mask", "rows", "S=5 after 43 tokens, not after 40: delta"),
        ("suppressed_wrong_mask", "rows", "S=2: delta"),
        ("offset_wrong_mask", "rows", "S=2: delta"),
        ("edge_mask_f16", "rewind", "after 40 tokens: delta"),
        ("suppressed_hybrid", "rewind", "states that keep what they saw: convState, recState"),
        ("unwritten", "history", "never written: keyCache, valueCache"),
        ("hybrid", "rewind", "states that keep what they saw: convState, recState"),
        ("ring", "rewind", "the cache wraps: position 16 rewrote row 0 of 16"),
    ],
)
def test_each_defect_is_refuted_by_its_gate(opened: Opened, defect: str, name: str, says: str) -> None:
    result = run(opened(defect), name)
    assert result.verdict == "refuted"
    assert says in result.reason


@pytest.mark.parametrize(
    ("defect", "blind"),
    [
        ("wrong_mask", ["shape", "history", "rewind", "repeat"]),
        ("unwritten", ["shape", "rows", "state", "rewind", "repeat"]),
        ("hybrid", ["shape", "rows", "state", "history", "repeat"]),
        ("ring", ["shape", "rows", "state", "history", "repeat"]),
        ("edge_mask_f16", ["shape", "rows", "state", "history", "repeat"]),
        ("block_mask", ["shape", "state", "history", "rewind", "repeat"]),
        ("suppressed_hybrid", ["shape", "rows", "state", "history", "repeat"]),
    ],
)
def test_the_other_gates_are_blind_to_it(opened: Opened, defect: str, blind: list[str]) -> None:
    """Which is why there are six."""
    assert {name: run(opened(defect), name).verdict for name in blind} == dict.fromkeys(blind, "confirmed")


def test_wrong_mask_is_refuted_although_every_argmax_agrees(opened: Opened) -> None:
    numbers = run(opened("wrong_mask"), "rows", width=16).numbers
    assert numbers["argmax_equal"] == numbers["rows"] == 135
    assert numbers["max_delta_relative"] > 0.1


def test_ring_passes_a_short_prompt(opened: Opened) -> None:
    result = run(opened("ring"), "rewind")
    assert max(item["max_delta_relative"] for item in result.numbers["rejected"]) == 0.0
    assert result.numbers["past_capacity"]["rejected"]["max_delta_relative"] > 0.1
    assert result.observed == {"ring-cache": "the cache wraps: position 16 rewrote row 0 of 16"}


def test_what_moves_within_the_tolerance_is_not_nothing(opened: Opened) -> None:
    """The same forwards are compared with themselves, so there is no other order of summation to allow for."""
    result = run(opened("weak_hybrid_f16"), "rewind")
    assert max(item["max_delta_relative"] for item in result.numbers["rejected"]) < result.tolerance.accept
    assert result.verdict == "partial"
    assert "small, but the drafts moved what came after them" in result.reason


def test_a_linear_cache_of_fixed_shape_is_no_ring(opened: Opened) -> None:
    result = run(opened("fixed"), "rewind")
    assert "not a ring" in result.reason
    assert not result.observed


def test_stale_rows_that_are_masked_may_be_read(opened: Opened) -> None:
    """NaN comes through any mask; a number does not."""
    tried = run(opened("masked_reads"), "rewind").numbers["poison"]["tried"]
    assert not tried["nan"]["finite"]
    assert tried["1e3"]["max_delta_relative"] == 0.0


def test_one_position_compares_nothing_and_still_rewinds(opened: Opened) -> None:
    session = opened("static")
    results = {name: run(session, name) for name in ("rows", "state", "shape", "rewind")}
    assert not results["rows"].ran
    assert results["rows"].verdict == results["state"].verdict == results["shape"].verdict == "partial"
    assert results["rewind"].verdict == "confirmed"


def test_one_position_by_request_is_no_property_of_the_graph(opened: Opened) -> None:
    assert run(opened("dense"), "rows", width=1).reason == "no S above 1 was asked for: there is nothing to compare"
    assert run(opened("static"), "rows").reason == "the graph takes S=1 only: there is nothing to compare"


def test_one_fixed_window_is_compared_with_padded_steps(opened: Opened) -> None:
    result = run(opened("window4"), "rows")
    assert result.verdict == "confirmed"
    assert list(result.numbers["widths"]) == ["4"]


def test_positions_one_a_row_have_to_be_asked_for(opened: Opened, bundle: Callable[[str], Path]) -> None:
    backend = coreai.CoreAI()
    session = backend.open(str(bundle("one_a_row")), "main", OpenOptions(96, Positions.ROWS))
    assert run(session, "rows").verdict == "confirmed"
    assert run(session, "rewind").verdict == "confirmed"
    backend.close()


def test_nothing_is_written_past_the_cache(opened: Opened) -> None:
    session = opened("dense", capacity=32)
    session.forward([1] * 4, 28)
    with pytest.raises(CapacityError, match=r"positions 29\.\.32 do not fit a cache of 32 rows"):
        session.forward([1] * 4, 29)


@pytest.mark.parametrize("tokens", [[256], [-1]])
def test_no_token_outside_the_vocabulary_reaches_the_runtime(opened: Opened, tokens: list[int]) -> None:
    with pytest.raises(ValueError, match=r"outside 0\.\.255"):
        opened("dense").forward(tokens, 0)


def test_states_of_another_shape_are_refused(opened: Opened) -> None:
    small, large = opened("dense", capacity=32), opened("dense", capacity=64)
    with pytest.raises(ValueError, match="keyCache has shape"):
        large.reset(small.states())


@pytest.mark.parametrize("name", ["token_out", "hidden_out"])
def test_a_graph_without_logits_is_not_executable(opened: Opened, name: str) -> None:
    with pytest.raises(NotExecutable, match="no logits"):
        opened(name)


def test_the_authored_decoder_is_what_numpy_says(opened: Opened) -> None:
    """The first row of a fresh decoder attends to itself alone, so a few lines of numpy give its logits."""
    import numpy as np
    from authored_decoders import Decoder

    d = Decoder()
    random = np.random.default_rng(d.seed)
    token = 17

    def weight(rows: int, columns: int, scale: float = 1.0) -> Any:
        return (random.standard_normal((rows, columns)) * scale / np.sqrt(rows)).astype(np.float32)

    def norm(x: Any) -> Any:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)

    hidden = random.standard_normal((d.vocab, d.hidden)).astype(np.float32)[token : token + 1]
    for _ in range(d.layers):
        x = norm(hidden)
        weight(d.hidden, d.heads * d.head_size)
        weight(d.hidden, d.kv_heads * d.head_size)
        value = (x @ weight(d.hidden, d.kv_heads * d.head_size)).reshape(d.kv_heads, d.head_size)
        mixed = np.repeat(value, d.heads // d.kv_heads, axis=0).reshape(1, -1)
        hidden = hidden + mixed @ weight(d.heads * d.head_size, d.hidden, d.attention_gain)
        x = norm(hidden)
        gate_ = x @ weight(d.hidden, 2 * d.hidden)
        up = x @ weight(d.hidden, 2 * d.hidden)
        hidden = hidden + (gate_ / (1 + np.exp(-gate_)) * up) @ weight(2 * d.hidden, d.hidden)
    expected = norm(hidden) @ weight(d.hidden, d.vocab, 1.5)
    np.testing.assert_allclose(opened("dense").forward([token], 0), expected, rtol=1e-4, atol=1e-4)
