"""One run: a script (or a console command) evaluated with one command line."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from auditor.calls.dispatch import call
from auditor.command_lines import Again, CommandLines, Due
from auditor.expressions.dispatch import EXPRESSIONS
from auditor.interpreter import ExitSignal, Frame, Interpreter, Meaning, RaiseSignal
from auditor.loader import Loader
from auditor.objects.assignment import set_attribute
from auditor.objects.attributes import get_attribute
from auditor.passed_on import without_logits
from auditor.registries import Where
from auditor.sinks import Export, Sinks, Started
from auditor.sources import Unreadable
from auditor.statements.dispatch import run_block
from auditor.torch.attributes import method_of_data, tensor_attribute
from auditor.torch.ops.arithmetic import tensor_binary
from auditor.values import Args, Class, Const, Seq, Unknown, Value
from rules.facts import Place

MEANING = Meaning(
    EXPRESSIONS,
    run_block,
    call,
    get_attribute,
    set_attribute,
    tensor_attribute,
    tensor_binary,
    method_of_data,
)


@dataclass(frozen=True, slots=True)
class Result:
    """What a run exported and started, and how it ended.

    `flags` are the options that the parser declared, `unread` the imports that could not be resolved, `ended_at` where
    an error ended the run, or the script left, when that is known, `registries` the look-ups that had to choose among
    model classes and how many entries each had. `due`: it went no further than to the choices that its command line has
    to make.
    """

    exports: tuple[Export, ...]
    started: tuple[Started, ...]
    problems: tuple[str, ...]
    flags: dict[str, Any]
    exhausted: Unknown | None
    steps: int
    ended: str = ""
    unread: tuple[tuple[str, Place], ...] = ()
    ended_at: Place | None = None
    registries: Mapping[Where, int] = field(default_factory=dict)
    due: bool = False

    @property
    def failed(self) -> bool:
        """Whether an error ended it, and not the script itself."""
        return self.ended.startswith("raises")


def run_script(
    loader: Loader,
    path: str,
    argv: tuple[str, ...],
    met: dict[Hashable, Result] | None = None,
    choosing: bool = False,
) -> Result:
    """Evaluate a script as `python <path> <argv>` would run it. Raises `Unreadable` and `SyntaxProblem`.

    `met` holds the script's earlier runs by what their command lines came to (see `auditor.command_lines`). With
    `choosing`, a run that has to make a choice ends there.
    """
    module = loader.main_module(path)

    def body(it: Interpreter) -> None:
        for statement in module.source.statements:
            if statement.waits and not statement.binds & set(module.env.names):
                continue  # evaluated when one of its names is looked up
            frame = Frame(module.env, statement, module)
            it.run_block(statement.nodes, frame)

    return _run(loader, argv, body, path, met, choosing=choosing)


def run_command(loader: Loader, dotted: str, attribute: str, argv: tuple[str, ...]) -> Result:
    """Evaluate a console script: `attribute` of the module `dotted`, called without arguments."""
    file = loader.sources.module(dotted, None, ())
    if file is None:
        raise Unreadable(dotted, "no source of that module")
    module = loader.library_module(file.path)

    def body(it: Interpreter) -> None:
        function = loader.name_in(it, module, attribute)
        if function is not None:
            it.call(function, Args(), None)

    return _run(loader, argv, body, file.path)


def run_function(
    loader: Loader,
    path: str,
    name: str,
    model: tuple[str, str, str] | None = None,
    taken: Mapping[Where, int] | None = None,
) -> Result:
    """Evaluate a module-level function, or a method (`Class.method`), that nothing calls, with unknown arguments.

    With `model` (parameter, path, class) that parameter is an instance of that class, made with unknown arguments.
    `taken` are entries of registries of classes by number, for look-ups under keys that nobody knows.
    """
    module = loader.library_module(path)

    def body(it: Interpreter) -> None:
        owner, _, method = name.rpartition(".")
        function = loader.name_in(it, module, owner or method)
        if owner and isinstance(function, Class):
            function = it.get(it.call(function, Args(), function.site), method, function.site)
        if function is None:
            return
        given: dict[str, Value] = {}
        if model is not None:
            made = loader.name_in(it, loader.library_module(model[1]), model[2])
            if not isinstance(made, Class):
                return
            given[model[0]] = it.call(made, Args(), made.site)
        it.call(function, Args([], given), None)

    return _run(loader, (), body, path, taken=taken)


def _run(
    loader: Loader,
    argv: tuple[str, ...],
    body: Any,
    path: str,
    met: dict[Hashable, Result] | None = None,
    taken: Mapping[Where, int] | None = None,
    choosing: bool = False,
) -> Result:
    met = {} if met is None else met
    loader.start_run(Seq("list", [Const(path), *(Const(a) for a in argv)]))
    sinks = Sinks()
    it = Interpreter(MEANING, loader, sinks, argv, CommandLines(met.keys(), choosing), literals=loader.literals)
    it.choices.taken.update(taken or {})
    it.heap.begin()
    ended, ended_at, due = "", None, False
    try:
        body(it)
    except Again as error:
        return met[error.key]
    except Due:
        due = True
    except ExitSignal as error:
        ended, ended_at = error.kind, _place(error)
    except RaiseSignal as error:
        detail = f": {error.value.reason}" if isinstance(error.value, Unknown) else ""
        ended = f"raises {error.kind}{detail}"
        ended_at = _place(error)
    except RecursionError:
        it.exhausted = Unknown("calls nest too deeply to be followed")
    finally:
        it.heap.end()
        it.forget()
    without_logits(sinks.exports)
    problems = tuple(m for m, _ in sinks.problems)
    unread = tuple(
        (loader.lacking(name), site.place(f"the import of `{name}`"))
        for name, (_, site) in sorted(loader.unread.items())
    )
    result = Result(
        tuple(sinks.exports),
        tuple(sinks.commands),
        problems,
        it.flag_table,
        it.exhausted,
        it.steps,
        ended,
        unread,
        ended_at,
        dict(it.choices.met),
        due,
    )
    if it.command_lines.key is not None and not loader.argv_read:
        met[it.command_lines.key] = result
    return result


def _place(error: RaiseSignal) -> Place | None:
    """Where an error was raised, or the script left."""
    return error.value.places[0].place() if error.value is not None and error.value.places else None
