"""What pins the query: entries of the dynamic shapes, edits of the spec once it is built, flags and their defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import InvocationKind
from rules.verdict import judge
from tests.auditor.edits import (
    ONE_TOKEN,
    PARSE,
    PROGRAM,
    STATIC,
    UNKNOWN_LOGITS,
    UNKNOWN_QUERY,
    WINDOW,
    Edit,
    Mutation,
    after,
    before,
    check_broken,
    ids,
    may,
)
from tests.auditor.support import EXPORTER, graph_of, judged, mutate, scan_text

ENTRIES = {
    "None": "None",
    "no entry": "",
    "an empty entry": "{}",
    "the batch instead": '{0: Dim("batch")}',
    "an axis of None": "{1: None}",
    "Dim.STATIC": "{1: Dim.STATIC}",
    "a number": "{1: 1}",
    "a tuple": "(None, None)",
    "a list with a number": "[None, 1]",
    "a conditional": '{1: Dim("tokens")} if CONTEXT > 1024 else None',
    "a boolean operator": "args.static or None",
    "a missing key": 'dict(position_ids=None).get("input_ids")',
    "a call": 'dict().get("input_ids", None)',
}

SPEC_EDITS = {
    "an item": 'dynamic["input_ids"] = None',
    "update": "dynamic.update(input_ids=None)",
    "update by a dict": 'dynamic.update({"input_ids": None})',
    "an operator": 'dynamic |= {"input_ids": None}',
    "popped": 'dynamic.pop("input_ids")',
    "deleted": 'del dynamic["input_ids"]',
    "cleared inside": 'dynamic["input_ids"].clear()',
    "rebuilt without it": 'dynamic = {k: v for k, v in dynamic.items() if k != "input_ids"}',
    "all None": "dynamic = {k: None for k in inputs}",
    "fromkeys": "dynamic = dict.fromkeys(inputs)",
    "a splat": 'dynamic = {**dynamic, "input_ids": None}',
    "a copy": "dynamic = dict(dynamic, input_ids=None)",
    "in a loop": 'for key in ("input_ids",):\n        dynamic[key] = None',
    "by prefix": 'for key in list(dynamic):\n        if key.startswith("input"):\n            dynamic[key] = None',
    "through an alias": 'alias = dynamic\n    alias["input_ids"] = None',
    "by a helper": "pin = lambda d: d.update(input_ids=None)\n    pin(dynamic)",
    "a nested function": 'def pin():\n        dynamic["input_ids"] = None\n    pin()',
    "setdefault after pop": 'dynamic.pop("input_ids")\n    dynamic.setdefault("input_ids", None)',
    "in try": 'try:\n        dynamic["input_ids"] = None\n    finally:\n        pass',
    "in with": 'with torch.no_grad():\n        dynamic["input_ids"] = None',
    "in match": 'match CONTEXT:\n        case 512:\n            dynamic["input_ids"] = None',
    "wholly": "dynamic = None",
}

FLAGS: dict[str, tuple[Edit, ...]] = {
    "on by default": (('"--static", action="store_true"', '"--static", action="store_false"'),),
    "default True": (('action="store_true")', 'action="store_true", default=True)'),),
    "an optional boolean": (('action="store_true")', "action=argparse.BooleanOptionalAction, default=True)"),),
    "set_defaults": (before(PARSE, "    parser.set_defaults(static=True)\n"),),
    "an assignment after parsing": (after(PARSE, "    args.static = True\n"),),
    "setattr after parsing": (after(PARSE, '    setattr(args, "static", True)\n'),),
    "vars after parsing": (after(PARSE, '    vars(args)["static"] = True\n'),),
    "a number as default": (('action="store_true")', "type=int, default=1)"),),
    "a flag of the other sense": (
        ('"--static", action="store_true"', '"--dynamic", dest="dynamic", action="store_true"'),
        after(PARSE, "    args.static = not args.dynamic\n"),
    ),
    "an argv of its own": ((PARSE, '    args = parser.parse_args(["--static"])\n'),),
    "a namespace of its own": ((PARSE, "    args = argparse.Namespace(static=True)\n"),),
    "a simple namespace": ((PARSE, "    import types\n    args = types.SimpleNamespace(static=True)\n"),),
    "a default by another option": (
        before(PARSE, '    parser.add_argument("--target", choices=["phone", "mac"], default="phone")\n'),
        after(PARSE, '    args.static = args.static or args.target == "phone"\n'),
    ),
}

UNKNOWN = {
    "the environment": 'import os\n    if os.environ.get("STATIC"):\n        dynamic["input_ids"] = None',
    "a file": 'if open("mode.txt").read().strip() == "static":\n        dynamic["input_ids"] = None',
    "a file of data": 'import json\n    dynamic.update(json.load(open("dynamic.json")))',
    "an unknown key": 'import os\n    dynamic[os.environ["INPUT"]] = None',
    "unknown keys": 'import os\n    for key in os.listdir("pinned"):\n        dynamic[key] = None',
    "a loop of unknown length": 'import os\n    while os.path.exists("x"):\n        dynamic["input_ids"] = None',
    "an exception": (
        "try:\n        import missing_package\n        missing_package.check()\n"
        '    except Exception:\n        dynamic["input_ids"] = None'
    ),
    "an exception over what comes after": (
        "pinned = dynamic\n    dynamic = {**pinned, 'input_ids': None}\n    try:\n        import missing_package\n"
        "        missing_package.check()\n        dynamic = pinned\n    except Exception:\n        pass"
    ),
    "an exception over a return": (
        "def chosen():\n        try:\n            import missing_package\n            missing_package.check()\n"
        "            return dynamic\n        except Exception:\n            return {**dynamic, 'input_ids': None}\n"
        "    dynamic = chosen()"
    ),
    "the second handler": (
        "try:\n        import missing_package\n        missing_package.check()\n"
        "    except ValueError:\n        pass\n    except TypeError:\n        dynamic['input_ids'] = None"
    ),
    "a key of the environment": (
        "import os\n    try:\n        os.environ['DYNAMIC']\n    except KeyError:\n        dynamic['input_ids'] = None"
    ),
    "a file that may be missing": (
        "try:\n        open('dynamic.txt')\n    except FileNotFoundError:\n        dynamic['input_ids'] = None"
    ),
    "a number that may be none": (
        "import os\n    try:\n        int(os.environ.get('N', ''))\n"
        "    except ValueError:\n        dynamic['input_ids'] = None"
    ),
    "a module that may be missing": (
        "try:\n        import missing_package\n    except ImportError:\n        dynamic['input_ids'] = None"
    ),
    "a suppressed exception": (
        "import contextlib\n    import missing_package\n    pinned = dynamic\n"
        "    dynamic = {**pinned, 'input_ids': None}\n    with contextlib.suppress(Exception):\n"
        "        missing_package.check()\n        dynamic = pinned"
    ),
    "a name that is deleted on one way": (
        "import os\n    pinned = {**dynamic, 'input_ids': None}\n    if os.environ.get('STATIC'):\n"
        "        del dynamic['input_ids']"
    ),
    "a base class that is one of two": (
        "import os\n    class Pinned:\n        entry = None\n    class Free:\n        entry = dynamic['input_ids']\n"
        "    class Spec(Free if os.environ.get('FREE') else Pinned):\n        pass\n"
        "    dynamic['input_ids'] = Spec.entry"
    ),
    "a call that cannot be read": "import missing_package\n    missing_package.pin(dynamic)",
    "a spec from a call that cannot be read": "import missing_package\n    dynamic = missing_package.spec(model)",
    "the clock": 'import time\n    if time.time() % 2 < 1:\n        dynamic["input_ids"] = None',
    "randomness": 'import random\n    if random.random() < 0.5:\n        dynamic.pop("input_ids")',
    "the host": 'import platform\n    if platform.system() == "Darwin":\n        dynamic["input_ids"] = None',
}


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_an_entry_that_pins_the_query_costs_the_verdict(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, ((ids(ENTRIES[name]), ONE_TOKEN), may(STATIC)))


@pytest.mark.parametrize("name", sorted(SPEC_EDITS))
def test_edits_of_the_spec(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, ((before(PROGRAM, f"    {SPEC_EDITS[name]}\n"), ONE_TOKEN), may(STATIC)))


@pytest.mark.parametrize("name", sorted(FLAGS))
def test_a_flag_that_pins_the_query_costs_the_verdict(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, (FLAGS[name], may(STATIC)))


def test_text_that_is_executed(tmp_path: Path) -> None:
    edit = before(PROGRAM, '    exec(open("patch.txt").read())\n')
    check_broken(tmp_path, ((edit, ONE_TOKEN), may(UNKNOWN_QUERY, UNKNOWN_LOGITS)))


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_what_is_known_at_run_time_only(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, ((before(PROGRAM, f"    {UNKNOWN[name]}\n"), ONE_TOKEN), may(UNKNOWN_QUERY)))


WHOLE: dict[str, Mutation] = {
    "no dynamic shapes": ((ONE_TOKEN, (", dynamic_shapes=dynamic", "")), may(STATIC)),
    "dynamic shapes None": ((ONE_TOKEN, ("dynamic_shapes=dynamic", "dynamic_shapes=None")), may(STATIC)),
    "eight tokens": ((ids("None"),), may(WINDOW)),
    "two, from a constant": ((("1 if args.static else 8", "LAYERS"), ids("None")), may(WINDOW)),
    "keywords that are not known": (
        (
            ("(), inputs, dynamic_shapes=dynamic)", "(), inputs, **options)"),
            before(PROGRAM, '    import json\n    options = json.load(open("o.json"))\n'),
        ),
        may(UNKNOWN_QUERY),
    ),
}


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_what_the_export_call_leaves_out_costs_the_verdict(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, WHOLE[name])


def test_the_flag_is_named_in_the_facts_and_in_the_counterfactual(tmp_path: Path) -> None:
    result = scan_text(tmp_path, {"export.py": mutate(EXPORTER, *FLAGS["an optional boolean"])})
    graph = graph_of(result)
    assert "--static" in graph.facts.query.flags
    assert [(c.text, c.argv) for c in graph.changes] == [("pass --no-static", ("--no-static",))]
    (variant,) = [g for g in result.graphs if g.invocation.kind is InvocationKind.VARIANT]
    assert (variant.invocation.argv, judge(variant.facts).says()) == (("--no-static",), "eligible")


def test_a_flag_that_no_fact_depends_on_is_not_named(tmp_path: Path) -> None:
    script = mutate(EXPORTER, before(PARSE, '    parser.add_argument("--verbose", action="store_true")\n'))
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    assert graph.facts.flags == {"--static"}


def test_the_reason_cites_the_line_where_knowledge_ends(tmp_path: Path) -> None:
    script = mutate(EXPORTER, before(PROGRAM, f"    {UNKNOWN['the environment']}\n"), ONE_TOKEN)
    (reason,) = [f for f in judged(tmp_path, script).reasons if f.rule == "unknown-query"]
    line = next(n for n, text in enumerate(script.splitlines(), 1) if "os.environ" in text)
    assert ("export.py", line) in {(p.path, p.line) for p in reason.evidence}
    assert "STATIC" in reason.message
