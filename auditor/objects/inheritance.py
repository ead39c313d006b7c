"""The order of a class's bases, and what is found along it."""

from __future__ import annotations

from auditor.values import Class, Mapping, Native, NativeClass, Value, text_of

OBJECT = NativeClass("object", closed=True)


def mro(cls: Value) -> tuple[Value, ...]:
    """The method resolution order; bases that are no classes of ours (externals, unknowns) stay in it."""
    if not isinstance(cls, (Class, NativeClass)):
        return (cls,)
    if cls.mro_cache is not None:
        return cls.mro_cache
    sequences = [list(mro(b)) for b in cls.bases] + [list(cls.bases)]
    out: list[Value] = [cls]
    while sequences := [s for s in sequences if s]:
        head = next(
            (s[0] for s in sequences if not any(any(s[0] is x for x in t[1:]) for t in sequences)), sequences[0][0]
        )
        out.append(head)
        sequences = [[x for x in s if x is not head] if head in s else s for s in sequences]
    result = tuple(out)
    cls.mro_cache = result
    return result


def class_lookup(cls: Value, name: str, after: Value | None = None) -> tuple[Value | None, bool]:
    """(attribute, sure): what the MRO (behind `after`) has under `name`, and whether every class before it was read."""
    order = (cls.mro_cache if isinstance(cls, (Class, NativeClass)) else None) or mro(cls)
    if after is not None:
        start = next((i for i, c in enumerate(order) if c is after), -1)
        order = order[start + 1 :]
    sure = True
    for c in order:
        if isinstance(c, Class):
            if name in c.env.names and name != "__class_scope__":
                return c.env.names[name], sure
        elif isinstance(c, NativeClass):
            if name in c.methods:
                return Native(f"{c.name}.{name}", c.methods[name]), sure
            if name in c.attributes:
                return c.attributes[name], sure
            sure = sure and c.closed
        else:
            sure = False
    return None, sure


def unread_base(cls: Value) -> Value | None:
    """The first base that is no class whose source or meaning is known."""
    return next(
        (c for c in mro(cls) if not isinstance(c, Class) and not (isinstance(c, NativeClass) and c.closed)), None
    )


def fields_of(cls: Class) -> dict[str, Value | None]:
    """Annotated names with their defaults, bases first."""
    out: dict[str, Value | None] = {}
    for c in reversed(mro(cls)):
        if isinstance(c, Class) and isinstance(names := c.env.names.get("__annotations__"), Mapping):
            for key, annotation in names.entries.values():
                name = text_of(key)
                if name and "ClassVar" not in (text_of(annotation) or ""):
                    out[name] = c.env.names.get(name)
    return out
