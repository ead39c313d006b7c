# ruff: noqa: E501  (one script of several lines a string reads better than a folded one)
"""A value through classes, attributes and objects."""

from __future__ import annotations

from tests.auditor.generator.writer import Value, Writer, way


@way(object)
def class_attribute(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("Spec")
    w.lines(f"class {name}:\n    x = {w.write(v, depth, False)}")
    return f"{name}.x" if w.rng.random() < 0.5 else f"{name}().x"


@way(object)
def subclass(w: Writer, v: Value, depth: int, inside: bool) -> str:
    base, name = w.name("Base"), w.name("Spec")
    w.lines(f"class {base}:\n    x = {w.other(v)!r}\n    def get(self):\n        return self.x")
    w.lines(f"class {name}({base}):\n    x = {w.write(v, depth, False)}")
    return f"{name}().get()"


@way(object)
def override(w: Writer, v: Value, depth: int, inside: bool) -> str:
    base, name = w.name("Base"), w.name("Spec")
    w.lines(f"class {base}:\n    def get(self):\n        return {w.other(v)!r}")
    w.lines(
        f"class {name}({base}):\n    def get(self):\n        super().get()\n        return {w.write(v, depth, False)}"
    )
    return f"{name}().get()"


@way(object)
def instance(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("Box")
    w.lines(f"class {name}:\n    x = {w.other(v)!r}\n    def __init__(self, x):\n        self.x = x")
    return f"{name}({w.write(v, depth, inside)}).x"


@way(object)
def changed_later(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name, box = w.name("Box"), w.name("box")
    w.lines(f"class {name}:\n    x = {w.other(v)!r}\n{box} = {name}()\n{box}.x = {w.write(v, depth, False)}")
    return f"{box}.x"


@way(object)
def prop(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("Box")
    w.lines(f"class {name}:\n    @property\n    def x(self):\n        return {w.write(v, depth, False)}")
    return f"{name}().x"


@way(object)
def dataclass(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("Config")
    w.lines("from dataclasses import dataclass, field, replace")
    if isinstance(v, list):
        w.lines(f"@dataclass\nclass {name}:\n    x: list = field(default_factory=lambda: {v!r})")
        return f"{name}().x"
    w.lines(f"@dataclass(frozen=True)\nclass {name}:\n    y: int = 1\n    x: object = {w.other(v)!r}")
    return f"replace({name}(), x={w.write(v, depth, inside)}).x"


@way(object)
def enum_member(w: Writer, v: Value, depth: int, inside: bool) -> str:
    if isinstance(v, list):
        return repr(v)
    name = w.name("Kind")
    w.lines(f"import enum\nclass {name}(enum.Enum):\n    A = 'other'\n    B = ({v!r},)")
    return f"{name}.B.value[0]"


@way(object)
def mixed_in(w: Writer, v: Value, depth: int, inside: bool) -> str:
    a, b, c = w.name("Root"), w.name("Mixin"), w.name("Heir")
    w.lines(f"class {a}:\n    def get(self):\n        return {w.other(v)!r}")
    w.lines(f"class {b}({a}):\n    def get(self):\n        return {w.write(v, depth, False)}")
    w.lines(f"class {c}({b}, {a}):\n    def get(self):\n        return super().get()")
    return f"{c}().get()"


@way(object)
def got_by_name(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("Box")
    w.lines(f"class {name}:\n    x = {w.write(v, depth, False)}\n    y = {w.other(v)!r}")
    return w.rng.choice(
        (f"getattr({name}, 'x')", f"getattr({name}(), 'z', {name}.x)", f"vars({name}()).get('x', {name}.x)")
    )


@way(object)
def set_by_name(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name, box = w.name("Box"), w.name("box")
    w.lines(f"class {name}:\n    x = {w.other(v)!r}\n{box} = {name}()\nsetattr({box}, 'x', {w.write(v, depth, False)})")
    return f"{box}.x"


@way(object)
def class_set(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("Box")
    w.lines(f"class {name}:\n    x = {w.other(v)!r}\n{name}.x = {w.write(v, depth, False)}")
    return f"{name}().x"


@way(object)
def method_set(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name, f = w.name("Box"), w.name("patched")
    w.lines(
        f"class {name}:\n    def get(self):\n        return {w.other(v)!r}\ndef {f}(self):\n    return {w.write(v, depth, False)}"
    )
    w.lines(f"{name}.get = {f}")
    return f"{name}().get()"


@way(object)
def of_class(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name, how = w.name("Box"), w.rng.choice(("classmethod", "staticmethod"))
    given = "cls" if how == "classmethod" else ""
    w.lines(f"class {name}:\n    x = 1\n    @{how}\n    def get({given}):\n        return {w.write(v, depth, False)}")
    return f"{name}.get()"


@way(object)
def called(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("Maker")
    w.lines(
        f"class {name}:\n    def __init__(self, x):\n        self.x = x\n    def __call__(self):\n        return self.x"
    )
    return f"{name}({w.write(v, depth, inside)})()"


@way(object)
def made_class(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("Made")
    w.lines(f"{name} = type('{name}', (), {{'x': {w.write(v, depth, False)}}})")
    return f"{name}().x"


@way(object)
def heirs(w: Writer, v: Value, depth: int, inside: bool) -> str:
    base, a, b = w.name("Plugin"), w.name("First"), w.name("Second")
    w.lines(
        f"class {base}:\n    known = {{}}\n    def __init_subclass__(cls, key='', **k):\n        {base}.known[key] = cls"
    )
    w.lines(
        f"class {a}({base}, key='a'):\n    x = {w.other(v)!r}\nclass {b}({base}, key='b'):\n    x = {w.write(v, depth, False)}"
    )
    return f"{base}.known['b'].x"


@way(object)
def named_tuple(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("Row")
    w.lines(f"from collections import namedtuple\n{name} = namedtuple('{name}', 'a x')")
    return f"{name}(1, {w.other(v)!r})._replace(x={w.write(v, depth, inside)}).x"


@way(object)
def setter(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name, box = w.name("Box"), w.name("box")
    w.lines(
        f"class {name}:\n    @property\n    def x(self):\n        return self._x\n    @x.setter\n    def x(self, value):\n        self._x = value"
    )
    w.lines(f"{box} = {name}()\n{box}.x = {w.write(v, depth, False)}")
    return f"{box}.x"


@way(object)
def fallback(w: Writer, v: Value, depth: int, inside: bool) -> str:
    name = w.name("Lazy")
    w.lines(f"class {name}:\n    def __getattr__(self, name):\n        return {w.write(v, depth, False)}")
    return f"{name}().anything"
