"""Report of executed notebooks: one HTML page with all tables and figures, by nbconvert; opens
offline. Text of data is escaped where a notebook makes HTML of it; the page's
Content-Security-Policy runs no script and loads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jinja2
import nbformat
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from traitlets.config import Config

from vrag_kit.analysis.results import result_files
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.open import data_title
from vrag_kit.papers.statements import statements_table
from vrag_kit.runner.books import Notebook, read_notebook
from vrag_kit.runner.job import ADDED, find_failure
from vrag_kit.runner.plan import Plan, read_plan
from vrag_kit.runner.run import Task, plan_tasks
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import project_root

_DATA = ("data", "mrag_rows")
"""Parameters that name the benchmark of a notebook."""
_KINDS = ("image/png", "image/jpeg", "image/svg+xml", "text/html", "text/markdown", "text/plain")
"""Of an output that comes in several forms the first of these is shown."""
_EXPORTER = {
    "template_name": "basic",
    "exclude_input": True,
    "exclude_input_prompt": True,
    "exclude_output_prompt": True,
    "exclude_anchor_links": True,
}


@dataclass(frozen=True, slots=True)
class NotebookSection:
    """The section of one notebook on the page."""

    name: str  # "visual_rag/03_baselines"
    anchor: str  # its name on the page
    state: str  # "done", or what is wrong
    title: str = ""
    run: Mapping[str, Any] = field(default_factory=dict)  # papermill's end_time and duration
    python: str = ""
    body: str = ""  # text, tables and figures in order, as HTML
    code: str = ""


class Report(NamedTuple):
    """A written report."""

    page: Path
    sections: list[NotebookSection]
    without: list[Path]  # parameter files that are not on it: no notebook was executed


def write_report(parameter_files: Sequence[Path], to: Path | None = None) -> Report:
    """Write the report of the notebooks that `vrag run` executed for some parameter files. By
    default it goes next to the copies of one file, and for several to runs/report.html. The same
    runs give the same bytes. Of several parameter files, those without an executed notebook are
    left out.

    Raises `VragError` if no notebook was executed with any of them, for a parameter file that no
    notebook could run with, and if the page cannot be written.
    """
    given = [read_plan(file) for file in parameter_files]
    plans = [plan for plan in given if any(task.output.is_file() for task in plan_tasks(plan))]
    beside = given[0].folder if len(given) == 1 else project_root() / "runs"
    if not plans:
        files = " ".join(str(plan.file) for plan in given)
        raise VragError(f"{beside}: holds no executed notebook yet. Run `vrag run {files}` first.")
    sections: list[NotebookSection] = []
    for plan in plans:
        # a notebook that ran with two files is on the page twice
        before = "" if len(plans) == 1 else f"{plan.folder.relative_to(project_root())}/"
        sections += [_section(task, f"{before}{task.name}") for task in plan_tasks(plan)]
    to = to or beside / "report.html"
    try:
        write_file(to, _page(plans, sections))
    except OSError as error:
        raise VragError(
            f"{to}: the report cannot be written ({error.strerror}). Name another file by --to, or"
            " free space."
        ) from error
    return Report(to, sections, [plan.file for plan in given if plan not in plans])


def _section(task: Task, anchor: str) -> NotebookSection:
    try:
        executed = read_notebook(task.output)
    except FileNotFoundError:
        return NotebookSection(task.name, anchor, "not run with this parameter file")
    except ValueError:
        return NotebookSection(task.name, anchor, "its copy cannot be read; run it again")
    problems = [*_problems(task, executed), *task.failed_calls()]
    titles = re.findall(r"^# (.+)", "\n".join(cell.source for cell in executed.cells), re.MULTILINE)
    code = [cell.source for cell in executed.cells if cell.cell_type == "code"]
    return NotebookSection(
        name=task.name,
        anchor=anchor,
        state="; ".join(problems) or "done",
        title=titles[0] if titles else task.name,
        run=executed.metadata.get("papermill", {}),
        python=executed.metadata.get("language_info", {}).get("version", ""),
        body=_render(task.output, find_failure(executed.cells)[0]),
        code="\n\n\n".join(code),
    )


def single_page(copy: Path) -> str:
    """Return the text, tables and figures of one executed notebook as an HTML page."""
    executed = read_notebook(copy)
    section = NotebookSection(
        name=copy.stem,
        anchor=copy.stem,
        state="done",
        title=executed.cells[0].source.split("\n")[0].lstrip("# "),
        run=executed.metadata.get("papermill", {}),
        python=executed.metadata.get("language_info", {}).get("version", ""),
        body=_render(copy, len(executed.cells)),
    )
    return _fill_page([section])


def _problems(task: Task, executed: Notebook) -> list[str]:
    """What is wrong with the run that left an executed copy, the worst first."""
    problems = []
    _, failure = find_failure(executed.cells)
    if failure:
        problems.append(f"failed: {failure}")
    elif not task.output.with_suffix(".json").is_file():
        problems.append(f"not finished: it was stopped, or is still running; see {task.name}.log")
    written = [cell.source for cell in executed.cells if not cell.tags & ADDED]
    if written != [cell.source for cell in read_notebook(task.notebook).cells]:
        problems.append("older than the notebook, which has changed since; run it again")
    if executed.metadata.get("papermill", {}).get("parameters", task.given) != task.given:
        problems.append("made with other parameters than the file now gives; run it again")
    return problems


def _render(copy: Path, last: int) -> str:
    """Text, tables and figures of the cells up to the index `last`, as HTML."""
    notebook = nbformat.read(copy, as_version=4)  # type: ignore[no-untyped-call]
    notebook.cells = [cell for cell in notebook.cells[: last + 1] if not _is_added(cell)]
    notebook.metadata.pop("widgets", None)
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = next(iter(re.findall(r"^#+ (.+)", cell.source)), heading)
            # the page has a title of its own
            cell.source = re.sub(r"^(?=#+ )", "#", cell.source, flags=re.MULTILINE)
        elif cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _is_result(output, cell.source)]
            for output in cell.outputs:
                output.get("metadata", {}).update(alt=heading)
    priority = {"NbConvertBase": {"display_data_priority": list(_KINDS)}}
    exporter = HTMLExporter(config=Config(priority), **_EXPORTER)  # type: ignore[no-untyped-call]
    return str(exporter.from_notebook_node(notebook)[0])


def _is_added(cell: NotebookNode) -> bool:
    return bool(ADDED & set(cell.metadata.get("tags", [])))


def _is_result(output: NotebookNode, source: str) -> bool:
    """Whether an output is what its author prints or shows, and not progress of the package."""
    return output.output_type != "stream" or (output.name == "stdout" and "print(" in source)


def _page(plans: Sequence[Plan], sections: Sequence[NotebookSection]) -> str:
    benchmarks: list[str] = []
    results: dict[str, list[str]] = {}
    claims: dict[str, list[dict[Hashable, Any]]] = {}
    for task in chain.from_iterable(map(plan_tasks, plans)):
        benchmarks += [data_title(task.settings[name]) for name in _DATA if name in task.settings]
        if "figures_dir" in task.settings:
            name = task.settings["figures_dir"]
            paper, folder = task.name.partition("/")[0], project_path(name)
            results[name] = [str(file.relative_to(folder)) for file in result_files(folder)]
            table = statements_table(paper, folder)
            claims[f"{paper}, {name}"] = table.to_dict("records")
    return _fill_page(
        sections,
        parameter_file=" ".join(str(plan.file) for plan in plans),
        benchmarks=list(dict.fromkeys(benchmarks)),
        results=results,
        claims={title: rows for title, rows in claims.items() if rows},
    )


def _fill_page(
    sections: Sequence[NotebookSection],
    parameter_file: str = "",
    benchmarks: Sequence[str] = (),
    results: Mapping[str, Sequence[str]] = MappingProxyType({}),
    claims: Mapping[str, list[dict[Hashable, Any]]] = MappingProxyType({}),
) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    )
    return environment.get_template("report.html").render(
        sections=sections,
        parameter_file=parameter_file,
        benchmarks=benchmarks,
        versions={name: version(name) for name in ("vrag_kit", "torch", "transformers")},
        results=results,
        claims=claims,
    )
