"""Attacks by Python itself: command lines that a script changes, rewired functions and classes, indirect calls.

None of these scripts exports what its plain reading says, so none may be called eligible.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict, judge
from tests.auditor.edits import (
    BUILD,
    CONVERTER,
    EXPORT,
    HEAD,
    NORM,
    PARSE,
    PROGRAM,
    SIGNATURE,
    Edit,
    before,
    eligible,
    top,
)
from tests.auditor.support import CORE_ML, EXPORTER, default_graphs, indented, judged, mutate, scan_text

IMPORTS = "import argparse\n"
OPTION = '    parser.add_argument("--static", action="store_true")\n'
CALL = "    export(args)\n"
PARSER = "    parser = argparse.ArgumentParser()\n"
MAIN = EXPORTER[EXPORTER.index('if __name__ == "__main__":') :]
SAVE = '    converter.to_coreai().save_asset("out/model.aimodel")\n'
LINE = "    program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)\n"


COMMAND_LINE = {
    "append": 'sys.argv.append("--static")',
    "extend": 'sys.argv.extend(["--static"])',
    "insert": 'sys.argv.insert(1, "--static")',
    "+=": 'sys.argv += ["--static"]',
    "a slice": 'sys.argv[1:] = ["--static"]',
    "assigned": 'sys.argv = ["export.py", "--static"]',
    "setattr": 'setattr(sys, "argv", ["export.py", "--static"])',
    "an alias": 'words = sys.argv\nwords.append("--static")',
    "imported": 'from sys import argv\nargv.append("--static")',
    "on one of two ways": 'import os\nif os.environ.get("PIN"):\n    sys.argv = ["export.py", "--static"]',
    "words that are not known": 'import os\nsys.argv += os.environ["MORE"].split()',
}


@pytest.mark.parametrize("name", sorted(COMMAND_LINE))
def test_the_command_line_is_changed(tmp_path: Path, name: str) -> None:
    script = mutate(EXPORTER, (IMPORTS, IMPORTS + "import sys\n"), before(PARSE, indented(COMMAND_LINE[name], 4)))
    assert not _eligible_if_any(tmp_path, script)


def _eligible_if_any(root: Path, script: str) -> bool:
    """Of a script whose parser may end the run, so that no graph is left."""
    graphs = default_graphs(scan_text(root, {"export.py": script}))
    return any(judge(g.facts).verdict is Verdict.ELIGIBLE for g in graphs)


_OWN_PARSER = "    class Own(argparse.ArgumentParser):\n"
READ = "    args.static = getattr(args, 'static', 1)\n"
PARSERS: dict[str, tuple[Edit, ...]] = {
    "a default that is suppressed": (
        (OPTION, '    parser.add_argument("--static", type=int, default=argparse.SUPPRESS)\n'),
        (CALL, READ + CALL),
    ),
    "all defaults are suppressed": (
        (PARSER, "    parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS)\n"),
        (OPTION, '    parser.add_argument("--static", type=int)\n'),
        (CALL, READ + CALL),
    ),
    "a default for all": (
        (PARSER, "    parser = argparse.ArgumentParser(argument_default=True)\n"),
        (OPTION, '    parser.add_argument("--static", type=int)\n'),
    ),
    "set_defaults before the option": (
        (OPTION, '    parser.set_defaults(static=0)\n    parser.add_argument("--static", type=int, default=1)\n'),
    ),
    "the option's default is set": ((OPTION, OPTION.replace("parser.", "o = parser.") + "    o.default = True\n"),),
    "the defaults of all options are set": (
        before(PARSE, indented("for o in parser._actions:\n    o.default = True", 4)),
    ),
    "a namespace of a class": (
        (OPTION, '    parser.add_argument("--static", type=int)\n'),
        (
            PARSE,
            "    class Own(argparse.Namespace):\n        static = True\n\n"
            "    args = parser.parse_args(namespace=Own())\n",
        ),
    ),
    "a parser of a class, by parse_args": (
        (
            PARSER,
            _OWN_PARSER + "        def parse_args(self):\n            found = super().parse_args()\n"
            "            found.static = True\n            return found\n\n    parser = Own()\n",
        ),
    ),
    "a parser of a class, by __init__": (
        (
            PARSER,
            _OWN_PARSER + "        def __init__(self):\n            super().__init__()\n"
            "            self.set_defaults(static=True)\n\n    parser = Own()\n",
        ),
    ),
}


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_the_parser_says_otherwise(tmp_path: Path, name: str) -> None:
    assert not eligible(tmp_path, *PARSERS[name])


def test_an_action_of_the_script_is_run(tmp_path: Path) -> None:
    action = (
        "    class Pin(argparse.Action):\n        def __call__(self, parser, namespace, values, option_string=None):\n"
        "            namespace.static = values == 'yes'\n\n"
    )
    pin = '    parser.add_argument("--pin", action=Pin)\n'
    script = mutate(
        EXPORTER, (PARSER, action + PARSER), (OPTION, OPTION + pin), (PARSE, PARSE.replace("()", '(["--pin", "yes"])'))
    )
    assert judged(tmp_path, script).verdict is Verdict.OUT
    assert judged(tmp_path, script.replace('"yes"])', '"no"])')).verdict is Verdict.ELIGIBLE


NAMED = "    export(argparse.Namespace(static=static))\n"
START = "app = {0}\nPIN = False\n\n\n{1}\ndef start():\n    global PIN\n    PIN = True\n\n\n{2}\ndef main():\n"
PINNED = "    export(argparse.Namespace(static=PIN))\n\n\napp()\n"


def _typer(signature: str, given: str = "static") -> str:
    call = NAMED.replace("static=static", f"static={given}")
    enum = "class Mode(str, Enum):\n    static = 'static'\n    dynamic = 'dynamic'\n\n\n"
    return f"{enum}def main({signature}):\n{call}\n\ntyper.run(main)\n"


def _click(option: str, given: str = "static", call: str = "main()", command: str = "@click.command()") -> str:
    body = NAMED.replace("static=static", f"static={given}")
    name = given.removeprefix("not ").split()[0]
    return f"{command}\n{option}\ndef main({name}):\n{body}\n\n{call}\n"


COMMANDS = {
    "typer: a factory": _typer("static: bool = typer.Option(default_factory=lambda: True)"),
    "typer: a factory in an annotation": _typer("static: Annotated[bool, typer.Option(default_factory=lambda: True)]"),
    "typer: a callback": _typer("static: bool = typer.Option(False, callback=lambda value: True)"),
    "typer: a callback in an annotation": _typer(
        "static: Annotated[bool, typer.Option(callback=lambda v: True)] = False"
    ),
    "typer: a member of an enumeration": _typer("mode: Mode = Mode.static", "mode is Mode.static"),
    "typer: a member as a text": _typer("mode: Mode = Mode.static", "mode == 'static'"),
    "typer: what starts first": START.format("typer.Typer()", "@app.callback()", "@app.command()") + PINNED,
    "typer: what starts first, by name": (
        "def start():\n    global PIN\n    PIN = True\n\n\napp = typer.Typer(callback=start)\nPIN = False\n\n\n"
        "@app.command()\ndef main():\n" + PINNED
    ),
    "click: a word for no": _click('@click.option("--dynamic", type=bool, default="no")', "not dynamic"),
    "click: another word for no": _click('@click.option("--dynamic", type=click.BOOL, default="false")', "not dynamic"),
    "click: a callback": _click('@click.option("--static", is_flag=True, callback=lambda c, p, v: True)'),
    "click: values of flags": _click(
        '@click.option("--pin", "mode", flag_value="static", default=True)\n'
        '@click.option("--free", "mode", flag_value="dynamic")',
        'mode == "static"',
    ),
    "click: any case": _click(
        '@click.option("--mode", type=click.Choice(["static", "dynamic"], case_sensitive=False), default="STATIC")',
        'mode == "static"',
    ),
    "click: a map of defaults": _click(
        '@click.option("--static", is_flag=True)',
        command='@click.command(context_settings={"default_map": {"static": True}})',
    ),
    "click: a number in words": _click('@click.option("--rows", default=2)', "rows == 1", 'main(["--rows", "1"])'),
    "click: given words": _click('@click.option("--static", is_flag=True)', call='main(["--static"])'),
    "click: given words to main": _click(
        '@click.option("--static", is_flag=True)', call='main.main(args=["--static"])'
    ),
    "click: a parameter is changed": _click(
        '@click.option("--static", is_flag=True)', call="main.params[0].default = True\nmain()"
    ),
    "click: a type of the script": (
        "class Word(click.ParamType):\n    def convert(self, value, param, ctx):\n        return value == 'on'\n\n\n"
        + _click('@click.option("--dynamic", type=Word(), default="off")', "not dynamic")
    ),
    "click: a group": (
        "PIN = False\n\n\n@click.group()\n@click.option('--static/--dynamic', default=True)\ndef app(static):\n"
        "    global PIN\n    PIN = static\n\n\n@app.command()\ndef main():\n" + PINNED
    ),
    "click: an environment variable": _click('@click.option("--static", is_flag=True, envvar="STATIC_IDS")'),
    "click: environment variables by a prefix": _click(
        '@click.option("--static", is_flag=True)', call='main(auto_envvar_prefix="EXPORT")'
    ),
    "click: the same in the settings": _click(
        '@click.option("--static", is_flag=True)',
        command='@click.command(context_settings={"auto_envvar_prefix": "EXPORT"})',
    ),
    "typer: an environment variable": _typer("static: bool = typer.Option(False, envvar='STATIC_IDS')"),
    "typer: the same in an annotation": _typer("static: Annotated[bool, typer.Option(envvar='STATIC_IDS')] = False"),
    "fire: a list of words": f"def main(static=False):\n{NAMED}\n\nfire.Fire(main, command=['--static'])\n",
}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_that_pins_the_query_is_noteligible(tmp_path: Path, name: str) -> None:
    imports = "import click\nimport fire\nimport typer\nfrom enum import Enum\nfrom typing import Annotated\n"
    assert not eligible(tmp_path, (IMPORTS, IMPORTS + imports), (MAIN, COMMANDS[name]))


HELPERS = """\
import functools
import operator
import sys
import types


def pick(x, last=False):
    return x[:, -1:] if last else x


def pick_kw(x, *, last=False):
    return x[:, -1:] if last else x


def tail(x):
    return x[:, -1:]


class LastHead(nn.Linear):
    def forward(self, x):
        return super().forward(x[:, -1:])


"""
REWIRED: dict[str, tuple[str, str]] = {
    "__defaults__": ("pick", "pick.__defaults__ = (True,)"),
    "__kwdefaults__": ("pick_kw", 'pick_kw.__kwdefaults__ = {"last": True}'),
    "an entry of __kwdefaults__": ("pick_kw", 'pick_kw.__kwdefaults__["last"] = True'),
    "__code__": ("pick", "pick.__code__ = tail.__code__"),
    "__code__ by setattr": ("pick", 'setattr(pick, "__code__", tail.__code__)'),
    "globals()": ("pick", 'globals()["pick"] = tail'),
    "__globals__": ("pick", 'Model.forward.__globals__["pick"] = tail'),
    "sys.modules": ("pick", "sys.modules[__name__].pick = tail"),
    "sys.modules by setattr": ("pick", 'setattr(sys.modules["__main__"], "pick", tail)'),
    "the head's class": ("pick", "model.head.__class__ = LastHead"),
    "__bases__": ("pick", "class Base(nn.Module):\n    pass\nModel.__bases__ = (Base,)"),
    "Model.__call__": (
        "pick",
        "call = Model.__call__\nModel.__call__ = lambda self, *a, **k: call(self, *a, **k)[:, -1:]",
    ),
    "_call_impl": ("pick", "old = model.head._call_impl\nmodel.head._call_impl = lambda x: old(x[:, -1:])"),
    "_forward_hooks": ("pick", "model.head._forward_hooks[0] = lambda m, a, y: y[:, -1:]"),
    "a method of tensors": ("torch.Tensor.contiguous", "torch.Tensor.contiguous = tail"),
    "a weak reference": (
        "pick",
        "import weakref\nhead = weakref.ref(model)().head\nold = head.forward\nhead.forward = lambda x: old(x[:, -1:])",
    ),
    "the weights of the head": ("pick", "model.head.weight.data = model.head.weight.data[:1]"),
}
REWIRED_OUT = ("globals()", "__globals__", "sys.modules", "Model.__call__", "a weak reference")


@pytest.mark.parametrize("name", sorted(REWIRED))
def test_what_forward_calls_is_rewired(tmp_path: Path, name: str) -> None:
    called, code = REWIRED[name]
    edits = (top(HELPERS), (NORM, f"        x = {called}(self.norm(x))\n"), (BUILD, BUILD + indented(code, 4)))
    verdict = judged(tmp_path, mutate(EXPORTER, *edits)).verdict
    assert verdict is Verdict.OUT if name in REWIRED_OUT else verdict is not Verdict.ELIGIBLE


CLASSES: dict[str, str] = {
    "__call__ of a layer": (
        "class Head(nn.Linear):\n    def __call__(self, x):\n        return super().__call__(x[:, -1:])\n"
    ),
    "__new__": (
        "class Head(nn.Linear):\n    def __new__(cls, *a):\n        made = super().__new__(cls)\n"
        "        made.forward = lambda x: x[:, -1:]\n        return made\n"
    ),
    "a metaclass": (
        "class Meta(type):\n    def __call__(cls, *a):\n        made = super().__call__(*a)\n"
        "        made.forward = lambda x: x[:, -1:]\n        return made\n\n\n"
        "class Head(nn.Linear, metaclass=Meta):\n    pass\n"
    ),
    "dispatch by type": (
        "import functools\n\n\n@functools.singledispatch\ndef pick(x):\n    return x\n\n\n@pick.register\n"
        "def _(x: torch.Tensor):\n    return x[:, -1:]\n\n\n"
        "class Head(nn.Linear):\n    def forward(self, x):\n        return super().forward(pick(x))\n"
    ),
}


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_head_of_a_rewired_class_is_noteligible(tmp_path: Path, name: str) -> None:
    layer = "class Layer(nn.Module):\n"
    head = "self.head = nn.Linear(HIDDEN, VOCAB)"
    assert not eligible(tmp_path, (layer, f"{CLASSES[name]}\n\n{layer}"), (head, head.replace("nn.Linear", "Head")))


INDIRECT = {
    "operator.setitem": 'import operator\noperator.setitem(dynamic, "input_ids", None)',
    "dict.__setitem__": 'dict.__setitem__(dynamic, "input_ids", None)',
    "__setitem__": 'dynamic.__setitem__("input_ids", None)',
    "popitem": 'while dynamic:\n    key, _ = dynamic.popitem()\n    if key == "input_ids":\n        break',
    "starmap": 'import itertools\nlist(itertools.starmap(dynamic.__setitem__, [("input_ids", None)]))',
    "a thread": 'import threading\nt = threading.Thread(target=dynamic.update, kwargs={"input_ids": None})\nt.start()',
    "a thread's class": (
        'import threading\nclass Pin(threading.Thread):\n    def run(self):\n        dynamic["input_ids"] = None\n'
        "pin = Pin()\npin.start()\npin.join()"
    ),
    "a pool": (
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as pool:\n"
        "    pool.submit(dynamic.update, input_ids=None).result()"
    ),
    "an exit stack": (
        "import contextlib\nwith contextlib.ExitStack() as stack:\n    stack.callback(dynamic.update, input_ids=None)"
    ),
    "a manager on an exit stack": (
        "import contextlib\n@contextlib.contextmanager\ndef pinned():\n    dynamic['input_ids'] = None\n    yield\n"
        "stack = contextlib.ExitStack()\nstack.enter_context(pinned())"
    ),
    "code that the standard library may run": (
        "import sched\nsched.scheduler().enter(0, 1, lambda: dynamic.update(input_ids=None))"
    ),
    "equal by __eq__": (
        "class Any:\n    def __eq__(self, other):\n        return True\n"
        "if Any() == 'static':\n    dynamic['input_ids'] = None"
    ),
}


@pytest.mark.parametrize("name", sorted(INDIRECT))
def test_the_spec_is_changed_indirectly(tmp_path: Path, name: str) -> None:
    assert not eligible(tmp_path, ("1 if args.static else 8", "1"), before(PROGRAM, indented(INDIRECT[name], 4)))


SLICE = "torch.ops.aten.slice.Tensor"
GRAPHS: dict[str, str] = {
    "the output is set": (
        f"for node in program.graph.nodes:\n    if node.op == 'output':\n"
        f"        with program.graph.inserting_before(node):\n"
        f"            cut = program.graph.call_function({SLICE}, (node.args[0][0], 1, -1, 2**31))\n"
        f"        node.args = ((cut,),)"
    ),
    "the output is looked for": (
        f"graph = program.graph_module.graph\nout = next(n for n in graph.nodes if n.op == 'output')\n"
        f"cut = graph.call_function({SLICE}, (out.args[0][0], 1, -1, 2**31))\nout.args = ((cut,),)\n"
        "program.graph_module.recompile()"
    ),
    "a slice is put behind an operation": (
        "graph = program.graph_module.graph\nfor node in graph.nodes:\n"
        "    if node.target == torch.ops.aten.layer_norm.default:\n        with graph.inserting_after(node):\n"
        f"            cut = graph.call_function({SLICE}, (node, 1, -1, 2**31))\n"
        "        node.replace_all_uses_with(cut)\n        cut.args = (node, 1, -1, 2**31)"
    ),
    "the same by create_node": (
        "graph = program.graph\nfor node in list(graph.nodes):\n    if 'layer_norm' in node.name:\n"
        f"        cut = graph.create_node('call_function', {SLICE}, (node, 1, -1, 2**31))\n"
        "        node.replace_all_uses_with(cut)"
    ),
    "the program goes through unread code": "import rowkit\nrowkit.passes(program)",
    "its module goes through unread code": "import rowkit\nrowkit.passes(program.graph_module)",
}


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_the_graph_of_a_program_is_edited(tmp_path: Path, name: str) -> None:
    assert not eligible(tmp_path, (LINE, LINE + indented(GRAPHS[name], 4)))


@pytest.mark.parametrize("call", ["rowkit.pin(asset)", "asset = rowkit.pin(asset)"])
def test_an_asset_that_goes_through_unread_code(tmp_path: Path, call: str) -> None:
    saved = f"    import rowkit\n    asset = converter.to_coreai()\n    {call}\n    asset.save_asset('out/m.aimodel')\n"
    assert not eligible(tmp_path, (SAVE, saved))


def test_a_converter_that_goes_through_unread_code(tmp_path: Path) -> None:
    assert not eligible(tmp_path, (CONVERTER, CONVERTER + "    import rowkit\n    rowkit.lowerings(converter)\n"))


CORE_ML_EDITS = {
    "the protobuf": (
        "spec = mlmodel._spec\nspec.description.input[0].type.multiArrayType.shapeRange.sizeRanges[1].upperBound = 1\n"
    ),
    "an input of the protobuf, by its name": (
        "spec = mlmodel.get_spec()\nfor i in spec.description.input:\n    if i.name == 'input_ids':\n"
        "        i.type.multiArrayType.ClearField('ShapeFlexibility')\nmlmodel = ct.models.MLModel(spec)\n"
    ),
    "fixed shapes": (
        "ct.utils.materialize_dynamic_shape_mlmodel(mlmodel, {'main': {'input_ids': (1, 1)}}, 'out/model.mlpackage')\n"
    ),
    "unread code": "import rowkit\nrowkit.post(mlmodel)\n",
}


@pytest.mark.parametrize("name", sorted(CORE_ML_EDITS))
def test_a_core_ml_model_is_edited(tmp_path: Path, name: str) -> None:
    save = 'mlmodel.save("out/model.mlpackage")\n'
    script = mutate(CORE_ML, (save, CORE_ML_EDITS[name] + save))
    assert judged(tmp_path, script).verdict is not Verdict.ELIGIBLE


SPEC = "class Spec:\n    tokens = 1\n\n\n"
FREE = "def free():\n    Spec.tokens = 8\n\n\nfree()\n"
DEFINED = {
    "a default, then a call that changes it": f"{SPEC}def width(tokens=Spec.tokens):\n    return tokens\n\n\n{FREE}",
    "a default, then setattr": (
        f"{SPEC}def width(tokens=Spec.tokens):\n    return tokens\n\n\nsetattr(Spec, 'tokens', 8)\n"
    ),
    "a class body, then a call that changes it": (
        f"{SPEC}class Plan:\n    tokens = Spec.tokens\n\n\n{FREE}\n\ndef width():\n    return Plan.tokens\n"
    ),
    "vars()": "TOKENS = 8\nvars()['TOKENS'] = 1\n\n\ndef width():\n    return TOKENS\n",
    "locals()": "TOKENS = 8\nlocals()['TOKENS'] = 1\n\n\ndef width():\n    return TOKENS\n",
    "globals().update": "TOKENS = 8\nglobals().update(TOKENS=1)\n\n\ndef width():\n    return TOKENS\n",
    "__set_name__": (
        "TOKENS = [8]\n\n\nclass Field:\n    def __set_name__(self, owner, name):\n        TOKENS.append(1)\n\n\n"
        "class Owner:\n    field = Field()\n\n\ndef width():\n    return TOKENS[-1]\n"
    ),
}


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_what_a_definition_reads_when_it_is_made(tmp_path: Path, name: str) -> None:
    edits = (
        before(EXPORT, DEFINED[name] + "\n\n"),
        ("1 if args.static else 8", "width()"),
        ("None if args.static else", "None if width() == 1 else"),
    )
    assert judged(tmp_path, mutate(EXPORTER, *edits)).verdict is Verdict.OUT


PLAIN = {
    "typer": _typer("static: bool = False"),
    "typer: names": _typer('static: bool = typer.Option(False, "--static/--dynamic")'),
    "typer: what starts first": START.format("typer.Typer()", "@app.callback()", "@app.command()").replace(
        "True", "False"
    )
    + PINNED,
    "typer: a version that is asked for": (
        "def version(value: bool):\n    if value:\n        raise typer.Exit()\n\n\n"
        + _typer("static: bool = False, v: Annotated[bool, typer.Option('--version', callback=version)] = False")
    ),
    "click: a flag": _click('@click.option("--static", is_flag=True)'),
    "click: a pair of flags": _click('@click.option("--static/--dynamic", default=False)'),
    "click: a word for no": _click('@click.option("--static", type=bool, default="no")'),
    "click: an environment variable for another option": _click(
        '@click.option("--token", envvar="HF_TOKEN")\n@click.option("--static", is_flag=True)'
    ).replace("def main(static)", "def main(static, token)"),
    "click: a choice": _click(
        '@click.option("--mode", type=click.Choice(["static", "dynamic"]), default="dynamic")', 'mode == "static"'
    ),
    "click: values of flags": _click(
        '@click.option("--pin", "mode", flag_value="static")\n'
        '@click.option("--free", "mode", flag_value="dynamic", default=True)',
        'mode == "static"',
    ),
    "click: a group": (
        "PIN = False\n\n\n@click.group()\n@click.option('--verbose', is_flag=True)\n@click.pass_context\n"
        "def app(ctx, verbose):\n    ctx.ensure_object(dict)\n\n\n@app.command()\ndef main():\n" + PINNED
    ),
    "fire": f"def main(static=False):\n{NAMED}\n\nfire.Fire(main)\n",
}


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_plain_commands_stayeligible(tmp_path: Path, name: str) -> None:
    imports = "import click\nimport fire\nimport typer\nfrom enum import Enum\nfrom typing import Annotated\n"
    assert eligible(tmp_path, (IMPORTS, IMPORTS + imports), (MAIN, PLAIN[name]))


HARMLESS: dict[str, tuple[Edit, ...]] = {
    "a handler of signals": (
        before(PROGRAM, "    import signal\n    signal.signal(signal.SIGINT, lambda *a: None)\n"),
    ),
    "help that is suppressed": ((OPTION, OPTION.replace(")", ", help=argparse.SUPPRESS)")),),
    "set_defaults": ((OPTION, OPTION + "    parser.set_defaults(static=False)\n"),),
    "a parser of a class": (
        (
            PARSER,
            _OWN_PARSER + "        def error(self, message):\n            raise SystemExit(2)\n\n    parser = Own()\n",
        ),
    ),
    "the command line is read": (
        (IMPORTS, IMPORTS + "import sys\n"),
        before(PARSE, "    if len(sys.argv) > 5:\n        sys.argv = sys.argv[:1]\n"),
    ),
    "a thread that only prints": (
        before(PROGRAM, "    import threading\n    threading.Thread(target=print, args=('exporting',)).start()\n"),
    ),
    "the graph is counted": (
        (LINE, LINE + "    print(len([n for n in program.graph.nodes if n.op == 'call_function']))\n"),
    ),
    "a pass that keeps the outputs": (
        (
            LINE,
            LINE
            + indented(
                "for node in list(program.graph_module.graph.nodes):\n    if node.target == 'aten.detach':\n"
                "        node.replace_all_uses_with(node.args[0])\n        program.graph_module.graph.erase_node(node)",
                4,
            ),
        ),
    ),
    "a pass that reads a cache": (
        (
            LINE,
            LINE
            + indented(
                "graph = program.graph\nfor node in list(graph.nodes):\n    if node.target == 'fetch':\n"
                f"        layer = graph.call_function({SLICE}, args=(node, 0, 3, 4))\n"
                f"        seen = graph.call_function({SLICE}, args=(layer, 2, 0, node.kwargs['seen']))\n"
                "        node.replace_all_uses_with(seen)",
                4,
            ),
        ),
    ),
    "calls that set up something else": (
        before(
            EXPORT,
            "import dotenv\nimport nest_asyncio\nimport rich_logs\n\nnest_asyncio.apply()\ndotenv.load_dotenv()\n"
            "rich_logs.install(level='info')\n\n\n",
        ),
    ),
    "an asset that was saved goes through unread code": (
        (
            SAVE,
            SAVE.replace("    converter", "    asset = converter").replace(".save_asset", "\n    asset.save_asset")
            + "    import rowkit\n    rowkit.check(asset)\n",
        ),
    ),
    "an attribute of a function": (top("def helper():\n    pass\n\n\nhelper.version = 2"),),
    "a class with __call__ that calls forward": (
        (
            SIGNATURE,
            "    def __call__(self, *args, **kwargs):\n        return super().__call__(*args, **kwargs)\n\n"
            + SIGNATURE,
        ),
    ),
    "a state of Python that is only read": ((HEAD, HEAD + "        self.calls = getattr(self, 'calls', 0) + 1\n"),),
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_what_is_harmless_stayseligible(tmp_path: Path, name: str) -> None:
    assert eligible(tmp_path, *HARMLESS[name])


PATCHES = {
    "kernels are applied": "from liger_kernel.transformers import apply_liger_kernel_to_llama as apply\n\napply()\n",
    "the same with switches": (
        "from liger_kernel import transformers as fused\n\nfused.apply_liger_kernel_to_llama(rope=True, swiglu=False)\n"
    ),
    "a function that patches": "from mykit import patch_attention\n\npatch_attention('sdpa')\n",
    "a module of patches": "from mykit.monkeypatch import fix\n\nfix()\n",
}


@pytest.mark.parametrize("name", sorted(PATCHES))
def test_an_unread_call_that_says_that_it_patches(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, before(EXPORT, PATCHES[name] + "\n\n")))
    assert judgement.verdict is Verdict.UNRESOLVED
    assert "may replace what layers call" in judgement.reasons[0].message


def test_a_lowering_of_core_ai_is_replaced(tmp_path: Path) -> None:
    register = (
        "    @converter.register_torch_lowering('{0}', allow_override={1})\n"
        "    def last(values, node, loc):\n        return values[node.args[0]]\n\n"
    )
    assert not eligible(tmp_path, (CONVERTER, CONVERTER + register.format("aten::linear.default", True)))
    assert eligible(tmp_path, (CONVERTER, CONVERTER + register.format("aten::linear.default", False)))
    assert eligible(tmp_path, (CONVERTER, CONVERTER + register.format("mine::scaled.default", True)))
