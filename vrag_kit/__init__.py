"""A Jupyter-first research kit for visual retrieval-augmented generation."""

from importlib.metadata import version
from typing import Any

from vrag_kit.workspace import Workspace as Workspace

__version__ = version("vrag_kit")
MOST_ROWS = 500
"""Maximum number of rows shown; of a longer table the first and last rows and its size."""


def load_ipython_extension(shell: Any) -> None:  # Any: IPython's shell has no types
    """Sets up a notebook by `%load_ext vrag_kit`: tables are shown in full, and an edit of the
    package is in force at the next run of a cell (`%autoreload 2`).
    """
    import pandas as pd

    shell.run_line_magic("load_ext", "autoreload")
    shell.run_line_magic("autoreload", "2")
    pd.set_option("display.max_colwidth", None, "display.max_columns", None)
    pd.set_option("display.max_rows", MOST_ROWS, "display.min_rows", MOST_ROWS)
    pd.set_option("display.show_dimensions", "truncate")
