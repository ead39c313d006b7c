"""Shape arithmetic: numpy's and Python's own on plain numbers, and what becomes of the query on symbolic ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from auditor import dims
from auditor.dims import Atom, Dim
from auditor.torch.shapes import (
    Shape,
    broadcast,
    broadcast_dim,
    convolved,
    deconvolved,
    drop,
    einsum,
    matmul,
    replace,
    reshape,
    slice_length,
)

q, h = dims.symbol(Atom("q", query=True)), dims.symbol(Atom("h"))
q1, q2, qh, q4 = dims.add(q, 1), dims.mul(2, q), dims.mul(q, h), dims.mul(4, q)

# -- reshape -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [
        ((1, q, 64), (1, q, 4, 16), (1, q, 4, 16)),
        ((1, q, 64), (1, -1, 4, 16), (1, q, 4, 16)),
        ((1, q, 64), (-1, 64), (q, 64)),
        ((1, q, 64), (1, q, -1), (1, q, 64)),
        ((1, q, 64), (1, q, 4, -1), (1, q, 4, 16)),
        ((1, q, h), (1, -1, h), (1, q, h)),
        ((1, q, 4, 16), (1, q, -1), (1, q, 64)),
        ((2, q, 64), (-1, 64), (q2, 64)),
        ((1, q4, 16), (1, 4, -1, 16), (1, 4, q, 16)),
        ((q,), (-1,), (q,)),
        ((2, 3, 4), (-1, 4), (6, 4)),
        ((0, 4), (0, 4), (0, 4)),
    ],
)
def test_reshape_that_fits(source: Shape, target: Shape, shape: Shape) -> None:
    made = reshape(source, target)
    assert made.shape == shape
    assert made.fits is True
    assert not made.one_row
    assert dims.product(made.shape) == dims.product(source)


@pytest.mark.parametrize(
    ("source", "target", "one_row"),
    [
        ((1, q, 64), (1, 1, 64), True),
        ((1, q, 64), (64,), True),
        ((q, h), (1, h), True),
        ((1, q, 64), (1, 8, 64), False),
        ((1, q1, 64), (1, 1, 64), False),
        ((1, q, 64), (1, 1, 48), False),
    ],
)
def test_a_reshape_to_a_fixed_number_of_elements_leaves_a_query_of_any_length(
    source: Shape, target: Shape, one_row: bool
) -> None:
    """It runs for one length of the query only: `one_row` when that length is 1 and no other."""
    made = reshape(source, target)
    assert made.shape == target
    assert made.fits is False
    assert made.one_row is one_row


def test_a_query_cannot_come_out_of_nothing() -> None:
    assert reshape((1, 8, 64), (1, q, 64)).fits is False
    assert reshape((1, h, 64), (1, q, 64)).fits is False


@pytest.mark.parametrize(
    ("source", "target"), [((1, h, 64), (1, 8, 64)), ((1, q, 64), (1, q1, 64)), ((1, q, h), (1, q, 64)), ((8,), (3, 3))]
)
def test_what_cannot_be_told_of_a_reshape(source: Shape, target: Shape) -> None:
    assert reshape(source, target).fits is None


def test_an_inferred_size_that_does_not_divide_is_a_number_nobody_knows() -> None:
    made = reshape((1, q, 64), (-1, 48))
    assert made.fits is None
    assert dims.depends_on_query(made.shape[0])
    assert reshape((1, q, 64), (-1, 48)).shape == made.shape
    assert not dims.depends_on_query(reshape((1, h, 64), (-1, 48)).shape[0])


@pytest.mark.parametrize("target", [(-1,), (6, 4), (-1, 4), (2, -1, 2), (2, 3, 4), (24, 1, -1), (4, 3, 2)])
def test_reshape_of_numbers_is_numpys(target: tuple[int, ...]) -> None:
    assert reshape((2, 3, 4), target).shape == np.zeros((2, 3, 4)).reshape(target).shape


# -- slices ------------------------------------------------------------------------------------------------------------


def test_slices_of_numbers_are_pythons() -> None:
    bounds = [None, 0, 1, 2, 5, 7, -1, -2, -5]
    for size, start, stop, step in itertools.product((1, 2, 5, 6), bounds, bounds, (1, 2, 3)):
        if any(b is not None and b < -size for b in (start, stop)):
            continue  # the program is taken to stay inside
        assert slice_length(size, start, stop, step) == len(range(size)[start:stop:step]), (size, start, stop, step)


@pytest.mark.parametrize(
    ("start", "stop", "step", "length"),
    [
        (None, None, 1, q),
        (0, None, 1, q),
        (None, None, -1, q),
        (-1, None, 1, 1),
        (-4, None, 1, 4),
        (1, None, 1, dims.sub(q, 1)),
        (None, -1, 1, dims.sub(q, 1)),
        (0, 1, 1, 1),
        (None, 8, 1, 8),
        (2, 8, 1, 6),
        (None, q, 1, q),
        (h, dims.add(h, q), 1, q),
        (dims.sub(h, q), h, 1, q),
        (dims.neg(q), None, 1, q),
        (None, None, 2, dims.floordiv(q1, 2)),
        (-3, -1, 1, 2),
    ],
)
def test_slices_of_a_query(start: Dim | None, stop: Dim | None, step: int, length: Dim) -> None:
    assert slice_length(q, start, stop, step) == length


def test_the_end_of_a_cache() -> None:
    """`cache[:, :, end - q : end]` and `cache[:, :, :end]`, with the end known as a sum only."""
    end = dims.add(h, q)
    assert slice_length(512, h, end) == q
    assert slice_length(512, None, end) == end
    assert slice_length(512, dims.neg(q), None) == q
    assert slice_length(4, -8, None) == 4


# -- broadcasting ------------------------------------------------------------------------------------------------------


def test_broadcasting_of_numbers_is_numpys() -> None:
    shapes = [(), (1,), (4,), (1, 4), (3, 1), (3, 4), (2, 1, 4), (2, 3, 1), (1, 1, 1)]
    for a, b, c in itertools.product(shapes, repeat=3):
        assert broadcast([a, b, c]) == np.broadcast_shapes(a, b, c)


@pytest.mark.parametrize(
    ("a", "b", "size"),
    [(q, 1, q), (q, q, q), (q, 8, q), (h, q, q), (h, 8, 8), (h, 1, h), (1, 1, 1), (8, 8, 8), (q1, h, q1)],
)
def test_broadcasting_of_symbols(a: Dim, b: Dim, size: Dim) -> None:
    """The query stays whatever it meets: a program that fixes it elsewhere must not hide it here."""
    assert broadcast_dim(a, b) == size
    assert broadcast_dim(b, a) == size


def test_broadcasting_of_shapes() -> None:
    assert broadcast([(1, q, 64), (64,)]) == (1, q, 64)
    assert broadcast([(1, 1, q, 1), (1, 8, 1, h)]) == (1, 8, q, h)
    assert broadcast([(q, 1), (1, q)]) == (q, q)


# -- products ----------------------------------------------------------------------------------------------------------

_PRODUCTS = [
    ((4,), (4,)),
    ((4,), (4, 3)),
    ((3, 4), (4,)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 1, 3, 4), (7, 4, 5)),
]


@pytest.mark.parametrize(("a", "b"), _PRODUCTS)
def test_matrix_products_are_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    assert matmul(a, b) == np.matmul(np.zeros(a), np.zeros(b)).shape


def test_matrix_products_of_symbols() -> None:
    assert matmul((1, 8, q, 16), (1, 8, 16, h)) == (1, 8, q, h)
    assert matmul((1, q, 64), (64, 128)) == (1, q, 128)


_EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("...ij,jk->...ik", (5, 6, 2, 3), (3, 4)),
    ("...i,...i->...", (5, 6, 3), (6, 3)),
    ("bhqd, bhkd -> bhqk", (1, 2, 3, 4), (1, 2, 5, 4)),
    ("i,j->ji", (2,), (3,)),
    ("ii->i", (3, 3)),
    ("ji", (2, 3)),
]


@pytest.mark.parametrize("case", _EINSUMS, ids=lambda c: c[0])
def test_einsums_are_numpys(case: tuple[str, *tuple[tuple[int, ...], ...]]) -> None:
    equation, *shapes = case
    assert einsum(equation, shapes) == np.einsum(equation, *(np.zeros(s) for s in shapes)).shape


def test_einsum_of_symbols() -> None:
    assert einsum("bqhd,bkhd->bhqk", [(1, q, 8, 16), (1, h, 8, 16)]) == (1, 8, q, h)
    assert einsum("...d,de->...e", [(1, q, 64), (64, 8)]) == (1, q, 8)


@pytest.mark.parametrize(
    ("equation", "shapes"), [("ij,jk->ik", [(2, 3)]), ("ij->i", [(2, 3, 4)]), ("ijk->i", [(2, 3)]), ("ij->k", [(2, 3)])]
)
def test_equations_that_are_not_understood(equation: str, shapes: list[Shape]) -> None:
    assert einsum(equation, shapes) is None


# -- convolutions ------------------------------------------------------------------------------------------------------


def test_convolved_lengths_count_the_windows() -> None:
    for size, kernel, stride, padding, dilation in itertools.product((5, 8, 16), (1, 2, 3), (1, 2, 3), (0, 1), (1, 2)):
        starts = range(-padding, size + padding, stride)
        windows = [s for s in starts if s + dilation * (kernel - 1) < size + padding]
        assert convolved(size, kernel, stride, padding, dilation) == len(windows)


def test_a_transposed_convolution_undoes_a_convolution() -> None:
    for size, kernel, stride, padding in itertools.product((4, 7), (2, 3, 4), (1, 2), (0, 1)):
        if kernel > 2 * padding:
            assert convolved(deconvolved(size, kernel, stride, padding), kernel, stride, padding, 1) == size


def test_a_causal_convolution_keeps_the_query() -> None:
    assert convolved(dims.add(q, 3), 4, 1, 0, 1) == q
    assert convolved(q, 3, 1, 1, 1) == q
    assert dims.depends_on_query(convolved(q, 2, 2, 0, 1))


# -- axes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_axes(axis: int) -> None:
    shape = [1, q, 64]
    expected = list(shape)
    expected[axis] = h
    assert replace(tuple(shape), axis, h) == tuple(expected)
    del expected[axis]
    assert drop(tuple(shape), axis) == tuple(expected)
