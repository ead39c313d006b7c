"""An option of a command line, and the parser that has it, as the script declares them."""

from __future__ import annotations

from dataclasses import dataclass, field

from auditor import operators
from auditor.places import Site
from auditor.values import Const, Instance, Mapping, Seq, Value, text_of

MISSING = object()
"""What stands for a destination that the command line does not give."""
CONST = "\0const"
"""The beginning of the word that stands for an option's own constant; the option's number follows."""
OWN = "\0own"
"""The action of an option whose action is a class of the script."""
LISTED = ("append", "append_const", "extend", "count")
"""Actions that add to what is there."""


@dataclass(slots=True)
class Option:
    """One `add_argument` call. `flag` is how a user types it; positionals have their name.

    `handle` is what `add_argument` gave: the script may set its `default`, and a class of its own says what it does.
    """

    flag: str
    names: tuple[str, ...]
    dest: str
    settings: dict[str, Value]
    action: str
    site: Site | None
    handle: Instance | None = None

    @property
    def positional(self) -> bool:
        return not self.names[0].startswith("-")

    @property
    def choices(self) -> list[Value] | None:
        found = self.settings.get("choices")
        if isinstance(found, Seq) and found.exact:
            return list(found.items)
        return [k for k, _ in found.entries.values()] if isinstance(found, Mapping) and found.rest is None else None

    @property
    def must_choose(self) -> bool:
        """Whether the command line has to name one of the choices: there is no default."""
        nargs = self.settings.get("nargs")
        optional = isinstance(nargs, Const) and nargs.value in ("?", "*")
        required = "required" in self.settings and operators.truth(self.settings["required"]) is True
        return (
            bool(self.choices) and "default" not in self.settings and ((self.positional and not optional) or required)
        )

    def given(self) -> list[tuple[str, ...]]:
        """The command lines that make each choice."""
        texts = [t for t in (text_of(c) for c in self.choices or ()) if t]
        return [(t,) if self.positional else (self.flag, t) for t in texts]

    @property
    def off(self) -> str:
        """How a boolean option is switched off: `--no-x`, or the name that it has for that (click and typer)."""
        return text_of(self.settings["off"]) or "" if "off" in self.settings else "--no-" + self.flag.lstrip("-")

    @property
    def kind(self) -> str:
        """`switch` (takes no word of its own: store_true and the like), `choice`, or `value`."""
        if self.action in ("store_true", "store_false", "boolean", "store_const"):
            return "switch"
        return "choice" if self.choices else "value"


@dataclass(slots=True)
class Parser:
    options: list[Option] = field(default_factory=list)
    defaults: dict[str, Value] = field(default_factory=dict)
    commands: dict[str, Parser] = field(default_factory=dict)
    command_dest: str = ""
    command_site: Site | None = None
    argument_default: Value | None = None
