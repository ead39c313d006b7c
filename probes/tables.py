"""Verify-cost tables from files: the probe's JSON, CSV, JSON tables, and the summaries of a Swift runner."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probes.sweep import ANCHOR, TIMED

UNSTATED = "unstated"
"""The scope of a table that does not say where it was measured."""
_S = ("s", "width", "query", "positions")
_MS = ("ms", "median_ms", "time_ms", "t_ms", "milliseconds")
_SIZE_LIMIT = 64 * 2**20
LARGEST_S = 4096
"""A query as wide as that verifies no draft; a number above it is something else in the wrong column."""
MOST_S = 512
"""So many different S are read: the fit of a staircase takes their cube."""


class TableError(Exception):
    """A file that holds no table; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Table:
    """Times by S in ms: samples, or one median each. `reasons` are why it was refused where it was measured."""

    source: str
    label: str
    scope: str
    times: Mapping[int, Sequence[float]]
    reasons: tuple[str, ...] = ()
    context: int | None = None
    ab: Mapping[str, Any] | None = field(default=None)

    @property
    def medians_only(self) -> bool:
        return all(len(values) == 1 for values in self.times.values())


def read(path: Path, scope: str = "") -> list[Table]:
    """Every table of a file; `scope` is what the caller says of a file that does not say it. Raises `TableError`."""
    try:
        if path.stat().st_size > _SIZE_LIMIT:
            raise TableError(f"{path}: too large for a table")
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TableError(f"{path}: not UTF-8 text") from None
    source = path.as_posix()
    if path.suffix.lower() == ".csv" or text.lstrip()[:1] not in ("{", "["):
        return [Table(source, path.stem, scope or UNSTATED, _csv(text, source))]
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{path}: not valid JSON ({error})") from None
    found = list(_json(data, source, scope, path.stem))
    if not found:
        raise TableError(f"{path}: no table of S and ms in it: a probe report, columns s and ms, or a Swift summary")
    return found


def _json(data: Any, source: str, scope: str, label: str) -> Iterator[Table]:
    if isinstance(data, list):
        if data and all(isinstance(item, Mapping) and _key(item, _S) and _key(item, _MS) for item in data):
            yield Table(source, label, scope or UNSTATED, _rows(data, source))
            return
        for item in data:
            yield from _json(item, source, scope, label)
    elif isinstance(data, Mapping):
        if str(data.get("schema", "")).startswith("spec-audit.probe/"):
            with whole(source):
                yield from list(_probe(data, source))
        elif isinstance(data.get("tables"), list):
            for index, item in enumerate(data["tables"]):
                yield from _json(item, source, scope, f"{label}#{index}")
        elif isinstance(data.get("verify_cost"), list) or isinstance(data.get("ab"), Mapping):
            yield _summary(data, source, scope, label)
        elif _key(data, _S) and _key(data, _MS):
            yield _columns(data, source, scope, label)


@contextmanager
def whole(source: str) -> Iterator[None]:
    """`TableError` where a probe report lacks what `probe` writes into each: it was cut or edited."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise TableError(f"{source}: a probe report that was cut or edited ({type(error).__name__}: {error})") from None


def times_of(samples: Sequence[Sequence[Any]]) -> dict[int, list[float]]:
    """Times by S from a sweep's raw samples: those of the rounds, and the anchors for S=1."""
    times: dict[int, list[float]] = {}
    for width, ms, kind in samples:
        if kind in (TIMED, ANCHOR):
            times.setdefault(int(width), []).append(float(ms))
    return times


def _probe(data: Mapping[str, Any], source: str) -> Iterator[Table]:
    for graph in data.get("graphs", []):
        beds = (graph.get("ab") or {}).get("workloads", [])
        costs = [*(graph.get("verify_cost") or []), *(bed["verify_cost"] for bed in beds if bed["verify_cost"])]
        for cost in costs:
            label = f"{data.get('bundle', '')}:{graph['name']}, context {cost['context']}"
            reasons = tuple(map(str, cost.get("reasons", ())))
            yield Table(
                source,
                label,
                str(cost["scope"]),
                _checked(times_of(cost["samples"]), source),
                reasons,
                int(cost["context"]),
            )


def _summary(data: Mapping[str, Any], source: str, scope: str, label: str) -> Table:
    """A Swift runner's summary. It runs on Apple systems only, so its scope is a device unless the caller says not."""
    rows = data.get("verify_cost") or []
    times = _rows(rows, source) if rows else {}
    ab = data.get("ab")
    name = str(data.get("label") or label)
    return Table(source, name, scope or "device", times, ab=ab if isinstance(ab, Mapping) else None)


def _columns(data: Mapping[str, Any], source: str, scope: str, label: str) -> Table:
    widths, ms = data[_key(data, _S)], data[_key(data, _MS)]
    if not isinstance(widths, list) or not isinstance(ms, list) or len(widths) != len(ms):
        raise TableError(f"{source}: the columns of S and ms differ in length")
    times: dict[int, list[float]] = {}
    for width, value in zip(widths, ms, strict=True):
        times.setdefault(_width(width, source), []).extend(value if isinstance(value, list) else [value])
    name = str(data.get("label") or data.get("name") or label)
    return Table(source, name, str(data.get("scope") or scope or UNSTATED), _checked(times, source))


def _rows(rows: Sequence[Any], source: str) -> dict[int, list[float]]:
    times: dict[int, list[float]] = {}
    for row in rows:
        s, ms = (_key(row, _S), _key(row, _MS)) if isinstance(row, Mapping) else ("", "")
        if not s or not ms:
            raise TableError(f"{source}: {row!r} has no S and ms")
        value = row[ms]
        times.setdefault(_width(row[s], source), []).extend(value if isinstance(value, list) else [value])
    return _checked(times, source)


def _csv(text: str, source: str) -> dict[int, list[float]]:
    """Columns by name, or the first two without a header. A line that starts with # is a comment."""
    numbered = enumerate(text.splitlines(), 1)
    lines = [(at, line) for at, line in numbered if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise TableError(f"{source}: empty")
    separator = next((mark for mark in (",", ";", "\t") if mark in lines[0][1]), ",")
    rows = [(f"{source}:{at}", _cells(line, separator, f"{source}:{at}")) for at, line in lines]
    head = [cell.strip().lower() for cell in rows[0][1]]
    s, ms = (
        next((i for i, c in enumerate(head) if c in _S), None),
        next((i for i, c in enumerate(head) if c in _MS), None),
    )
    if s is not None and ms is not None:
        rows = rows[1:]
    elif len(head) >= 2 and _is_number(head[0]) and _is_number(head[1]):
        s, ms = 0, 1
    else:
        raise TableError(f"{source}: columns s and ms were expected, found {', '.join(head[:6])}")
    if not rows:
        raise TableError(f"{source}: columns without a row; write one for each S and ms")
    times: dict[int, list[float]] = {}
    for where, row in rows:
        if len(row) <= max(s, ms):
            raise TableError(f"{where}: {separator.join(row)!r} has too few columns")
        times.setdefault(_width(row[s], where), []).append(_number(row[ms], where))
    return _checked(times, source)


def _cells(line: str, separator: str, where: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error as error:
        raise TableError(f"{where}: no line of a table ({error})") from None


def _key(row: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((key for key in row if str(key).lower() in names), "")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(value: Any, source: str) -> float:
    try:
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TableError(f"{source}: {value!r} is no time in ms") from None


def _width(value: Any, source: str) -> int:
    number = _number(value, source)
    if not (1 <= number <= LARGEST_S and number.is_integer()):
        raise TableError(f"{source}: {value!r} is no S: a whole number from 1 to {LARGEST_S} was expected")
    return int(number)


def _checked(times: Mapping[int, Sequence[Any]], source: str) -> dict[int, list[float]]:
    if len(times) > MOST_S:
        raise TableError(f"{source}: {len(times)} different S; a table has {MOST_S} at most")
    checked = {}
    for width in sorted(times):
        values = [_number(value, source) for value in times[width]]
        if not values:
            raise TableError(f"{source}: S={width} has no times")
        if not all(math.isfinite(value) and value > 0 for value in values):
            raise TableError(f"{source}: the times of S={width} are not all above 0")
        checked[width] = values
    return checked
