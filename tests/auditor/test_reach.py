"""Which files are evaluated: those that can reach an export call, whatever way their text takes to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor import candidates
from auditor.loader import Loader
from auditor.natives import make_loader
from auditor.sources import Sources
from tests.auditor.support import write

EXPORTING = """\
from coreai_torch import TorchConverter

CAPACITY = 64


def tokenizer(name):
    return name


def convert(module):
    return TorchConverter().add_pytorch_module(module)


class Exporter:
    def run(self, module):
        return convert(module)


def main():
    Exporter().run(None)


if __name__ == "__main__":
    main()
"""
MAIN = '\n\nif __name__ == "__main__":\n    run()\n'


def found(root: Path, files: dict[str, str]) -> tuple[str, ...]:
    write(root, files)
    sources = Sources(root)
    loader: Loader = make_loader(sources)
    return candidates.find(sources, loader.source_of).files


REACH = {
    "an imported function": "from export_it import convert\ndef run():\n    convert(None)\n",
    "under another name": "from export_it import convert as to_bundle\ndef run():\n    to_bundle(None)\n",
    "in parentheses, over lines": "from export_it import (\n    CAPACITY,\n    convert,  # it\n)\n"
    "def run():\n    convert(1)\n",
    "a class that calls it": "from export_it import Exporter\ndef run():\n    Exporter().run(None)\n",
    "its main": "import export_it\ndef run():\n    export_it.main()\n",
    "the module under another name": "import export_it as e\ndef run():\n    e.convert(None)\n",
    "a module of a package": "from . import export_it\ndef run():\n    export_it.convert(None)\n",
    "everything": "from export_it import *\ndef run():\n    convert(None)\n",
    "a name put together": "import export_it\ndef run():\n    getattr(export_it, 'con' + 'vert')(None)\n",
    "the module handed on": "import export_it\nfrom other import start\ndef run():\n    start(export_it)\n",
    "a module that imports it in turn": "from between import wrapped\ndef run():\n    wrapped()\n",
    "inside a function": "def run():\n    from export_it import convert\n    convert(None)\n",
}
BETWEEN = (
    "from export_it import convert\n\n\ndef wrapped():\n    convert(None)\n\n\ndef plain():\n    return 1\n" + MAIN
)


@pytest.mark.parametrize("name", sorted(REACH))
def test_a_file_that_reaches_an_export_is_evaluated(tmp_path: Path, name: str) -> None:
    files = {"export_it.py": EXPORTING, "between.py": BETWEEN, "tool.py": REACH[name] + MAIN}
    assert "tool.py" in found(tmp_path, files)


NO_REACH = {
    "a constant": "from export_it import CAPACITY\ndef run():\n    print(CAPACITY)\n",
    "a helper": "import export_it\ndef run():\n    export_it.tokenizer('a')\n",
    "its own main": "from export_it import tokenizer\ndef main():\n    tokenizer('a')\ndef run():\n    main()\n",
    "a comment": "from export_it import tokenizer\ndef run():\n    tokenizer('a')  # see export_it, convert\n",
    "a helper of the module between": "from between import plain\ndef run():\n    plain()\n",
}


@pytest.mark.parametrize("name", sorted(NO_REACH))
def test_a_file_that_takes_a_helper_is_not(tmp_path: Path, name: str) -> None:
    files = {"export_it.py": EXPORTING, "between.py": BETWEEN, "tool.py": NO_REACH[name] + MAIN}
    assert "tool.py" not in found(tmp_path, files)


@pytest.mark.parametrize("broken", ["convert(None)\n", "def broken(:\n"])
def test_importing_may_be_what_exports(tmp_path: Path, broken: str) -> None:
    files = {"export_it.py": EXPORTING + "\n\n" + broken, "tool.py": "import export_it\ndef run():\n    pass\n" + MAIN}
    assert "tool.py" in found(tmp_path, files)


SAID = {
    "a docstring": '"""Bundles are made by TorchConverter, not here."""\n',
    "a rule's text": 'RULES.append("what add_pytorch_module does not lower is refused")\n',
    "a name in a sentence": 'print("call main or convert to export it")\n',
    "a comment of a statement": "print(1)  # TorchConverter().convert\n",
}


@pytest.mark.parametrize("name", sorted(SAID))
def test_what_only_speaks_of_exports_exports_nothing_when_it_is_imported(tmp_path: Path, name: str) -> None:
    spoken = (
        f"{SAID[name]}from coreai_torch import TorchConverter\nRULES = []\n\n\ndef convert(m):\n    TorchConverter()\n"
    )
    files = {"rules_of_it.py": spoken, "tool.py": "import rules_of_it\ndef run():\n    rules_of_it.RULES\n" + MAIN}
    assert "tool.py" not in found(tmp_path, files)


DONE = {
    "in a formatted sentence": 'print(f"the bundle is in {convert(None)} as it is")\n',
    "by a name in a string": 'globals()["convert"](None)\n',
    "beside a sentence": 'print("the bundle is made now"); convert(None)\n',
    "over lines": 'print("the bundle is made now",\n    convert(\n    None))\n',
}


@pytest.mark.parametrize("name", sorted(DONE))
def test_what_exports_beside_its_words_does_when_it_is_imported(tmp_path: Path, name: str) -> None:
    files = {"export_it.py": EXPORTING + DONE[name], "tool.py": "import export_it\ndef run():\n    pass\n" + MAIN}
    assert "tool.py" in found(tmp_path, files)
