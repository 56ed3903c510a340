"""One HTML page of executed notebooks, all tables and figures; opens offline."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2

from vrag_kit import papers
from vrag_kit.analysis.results import result_files
from vrag_kit.errors import VragError
from vrag_kit.fieldguide.opening import title_of
from vrag_kit.files import write_file
from vrag_kit.runner.chapters import Chapter, chapter_of
from vrag_kit.runner.parameters import declared
from vrag_kit.runner.plan import Plan, name_of, read_plan
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import project_root


def write_report(
    parameter_files: Sequence[Path], to: Path | None = None
) -> tuple[Path, list[Chapter]]:
    """Write the page of the notebooks that `vrag run` left for some parameter files: to
    `to`, or else beside the copies of one file, and for several to runs/report.html.

    Returns where it is, and what is on it. The same runs give the same bytes. Raises
    `VragError` when none of the notebooks was run with a parameter file yet, for a
    parameter file that no notebook could run with, and when the page cannot be written.
    """
    plans = [read_plan(file) for file in parameter_files]
    chapters: list[Chapter] = []
    for plan in plans:
        chapters += _chapters(plan, alone=len(plans) == 1)
    page = _page(plans, chapters)
    beside = plans[0].folder if len(plans) == 1 else project_root() / "runs"
    to = to or beside / "report.html"
    try:
        write_file(to, page)
    except OSError as error:
        raise VragError(
            f"{to}: the report cannot be written ({error.strerror}). Name another file by --to, or"
            " free space."
        ) from error
    return to, chapters


def _chapters(plan: Plan, *, alone: bool) -> list[Chapter]:
    copies = [plan.folder / f"{name_of(notebook)}.ipynb" for notebook in plan.given]
    if not any(copy.is_file() for copy in copies):
        raise VragError(
            f"{plan.folder}: holds no executed notebook yet. Run `vrag run {plan.file}` first."
        )
    # a notebook may stand on the page twice, run with two files
    before = "" if alone else f"{plan.folder.relative_to(project_root() / 'runs').as_posix()}/"
    return [
        chapter_of(notebook, given, plan.folder, f"{before}{name_of(notebook)}")
        for notebook, given in plan.given.items()
    ]


def _page(plans: Sequence[Plan], chapters: Sequence[Chapter]) -> str:
    benchmarks: dict[str, None] = {}
    results: dict[str, list[str]] = {}
    claims: dict[str, Rows] = {}
    for plan in plans:
        for notebook, given in plan.given.items():
            settings = {**declared(notebook), **given}
            for name in _DATA:
                if name in settings:
                    benchmarks[title_of(settings[name])] = None
            if "figures_dir" in settings:
                figures = settings["figures_dir"]
                paper = name_of(notebook).partition("/")[0]
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
"""The rows of a table: cells of any kind by their columns."""


def _claims(paper: str, figures: Path) -> Rows:
    """What a paper says, on the results below a folder of figures: the rows of the
    `claims_table` that the module claims in its folder may offer, with the columns says,
    section, verdict, numbers, source and printed.
    """
    if not (Path(papers.__path__[0]) / paper / "claims.py").is_file():
        return []
    table = import_module(f"{papers.__name__}.{paper}.claims").claims_table(figures)
    rows: Rows = table.to_dict("records")
    return rows


def _results(folder: Path) -> list[str]:
    """The tables below a folder of figures."""
    return [file.relative_to(folder).as_posix() for file in result_files(folder)]
