"""HTML page of a report: sections of executed notebooks, and statements of papers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2

from vrag_kit import papers
from vrag_kit.analysis.results import result_files
from vrag_kit.open import data_title
from vrag_kit.runner.chapters import NotebookSection, notebook_section
from vrag_kit.runner.params import declared_parameters
from vrag_kit.runner.plan import Plan, notebook_name
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import project_root


def render_report(plans: Sequence[Plan]) -> tuple[str, list[NotebookSection]]:
    """Render the page of some plans' notebooks as HTML; returns it with its sections. The same runs
    give the same bytes.
    """
    chapters: list[NotebookSection] = []
    for plan in plans:
        chapters += _chapters(plan, alone=len(plans) == 1)
    return _page(plans, chapters), chapters


def _chapters(plan: Plan, *, alone: bool) -> list[NotebookSection]:
    # a notebook may stand on the page twice, run with two files
    before = "" if alone else f"{plan.folder.relative_to(project_root() / 'runs').as_posix()}/"
    return [
        notebook_section(notebook, given, plan.folder, f"{before}{notebook_name(notebook)}")
        for notebook, given in plan.given.items()
    ]


def _page(plans: Sequence[Plan], chapters: Sequence[NotebookSection]) -> str:
    benchmarks: dict[str, None] = {}
    results: dict[str, list[str]] = {}
    claims: dict[str, Rows] = {}
    for plan in plans:
        for notebook, given in plan.given.items():
            settings = {**declared_parameters(notebook), **given}
            for name in _DATA:
                if name in settings:
                    benchmarks[data_title(settings[name])] = None
            if "figures_dir" in settings:
                figures = settings["figures_dir"]
                paper = notebook_name(notebook).partition("/")[0]
                title = f"{paper}, {figures}"
                if figures not in results:
                    results[figures] = _results(project_path(figures))
                if title not in claims:
                    claims[title] = _claims(paper, project_path(figures))
    template = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template("report.html")
    return template.render(
        chapters=chapters,
        parameter_file=" ".join(str(plan.file) for plan in plans),
        benchmarks=list(benchmarks),
        pythons=sorted({chapter.python for chapter in chapters} - {""}),
        versions={name: version(name) for name in ("vrag_kit", "torch", "transformers")},
        results=results,
        claims={title: rows for title, rows in claims.items() if rows},
    )


_DATA = ("data", "mrag_rows")
"""Parameters that name the benchmark of a notebook."""
Rows = list[dict[Hashable, Any]]
"""Rows of a table: column → cell of any type."""


def _claims(paper: str, figures: Path) -> Rows:
    """What a paper says, on the results below a folder of figures: the rows of the
    `statements_table` that the module statements in its folder may offer, with the columns
    statement, section, verdict, numbers, source and reported.
    """
    if not (Path(papers.__path__[0]) / paper / "statements.py").is_file():
        return []
    table = import_module(f"{papers.__name__}.{paper}.statements").statements_table(figures)
    rows: Rows = table.to_dict("records")
    return rows


def _results(folder: Path) -> list[str]:
    """The tables below a folder of figures."""
    return [file.relative_to(folder).as_posix() for file in result_files(folder)]
