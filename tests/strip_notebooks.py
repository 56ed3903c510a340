"""Strip notebooks of outputs and run-time marks: `python tests/strip_notebooks.py
[--run]`.

Tags stay, and so do the outputs of cells marked NBVAL_CHECK_OUTPUT, which nbval
compares. With --run the notebooks are executed first, which renews those outputs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
PATHS = sorted(
    path for path in NOTEBOOKS.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)


def stripped(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook as it is committed."""
    for cell in notebook.cells:
        cell.metadata = {key: value for key, value in cell.metadata.items() if key == "tags"}
        if cell.cell_type == "code":
            cell.outputs = cell.outputs if "NBVAL_CHECK_OUTPUT" in cell.source else []
            cell.execution_count = (
                1 if cell.outputs else None
            )  # nbval takes a cell without a count for one that never ran
            for output in cell.outputs:
                output.pop("execution_count", None)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


if __name__ == "__main__":
    for path in PATHS:
        book = nbformat.read(path, as_version=4)
        if "--run" in sys.argv:
            NotebookClient(
                book, timeout=600, resources={"metadata": {"path": str(path.parent)}}
            ).execute()
        nbformat.write(stripped(book), path)
        print(path.relative_to(NOTEBOOKS))
