"""A Jupyter-first research kit for visual retrieval-augmented generation."""

from importlib.metadata import version
from typing import Any

from vrag_kit.config import Workspace as Workspace

__version__ = version("vrag_kit")


def load_ipython_extension(shell: Any) -> None:  # Any: IPython's shell has no types
    """Sets up a notebook by `%load_ext vrag_kit`: tables are shown in full, and an edit of the
    package is in force at the next run of a cell (`%autoreload 2`).
    """
    from vrag_kit.tables import show_full_tables

    shell.run_line_magic("load_ext", "autoreload")
    shell.run_line_magic("autoreload", "2")
    show_full_tables(shell)
