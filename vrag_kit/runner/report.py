"""One HTML page of a parameter file's executed notebooks, with all their tables and
figures; it opens offline.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import nbformat
from markupsafe import Markup
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from papermill import inspect_notebook

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.runner.markup import data_url, markdown, picture, tables
from vrag_kit.runner.parameters import declared
from vrag_kit.runner.plan import name_of, read_plan
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import project_root

_ADDED = {"parameters", "injected-parameters", "papermill-error-cell-tag"}
_SAVED = re.compile(r'save_figure\(\s*(\w+).*?"((?:\w+/)*\d\d_\w+)"', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One parameter of a run."""

    name: str
    value: str
    given: bool  # by the parameter file; otherwise it is the notebook's own
    meaning: str  # the comment beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One notebook on the page."""

    name: str  # "visual_rag/03_baselines"
    title: str
    state: str  # "done", or in a few words what is wrong
    notes: tuple[str, ...] = ()  # the same in sentences, all that a reader must know of this run
    finished: str = ""  # "2026-11-21 10:35 UTC"
    seconds: float = 0.0
    python: str = ""
    settings: tuple[Setting, ...] = ()
    blocks: tuple[Markup, ...] = ()  # text, tables and figures in order
    code: str = ""


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
    for plan in plans:
        if not any(
            (plan.folder / f"{name_of(notebook)}.ipynb").is_file() for notebook in plan.given
        ):
            raise VragError(
                f"{plan.folder}: holds no executed notebook yet. Run `vrag run {plan.file}` first."
            )
    chapters = [
        _chapter(notebook, given, plan.folder)
        for plan in plans
        for notebook, given in plan.given.items()
    ]
    settings = [
        {**declared(notebook), **given} for plan in plans for notebook, given in plan.given.items()
    ]
    folders = dict.fromkeys(str(each["figures_dir"]) for each in settings if "figures_dir" in each)
    template = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template("report.html")
    page = template.render(
        chapters=chapters,
        parameter_file=" ".join(map(str, parameter_files)),
        benchmarks=dict.fromkeys(
            each["benchmark_name"] for each in settings if "benchmark_name" in each
        ),
        pythons=sorted({chapter.python for chapter in chapters} - {""}),
        versions={name: version(name) for name in ("vrag_kit", "torch", "transformers")},
        results={name: _results(project_path(name)) for name in folders},
    )
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


def _results(folder: Path) -> list[str]:
    """The tables below a folder of figures."""
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("[0-9][0-9]_*.csv"))


def _chapter(notebook: Path, given: dict[str, Any], folder: Path) -> Chapter:
    """What the page tells of one notebook, from its executed copy in `folder`."""
    name = name_of(notebook)
    source, copy = nbformat.read(notebook, as_version=4), folder / f"{name}.ipynb"
    if not copy.is_file():
        return Chapter(
            name=name,
            title=_opening(source)[0] or name,
            state="not run",
            notes=("It has not been run with this parameter file.",),
        )
    try:
        book = nbformat.read(copy, as_version=4)
    except (
        nbformat.reader.NotJSONError,
        nbformat.ValidationError,
        UnicodeDecodeError,
        AttributeError,
    ):
        return Chapter(
            name=name,
            title=_opening(source)[0] or name,
            state="not readable",
            notes=("Its executed copy cannot be read. Run it again.",),
        )
    run = book.metadata.get("papermill", {})
    failure = next(
        (
            f"{output.ename}: {output.evalue}"
            for cell in book.cells
            for output in cell.get("outputs", [])
            if output.output_type == "error"
        ),
        "",
    )
    ended = copy.with_suffix(".json").is_file()  # the runner's note of a run that ended well
    stopped = (
        ""
        if failure or ended
        else (
            "It did not come to its end: it was stopped, its kernel died, or it is still running."
            f" See {copy.stem}.log."
        )
    )
    older, other = _sources(book) != _sources(source), run.get("parameters", given) != given
    wrong = {
        "failed": failure and f"Failed: {failure}",
        "not finished": stopped,
        "older than the notebook": (
            "This run is older than the notebook, which has changed since. Run it again."
            if older
            else ""
        ),
        "other parameters": (
            "This run was made with other parameters than the parameter file now gives. Run it"
            " again."
            if other
            else ""
        ),
    }
    wrong = {state: note for state, note in wrong.items() if note}
    return Chapter(
        name=name,
        title=_opening(book)[0] or name,
        state=next(iter(wrong), "done"),
        notes=tuple(wrong.values()),
        finished=_minute(run.get("end_time")),
        seconds=run.get("duration") or 0.0,
        python=book.metadata.get("language_info", {}).get("version", ""),
        settings=_settings(copy, run.get("parameters", {})),
        blocks=tuple(_blocks(book, copy.stem, stops=not ended)),
        code="\n\n\n".join(_code(book)),
    )


def _opening(book: NotebookNode) -> tuple[str, str, int]:
    """A notebook's title, the text below it, and the cell that they stand in; "", ""
    and -1 when it has none.
    """
    for number, cell in enumerate(book.cells):
        if cell.cell_type == "markdown" and cell.source.startswith("# "):
            title, _, why = cell.source.partition("\n")
            return title[2:].strip(), why.strip(), number
    return "", "", -1


def _sources(book: NotebookNode) -> list[tuple[str, str]]:
    return [
        (cell.cell_type, cell.source)
        for cell in book.cells
        if not _tags(cell) & (_ADDED - {"parameters"})
    ]


def _tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def _code(book: NotebookNode) -> list[str]:
    return [
        cell.source for cell in book.cells if cell.cell_type == "code" and not _tags(cell) & _ADDED
    ]


def _minute(time: str | None) -> str:
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M} UTC" if time else ""


def _settings(copy: Path, given: dict[str, Any]) -> tuple[Setting, ...]:
    """The parameters in the order of the notebook, with the values of this run."""
    return tuple(
        Setting(
            name=name,
            value=repr(given[name] if name in given else ast.literal_eval(about["default"])),
            given=name in given,
            meaning=about["help"],
        )
        for name, about in inspect_notebook(str(copy)).items()
    )


def _blocks(book: NotebookNode, stem: str, *, stops: bool) -> Iterator[Markup]:
    """Text, tables and figures in order, without headings that nothing stands below; of
    a run that `stops`, all up to the cell that did not end well.
    """
    _, why, opening = _opening(book)
    section, heading = stem, ""
    for number, cell in enumerate(book.cells):
        if _tags(cell) & _ADDED or cell.cell_type == "raw":
            continue
        if cell.cell_type == "markdown":
            section = next(
                (line.lstrip("# ") for line in cell.source.splitlines() if line.startswith("##")),
                section,
            )
            text = why if number == opening else cell.source
            bare = text.startswith("## ") and "\n" not in text.strip()
            if not bare:
                yield markdown(text if text.startswith("## ") else f"{heading}\n\n{text}")
            heading = text if bare else ""
            continue
        figure = _figure_name(book.cells, number)
        for shown in filter(
            None,
            (
                _shown(output, section, figure, prints="print(" in cell.source)
                for output in cell.outputs
            ),
        ):
            yield markdown(heading) + shown
            heading = ""
        if stops and not _ended_well(cell):
            yield Markup(
                '<p class="note">The notebook stopped here, in the cell that begins with'
                " <code>{}</code>; what follows it is left out.</p>"
            ).format(cell.source.splitlines()[0])
            return


def _ended_well(cell: NotebookNode) -> bool:
    """Whether a code cell was run, its kernel lived to tell, and it raised no error; so
    did one without code.
    """
    status, answered = (
        cell.metadata.get("papermill", {}).get("status"),
        "shell.execute_reply" in cell.metadata.get("execution", {}),
    )
    return not cell.source.strip() or (status == "completed" and answered)


def _shown(output: NotebookNode, section: str, figure: str, *, prints: bool) -> Markup:
    """One output; what a cell's author prints is shown, what the package tells of its
    progress is not.
    """
    if output.output_type == "stream":
        return (
            Markup("<pre>{}</pre>").format(strip_ansi(output.text).strip())
            if prints and output.name == "stdout"
            else Markup("")
        )
    if output.output_type == "error":
        return Markup(
            '<div class="error" role="alert"><p><strong>{}</strong>:'
            " {}</p><details><summary>Traceback</summary><pre>{}</pre></details></div>"
        ).format(output.ename, output.evalue, strip_ansi("\n".join(output.traceback)))
    data = output.data
    for kind in ("image/png", "image/jpeg", "image/svg+xml"):
        if kind in data:
            url = (
                data_url(kind, data[kind].encode())
                if kind == "image/svg+xml"
                else f"data:{kind};base64,{''.join(data[kind].split())}"
            )
            return Markup("<figure>{}<figcaption>{}</figcaption></figure>").format(
                picture(url, f"{section}: figure {figure}".removesuffix(" ")), figure or section
            )
    if "text/html" in data:
        return tables(data["text/html"], section)
    if "text/markdown" in data:
        return markdown(data["text/markdown"])
    if any("widget" in kind for kind in data):
        return Markup(
            '<p class="note">An interactive part stands here; open the notebook in JupyterLab to'
            " use it.</p>"
        )
    return Markup("<pre>{}</pre>").format(data.get("text/plain", ""))


def _figure_name(cells: list[NotebookNode], number: int) -> str:
    """The name under which the figure that a cell shows is saved: in it or above it, or
    else below it; "" when it is not saved.
    """
    shown = next(iter(reversed(cells[number].source.split())), "")
    saved = [
        (at, name)
        for at, cell in enumerate(cells)
        for variable, name in _SAVED.findall(cell.source)
        if cell.cell_type == "code" and variable == shown
    ]
    return next(
        (name for at, name in reversed(saved) if at <= number), saved[0][1] if saved else ""
    )
