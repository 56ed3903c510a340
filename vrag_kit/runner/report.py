"""Report of executed notebooks: one HTML page with all tables and figures, by nbconvert; opens
offline. Text of data is escaped where a notebook makes HTML of it; the page's
Content-Security-Policy runs no script and loads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import nbformat
from nbconvert import HTMLExporter
from nbformat import NotebookNode

from vrag_kit.analysis.report_tables import ci_cells
from vrag_kit.errors import VragError
from vrag_kit.files import project_path, project_root, write_file
from vrag_kit.papers.statements import load_statement_checks
from vrag_kit.runner.job import ADDED, describe_failures, find_failure, status_file
from vrag_kit.runner.params import cell_tags
from vrag_kit.runner.plan import Task, read_plan
from vrag_kit.runner.run import is_finished

_EXPORTER = {
    "template_name": "basic",
    "exclude_input": True,
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
    body: str = ""  # text, tables and figures in order, as HTML
    code: str = ""


def write_report(
    parameter_files: Sequence[Path], to: Path | None = None
) -> tuple[Path, list[NotebookSection]]:
    """Write the report of the notebooks that `vrag run` executed for some parameter files; returns
    (page, sections). By default the page goes next to the copies of one file, and for several to
    runs/report.html. The same runs give the same bytes.

    Raises `VragError` if no notebook was executed with any of them, and for a parameter file that
    no notebook could run with, and `OSError` if the page cannot be written.
    """
    plans = [read_plan(file) for file in parameter_files]
    sections: list[NotebookSection] = []
    statements: dict[str, list[dict[Hashable, Any]]] = {}
    for plan in plans:
        for task in plan.tasks:
            # a notebook that ran with two files is on the page twice
            anchor = task.output.relative_to(project_root() / "runs").with_suffix("").as_posix()
            sections.append(_section(task, anchor))
            paper, figures = task.name.partition("/")[0], task.settings.get("figures_dir", "")
            if f"{paper}, {figures}" not in statements:
                checks = load_statement_checks(project_path(figures))
                checks = checks[checks["paper"] == paper].fillna({"data_version": ""})
                checks = checks.assign(number=ci_cells(checks, decimals=2))
                statements[f"{paper}, {figures}"] = checks.to_dict("records")
    page = plans[0].folder if len(plans) == 1 else project_root() / "runs"
    files = " ".join(str(plan.file) for plan in plans)
    if not any(section.body for section in sections):
        raise VragError(f"{page}: holds no executed notebook yet. Run `vrag run {files}` first.")
    to = to or page / "report.html"
    write_file(to, _fill_page(sections, files, statements))
    return to, sections


def single_page(copy: Path) -> str:
    """Return the text, tables and figures of one executed notebook as an HTML page."""
    executed = nbformat.read(copy, as_version=4)  # type: ignore[no-untyped-call]
    return _fill_page([_render(executed, copy.stem, copy.stem, "done")], "", {})


def _section(task: Task, anchor: str) -> NotebookSection:
    try:
        executed = nbformat.read(task.output, as_version=4)  # type: ignore[no-untyped-call]
    except FileNotFoundError:
        return NotebookSection(task.name, anchor, "not run with this parameter file")
    except ValueError:
        return NotebookSection(task.name, anchor, "its copy cannot be read; run it again")
    index, failure = find_failure(executed.cells)
    problems = [f"failed: {failure}"] if failure else []
    if not failure and not is_finished(task):
        problems.append("not finished, or notebook, parameters, data or code have changed since")
    executed.cells = executed.cells[: index + 1]
    state = "; ".join([*problems, *describe_failures(status_file(task.output))]) or "done"
    return _render(executed, task.name, anchor, state)


def _render(executed: NotebookNode, name: str, anchor: str, state: str) -> NotebookSection:
    """The section of an executed notebook."""
    executed.cells = [cell for cell in executed.cells if not ADDED & cell_tags(cell)]
    executed.metadata.pop("widgets", None)
    code = [cell.source for cell in executed.cells if cell.cell_type == "code"]
    title = heading = ""
    for cell in executed.cells:
        if cell.cell_type == "markdown":
            heading = next(iter(re.findall(r"^#+ (.+)", cell.source, re.MULTILINE)), heading)
            title = title or heading
            # the page has a title of its own
            cell.source = re.sub(r"^(?=#+ )", "#", cell.source, flags=re.MULTILINE)
        elif cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _is_result(output, cell.source)]
            for output in cell.outputs:
                output.get("metadata", {}).update(alt=heading)
    exporter = HTMLExporter(**_EXPORTER)  # type: ignore[no-untyped-call]
    return NotebookSection(
        name=name,
        anchor=anchor,
        state=state,
        title=title,
        run=executed.metadata.get("papermill", {}),
        body=str(exporter.from_notebook_node(executed)[0]),
        code="\n\n\n".join(code),
    )


def _is_result(output: NotebookNode, source: str) -> bool:
    """Whether an output is what its author prints or shows, and not progress of the package."""
    return output.output_type != "stream" or (output.name == "stdout" and "print(" in source)


def _fill_page(
    sections: Sequence[NotebookSection],
    parameter_file: str,
    statements: Mapping[str, list[dict[Hashable, Any]]],
) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    )
    versions = {name: version(name) for name in ("vrag_kit", "torch", "transformers")}
    return environment.get_template("report.html").render(
        sections=sections,
        parameter_file=parameter_file,
        statements=statements,
        versions=versions,
    )
