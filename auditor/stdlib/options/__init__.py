"""Command lines by `argparse`, `typer`, `click` and `fire`: what a script declares, and what it is given."""

from __future__ import annotations

from auditor.stdlib.options import argparse_model, click_model, fire_model, typer_model
from auditor.values import Value

NATIVES: dict[str, Value] = {
    **argparse_model.NATIVES,
    **typer_model.NATIVES,
    **click_model.NATIVES,
    **fire_model.NATIVES,
}
