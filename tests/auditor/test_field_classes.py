"""Settings in classes of `attrs` and `pydantic`: what is set decides, and what changes it is not guessed at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import EXPORTER, judged, mutate

HEAD = EXPORTER.split('if __name__ == "__main__":')[0]
DYNAMIC, STATIC = "eligible", "out by static-query"

ATTR = (
    "import attr\n\n\n@attr.s(auto_attribs=True)\nclass Options:\n"
    "    name: str = 'x'\n    static: bool = attr.ib(default=VALUE)\n"
)
DEFINE = "import attrs\n\n\n@attrs.define\nclass Options:\n    name: str\n    static: bool = VALUE\n"
UNANNOTATED = "import attr\n\n\n@attr.s\nclass Options:\n    static = attr.ib(VALUE)\n"
PYDANTIC = (
    "from pydantic import BaseModel, Field\n\n\nclass Options(BaseModel):\n"
    "    name: str = 'x'\n    static: bool = Field(VALUE, description='d')\n"
)
BELOW = PYDANTIC.replace("class Options", "class Base") + "\n\nclass Options(Base):\n    more: int = 1\n"


@pytest.mark.parametrize(
    ("settings", "made"),
    [
        (ATTR, "Options()"),
        (ATTR, "attr.evolve(Options(), name='y')"),
        (DEFINE, "Options('x')"),
        (UNANNOTATED, "Options()"),
        (PYDANTIC, "Options(name='y')"),
        (BELOW, "Options(more=2)"),
        (ATTR.replace("VALUE", "not VALUE"), "Options('x', VALUE)"),
        (PYDANTIC.replace("VALUE", "..."), "Options(static=VALUE)"),
        (
            ATTR.replace("VALUE", "None") + "\n    def __attrs_post_init__(self):\n        self.static = VALUE\n",
            "Options()",
        ),
    ],
)
@pytest.mark.parametrize(("value", "says"), [("False", DYNAMIC), ("True", STATIC)])
def test_what_is_set_decides(tmp_path: Path, settings: str, made: str, value: str, says: str) -> None:
    text = f"{HEAD}{settings}\n\nexport({made})\n".replace("VALUE", value)
    assert judged(tmp_path, text).says() == says


def test_what_a_class_has_not(tmp_path: Path) -> None:
    """A field that is not declared is not there: a default that asks for it is taken."""
    head = mutate(HEAD, ("tokens = 1 if args.static else 8", 'tokens = 1 if getattr(args, "one", False) else 8'))
    head = mutate(head, ("None if args.static else", 'None if getattr(args, "one", False) else'))
    for settings in (PYDANTIC, ATTR):
        made = f"{settings}\n\nexport(Options())\n".replace("VALUE", "False")
        assert judged(tmp_path / settings[:11].strip().replace(" ", "_"), head + made).says() == DYNAMIC


@pytest.mark.parametrize(
    "settings",
    [
        PYDANTIC + "\n    @field_validator('static')\n    def turned(cls, v):\n        return not v\n",
        PYDANTIC + "\n    def model_post_init(self, context):\n        self.static = True\n",
        PYDANTIC + "\n    model_config = {'extra': 'allow'}\n",
        PYDANTIC.replace("description=", "alias="),
        PYDANTIC.replace("class Options(BaseModel)", "class Base(BaseModel)").replace("description=", "alias=")
        + "\n\nclass Options(Base):\n    more: int = 1\n",
        ATTR.replace("default=VALUE", "default=VALUE, converter=lambda v: not v"),
    ],
)
def test_what_changes_it_is_not_guessed_at(tmp_path: Path, settings: str) -> None:
    text = f"from pydantic import field_validator\n{HEAD}{settings}\n\nexport(Options())\n".replace("VALUE", "False")
    assert str(judged(tmp_path, text).verdict) == "unresolved"
