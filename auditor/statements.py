"""What each statement node does, and how blocks, branches and loops run."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import libcst as cst

from auditor import operators
from auditor.containers import delete_item, get_item, iterate, set_item, unpack
from auditor.heap import Contents
from auditor.interpreter import (
    BREAK,
    CONTINUE,
    MAX_UNROLL,
    Attempt,
    ExitSignal,
    Frame,
    Interpreter,
    RaiseSignal,
    Return,
    Signal,
)
from auditor.joins import Deleted, union_of
from auditor.loops import Unseen, left, loop, repeat
from auditor.places import Site
from auditor.values import (
    NONE,
    Args,
    Class,
    Const,
    Env,
    External,
    ExternalObject,
    Instance,
    Mapping,
    NativeClass,
    Num,
    Seq,
    Tensor,
    Union,
    Unknown,
    Value,
    key_of,
    text_of,
)

T = TypeVar("T")


def run_block(it: Interpreter, body: Sequence[Any], frame: Frame) -> Signal:
    for node in body:
        signal = run(it, node, frame)
        if signal is not None:
            return signal
    return None


def run(it: Interpreter, node: Any, frame: Frame) -> Signal:
    it.tick()
    if type(node) is cst.SimpleStatementLine:
        for small in node.body:
            signal = _RUN[type(small)](it, small, frame)
            if signal is not None:
                return signal
        return None
    handler = _RUN.get(type(node))
    return handler(it, node, frame) if handler else None


# -- simple statements ------------------------------------------------------------------------------------------


def _expr(it: Interpreter, node: cst.Expr, frame: Frame) -> Signal:
    if type(node.value) not in (cst.SimpleString, cst.ConcatenatedString):
        it.eval(node.value, frame)
    return None


def _assign(it: Interpreter, node: cst.Assign, frame: Frame) -> Signal:
    value = it.eval(node.value, frame)
    for target in node.targets:
        assign(it, target.target, value, frame)
    return None


def _annotated(it: Interpreter, node: cst.AnnAssign, frame: Frame) -> Signal:
    if node.value is not None:
        assign(it, node.target, it.eval(node.value, frame), frame)
    if isinstance(node.target, cst.Name):
        fields = frame.env.names.get("__annotations__")
        if isinstance(fields, Mapping):
            annotation = cst.Module([]).code_for_node(node.annotation.annotation)
            fields.entries[("str", node.target.value)] = (Const(node.target.value), Const(annotation))
    return None


def _augmented(it: Interpreter, node: cst.AugAssign, frame: Frame) -> Signal:
    from auditor.expressions import binary

    old = it.eval(node.target, frame)
    operand = it.eval(node.value, frame)
    op = _AUGMENTED[type(node.operator)]
    site = frame.statement.site(node)
    if op == "+" and isinstance(old, Seq) and old.kind == "list":
        more = iterate(it, operand, site)
        it.heap.touch(old)
        old.items += [it.tag(v) for v in more.items]
        old.rest = old.rest or more.rest
        return None
    made = binary(it, op, old, operand, site)
    if isinstance(old, Tensor) and it.events is not None:
        it.events.written(old, site, None, old)
        if old.base is None and isinstance(made, Tensor):
            from auditor.torch import rows

            rows.overwritten(it, old, None, made.tags)
    assign(it, node.target, made, frame)
    return None


def assign(it: Interpreter, target: Any, value: Value, frame: Frame) -> None:
    """Bind `value` to an assignment target."""
    kind = type(target)
    if kind is cst.Name:
        env = frame.env.redirect.get(target.value, frame.env)
        it.heap.touch(env)
        env.names[target.value] = it.tag(value)
    elif kind is cst.Attribute:
        obj = it.eval(target.value, frame)
        it.set(obj, target.attr.value, it.tag(value), frame.statement.site(target))
    elif kind is cst.Subscript:
        from auditor.expressions import index_of

        obj = it.eval(target.value, frame)
        set_item(it, obj, index_of(it, target, frame), it.tag(value), frame.statement.site(target))
    elif kind is cst.Tuple or kind is cst.List:
        starred = next((i for i, e in enumerate(target.elements) if type(e) is cst.StarredElement), None)
        parts = unpack(it, value, len(target.elements), starred, frame.statement.site(target))
        for element, part in zip(target.elements, parts, strict=True):
            assign(it, element.value, part, frame)


def _return(it: Interpreter, node: cst.Return, frame: Frame) -> Signal:
    return Return(it.tag(it.eval(node.value, frame)) if node.value is not None else NONE)


def _delete(it: Interpreter, node: cst.Del, frame: Frame) -> Signal:
    targets = [e.value for e in node.target.elements] if isinstance(node.target, cst.Tuple) else [node.target]
    for t in targets:
        if isinstance(t, cst.Name):
            env = frame.env.redirect.get(t.value, frame.env)
            it.heap.touch(env)
            env.names[t.value] = Deleted(f"`{t.value}` was deleted", t.value, places=(frame.statement.site(t),))
        elif isinstance(t, cst.Attribute):
            it.call(it.loader.builtins["delattr"], Args([it.eval(t.value, frame), Const(t.attr.value)]), None)
        elif isinstance(t, cst.Subscript):
            from auditor.expressions import index_of

            delete_item(it, it.eval(t.value, frame), index_of(it, t, frame), frame.statement.site(t))
    return None


def _assert(it: Interpreter, node: cst.Assert, frame: Frame) -> Signal:
    test = it.eval(node.test, frame)
    if operators.truth(test) is False and it.maybe_raised:
        raise RaiseSignal("AssertionError")
    return None  # an assertion that nobody catches holds in a script that ships


def _raise(it: Interpreter, node: cst.Raise, frame: Frame) -> Signal:
    if node.exc is None:
        raise frame.caught[-1] if frame.caught else RaiseSignal("Exception")
    value = it.eval(node.exc, frame)
    if isinstance(value, (Class, NativeClass)):
        value = it.call(value, Args(), frame.statement.site(node))
    kind, raised = exception_name(value), value if isinstance(value, Instance) else None
    if kind in ("SystemExit", "KeyboardInterrupt"):
        raise ExitSignal(kind, value, raised)
    raise RaiseSignal(kind, value, raised)


def exception_name(value: Value) -> str:
    match value:
        case Instance(cls=c):
            return exception_name(c)
        case Class(name=n) | NativeClass(name=n):
            return n.rsplit(".", 1)[-1]
        case External(dotted=d):
            return d.rsplit(".", 1)[-1]
    return "Exception"


def _global(it: Interpreter, node: cst.Global, frame: Frame) -> Signal:
    for n in node.names:
        frame.env.redirect[n.name.value] = frame.module.env
    return None


def _nonlocal(it: Interpreter, node: cst.Nonlocal, frame: Frame) -> Signal:
    for n in node.names:
        env = frame.env.parent
        while env is not None and n.name.value not in env.names:
            env = env.parent
        if env is not None:
            frame.env.redirect[n.name.value] = env
    return None


def _import(it: Interpreter, node: cst.Import, frame: Frame) -> Signal:
    for alias in node.names:
        dotted = cst.Module([]).code_for_node(alias.name)
        site = frame.statement.site(node)
        module = it.loader.import_module(it, dotted, frame.module, site)
        if alias.asname is not None:
            assign(it, alias.asname.name, module, frame)
        else:
            top = dotted.split(".")[0]
            bound = it.loader.import_module(it, top, frame.module, site) if "." in dotted else module
            assign(it, cst.Name(top), bound, frame)
    return None


def _import_from(it: Interpreter, node: cst.ImportFrom, frame: Frame) -> Signal:
    dotted = cst.Module([]).code_for_node(node.module) if node.module is not None else ""
    site = frame.statement.site(node)
    level = len(node.relative)
    if isinstance(node.names, cst.ImportStar):
        it.loader.import_star(it, dotted, level, frame, site)
        return None
    names = [a.name.value if isinstance(a.name, cst.Name) else "" for a in node.names]
    for alias, name in zip(node.names, names, strict=True):
        value = it.loader.import_from(it, dotted, level, name, frame.module, site, names)
        assign(it, alias.asname.name if alias.asname is not None else alias.name, value, frame)
    return None


# -- definitions ------------------------------------------------------------------------------------------------


def _function(it: Interpreter, node: cst.FunctionDef, frame: Frame) -> Signal:
    from auditor.calls import make_decorated

    value = make_decorated(it, node, frame)
    it.heap.touch(frame.env)
    env = frame.env.redirect.get(node.name.value, frame.env)
    env.names[node.name.value] = value
    return None


def _class(it: Interpreter, node: cst.ClassDef, frame: Frame) -> Signal:
    from auditor.objects import make_class

    value = make_class(it, node, frame)
    env = frame.env.redirect.get(node.name.value, frame.env)
    it.heap.touch(env)
    env.names[node.name.value] = value
    return None


# -- branches ---------------------------------------------------------------------------------------------------


def _if(it: Interpreter, node: cst.If, frame: Frame) -> Signal:
    test = it.eval(node.test, frame)
    known = it.truth(test)
    if known is not None:
        saved = it.conditions
        it.conditions = saved | test.flags
        try:
            return _arm(it, node, known, frame)
        finally:
            it.conditions = it.conditions if test.flags and _leaves(node) else saved
    kept: Kept = []
    signal = it.fork(
        [
            lambda: narrowed(it, node.test, True, frame, lambda: _arm(it, node, True, frame), kept),
            lambda: narrowed(it, node.test, False, frame, lambda: _arm(it, node, False, frame), kept),
        ],
        test,
    )
    widened(it, kept)
    return signal


def _arm(it: Interpreter, node: cst.If, taken: bool, frame: Frame) -> Signal:
    if taken:
        return it.run_block(node.body.body, frame)
    if node.orelse is None:
        return None
    if isinstance(node.orelse, cst.If):
        return _if(it, node.orelse, frame)
    return it.run_block(node.orelse.body.body, frame)


_leaving: dict[int, tuple[cst.If, bool]] = {}


def _leaves(node: cst.If) -> bool:
    """Whether an arm may leave the scope, so that what follows depends on the condition too."""
    found = _leaving.get(id(node))
    if found is None or found[0] is not node:
        found = _leaving[id(node)] = (node, _has_exit(node))
    return found[1]


def _has_exit(node: Any) -> bool:
    """Whether a statement, a block or an `else` part returns, raises, jumps or ends the process."""
    match node:
        case cst.Return() | cst.Raise() | cst.Continue() | cst.Break():
            return True
        case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value=name)))):
            return name in ("exit", "error", "_exit")
        case cst.SimpleStatementLine(body=body) | cst.SimpleStatementSuite(body=body):
            return any(_has_exit(n) for n in body)
        case cst.IndentedBlock(body=body):
            return any(_has_exit(n) for n in body)
        case cst.If(body=body, orelse=orelse) | cst.For(body=body, orelse=orelse) | cst.While(body=body, orelse=orelse):
            return _has_exit(body) or _has_exit(orelse)
        case cst.Else(body=body) | cst.With(body=body) | cst.Finally(body=body) | cst.ExceptHandler(body=body):
            return _has_exit(body)
        case cst.Try(body=body, handlers=handlers, orelse=orelse):
            return _has_exit(body) or _has_exit(orelse) or any(_has_exit(h) for h in handlers)
        case cst.Match(cases=cases):
            return any(_has_exit(c.body) for c in cases)
    return False


Keep = Callable[[Value], bool]
Kept = list[tuple[bool, Any, str, Union]]
"""(answer of the test, object, name in it, value before) of what an arm has narrowed and not changed."""


def narrowed(
    it: Interpreter, test: Any, taken: bool, frame: Frame, thunk: Callable[[], T], kept: Kept | None = None
) -> T:
    """Run an arm knowing that `test` was true or false: unions in simple tests lose the options that contradict it."""
    fewer: list[tuple[Any, str, Union, Value]] = []
    for target, keep, answer in _narrowing(it, test, taken, frame):
        if isinstance(target, cst.Name):
            holder: Any = frame.env
            names = frame.env.names
            key = target.value
        else:
            holder = it.eval(target.value, frame)
            if not isinstance(holder, Instance):
                continue
            names, key = holder.attrs, target.attr.value
        value = names.get(key)
        if isinstance(value, Unknown) and answer is not None:
            it.assumed.assume(value, answer)
        if isinstance(value, Union):
            mine = it.assumed.chosen(value)
            options = [o for o in mine.options if keep(o)] if isinstance(mine, Union) else [mine]
            if options and len(options) < len(value.options):
                it.heap.touch(holder)
                names[key] = (
                    mine if isinstance(mine, Union) and len(options) == len(mine.options) else union_of(options)
                )
                fewer.append((holder, key, value, names[key]))
    result = thunk()
    if kept is not None:
        kept += [(taken, h, k, v) for h, k, v, now in fewer if _content(h).get(k) is now]
    return result


def _content(holder: Env | Instance) -> dict[str, Value]:
    return holder.names if isinstance(holder, Env) else holder.attrs


def widened(it: Interpreter, kept: Kept) -> None:
    """Where both arms go on, what each has narrowed is the value of before again, not another that looks like it."""
    for taken, holder, key, value in kept:
        now = _content(holder).get(key)
        if not taken or not isinstance(now, Union) or len(now.options) != len(value.options):
            continue
        if any(not t and h is holder and k == key and v is value for t, h, k, v in kept):
            it.heap.touch(holder)
            _content(holder)[key] = value


def _narrowing(it: Interpreter, test: Any, taken: bool, frame: Frame) -> list[tuple[Any, Keep, bool | None]]:
    """(name or attribute, which of its options agree with the outcome, its truth) for the simple parts of a test."""
    kind = type(test)
    if kind is cst.UnaryOperation and type(test.operator) is cst.Not:
        return _narrowing(it, test.expression, not taken, frame)
    if _narrowable(test):
        return [(test, lambda v: operators.truth(v) is not (not taken), taken)]
    if _is_isinstance(test):
        subject, cls = test.args[0].value, it.eval(test.args[1].value, frame)
        from auditor.objects import is_instance

        return [(subject, lambda v: is_instance(it, v, cls) is not (not taken), None)]
    if kind is cst.BooleanOperation:
        if (type(test.operator) is cst.And) == taken:
            return [*_narrowing(it, test.left, taken, frame), *_narrowing(it, test.right, taken, frame)]
        return []
    if kind is cst.Comparison and _narrowable(test.left) and len(test.comparisons) == 1:
        target = test.comparisons[0]
        if isinstance(target.operator, (cst.Equal, cst.NotEqual)) and isinstance(target.comparator, cst.SimpleString):
            constant, equal = it.eval(target.comparator, frame), isinstance(target.operator, cst.Equal) == taken
            return [
                (test.left, lambda v: operators.truth(operators.compare("==", v, constant)) is not (not equal), None)
            ]
        of_none = isinstance(target.comparator, cst.Name) and target.comparator.value == "None"
        if of_none and isinstance(target.operator, (cst.Is, cst.IsNot)):
            wanted = isinstance(target.operator, cst.Is) == taken
            return [(test.left, lambda v: operators.identical(v, NONE) is not (not wanted), None)]
    return []


def _is_isinstance(test: Any) -> bool:
    if not (type(test) is cst.Call and type(test.func) is cst.Name and test.func.value == "isinstance"):
        return False
    return len(test.args) == 2 and _narrowable(test.args[0].value)


def _narrowable(node: Any) -> bool:
    kind = type(node)  # `isinstance` is slow to say no: the classes of LibCST are abstract
    return kind is cst.Name or (kind is cst.Attribute and type(node.value) is cst.Name)


def _match(it: Interpreter, node: cst.Match, frame: Frame) -> Signal:
    subject = it.eval(node.subject, frame)
    return _cases(it, subject, list(node.cases), frame)


def _cases(it: Interpreter, subject: Value, cases: list[cst.MatchCase], frame: Frame) -> Signal:
    for number, case in enumerate(cases):
        matched = match_pattern(it, case.pattern, subject, frame)
        if matched and case.guard is not None:
            matched = operators.truth(it.eval(case.guard, frame))
        if matched is False:
            continue
        if matched:
            saved = it.conditions
            it.conditions = saved | subject.flags
            try:
                return it.run_block(case.body.body, frame)
            finally:
                it.conditions = saved
        return _either_case(it, subject, case, cases[number + 1 :], frame)
    return None


def _either_case(
    it: Interpreter, subject: Value, case: cst.MatchCase, rest: list[cst.MatchCase], frame: Frame
) -> Signal:
    return it.fork([lambda: it.run_block(case.body.body, frame), lambda: _cases(it, subject, rest, frame)])


def match_pattern(it: Interpreter, pattern: Any, subject: Value, frame: Frame) -> bool | None:
    if isinstance(pattern, cst.MatchAs):
        if pattern.pattern is not None:
            inner = match_pattern(it, pattern.pattern, subject, frame)
            if inner is False:
                return False
        else:
            inner = True
        if pattern.name is not None:
            assign(it, pattern.name, subject, frame)
        return inner
    if isinstance(pattern, cst.MatchOr):
        seen = [match_pattern(it, p.pattern, subject, frame) for p in pattern.patterns]
        return True if True in seen else None if None in seen else False
    if isinstance(pattern, (cst.MatchValue, cst.MatchSingleton)):
        return operators.truth(operators.compare("==", subject, it.eval(pattern.value, frame)))
    if isinstance(pattern, (cst.MatchList, cst.MatchTuple)):
        return _match_sequence(it, list(pattern.patterns), subject, frame)
    if isinstance(pattern, cst.MatchMapping):
        return _match_mapping(it, pattern, subject, frame)
    if isinstance(pattern, cst.MatchClass):
        return _match_class(it, pattern, subject, frame)
    return None


def _all_of(seen: list[bool | None]) -> bool | None:
    return False if False in seen else None if None in seen else True


def _match_sequence(it: Interpreter, patterns: list[Any], subject: Value, frame: Frame) -> bool | None:
    if not isinstance(subject, Seq):
        return False if isinstance(subject, (Const, Mapping, Num)) else None
    if not subject.exact:
        return None
    star = next((n for n, p in enumerate(patterns) if isinstance(p, cst.MatchStar)), None)
    items = list(subject.items)
    if star is not None:
        after = len(patterns) - star - 1
        if len(items) < len(patterns) - 1:
            return False
        end = len(items) - after
        name = patterns[star].name
        if name is not None:
            assign(it, name, Seq("list", items[star:end]), frame)
        patterns, items = [*patterns[:star], *patterns[star + 1 :]], [*items[:star], *items[end:]]
    if len(patterns) != len(items):
        return False
    return _all_of([match_pattern(it, p.value, v, frame) for p, v in zip(patterns, items, strict=True)])


def _match_mapping(it: Interpreter, pattern: cst.MatchMapping, subject: Value, frame: Frame) -> bool | None:
    if not isinstance(subject, Mapping):
        return False if isinstance(subject, (Const, Seq, Num)) else None
    seen: list[bool | None] = []
    for element in pattern.elements:
        try:
            value = get_item(it, subject, it.eval(element.key, frame), frame.statement.site(element))
        except RaiseSignal:
            return False
        seen.append(match_pattern(it, element.pattern, value, frame))
    if pattern.rest is not None:
        named = {key_of(it.eval(e.key, frame)) for e in pattern.elements}
        left = {k: v for k, v in subject.entries.items() if k not in named}
        assign(it, pattern.rest, Mapping(left, subject.rest), frame)
    return _all_of(seen)


def _match_class(it: Interpreter, pattern: cst.MatchClass, subject: Value, frame: Frame) -> bool | None:
    from auditor.objects import is_instance

    cls = it.eval(pattern.cls, frame)
    seen = [is_instance(it, subject, cls)]
    if seen[0] is False:
        return False
    names: list[str | None] = [None] * len(pattern.patterns)
    if isinstance(subject, Instance) and pattern.patterns:
        try:
            listed = it.get(cls, "__match_args__", None)
        except RaiseSignal:
            return None
        names = [text_of(i) for i in listed.items] if isinstance(listed, Seq) else names
    for n, p in enumerate(pattern.patterns):
        name = names[n] if n < len(names) else None
        value = it.get(subject, name, None) if name else subject
        seen.append(match_pattern(it, p.value, value, frame))
    for k in pattern.kwds:
        try:
            seen.append(match_pattern(it, k.pattern, it.get(subject, k.key.value, None), frame))
        except RaiseSignal:
            return False
    return _all_of(seen)


# -- loops ------------------------------------------------------------------------------------------------------


def _for(it: Interpreter, node: cst.For, frame: Frame) -> Signal:
    source = iterate(it, it.eval(node.iter, frame), frame.statement.site(node.iter))

    def body(item: Value) -> Signal:
        assign(it, node.target, item, frame)
        return it.run_block(node.body.body, frame)

    saved = it.conditions
    it.conditions = saved | source.flags
    it.broke = set()
    try:
        signal = _surviving(it, lambda: loop(it, source, body, _unseen(node, frame)))
    finally:
        it.conditions = saved
    return _else(it, signal, it.broke, node.orelse, frame)


def _unseen(node: cst.For | cst.While, frame: Frame) -> Unseen:
    function = frame.function.node if frame.function is not None else None
    return Unseen(node, frame.env, function)


def _surviving(it: Interpreter, run_loop: Callable[[], Signal]) -> Signal:
    """A loop whose last world raises: those that left it by `break` before go on."""
    outer = len(it.heap.pending)
    try:
        return run_loop()
    except RaiseSignal:
        worlds = it.heap.release(outer)[:-1]
        if not worlds:
            raise
        return it._merge(worlds, (BREAK, CONTINUE))


def _else(it: Interpreter, signal: Signal, broke: set[bool], orelse: cst.Else | None, frame: Frame) -> Signal:
    """The `else` of a loop: run when no world has left by `break`, one of two ways when some have."""
    if signal is not None or orelse is None or broke == {True}:
        return signal
    body = orelse.body.body
    if broke:
        return it.fork([lambda: None, lambda: it.run_block(body, frame)])
    return it.run_block(body, frame)


def _while(it: Interpreter, node: cst.While, frame: Frame) -> Signal:
    outer = len(it.heap.pending)
    it.broke = set()
    signal = _surviving(it, lambda: _rounds(it, node, frame, outer))
    return _else(it, signal, it.broke, node.orelse, frame)


def _rounds(it: Interpreter, node: cst.While, frame: Frame, outer: int) -> Signal:
    known = len(it.assumed.made)
    for _ in range(MAX_UNROLL):
        it.assumed.cut(known)
        test = operators.truth(it.eval(node.test, frame))
        if test is False or it.exhausted is not None:
            break
        if test is None:
            signal = repeat(it, [NONE], lambda _item: it.run_block(node.body.body, frame))
            return it.settle(outer, signal, (BREAK,))
        signal = it.settle(len(it.heap.pending), it.run_block(node.body.body, frame), (CONTINUE,))
        if signal == BREAK:
            return left(it, outer, True)
        if signal is not None:
            return it.settle(outer, signal, (BREAK,))
        if len(it.heap.pending) > outer:
            # some worlds have left the loop: how often the others go round is not known
            signal = repeat(it, [NONE], lambda _item: it.run_block(node.body.body, frame))
            return it.settle(outer, signal, (BREAK,))
    else:
        # more rounds than are followed one by one: any number of them from here
        signal = repeat(it, [NONE], lambda _item: it.run_block(node.body.body, frame))
        if signal is not None:
            return it.settle(outer, signal, (BREAK,))
    return left(it, outer, False)


def run_comprehension(it: Interpreter, clause: cst.CompFor, frame: Frame, out: Value, emit: Callable[[], None]) -> None:
    """Run `emit`, which adds to `out`, for every item that the clauses let through."""
    source = iterate(it, it.eval(clause.iter, frame), frame.statement.site(clause.iter))

    def body(item: Value) -> Signal:
        assign(it, clause.target, item, frame)
        return conditions(0)

    def conditions(number: int) -> Signal:
        if number == len(clause.ifs):
            if clause.inner_for_in is not None:
                run_comprehension(it, clause.inner_for_in, frame, out, emit)
            else:
                emit()
            return None
        test = it.eval(clause.ifs[number].test, frame)
        known = it.truth(test)
        if known is None:
            return it.fork([lambda: conditions(number + 1), lambda: None])
        return conditions(number + 1) if known else None

    loop(it, source, body, Unseen(clause, frame.env, made=out))


# -- try and with -----------------------------------------------------------------------------------------------


def _try(it: Interpreter, node: cst.Try, frame: Frame) -> Signal:
    depth = len(it.heap.frames)
    attempt = Attempt(depth)
    known = len(it.assumed.made)
    it.maybe_raised.append(attempt)
    it.heap.open()
    signal: Signal = None
    raised: RaiseSignal | None = None
    try:
        signal = it.run_block(node.body.body, frame)
    except RaiseSignal as error:
        raised = error
    finally:
        it.maybe_raised.pop()
        it.assumed.cut(known)
    started = it.heap.before(depth) if attempt.errors else {}
    it.heap.close(depth)
    try:
        if raised is not None:
            signal = _handle(it, node, raised, frame)
        else:
            if signal is None and node.orelse is not None:
                signal = it.run_block(node.orelse.body.body, frame)
            caught = _ways(it, node, attempt.errors, frame)
            if caught:
                ended = signal
                signal = it.fork([lambda: ended, *(_caught(it, w, frame, started) for w in caught)])
    finally:
        if node.finalbody is not None:
            last = it.run_block(node.finalbody.body.body, frame)
            signal = last if last is not None else signal
    return signal


Way = tuple[cst.ExceptHandler, RaiseSignal, Contents]


def _ways(it: Interpreter, node: cst.Try, errors: list[tuple[RaiseSignal, Contents]], frame: Frame) -> list[Way]:
    """The handlers that may have to take what may have been raised, each from the first such moment."""
    found: dict[int, Way] = {}
    for error, contents in errors:
        for handler in _handlers_for(it, node, error, frame):
            found.setdefault(id(handler), (handler, error, contents))
    return list(found.values())


def _caught(it: Interpreter, way: Way, frame: Frame, started: Contents) -> Callable[[], Signal]:
    handler, error, contents = way

    def run() -> Signal:
        it.heap.apply({**started, **contents})
        return _run_handler(it, handler, error, frame)

    return run


def _handle(it: Interpreter, node: cst.Try, error: RaiseSignal, frame: Frame) -> Signal:
    handlers = _handlers_for(it, node, error, frame)
    if not handlers:
        raise error
    if len(handlers) == 1:
        return _run_handler(it, handlers[0], error, frame)
    return it.fork([partial(_run_handler, it, h, error, frame) for h in handlers])


def _run_handler(it: Interpreter, handler: cst.ExceptHandler, error: RaiseSignal, frame: Frame) -> Signal:
    if handler.name is not None:
        value: Value = error.raised or Unknown(f"an exception {error.kind}", "error")
        assign(it, handler.name.name, value, frame)
    frame.caught.append(error)
    try:
        return it.run_block(handler.body.body, frame)
    finally:
        frame.caught.pop()


_OF_IMPORTS = {"ImportError", "ModuleNotFoundError"}


def _handlers_for(it: Interpreter, node: cst.Try, error: RaiseSignal, frame: Frame) -> list[cst.ExceptHandler]:
    """The handler that takes an exception; every one that may, when its class is not known.

    What a call raises that nobody can read is no failed import.
    """
    kinds = _kinds(error)
    out: list[cst.ExceptHandler] = []
    for handler in node.handlers:
        if handler.type is None:
            return [*out, handler]
        accepted = it.eval(handler.type, frame)
        names = {exception_name(k) for k in (accepted.items if isinstance(accepted, Seq) else [accepted])}
        if kinds is None:
            if not names <= _OF_IMPORTS:
                out.append(handler)
            if names & {"Exception", "BaseException"}:
                return out
        elif kinds & names:
            return [handler]
    return out


def _kinds(error: RaiseSignal) -> set[str] | None:
    """The names of the classes that an exception belongs to; None when its class is not known."""
    if error.raised is not None:
        from auditor.objects import mro

        order = mro(error.raised.cls)
        if all(isinstance(c, (Class, NativeClass)) for c in order):
            return {exception_name(c) for c in order}
    if error.kind == "Exception":
        return None
    own = getattr(builtins, error.kind, None)
    if isinstance(own, type) and issubclass(own, BaseException):
        return {c.__name__ for c in own.__mro__}
    return {error.kind, "BaseException", *(() if isinstance(error, ExitSignal) else ("Exception",))}


def _with(it: Interpreter, node: cst.With, frame: Frame) -> Signal:
    from auditor.stdlib.managers import leave

    managers: list[Value] = []
    swallow = False
    for item in node.items:
        manager = it.eval(item.item, frame)
        managers.append(manager)
        entered = _enter(it, manager, frame.statement.site(item))
        swallow = swallow or _suppresses(manager)
        if item.asname is not None:
            assign(it, item.asname.name, entered, frame)
    captured = it.captured
    try:
        if not swallow:
            return it.run_block(node.body.body, frame)
        return _suppressing(it, node, [m.args for m in managers if isinstance(m, ExternalObject)], frame)
    finally:
        # A program that was captured inside keeps what was patched there: its facts are computed later.
        for item, manager in zip(reversed(node.items), reversed(managers), strict=True):
            if it.captured == captured:
                leave(it, manager, frame.statement.site(item))


def _suppressing(it: Interpreter, node: cst.With, given: list[Args], frame: Frame) -> Signal:
    """`with contextlib.suppress(...)`: a `try` whose only handler does nothing."""
    kinds = [cst.Element(cst.Name(exception_name(k))) for a in given for k in a.pos]
    handler = cst.ExceptHandler(body=cst.IndentedBlock([]), type=cst.Tuple(kinds))
    return _try(it, cst.Try(body=node.body, handlers=[handler]), frame)


def _enter(it: Interpreter, manager: Value, site: Site) -> Value:
    from auditor.stdlib.managers import enter

    given = enter(it, manager, site)
    if given is not None:
        return given
    if isinstance(manager, Seq):
        return manager.items[0] if manager.items else NONE
    if isinstance(manager, Unknown):
        return manager.child(".__enter__()")
    return manager


def _suppresses(manager: Value) -> bool:
    return isinstance(manager, ExternalObject) and manager.dotted.endswith((".suppress", ".raises"))


_AUGMENTED: dict[type, str] = {
    cst.AddAssign: "+",
    cst.SubtractAssign: "-",
    cst.MultiplyAssign: "*",
    cst.DivideAssign: "/",
    cst.FloorDivideAssign: "//",
    cst.ModuloAssign: "%",
    cst.PowerAssign: "**",
    cst.BitOrAssign: "|",
    cst.BitAndAssign: "&",
    cst.BitXorAssign: "^",
    cst.LeftShiftAssign: "<<",
    cst.RightShiftAssign: ">>",
    cst.MatrixMultiplyAssign: "@",
}
_RUN: dict[type, Callable[[Interpreter, Any, Frame], Signal]] = {
    cst.Expr: _expr,
    cst.Assign: _assign,
    cst.AnnAssign: _annotated,
    cst.AugAssign: _augmented,
    cst.Return: _return,
    cst.Pass: lambda it, node, frame: None,
    cst.Break: lambda it, node, frame: BREAK,
    cst.Continue: lambda it, node, frame: CONTINUE,
    cst.Del: _delete,
    cst.Assert: _assert,
    cst.Raise: _raise,
    cst.Global: _global,
    cst.Nonlocal: _nonlocal,
    cst.Import: _import,
    cst.ImportFrom: _import_from,
    cst.FunctionDef: _function,
    cst.ClassDef: _class,
    cst.If: _if,
    cst.For: _for,
    cst.While: _while,
    cst.Try: _try,
    cst.TryStar: _try,
    cst.With: _with,
    cst.Match: _match,
}
if hasattr(cst, "TypeAlias"):
    _RUN[cst.TypeAlias] = lambda it, node, frame: None
