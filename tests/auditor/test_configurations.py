"""Scripts that are configured by files of the repository: YAML, JSON, TOML, OmegaConf and Hydra."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from auditor.documents import parsed
from auditor.values import Const, Mapping, Value
from rules.facts import InvocationKind
from rules.verdict import Judgement, judge
from tests.auditor.support import EXPORTER, graph_of, mutate, scan_text

DYNAMIC, STATIC = "eligible", "out by static-query"
UNKNOWN = ("unresolved by unknown-query", "unresolved by fixed-window")


def script(read: str, flag: str = 'cfg["static"]', top: str = "") -> str:
    """The exporter, with `cfg` read by `read` where its command line was."""
    head, _ = EXPORTER.split('if __name__ == "__main__":')
    head = mutate(head, ("import argparse\n", f"import json\nfrom pathlib import Path\n{top}\n"))
    body = f"{read}\n\n\nclass Options:\n    static = {flag}\n\n\nexport(Options)\n"
    return head + body


def said(root: Path, text: str, **files: str) -> Judgement:
    named = {name.replace("__", "/").replace("_", ".", 1): content for name, content in files.items()}
    return judge(graph_of(scan_text(root, {"export.py": text, **named})).facts)


YAML = "# the export\nmodel:\n  layers: 2\nstatic: {}\n"
JSON = '{{"model": {{"layers": 2}},\n "static": {}}}\n'
TOML = "[model]\nlayers = 2\n[run]\nstatic = {}\n"

WAYS: dict[str, tuple[str, str, str, str]] = {
    "yaml, open": (
        "c.yaml",
        YAML,
        'import yaml\nwith open("c.yaml") as f:\n    cfg = yaml.safe_load(f)',
        'cfg["static"]',
    ),
    "yaml, text": (
        "c.yml",
        YAML,
        'import yaml\ncfg = yaml.safe_load(Path("c.yml").read_text())',
        'cfg.get("static", True)',
    ),
    "yaml, beside the script": (
        "c.yaml",
        YAML,
        'import yaml\ncfg = yaml.load(open(Path(__file__).parent / "c.yaml"), Loader=yaml.SafeLoader)',
        'cfg["static"]',
    ),
    "json, load": ("c.json", JSON, 'with open("c.json", "r") as f:\n    cfg = json.load(f)', 'cfg["static"]'),
    "json, loads": ("c.json", JSON, 'cfg = json.loads(open("c.json").read())', 'cfg["static"]'),
    "json, as objects": (
        "c.json",
        JSON,
        "from types import SimpleNamespace\n"
        'cfg = json.load(open("c.json"), object_hook=lambda d: SimpleNamespace(**d))',
        "cfg.static",
    ),
    "json, by an option that opens it": (
        "c.json",
        JSON,
        "import argparse\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("--config", type=argparse.FileType("r"), default="c.json")\n'
        "cfg = json.load(parser.parse_args().config)",
        'cfg["static"]',
    ),
    "toml": (
        "c.toml",
        TOML,
        'import tomllib\nwith open("c.toml", "rb") as f:\n    cfg = tomllib.load(f)',
        'cfg["run"]["static"]',
    ),
    "omegaconf": ("c.yaml", YAML, 'from omegaconf import OmegaConf\ncfg = OmegaConf.load("c.yaml")', "cfg.static"),
    "omegaconf, merged": (
        "c.yaml",
        YAML,
        "from omegaconf import OmegaConf\n"
        'cfg = OmegaConf.merge(OmegaConf.create({"static": True}), OmegaConf.load("c.yaml"), OmegaConf.from_cli())',
        "cfg.static",
    ),
    "if it is there": (
        "c.json",
        JSON,
        'path = Path(__file__).parent / "c.json"\n'
        'cfg = json.loads(path.read_text()) if path.exists() else {"static": None}',
        'cfg["static"]',
    ),
}


@pytest.mark.parametrize("name", sorted(WAYS))
def test_a_file_of_the_tree_decides(tmp_path: Path, name: str) -> None:
    path, content, read, flag = WAYS[name]
    for value, says in (("false", DYNAMIC), ("true", STATIC)):
        files = {"export.py": script(read, flag), path: content.format(value)}
        facts = graph_of(scan_text(tmp_path / value, files)).facts
        assert judge(facts).says() == says, [f.message for f in judge(facts).reasons]


@pytest.mark.parametrize("name", sorted(WAYS))
def test_without_the_file_nobody_knows(tmp_path: Path, name: str) -> None:
    _, _, read, flag = WAYS[name]
    assert str(judge(graph_of(scan_text(tmp_path, {"export.py": script(read, flag)})).facts).verdict) == "unresolved"


@pytest.mark.parametrize(
    ("hook", "says"),
    [
        ("object_hook=lambda d: {**d, 'static': True}", STATIC),
        ("object_hook=dict", DYNAMIC),
        ("object_pairs_hook=dict", ""),
        ("parse_constant=print", ""),
        ("**elsewhere.settings()", ""),
    ],
)
def test_functions_that_json_is_read_by(tmp_path: Path, hook: str, says: str) -> None:
    read = f'import elsewhere\ncfg = json.load(open("c.json"), {hook})'
    found = said(tmp_path, script(read), c_json=JSON.format("false"))
    assert found.says() == says if says else str(found.verdict) == "unresolved"


READ = 'import yaml\ncfg = yaml.safe_load(open("conf/c.yaml"))'


def test_the_line_of_the_file_is_cited(tmp_path: Path) -> None:
    read = 'import yaml\ncfg = yaml.safe_load(open("conf/c.yaml"))\nwidth = cfg["width"]'
    text = mutate(script(read, "False"), ("tokens = 1 if args.static else 8", "tokens = width"))
    text = mutate(text, ('{1: Dim("tokens", min=1, max=64)}', "None"))
    judgement = judge(graph_of(scan_text(tmp_path, {"export.py": text, "conf/c.yaml": "a: 1\nwidth: 1\n"})).facts)
    assert judgement.says() == STATIC
    assert ("conf/c.yaml", 2) in [(e.path, e.line) for e in judgement.reasons[0].evidence]


NOT_TAKEN: dict[str, tuple[str, dict[str, str]]] = {
    "two files of one name": (READ, {"tools/conf/c.yaml": "static: false\n", "conf/c.yaml": "static: false\n"}),
    "a name with an unknown part": (
        "import os, yaml\ncfg = yaml.safe_load(open(f\"conf/{os.environ['MODEL']}.yaml\"))",
        {"conf/c.yaml": "static: false\n"},
    ),
    "a file outside": ('import yaml\ncfg = yaml.safe_load(open("../c.yaml"))', {"c.yaml": "static: false\n"}),
    "an absolute path": ('import yaml\ncfg = yaml.safe_load(open("/conf/c.yaml"))', {"conf/c.yaml": "static: false\n"}),
    "a checkpoint's file": ('cfg = json.load(open("config.json"))', {"config.json": '{"static": false}'}),
    "a file that the script writes": (
        'with open("c.json", "w") as f:\n    f.write("{}")\ncfg = json.load(open("c.json"))',
        {"c.json": '{"static": false}'},
    ),
    "a text that it writes": (
        'Path("c.json").write_text("{}")\ncfg = json.load(open("c.json"))',
        {"c.json": '{"static": false}'},
    ),
    "no YAML": (READ, {"conf/c.yaml": "static: [false\n"}),
    "tags of Python": (READ, {"conf/c.yaml": "static: !!python/object/apply:os.getcwd []\n"}),
    "a list": (READ, {"conf/c.yaml": "- static: false\n"}),
    "not UTF-8": (READ, {"conf/c.yaml": "static: false # \udce9\n"}),
    "aliases that explode": (
        READ,
        {
            "conf/c.yaml": "a: &a [x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
            + "static: false\n"
        },
    ),
    "an alias of itself": (READ, {"conf/c.yaml": "a: &a [*a]\nstatic: false\n"}),
}


@pytest.mark.parametrize("name", sorted(NOT_TAKEN))
def test_what_is_not_taken(tmp_path: Path, name: str) -> None:
    read, files = NOT_TAKEN[name]
    where = "tools/export.py" if name == "two files of one name" else "export.py"
    raw = {path: content.encode("utf-8", "surrogateescape") for path, content in files.items()}
    result = scan_text(tmp_path, {where: script(read), **raw})
    assert str(judge(graph_of(result, where).facts).verdict) == "unresolved"


def test_merged_keys_and_anchors_of_yaml(tmp_path: Path) -> None:
    conf = "base: &base\n  static: true\nrun:\n  <<: *base\n  static: false\n"
    text = script(READ, 'cfg["run"]["static"]')
    assert judge(graph_of(scan_text(tmp_path, {"export.py": text, "conf/c.yaml": conf})).facts).says() == DYNAMIC


def test_an_option_names_the_file(tmp_path: Path) -> None:
    read = (
        "import argparse, yaml\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("--config", default="conf/a.yaml")\ncfg = yaml.safe_load(open(parser.parse_args().config))'
    )
    files = {
        "export.py": script(read),
        "conf/a.yaml": "static: true\n",
        "conf/b.yaml": "static: false\n",
        "recipe.toml": '[b]\nscript = "export.py"\nargs = ["--config", "conf/b.yaml"]\n',
    }
    result = scan_text(tmp_path, files)
    assert judge(graph_of(result).facts).says() == STATIC
    (recipe,) = [g for g in result.graphs if g.invocation.kind is InvocationKind.RECIPE]
    assert judge(recipe.facts).says() == DYNAMIC


# -- references ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ("kind:\n  fixed: false\nstatic: ${kind.fixed}\n", DYNAMIC),
        ("kind:\n  fixed: true\nstatic: ${kind.fixed}\n", STATIC),
        ("static: ${oc.env:STATIC}\n", "unresolved"),
        ("static: ???\n", "unresolved"),
        ("static: ${other}\nother: ${static}\n", "unresolved"),
    ],
)
def test_references_of_omegaconf(tmp_path: Path, conf: str, says: str) -> None:
    text = script('from omegaconf import OmegaConf\ncfg = OmegaConf.load("c.yaml")', "cfg.static")
    judgement = judge(graph_of(scan_text(tmp_path, {"export.py": text, "c.yaml": conf})).facts)
    assert says in (judgement.says(), str(judgement.verdict))


# -- Hydra --------------------------------------------------------------------------------------------------------


def hydra(*words: str, **settings: str) -> dict[str, str]:
    head, _ = EXPORTER.split('if __name__ == "__main__":')
    given = ", ".join(f'{k}="{v}"' for k, v in ({"config_path": "conf", "config_name": "export"} | settings).items())
    tail = f"@hydra.main(version_base=None, {given})\ndef main(cfg):\n    export(cfg.run)\n\n\n"
    text = head.replace("import argparse\n", "import hydra\n") + tail + 'if __name__ == "__main__":\n    main()\n'
    args = ", ".join(f'"{w}"' for w in words)
    return {"tools/export.py": text, "recipe.toml": f'[r]\nscript = "tools/export.py"\nargs = [{args}]\n'}


def recipe_says(root: Path, files: dict[str, str]) -> str:
    result = scan_text(root, files)
    (recipe,) = [g for g in result.graphs if g.invocation.kind is InvocationKind.RECIPE]
    judgement = judge(recipe.facts)
    return judgement.says() if str(judgement.verdict) != "unresolved" else "unresolved"


PLAIN = {"tools/conf/export.yaml": "run:\n  static: true\n"}
GROUPS = {
    "tools/conf/export.yaml": "defaults:\n  - run: fixed\n  - _self_\nname: x\n",
    "tools/conf/run/fixed.yaml": "static: true\n",
    "tools/conf/run/free.yaml": "static: false\n",
}

COMPOSED: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "the primary file": ((), PLAIN, STATIC),
    "a word of the command line": (("run.static=false",), PLAIN, DYNAMIC),
    "an added word": (("+run.other=1", "++run.static=false"), PLAIN, DYNAMIC),
    "a group": ((), GROUPS, STATIC),
    "another option of the group": (("run=free",), GROUPS, DYNAMIC),
    "an option and a word": (("run=free", "run.static=true"), GROUPS, STATIC),
    "the file's own value last": (
        (),
        {**GROUPS, "tools/conf/export.yaml": "defaults:\n  - run: fixed\n  - _self_\nrun:\n  static: false\n"},
        DYNAMIC,
    ),
    "the file's own value first": (
        (),
        {**GROUPS, "tools/conf/export.yaml": "defaults:\n  - _self_\n  - run: fixed\nrun:\n  static: false\n"},
        STATIC,
    ),
    "an order that depends on the version": (
        (),
        {**GROUPS, "tools/conf/export.yaml": "defaults:\n  - run: fixed\nrun:\n  static: false\n"},
        "unresolved",
    ),
    "a file of the defaults": (
        (),
        {
            "tools/conf/export.yaml": "defaults:\n  - base\n  - _self_\n",
            "tools/conf/base.yaml": "run:\n  static: true\n",
        },
        STATIC,
    ),
    "no such file": ((), {"tools/conf/other.yaml": "run:\n  static: true\n"}, "unresolved"),
    "no such option": (("run=none",), GROUPS, "unresolved"),
    "a package": ((), {**GROUPS, "tools/conf/run/fixed.yaml": "# @package _global_\nstatic: true\n"}, "unresolved"),
    "an overriding entry": (
        (),
        {**GROUPS, "tools/conf/export.yaml": "defaults:\n  - override run: fixed\n  - _self_\n"},
        "unresolved",
    ),
    "a deleted key": (("~run.static",), PLAIN, "unresolved"),
    "defaults that go round": ((), {"tools/conf/export.yaml": "defaults:\n  - export\n  - _self_\n"}, "unresolved"),
}


@pytest.mark.parametrize("name", sorted(COMPOSED))
def test_hydra(tmp_path: Path, name: str) -> None:
    words, files, says = COMPOSED[name]
    assert recipe_says(tmp_path, {**hydra(*words), **files}) == says


def test_the_line_that_is_not_composed_is_cited(tmp_path: Path) -> None:
    files = {**hydra(), **COMPOSED["an overriding entry"][1]}
    script = mutate(files["tools/export.py"], ("tokens = 1 if args.static else 8", "tokens = args.width"))
    files["tools/export.py"] = mutate(script, ('None if args.static else {1: Dim("tokens", min=1, max=64)}', "None"))
    judgement = judge(graph_of(scan_text(tmp_path, files), "tools/export.py").facts)
    assert "cfg.run.width" in judgement.reasons[0].message
    assert any(e.path == "tools/conf/export.yaml" for f in judgement.reasons for e in f.evidence)


def key_lines(value: Value) -> dict[str, int]:
    """The line of each key, by its path."""
    out: dict[str, int] = {}
    pending = [("", value)]
    while pending:
        path, at = pending.pop()
        if isinstance(at, Mapping):
            for key, inner in at.entries.values():
                assert isinstance(key, Const)
                out[f"{path}{key.value}"] = key.places[0].statement.first
                pending.append((f"{path}{key.value}/", inner))
    return out


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        (
            "a.json",
            '{"text": "size",\n "size": 1,\n "in": {"a b": 2,\n  "caf\\u00e9": 3,\n  "quo\\"te": 4}}\n',
            {"text": 1, "size": 2, "in": 3, "in/a b": 3, "in/café": 4, 'in/quo"te': 5},
        ),
        (
            "a.toml",
            "size = 1\n[run]\n\"a b\" = 2\n'c d' = 3\nx.deep-er = 4\n",
            {"size": 1, "run": 1, "run/a b": 3, "run/c d": 4, "run/x": 1, "run/x/deep-er": 5},
        ),
    ],
    ids=["json", "toml"],
)
def test_keys_have_their_lines(path: str, text: str, lines: dict[str, int]) -> None:
    assert key_lines(parsed(path, text, frozenset())) == lines


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({f"tok{i}": i for i in range(16_000)}, indent=0),
        json.dumps({f"tok{i}": i for i in range(16_000)}),
        json.dumps({"a": "b" * 400_000, "c": "\\" * 400_000, "d": " " * 400_000, "e": "'" * 100_000}),
    ],
    ids=["lines", "one line", "long"],
)
def test_the_lines_of_many_keys_are_found_at_once(text: str) -> None:
    start = time.process_time()
    assert isinstance(parsed("vocab.json", text, frozenset()), Mapping)
    assert time.process_time() - start < 3
