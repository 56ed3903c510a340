"""`vrag compare`: comparison of two runs, or two arms of one: notebook 61 on saved answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat

from vrag_kit.analysis import load_answers, paired_answers
from vrag_kit.errors import VragError
from vrag_kit.files import project_root, write_file
from vrag_kit.runner.job import failure_reason
from vrag_kit.runner.params import cell_tags
from vrag_kit.runner.report import single_page

_NOTEBOOK = Path(__file__).parents[2] / "notebooks/across/61_compare.ipynb"
_OWN = "own-run"
"""Tag of the notebook's cells that query models, which a comparison of saved answers leaves out."""
_FLIPS = 100
"""Maximum number of flips of each direction and stratum on the page."""


def compare_runs(
    a: Path, b: Path, to: Path, *, choose_a: Sequence[str], choose_b: Sequence[str], only: str
) -> None:
    """Compare the answers saved in `a` and `b` by notebook 61 and print what it prints. `choose_a`
    and `choose_b` are selections "column=value"; `only` selects the experiments whose name contains
    it.

    Writes compare.html into `to`, and tables, figure and every answer whose score differs into
    `to`/across, without absolute paths. Raises `VragError` as `load_answers` and `paired_answers`
    do, and if the notebook fails.
    """
    from papermill import execute_notebook
    from papermill.exceptions import PapermillExecutionError

    columns_a, columns_b = _choice(choose_a), _choice(choose_b)
    sides = [load_answers(folder, only=only) for folder in (a, b)]
    paired_answers(*sides, choose_a=columns_a, choose_b=columns_b)  # refuses what does not fit
    given = {
        "compare_dirs": [str(a.absolute()), str(b.absolute())],
        "only": only,
        "a": columns_a,
        "b": columns_b,
        "flips_shown": _FLIPS,
        "figures_dir": str(to.absolute()),
    }
    notebook = nbformat.read(_NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    notebook.cells = [cell for cell in notebook.cells if _OWN not in cell_tags(cell)]
    copy = to / "compare.ipynb"
    write_file(copy, nbformat.writes(notebook))  # type: ignore[no-untyped-call]
    how = {"progress_bar": False, "stdout_file": sys.stdout, "cwd": project_root()}
    try:
        execute_notebook(copy, copy, given, **how)
    except PapermillExecutionError as error:
        raise VragError(f"compare: {failure_reason(copy, 1)}") from error
    write_file(to / "compare.html", single_page(copy))
    copy.unlink()


def _choice(words: Sequence[str]) -> dict[str, str]:
    """Column → value, of "column=value"."""
    for each in words:
        if "=" not in each:
            raise VragError(f"compare: found {each!r}, expected column=value, as in model=mine.")
    return dict(each.split("=", 1) for each in words)
