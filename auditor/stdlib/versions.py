"""Which Python runs a script: one of the versions that are in use, and nobody knows which."""

from __future__ import annotations

from auditor.objects.inheritance import OBJECT
from auditor.values import Const, Instance, NativeClass, Seq, Union, Unknown, Value

_MINOR = range(9, 15)
"""The versions 3.x in which export scripts are run; at most `values.unknown.MAX_OPTIONS`."""

_FIELDS: dict[str, Value] = {
    "major": Const(3),
    "minor": Union(tuple(map(Const, _MINOR))),
    "micro": Unknown("which Python runs the script is not known", "sys.version_info.micro", "int"),
    "releaselevel": Const("final"),
    "serial": Const(0),
}
_VERSION = NativeClass("sys.version_info", {}, (OBJECT,))

NATIVES: dict[str, Value] = {
    "sys.version_info": Instance(_VERSION, _FIELDS, Seq("tuple", list(_FIELDS.values()))),
}
