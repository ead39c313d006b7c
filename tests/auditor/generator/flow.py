# ruff: noqa: E501  (one script of several lines a string reads better than a folded one)
"""A value through names, branches, loops and exceptions."""

from __future__ import annotations

from tests.auditor.generator.writer import Value, Writer, way


@way(object)
def tried(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k, n = w.constant(), w.name("gone")
    w.lines(
        f"{n} = {w.other(v)!r}\ndel {n}\ntry:\n    {k} = {n}\nexcept NameError:\n    {k} = {w.write(v, depth, False)}"
    )
    return k


@way(object)
def for_else(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k = w.constant()
    w.lines(
        f"for {k} in ({w.other(v)!r}, {w.other(v)!r}):\n    if {k} is None:\n        break\nelse:\n    {k} = {w.write(v, depth, False)}"
    )
    return k


@way(object)
def continued(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k, i = w.constant(), w.name("i")
    w.lines(
        f"{k} = {w.other(v)!r}\nfor {i} in range(4):\n    if {i} != 2:\n        continue\n    {k} = {w.write(v, depth, False)}"
    )
    return k


@way(object)
def early(w: Writer, v: Value, depth: int, inside: bool) -> str:
    f = w.name("find")
    w.lines(
        f"def {f}(wanted):\n    for name, x in (('a', {w.other(v)!r}), ('b', {w.write(v, depth, False)}), ('c', None)):\n        if name == wanted:\n            return x\n    return 0"
    )
    return f"{f}('b')"


@way(object)
def while_broken(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k = w.constant()
    right = w.write(v, depth, False)
    w.lines(f"while True:\n    {k} = {right}\n    break\nelse:\n    {k} = {w.other(v)!r}")
    return k


@way(object)
def finally_over(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k = w.constant()
    right = w.write(v, depth, False)
    w.lines(f"try:\n    {k} = {w.other(v)!r}\nfinally:\n    {k} = {right}")
    return k


@way(object)
def retried(w: Writer, v: Value, depth: int, inside: bool) -> str:
    f, k = w.name("load"), w.constant()
    w.lines(
        f"def {f}(path):\n    if path != 'b':\n        raise FileNotFoundError(path)\n    return {w.write(v, depth, False)}"
    )
    w.lines(
        f"for p in ('a', 'b', 'c'):\n    try:\n        {k} = {f}(p)\n    except OSError:\n        {k} = {w.other(v)!r}\n        continue\n    break"
    )
    return k


@way(object)
def constant(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.constant()
    w.lines(f"{name} = {w.write(v, depth, False)}")
    return name


@way(object)
def rebound(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.constant()
    w.lines(f"{name} = {w.other(v)!r}\n{name} = {w.write(v, depth, False)}")
    return name


@way(object)
def branch(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("branch")
    test, known = w.truth(depth, False)
    yes, no = (v, w.other(v)) if known else (w.other(v), v)
    w.lines(f"def {name}():\n    if {test}:\n        return {yes!r}\n    return {no!r}")
    return f"{name}()"


@way(object)
def conditional(w: Writer, v: Value, depth: int, inside: bool) -> str:
    test, known = w.truth(depth, inside)
    yes, no = (v, w.other(v)) if known else (w.other(v), v)
    return f"({yes!r} if {test} else {no!r})"


@way(object)
def top_branch(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k = w.constant()
    test, known = w.truth(depth, False)
    yes, no = (v, w.other(v)) if known else (w.other(v), v)
    w.lines(f"if {test}:\n    {k} = {yes!r}\nelse:\n    {k} = {no!r}")
    return k


@way(object)
def caught(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k, error = w.constant(), w.name("Problem")
    how, clause = w.rng.choice(
        (
            (f"raise {error}('x')", error),
            ("{}['a']", "LookupError"),
            ("[][2]", "IndexError"),
            ("int('x')", "ValueError"),
        )
    )
    right = w.write(v, depth, False)
    w.lines(f"class {error}(Exception):\n    pass\n{k} = {w.other(v)!r}\ntry:\n    {how}")
    w.lines(f"except NameError:\n    {k} = None\nexcept {clause}:\n    {k} = {right}")
    return k


@way(object)
def not_caught(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k = w.constant()
    w.lines(
        f"try:\n    {k} = {w.write(v, depth, False)}\nexcept ValueError:\n    {k} = {w.other(v)!r}\nelse:\n    pass"
    )
    return k


@way(object)
def suppressed(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k = w.constant()
    right = w.write(v, depth, False)
    w.lines(f"import contextlib\nwith contextlib.suppress(KeyError):\n    {k} = {right}")
    w.lines(f"    {{}}['x']\n    {k} = {w.other(v)!r}")
    return k


@way(object)
def matched(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("choose")
    key = w.rng.choice(("a", "b", "c"))
    arms = "".join(f"        case '{c}':\n            return {(v if c == key else w.other(v))!r}\n" for c in "abc")
    w.lines(f"def {name}(kind):\n    match kind:\n{arms}        case _:\n            return None")
    return f"{name}({w.write(key, depth, inside)})"


@way(object)
def matched_capture(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k = w.constant()
    w.lines(
        f"match ('x', {w.write(v, depth, False)}):\n    case ('y', {k}):\n        {k} = 0\n    case (_, {k}):\n        pass"
    )
    return k


@way(object)
def broken_out(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k = w.constant()
    w.lines(f"for {k} in ({w.other(v)!r}, {w.write(v, depth, False)}, None):\n    if {k} == {v!r}:\n        break")
    return k


@way(object)
def while_loop(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k, n = w.constant(), w.name("n")
    w.lines(
        f"{n} = 0\n{k} = {w.other(v)!r}\nwhile {n} < 3:\n    {n} += 1\n    if {n} == 2:\n        {k} = {w.write(v, depth, False)}"
    )
    return k


@way(object)
def walrus(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k = w.constant()
    w.lines(f"print({k} := {w.write(v, depth, False)})")
    return k


@way(object)
def finally_set(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("attempt")
    w.lines(
        f"def {name}():\n    x = {w.other(v)!r}\n    try:\n        return {w.write(v, depth, False)}\n    finally:\n        x = None"
    )
    return f"{name}()"
