"""Values of one type: flags, numbers, texts and lists of texts; and options of the command line."""

from __future__ import annotations

from tests.auditor.generator.writer import Value, Writer, way


@way(bool)
def negated(w: Writer, v: bool, depth: int, inside: bool) -> str:
    return f"(not {w.write(not v, depth, inside)})"


@way(bool)
def both(w: Writer, v: bool, depth: int, inside: bool) -> str:
    other = w.rng.random() < 0.5
    if v:
        return f"({w.write(True, depth, inside)} {w.rng.choice(('and True', 'or ' + repr(other)))})"
    return f"({w.write(False, depth, inside)} {w.rng.choice(('or False', 'and ' + repr(other)))})"


@way(bool)
def compared(w: Writer, v: bool, depth: int, inside: bool) -> str:
    n = w.rng.randrange(1, 9)
    op = w.rng.choice(("==", "<=", ">=") if v else ("!=", "<", ">"))
    return f"({w.write(n, depth, inside)} {op} {n})"


@way(bool)
def contained(w: Writer, v: bool, depth: int, inside: bool) -> str:
    word = w.rng.choice(("a", "b", "c"))
    pool = ["a", "b", "c"] if v else ["x", "y"]
    return f"({w.write(word, depth, inside)} in {pool!r})"


@way(bool)
def any_of(w: Writer, v: bool, depth: int, inside: bool) -> str:
    name = w.rng.choice(("any", "all"))
    fill = name == "all"
    return f"{name}([{fill}, {w.write(v, depth, inside)}])"


@way(int)
def total(w: Writer, v: int, depth: int, inside: bool) -> str:
    part = w.rng.randrange(0, v + 1)
    return f"({w.write(part, depth, inside)} + {v - part})"


@way(int)
def length(w: Writer, v: int, depth: int, inside: bool) -> str:
    return f"len({['x'] * v!r})" if v < 12 else repr(v)


@way(int)
def extreme(w: Writer, v: int, depth: int, inside: bool) -> str:
    return (
        f"min({w.write(v, depth, inside)}, {v + 5})" if w.rng.random() < 0.5 else f"max({w.write(v, depth, inside)}, 0)"
    )


@way(int)
def parsed(w: Writer, v: int, depth: int, inside: bool) -> str:
    return f"int({w.write(str(v), depth, inside)})"


@way(int)
def counted(w: Writer, v: int, depth: int, inside: bool) -> str:
    k = w.constant()
    w.lines(f"from collections import Counter\n{k} = Counter({'a' * min(v, 40)!r} + 'b')")
    return f"{k}['a']" if v <= 40 else repr(v)


@way(int)
def summed(w: Writer, v: int, depth: int, inside: bool) -> str:
    return f"sum(1 for _ in range({w.write(v, depth, inside)}))" if v < 10 else f"({v * 3} // 3)"


@way(str)
def formatted(w: Writer, v: str, depth: int, inside: bool) -> str:
    cut = w.rng.randrange(0, len(v) + 1)
    return (
        f"f'{{{w.write(v[:cut], depth, inside).replace(chr(39), chr(34))}}}{v[cut:]}'"
        if depth <= 0
        else f"('{v[:cut]}' + {w.write(v[cut:], depth, inside)})"
    )


@way(str)
def joined(w: Writer, v: str, depth: int, inside: bool) -> str:
    return f"''.join({list(v)!r})"


@way(str)
def replaced(w: Writer, v: str, depth: int, inside: bool) -> str:
    return f"{w.write(v + '#', depth, inside)}.replace('#', '')"


@way(str)
def stripped(w: Writer, v: str, depth: int, inside: bool) -> str:
    return f"{w.write(v + '  ', depth, inside)}.strip()" if v == v.strip() else repr(v)


@way(list)
def displayed(w: Writer, v: list[str], depth: int, inside: bool) -> str:
    return "[" + ", ".join(w.write(s, depth, inside) for s in v) + "]"


@way(list)
def appended(w: Writer, v: list[str], depth: int, inside: bool) -> str:
    name = w.name("names")
    w.lines(f"{name} = []")
    for s in v:
        how = w.rng.choice(("{n}.append({x})", "{n} += [{x}]", "{n}.extend(({x},))", "{n}.insert(len({n}), {x})"))
        w.lines(how.format(n=name, x=w.write(s, depth, False)))
    return name


@way(list)
def added(w: Writer, v: list[str], depth: int, inside: bool) -> str:
    cut = w.rng.randrange(0, len(v) + 1)
    return f"({w.write(v[:cut], depth, inside)} + {w.write(v[cut:], depth, inside)})"


@way(list)
def looped(w: Writer, v: list[str], depth: int, inside: bool) -> str:
    name = w.name("names")
    w.lines(f"{name} = []\nfor name in {w.write(v, depth, False)}:\n    {name}.append(f'{{name}}')")
    return name


@way(list)
def filtered(w: Writer, v: list[str], depth: int, inside: bool) -> str:
    return f"[s for s in {[*v, 'skipped']!r} if s != 'skipped']"


@way(list)
def keys(w: Writer, v: list[str], depth: int, inside: bool) -> str:
    return f"list(dict.fromkeys({w.write(v, depth, inside)}))"


@way(object, needs_args=True)
def flag(w: Writer, v: Value, depth: int, inside: bool) -> str:
    """An option of the command line, at its default."""
    name = w.name("opt")
    if isinstance(v, bool):
        how = w.rng.choice(
            (
                "action='store_true'" if not v else "action='store_false'",
                f"action=argparse.BooleanOptionalAction, default={v}",
                f"type=int, default={int(v)}",
            )
        )
        w.flags.append(f"parser.add_argument('--{name}', {how})")
        return f"bool(args.{name})"
    if isinstance(v, int):
        w.flags.append(f"parser.add_argument('--{name}', type=int, default={w.rng.choice((v, repr(str(v))))})")
    elif isinstance(v, str):
        w.flags.append(f"parser.add_argument('--{name}', choices=[{v!r}, 'zz'], default={v!r})")
    else:
        w.flags.append(f"parser.add_argument('--{name}')")
    return f"args.{name}"


@way(object, needs_args=True)
def flag_that_chooses(w: Writer, v: Value, depth: int, inside: bool) -> str:
    if isinstance(v, bool):
        name = w.name("mode")
        w.flags.append(f"parser.add_argument('--{name}', choices=['on', 'off'], default={'on' if v else 'off'!r})")
        return f"(args.{name} == 'on')"
    name = w.name("opt")
    w.flags.append(f"parser.add_argument('--{name}', action='store_true')")
    return f"({w.other(v)!r} if args.{name} else {w.write(v, depth, inside)})"
