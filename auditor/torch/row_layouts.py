"""Rows of the query that share an axis with other rows or with heads: joined, cut, put into another shape."""

from __future__ import annotations

from collections.abc import Sequence

from auditor import dims
from auditor.dims import Dim, is_query
from auditor.places import Site
from auditor.torch import positions, rows, shapes
from auditor.torch.shapes import Shape
from auditor.values import Const, Seq, Tensor, Value
from auditor.values.tags import ALIKE, BEHIND, BEHIND_EACH, TOKENS


def reshaped(made: Tensor, t: Tensor, site: Site | None) -> Tensor:
    """`made` is `t` in another shape: rows that are put into one axis with others have to be taken out again as such.

    `[1, h, q, d]` as `[1, h * q, d]`, and that as `[1, h, q, d]`, but not as `[1, q, h, d]`.
    """
    source, target = t.shape or (), made.shape or ()
    if dims.Poly not in map(type, source):
        return made  # no rows of the query
    before, after = shapes.behind_rows(source), shapes.behind_rows(target)
    if before is not None and after is not None:
        return rows.blended(made, site, shapes.differs(before, after))
    into, out_of = _behind_shared(target), _behind_shared(source)
    if before is not None and into is not None and (each := dims.exact_div(before, into)) is not None:
        made.tags = made.tags | {f"{BEHIND_EACH}{each}"}
    elif after is not None and out_of is not None:
        said = {tag for tag in made.tags if tag.startswith(BEHIND_EACH)}
        each = dims.exact_div(after, out_of)
        made.tags = made.tags - said
        made = rows.blended(made, site, bool(said) and f"{BEHIND_EACH}{each}" not in said)
    return made


def _behind_shared(shape: Shape) -> Dim | None:
    """How many values lie behind the only axis that the query's rows have with others."""
    found = [n for n, d in enumerate(shape) if positions.is_rows(d) and not is_query(d)]
    return dims.product(shape[found[0] + 1 :]) if len(found) == 1 else None


def joined(made: Tensor, lengths: list[Dim], site: Site | None) -> Tensor:
    """Parts of these lengths, one behind another along the rows: some of the query's come behind others that went in.

    A cache before them has a length of its own; a fixed number of rows in front moves them all by as many.
    """
    made.tags = made.tags - {ALIKE}
    front = isinstance(lengths[0], int) and lengths[0] > 0
    if front and any(map(is_query, lengths[1:])):
        made.tags = made.tags | {BEHIND}
    if len(lengths) > 1 and all(map(is_query, lengths)):
        made.tags = made.tags | {f"{BEHIND_EACH}1"}
    shifted = front and any(map(_cut_short, lengths[1:]))
    return rows.blended(made, site, shifted)


def cut_behind(made: Tensor, key: Sequence[Value], site: Site | None) -> Tensor:
    """`made` is cut by `key` out of rows that stand behind others; from the first of these on, all are shifted."""
    if not any(map(is_query, made.shape or ())):
        return made
    starts = [p.items[0] for p in key if isinstance(p, Seq) and p.kind == "slice"]
    made.tags = made.tags - {BEHIND}
    return rows.blended(made, site, bool(starts) and all(isinstance(b, Const) and b.value in (None, 0) for b in starts))


def _cut_short(d: Dim) -> bool:
    """Whether a length is that of the query less a fixed number of rows."""
    return isinstance(d, dims.Poly) and len(d.terms) == 2 and any(c < 0 and not m for m, c in d.terms) and d.query


def crosses(t: Tensor, index: Tensor) -> bool:
    """Whether each row of a tensor is indexed by as many numbers as the query has tokens: those behind it, too."""
    if t.shape is None or index.shape is None or len(t.shape) != len(index.shape) or TOKENS not in index.tags:
        return False
    rows = [n for n, d in enumerate(index.shape) if is_query(d)]
    return len(rows) == 2 and sum(map(is_query, t.shape)) == 1
