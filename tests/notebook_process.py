"""Run a notebook in a new process that has the heavy libraries already.

A kernel imports for six seconds of processor before its first cell. Here a server, one of a
test process, imports once, and each notebook runs in a fork of it.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

LOADED = [
    *("torch", "transformers", "open_clip", "faiss", "matplotlib.pyplot", "scipy.stats"),
    *("IPython", "ipywidgets", "vrag_kit.building"),
    *(f"vrag_kit.papers.{name}" for name in ("visual_rag", "mrag_bench", "crag_mm", "mrag_suite")),
]


def fault(notebook: Path, parameters: dict[str, Any]) -> str:
    """Run it with `parameters` in place of its own. The code cell that failed, its number and
    traceback; empty if all ran to the end.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    with ProcessPoolExecutor(1, context) as process:
        return process.submit(_run_cells, notebook, parameters).result()


def _run_cells(notebook: Path, parameters: dict[str, Any]) -> str:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    os.chdir(notebook.parent)
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # as a kernel does
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(cell for cell in cells if cell["cell_type"] == "code"):
        source = "".join(cell["source"])
        printed = StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            done = shell.run_cell(source)
        if not done.success:
            return f"cell {number}:\n{source}\n{printed.getvalue()}"
        if "parameters" in cell["metadata"].get("tags", []):
            shell.user_ns.update(parameters)
    return ""
