# ruff: noqa: E501  (one script of several lines a string reads better than a folded one)
"""A value through functions, arguments and scopes."""

from __future__ import annotations

from tests.auditor.generator.writer import Value, Writer, way


@way(object)
def default(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("pick")
    w.lines(f"def {name}(x={w.write(v, depth, False)}):\n    return x")
    return f"{name}()"


@way(object)
def default_of_its_time(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k, name = w.constant(), w.name("pick")
    w.lines(f"{k} = {v!r}\ndef {name}(x={k}):\n    return x\n{k} = {w.other(v)!r}")
    return f"{name}()"


@way(object)
def argument(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("same")
    w.lines(f"def {name}(a, *rest, x={w.other(v)!r}, **more):\n    return x if a else rest")
    return f"{name}(1, 2, x={w.write(v, depth, inside)})"


@way(object)
def closure(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("outer")
    w.lines(f"def {name}(x):\n    def inner():\n        return x\n    return inner")
    return f"{name}({w.write(v, depth, inside)})()"


@way(object)
def partial(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("f")
    w.lines(f"import functools\ndef {name}(a, x={w.other(v)!r}):\n    return x")
    return f"functools.partial({name}, 1, x={w.write(v, depth, inside)})()"


@way(object)
def global_set(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k, name = w.constant(), w.name("setup")
    w.lines(f"{k} = {w.other(v)!r}\ndef {name}():\n    global {k}\n    {k} = {w.write(v, depth, False)}\n{name}()")
    return k


@way(object)
def generator(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("each")
    w.lines(f"def {name}():\n    yield {w.write(v, depth, False)}\n    yield {w.other(v)!r}")
    return w.rng.choice((f"next({name}())", f"list({name}())[0]"))


@way(object)
def registry(w: Writer, v: Value, depth: int, inside: bool) -> str:
    reg, deco, f = w.name("registry"), w.name("register"), w.name("make")
    w.lines(
        f"{reg} = {{}}\ndef {deco}(name):\n    def add(f):\n        {reg}[name] = f\n        return f\n    return add"
    )
    w.lines(
        f"@{deco}('a')\ndef {f}():\n    return {w.write(v, depth, False)}\n@{deco}('b')\ndef {f}_b():\n    return None"
    )
    return f"{reg}['a']()"


@way(object)
def decorated(w: Writer, v: Value, depth: int, inside: bool) -> str:
    deco, f = w.name("wrap"), w.name("inner")
    w.lines(
        f"import functools\ndef {deco}(f):\n    @functools.wraps(f)\n    def g(*a, **k):\n        f(*a, **k)\n        return {w.write(v, depth, False)}\n    return g"
    )
    w.lines(f"@{deco}\ndef {f}():\n    return {w.other(v)!r}")
    return f"{f}()"


@way(object)
def cached(w: Writer, v: Value, depth: int, inside: bool) -> str:
    f = w.name("cached")
    w.lines(f"import functools\n@functools.lru_cache(maxsize=None)\ndef {f}(n):\n    return {w.write(v, depth, False)}")
    return f"{f}(3)"


@way(object)
def nonlocal_set(w: Writer, v: Value, depth: int, inside: bool) -> str:
    f = w.name("outer")
    w.lines(
        f"def {f}():\n    x = {w.other(v)!r}\n    def up():\n        nonlocal x\n        x = {w.write(v, depth, False)}\n    up()\n    return x"
    )
    return f"{f}()"


@way(object)
def splatted(w: Writer, v: Value, depth: int, inside: bool) -> str:
    f, k = w.name("take"), w.name("given")
    w.lines(
        f"def {f}(a, b=0, *, x={w.other(v)!r}):\n    return x\n{k} = {{'b': 2}}\n{k}['x'] = {w.write(v, depth, False)}"
    )
    return f"{f}(*[1], **{k})"


@way(object)
def recursed(w: Writer, v: Value, depth: int, inside: bool) -> str:
    f = w.name("down")
    w.lines(f"def {f}(n):\n    return {w.write(v, depth, False)} if n == 0 else {f}(n - 1)")
    return f"{f}(3)"


@way(object)
def reduced(w: Writer, v: Value, depth: int, inside: bool) -> str:
    w.lines("import functools")
    return f"functools.reduce(lambda a, b: b, [{w.other(v)!r}, 1, {w.write(v, depth, inside)}])"


@way(object)
def dispatched(w: Writer, v: Value, depth: int, inside: bool) -> str:
    f = w.name("by_type")
    w.lines(
        f"def {f}(a):\n    if isinstance(a, str):\n        return {w.other(v)!r}\n    if isinstance(a, (list, tuple)):\n        return {w.write(v, depth, False)}\n    return None"
    )
    return f"{f}([1])"


@way(object)
def by_globals(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k = w.constant()
    w.lines(f"{k} = {w.write(v, depth, False)}")
    return f"globals()['{k}']"


@way(object)
def entered(w: Writer, v: Value, depth: int, inside: bool) -> str:
    k, f = w.constant(), w.name("context")
    w.lines(
        f"import contextlib\n@contextlib.contextmanager\ndef {f}():\n    yield {w.write(v, depth, False)}\nwith {f}() as {k}:\n    pass"
    )
    return k
