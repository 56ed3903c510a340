"""Shows a table of a notebook, and saves it as CSV and as LaTeX for a paper (booktabs)."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from vrag_kit.analysis.results import TABLE, portable_path
from vrag_kit.dry_run import current_dry_run
from vrag_kit.files import display_path as from_project
from vrag_kit.files import project_path, write_file
from vrag_kit.log import logger
from vrag_kit.workspace import Workspace

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler


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
_SPECIAL = str.maketrans({**{sign: f"\\{sign}" for sign in "#$%&_{}"}, "\\": r"\textbackslash{}"})
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


def latex_text(text: str) -> str:
    """Escapes a text for LaTeX."""
    return text.translate(_SPECIAL).translate(_SIGNS)


def _cell(value: object) -> object:
    """A text in one line, for a line's end would end the row; anything else as it is."""
    return " ".join(value.split()) if isinstance(value, str) else value


def plain_cells(data: pd.DataFrame) -> pd.DataFrame:
    """Converts lists in cells to text, their parts joined by " | ". Parts that are paths become
    relative to the project, or file names where they lie elsewhere.
    """
    held = [name for name in data if data[name].map(lambda cell: _plain(cell) is not cell).any()]
    return data.assign(**{str(name): data[name].map(_plain) for name in held})


def _plain(cell: object) -> object:
    if not isinstance(cell, list | tuple):
        return cell
    return " | ".join(portable_path(str(part)) for part in cell)


def save_table(table: pd.DataFrame | Styler, at: Workspace, name: str) -> None:
    """Saves a displayed table in the workspace's `figures_dir`, as <name>.table.csv and <name>.tex.

    The CSV has full numbers, `plain_cells`, and row labels where named. The LaTeX of `to_latex` is
    for a `table` of yours, by \\input. `load_results` leaves such a CSV out: its cells
    are for reading. Raises `OSError` when the folder cannot be written. In a dry run nothing is
    written.
    """
    if current_dry_run():
        return
    shown: pd.DataFrame = table if isinstance(table, pd.DataFrame) else table.data  # type: ignore[attr-defined]
    labelled = any(label is not None for label in shown.index.names)
    shown = plain_cells(shown)
    csv = shown.to_csv(index=labelled, lineterminator="\n")
    folder = project_path(at.figures_dir)
    write_file(folder / f"{name}{TABLE}", csv)
    write_file(folder / f"{name}.tex", to_latex(shown))
    logger.info(f"saved {name}{TABLE} and .tex in {from_project(folder)}/")


def style_table(table: pd.DataFrame, *, caption: str = "", **how: Any) -> Styler:  # Any: pandas'
    """Return `table.style.format(**how)` with HTML escaped in cells, labels and the caption. By
    default pandas takes a name such as "<img …>" for HTML.
    """
    style = table.style.format(escape="html", **how)
    for axis in (0, 1):
        style.format_index(escape="html", axis=axis)
        style.format_index_names(escape="html", axis=axis)
    return style.set_caption(escape(caption)) if caption else style
