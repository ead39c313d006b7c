"""A scan with one of everything, and one that is hostile."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, HYBRID, PINNED, TOWER, logits, mark, query
from rules.facts import (
    Change,
    Fact,
    FileResult,
    FileStatus,
    Graph,
    Invocation,
    InvocationKind,
    Place,
    Role,
    Scan,
    State,
    Trait,
)
from tests.rules.graphs import change, graph

BY_FLAG = replace(DENSE, query=query(1, line=31, flag="--static-ids", note="dynamic_shapes None under args.static_ids"))
KERNEL = mark(Trait.ROW_KERNEL, "the result shape of `matvec` does not depend on S")
UNKNOWN = replace(
    DENSE,
    states=Fact((State("stateA", Role.UNKNOWN, (Place("toy.py", 4, "state names"),), "the name tells nothing"),)),
    logits=Fact.unknown("import of `toolkit.heads` was not found", Place("toy.py", 2, "import")),
)


def sample() -> Scan:
    """Eligible, out in four ways, unresolved, not a decoder; a recipe with two steps; other runs; unreadable files."""
    twin = "models/twin/recipe.toml#twin"
    return Scan(
        root="examples/exports",
        files=(
            FileResult("broken.py", FileStatus.ERROR, "not Python: line 3: unexpected indent"),
            FileResult("export_model.py", FileStatus.EXPORTS),
            FileResult("huge.py", FileStatus.SKIPPED, "larger than 2 MB"),
            FileResult("toy.py", FileStatus.EXPORTS),
            FileResult("util.py", FileStatus.NO_EXPORT),
        ),
        graphs=(
            graph(DENSE, recipe="models/dense/recipe.toml#dense", family="LlamaForCausalLM", shipped="out/model"),
            graph(
                BY_FLAG,
                recipe="models/flag/recipe.toml#flag",
                argv=("--static-ids",),
                changes=(change("drop --static-ids", DENSE),),
            ),
            graph(
                replace(BY_FLAG, marks=KERNEL),
                recipe="models/kernel/recipe.toml#kernel",
                argv=("--static-ids", "--name", "two words"),
                changes=(change("drop --static-ids", replace(DENSE, marks=KERNEL)),),
            ),
            graph(PINNED, recipe=twin, bundle="out/twin_s1.aimodel", shipped="gpu/twin_s1"),
            graph(DENSE, recipe=twin, bundle="out/twin.aimodel", shipped="gpu/twin_s1"),
            graph(TOWER, recipe="models/vlm/recipe.toml#vlm/step0", bundle="out/vision.aimodel"),
            graph(
                replace(HYBRID, query=query(1), marks=mark(Trait.MOE, "64 experts, 4 a token")),
                recipe="models/vlm/recipe.toml#vlm/step1",
                bundle="out/decode.aimodel",
            ),
            graph(TOWER, script="tower.py"),
            graph(UNKNOWN, script="toy.py"),
            graph(replace(DENSE, query=query(8, 16)), script="window.py"),
            graph(BY_FLAG, kind=InvocationKind.VARIANT, argv=("--static-ids",)),
        ),
        warnings=("library 'toolkit' has no module 'heads'",),
    )


EVIL = "<script>alert('x')</script>\"&\x1b[31m\u202ered\nnext"


def hostile() -> Scan:
    """Markup, quotes, escape sequences, a reordering character, newlines and a lone surrogate, everywhere."""
    place = Place(EVIL, 3, EVIL)
    facts = replace(
        DENSE,
        query=replace(query(1), evidence=(place,), flags=frozenset({EVIL})),
        logits=replace(logits(DENSE.logits.value), evidence=(place,)),  # type: ignore[arg-type]
        states=Fact((State(EVIL, Role.CONV, (place,), EVIL, (EVIL,)),), (place,), EVIL),
        marks=mark(Trait.MOE, EVIL),
    )
    unknown = replace(DENSE, kind=Fact.unknown(EVIL, place))
    changes = (Change(EVIL, EVIL, (EVIL,), facts),)
    run = Invocation(InvocationKind.RECIPE, (EVIL,), EVIL)
    return Scan(
        root=EVIL,
        files=(FileResult(EVIL, FileStatus.ERROR, EVIL), FileResult("caf\udce9.py", FileStatus.SKIPPED, EVIL)),
        graphs=(
            Graph(EVIL, EVIL, 1, EVIL, EVIL, run, facts, changes, EVIL, EVIL),
            Graph(EVIL + "2", EVIL + "2", 1, EVIL, EVIL, Invocation(InvocationKind.DEFAULT), unknown),
        ),
        warnings=(EVIL,),
    )
