# ruff: noqa: E501  (one script of several lines a string reads better than a folded one)
"""A value through lists, tuples and dicts."""

from __future__ import annotations

from tests.auditor.generator.writer import Value, Writer, way


@way(object)
def entry(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("table")
    w.lines(f"{name} = {{'a': {w.other(v)!r}, 'b': {w.write(v, depth, False)}}}")
    return w.rng.choice((f"{name}['b']", f"{name}.get('b')", f"{name}.get('z', {name}['b'])", f"{{**{name}}}['b']"))


@way(object)
def updated(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("table")
    how = w.rng.choice(("{n}['b'] = {x}", "{n}.update(b={x})", "{n} |= {{'b': {x}}}", "{n}.update({{'b': {x}}})"))
    w.lines(f"{name} = {{'b': {w.other(v)!r}}}\n" + how.format(n=name, x=w.write(v, depth, False)))
    return f"{name}['b']"


@way(object)
def changed_by_call(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name, f = w.name("table"), w.name("fill")
    w.lines(
        f"{name} = {{'b': {w.other(v)!r}}}\ndef {f}(t, x):\n    t['b'] = x\n{f}({name}, {w.write(v, depth, False)})"
    )
    return f"{name}['b']"


@way(object)
def deleted(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("table")
    w.lines(f"{name} = {{'a': {w.other(v)!r}}}\ndel {name}['a']")
    return f"{name}.get('a', {w.write(v, depth, inside)})"


@way(object)
def filled_in_a_loop(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name, i = w.name("table"), w.rng.randrange(3)
    w.lines(
        f"{name} = {{}}\nfor i in range(3):\n    {name}[f'x{{i}}'] = {w.write(v, depth, False)} if i == {i} else None"
    )
    return f"{name}['x{i}']"


@way(object)
def comprehension(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("table")
    w.lines(f"{name} = {{k: x for k, x in [('a', {w.other(v)!r}), ('b', {w.write(v, depth, False)})] if k != 'a'}}")
    return f"{name}['b']"


@way(object)
def item(w: Writer, v: Value, depth: int, inside: bool) -> str:
    return f"[{w.other(v)!r}, {w.write(v, depth, inside)}][{w.rng.choice(('1', '-1'))}]"


@way(object)
def unpacked(w: Writer, v: Value, depth: int, inside: bool) -> str:
    a, b = w.constant(), w.constant()
    w.lines(f"{a}, *_, {b} = {w.other(v)!r}, 1, 2, {w.write(v, depth, False)}")
    return b


@way(object)
def defaultdict(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("table")
    w.lines(
        f"from collections import defaultdict\n{name} = defaultdict(lambda: {w.write(v, depth, False)})\n{name}['a'] = 1"
    )
    return f"{name}['b']"


@way(object)
def deep_copied(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name, twin = w.name("table"), w.name("twin")
    w.lines(
        f"import copy\n{name} = {{'a': [{w.write(v, depth, False)}]}}\n{twin} = copy.deepcopy({name})\n{twin}['a'][0] = None"
    )
    return f"{name}['a'][0]"


@way(object)
def aliased(w: Writer, v: Value, depth: int, inside: bool) -> str:
    a, b = w.name("shared"), w.name("alias")
    w.lines(f"{a} = [{w.other(v)!r}]\n{b} = {a}\n{b}[0] = {w.write(v, depth, False)}")
    return f"{a}[0]"


@way(object)
def sliced(w: Writer, v: Value, depth: int, inside: bool) -> str:
    a = w.name("row")
    w.lines(f"{a} = [0, {w.other(v)!r}, 2]\n{a}[1:2] = [{w.write(v, depth, False)}, 9]")
    return f"{a}[1:][0]"


@way(object)
def zipped(w: Writer, v: Value, depth: int, inside: bool) -> str:
    return f"dict(zip(('a', 'b'), ({w.other(v)!r}, {w.write(v, depth, inside)})))['b']"


@way(object)
def ordered(w: Writer, v: Value, depth: int, inside: bool) -> str:
    return f"max([(1, {w.other(v)!r}), (3, {w.write(v, depth, inside)}), (2, None)], key=lambda p: p[0])[1]"


@way(object)
def nested_default(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("tree")
    w.lines(
        f"{name} = {{}}\n{name}.setdefault('a', {{}}).setdefault('b', {w.write(v, depth, False)})\n{name}['a'].setdefault('b', None)"
    )
    return f"{name}['a']['b']"


@way(object)
def popped(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name, k = w.name("table"), w.constant()
    w.lines(f"{name} = {{'a': {w.write(v, depth, False)}}}\n{k} = {name}.pop('a')")
    return w.rng.choice((k, f"{name}.get('a', {k})"))


@way(object)
def swapped(w: Writer, v: Value, depth: int, inside: bool) -> str:
    a, b = w.constant(), w.constant()
    w.lines(f"{a}, {b} = {w.write(v, depth, False)}, {w.other(v)!r}\n{a}, {b} = {b}, {a}")
    return b
