"""Save a table that a notebook shows as CSV and as LaTeX for a paper (booktabs)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vrag_kit.analysis.results import TABLE
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.forecast import current_forecast

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

_TEX = {
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{"<": "$<$", ">": "$>$", "≤": r"$\le$", "≥": r"$\ge$", "≈": r"$\approx$", "±": r"$\pm$"},
    **{"−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "→": r"$\rightarrow$", "∞": r"$\infty$"},
    **{"λ": r"$\lambda$", "α": r"$\alpha$", "δ": r"$\delta$", "κ": r"$\kappa$", "′": "$'$"},
    **{"–": "--", "—": "---", "…": r"\dots{}"},
}
_SPECIAL = re.compile("|".join(map(re.escape, _TEX)))
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")
_NUMBERS = re.compile(r"[-−+<>\s\d.,%–]*")


def save_table(
    table: pd.DataFrame | Styler, folder: Path | str, name: str, *, decimals: int = 2
) -> None:
    """Write a table as it is shown into `folder`, as <name>.table.csv and <name>.tex.

    The CSV has full numbers, and row labels where they are named. The LaTeX is a
    `tabular` with the rules of booktabs and numbers with `decimals`, to be put by
    \\input into a `table` of yours; all text in it is escaped. `load_results` leaves
    such a CSV out: its cells are for reading. Raises `VragError` when the folder cannot
    be written. In a forecast nothing is written.
    """
    if current_forecast():
        return
    # pandas' stubs do not know the data of a styled table
    shown = table if isinstance(table, pd.DataFrame) else table.data  # type: ignore[attr-defined]
    labelled = any(label is not None for label in shown.index.names)
    csv = shown.to_csv(index=labelled, lineterminator="\n")
    folder = Path(folder)
    try:
        write_file(folder / f"{name}{TABLE}", csv)
        write_file(folder / f"{name}.tex", as_latex(shown, decimals=decimals))
    except OSError as error:
        raise VragError(
            f"{folder / name}: the table cannot be saved ({error.strerror}). Choose another"
            " folder, or free space."
        ) from error
    print(f"saved {name}{TABLE} and .tex in {folder.name}/", flush=True)


def as_latex(table: pd.DataFrame, *, decimals: int = 2) -> str:
    """The table as a LaTeX `tabular` with booktabs' rules: numbers flush right with
    `decimals`, whole ones without; named row labels first; all text escaped.
    """
    labelled = any(label is not None for label in table.index.names)
    flat = table.reset_index() if labelled else table
    rows = [[_told(value, decimals) for value in row] for row in flat.itertuples(index=False)]
    numbers = [all(map(_NUMBERS.fullmatch, column)) for column in zip(*rows, strict=True)]
    columns = "".join(np.where(numbers, "r", "l")) if rows else "l" * flat.shape[1]
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [f"{' & '.join(cells)} \\\\" for cells in _heads(flat)]
    lines += [r"\midrule", *(f"{' & '.join(map(_tex, row))} \\\\" for row in rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _heads(table: pd.DataFrame) -> list[list[str]]:
    """The lines of column names; a name that spans several columns stands over them."""
    if not isinstance(table.columns, pd.MultiIndex):
        return [[_tex(str(name)) for name in table.columns]]
    heads = []
    for level in range(table.columns.nlevels):
        head: list[str] = []
        spans: list[int] = []
        before: object = None
        for name in table.columns:
            above = name[: level + 1]
            if head and above == before and level + 1 < table.columns.nlevels:
                spans[-1] += 1
            else:
                head.append(_tex(str(name[level])))
                spans.append(1)
            before = above
        heads.append([_over(text, span) for text, span in zip(head, spans, strict=True)])
    return heads


def _over(text: str, columns: int) -> str:
    return text if columns == 1 else rf"\multicolumn{{{columns}}}{{c}}{{{text}}}"


def _told(value: object, decimals: int) -> str:
    """A value in words, "–" where there is none."""
    if value is None or value is pd.NA or value != value:  # NaN differs from itself
        return "–"
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def _tex(text: str) -> str:
    signed = _MINUS.sub("−", " ".join(text.split()))
    return _SPECIAL.sub(lambda found: _TEX[found[0]], signed)
