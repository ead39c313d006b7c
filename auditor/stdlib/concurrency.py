"""`threading`, `multiprocessing`, `concurrent.futures` and `asyncio`: what is started is taken to run at once."""

from __future__ import annotations

from auditor.containers.iteration import iterate
from auditor.handlers import first_argument, itself, nothing
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site
from auditor.stdlib.classes import NAMESPACE
from auditor.stdlib.iteration import starmap
from auditor.values import NONE, Args, Instance, Mapping, Native, NativeClass, Seq, Value, is_given, text_of


def _init(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`Thread(group, target, name, args, kwargs)`, and `Process` alike."""
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    it.heap.touch(obj)
    names = ("target", "args", "kwargs")
    obj.attrs |= {f"_{n}": v for n, at in zip(names, (2, 4, 5), strict=True) if (v := args.get(at, n)) is not None}
    return NONE


def _timer(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`Timer(interval, function, args, kwargs)`."""
    return _init(it, Args([args.pos[0], NONE, args.get(2, "function") or NONE, NONE, *args.pos[3:]], args.kw), site)


def _run(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    target, given, keywords = (obj.attrs.get(f"_{n}") for n in ("target", "args", "kwargs"))
    if not is_given(target) or site is None:
        return NONE
    pos = iterate(it, given, site) if given is not None else Seq("tuple", [])
    kw = {text_of(k) or "?": v for k, v in keywords.entries.values()} if isinstance(keywords, Mapping) else {}
    it.call(target, Args(list(pos.items), kw, pos.rest), site)
    return NONE


def _start(it: Interpreter, args: Args, site: Site | None) -> Value:
    it.call(it.get(args.pos[0], "run", site), Args(), site)
    return NONE


def _submit(it: Interpreter, args: Args, site: Site | None) -> Value:
    result = it.call(args.pos[1], Args(args.pos[2:], args.kw, args.more), site)
    return Instance(FUTURE, payload=result)


def _map(it: Interpreter, args: Args, site: Site | None) -> Value:
    return it.call(it.loader.builtins["map"], Args(args.pos[1:]), site)


def _starmap(it: Interpreter, args: Args, site: Site | None) -> Value:
    return starmap(it, Args(args.pos[1:]), site)


def _apply(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`pool.apply(function, args, kwargs)`."""
    assert site is not None
    given, keywords = args.get(2, "args"), args.get(3, "kwds")
    pos = iterate(it, given, site) if given is not None else Seq("tuple", [])
    kw = {text_of(k) or "?": v for k, v in keywords.entries.values()} if isinstance(keywords, Mapping) else {}
    return it.call(args.pos[1], Args(list(pos.items), kw, pos.rest), site)


def _apply_async(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(FUTURE, payload=_apply(it, args, site))


def _result(it: Interpreter, args: Args, site: Site | None) -> Value:
    future = args.pos[0]
    return future.payload if isinstance(future, Instance) and isinstance(future.payload, Value) else NONE


def _quiet(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Native("method", lambda it, inner, site: NONE)


def _completed(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0] if args.pos else Seq("list", [])


THREAD = NativeClass(
    "threading.Thread", {"__init__": _init, "run": _run, "start": _start, "__getattr__": _quiet}, (OBJECT,)
)
TIMER = NativeClass("threading.Timer", {"__init__": _timer}, (THREAD,))
FUTURE = NativeClass("concurrent.futures.Future", {"result": _result, "get": _result, "__getattr__": _quiet}, (OBJECT,))
POOL = NativeClass(
    "concurrent.futures.Executor",
    {
        "__init__": nothing,
        "__enter__": itself,
        "submit": _submit,
        "map": _map,
        "imap": _map,
        "imap_unordered": _map,
        "starmap": _starmap,
        "apply": _apply,
        "apply_async": _apply_async,
        "__getattr__": _quiet,
    },
    (OBJECT,),
)


def _loop(it: Interpreter, args: Args, site: Site | None) -> Value:
    """An event loop. A coroutine is evaluated where it is made, so that it gives its result wherever it is run."""
    return Instance(NAMESPACE, {"run_until_complete": Native("run_until_complete", first_argument)})


def _gathered(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("list", list(args.pos), args.more)


NATIVES: dict[str, Value] = {
    "asyncio.run": Native("asyncio.run", first_argument),
    "asyncio.get_event_loop": Native("get_event_loop", _loop),
    "asyncio.new_event_loop": Native("new_event_loop", _loop),
    "asyncio.gather": Native("gather", _gathered),
    "threading.Thread": THREAD,
    "threading.Timer": TIMER,
    "multiprocessing.Process": THREAD,
    "multiprocessing.Pool": POOL,
    "multiprocessing.pool.ThreadPool": POOL,
    "concurrent.futures.ThreadPoolExecutor": POOL,
    "concurrent.futures.ProcessPoolExecutor": POOL,
    "concurrent.futures.as_completed": Native("as_completed", _completed),
    "concurrent.futures.wait": Native("wait", _completed),
}
