"""The parameters of the running notebook, for saving with its answers."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator


def notebook_parameters() -> str:
    """The parameters of the running notebook as JSON, {name: current value}; "" outside of a
    notebook.

    Parameters are the names assigned by cells that only assign plain values: the cell of
    parameters, and the one that papermill adds. Names that end in `_dir`, by convention output
    folders, are left out.
    """
    if "IPython" not in sys.modules:
        return ""
    from IPython.core.getipython import get_ipython

    if (shell := get_ipython()) is None:
        return ""
    known = shell.user_ns
    given = {}
    for source in known.get("In", []):
        for name in _assigned(source):
            if name in known and not name.endswith("_dir"):
                given[name] = known[name]
    return json.dumps(given, ensure_ascii=False, default=str)


def _assigned(source: str) -> Iterator[str]:
    """The names that a cell gives plain values; none where it does anything else."""
    try:
        statements = ast.parse(source).body
        for each in statements:
            ast.literal_eval(each.value)  # type: ignore[attr-defined]  # or it raises
    except (AttributeError, SyntaxError, TypeError, ValueError):
        return
    for each in statements:
        targets = each.targets if isinstance(each, ast.Assign) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))
