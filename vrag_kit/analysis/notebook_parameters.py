"""The parameters of the notebook that is at work, to be kept with its answers."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator


def notebook_parameters() -> str:
    """What this notebook was given, as JSON, {name: value as it is now}; "" outside of a
    notebook.

    Parameters are what its cells assign that assign plain values and do nothing else: its
    cell of parameters, and the one that papermill adds. Names that end in `_dir`, by
    convention where things are written, are left out.
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
