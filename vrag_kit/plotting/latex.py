r"""Converts a table to a LaTeX `tabular` with booktabs' rules."""

from __future__ import annotations

import re

import pandas as pd

_SIGNS = str.maketrans(
    {
        **{"−": "$-$", "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "∞": r"$\infty$"},
        **{"≤": r"$\le$", "≥": r"$\ge$", "≈": r"$\approx$", "≠": r"$\ne$", "→": r"$\rightarrow$"},
        **{"α": r"$\alpha$", "κ": r"$\kappa$", "λ": r"$\lambda$", "τ": r"$\tau$"},
        **{"Δ": r"$\Delta$", "✓": r"$\surd$", "✗": r"$\times$", "<": "$<$", ">": "$>$"},
        **{"–": "--", "—": "---", "…": r"\dots{}"},
    }
)
"""Sign that pdflatex does not set as it is → what stands for it."""
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")


def to_latex(table: pd.DataFrame) -> str:
    r"""Converts a table to a LaTeX `tabular`: numbers flush right with two decimals, whole ones
    without, "–" where there is none; named row labels first; all text escaped.

    More than 40 rows are a `longtable`, which breaks over pages and stands outside of a
    `table`.
    """
    labelled = any(label is not None for label in table.index.names)
    flat = table.reset_index() if labelled else table
    latex = flat.map(_cell).to_latex(
        index=False, escape=True, longtable=len(flat) > 40, float_format="%.2f", na_rep="–"
    )
    return _MINUS.sub("−", latex).translate(_SIGNS)


def _cell(value: object) -> object:
    """A text in one line, for a line's end would end the row; anything else as it is."""
    return " ".join(value.split()) if isinstance(value, str) else value
