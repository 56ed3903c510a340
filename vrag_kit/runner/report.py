"""Report of executed notebooks: one HTML page with all tables and figures; opens offline.

Its last line identifies its inputs, and an unchanged report is kept. Slow imports happen only when
a page is rendered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.runner.copies import succeeded
from vrag_kit.runner.job import status_file
from vrag_kit.runner.params import declared_parameters
from vrag_kit.runner.plan import Plan, notebook_name, read_plan, unknown_data_names
from vrag_kit.runner.stamp import file_fingerprint, package_hash
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import project_root

_LIBRARIES = ("vrag_kit", "torch", "transformers", "nbconvert", "jinja2", "pandas")
"""Libraries whose versions are on the page, and those that render it."""
_LAST = "\n<!-- "
"""Prefix of the last line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionSummary:
    """Summary of a notebook's section on the page."""

    name: str  # "visual_rag/03_baselines"
    anchor: str  # its name on the page
    state: str  # "done", or in a few words what is wrong
    words: str  # the same, in sentences where something is wrong


class Report(NamedTuple):
    """A written report."""

    place: Path
    chapters: list[SectionSummary]
    unchanged: bool  # it was there, and is as it was left
    without: list[Path]  # parameter files that are not on it: no notebook was executed


def write_report(parameter_files: Sequence[Path], to: Path | None = None) -> Report:
    """Write the report of the notebooks that `vrag run` executed for some parameter files. By
    default it goes next to the copies of one file, and for several to runs/report.html. A report of
    the same runs by the same kit is kept. Of several parameter files, those without an executed
    notebook are left out.

    Raises `VragError` if no notebook was executed with any of them, for a parameter file that no
    notebook could run with, and if the page cannot be written.
    """
    given = [read_plan(file, data=False) for file in parameter_files]
    plans = [plan for plan in given if any(copy.is_file() for _, copy in _copies(plan))]
    beside = given[0].folder if len(given) == 1 else project_root() / "runs"
    to = to or beside / "report.html"
    lacking = [plan for plan in given if plan not in plans]
    _refuse(lacking)
    if not plans:
        files = " ".join(str(plan.file) for plan in given)
        raise VragError(f"{beside}: holds no executed notebook yet. Run `vrag run {files}` first.")
    without = [plan.file for plan in lacking]
    made_of = _made_of(plans)
    there = _there(to, made_of)
    if there is not None:
        return Report(to, there, unchanged=True, without=without)
    _refuse(plans)
    from vrag_kit.runner.report_page import render_report  # heavy: it draws cells and tables

    page, chapters = render_report(plans)
    told = [
        SectionSummary(
            name=each.name,
            anchor=each.anchor,
            state=each.state,
            words=" ".join(each.notes) or each.state,
        )
        for each in chapters
    ]
    try:
        write_file(to, page + _last_line(page, made_of, told))
    except OSError as error:
        raise VragError(
            f"{to}: the report cannot be written ({error.strerror}). Name another file by --to, or"
            " free space."
        ) from error
    return Report(to, told, unchanged=False, without=without)


def _refuse(plans: Sequence[Plan]) -> None:
    refused: list[str] = []
    for plan in plans:
        refused += unknown_data_names(plan)
    if refused:
        raise VragError("\n".join(refused))


def _copies(plan: Plan) -> Iterator[tuple[Path, Path]]:
    """Each notebook with its executed copy."""
    for notebook in plan.given:
        yield notebook, plan.folder / f"{notebook_name(notebook)}.ipynb"


def _made_of(plans: Sequence[Plan]) -> str:
    """Hash of all that decides what is on the page: the kit, the parameters, notebooks and
    their copies, and the tables below the folders of figures.
    """
    runs: list[object] = []
    folders: set[Path] = set()
    for plan in plans:
        for notebook, copy in _copies(plan):
            given = plan.given[notebook]
            files = [_key(file) for file in (notebook, copy, status_file(copy))]
            runs.append([str(plan.file), given, succeeded(copy), *files])
            settings = {**declared_parameters(notebook), **given}
            if "figures_dir" in settings:
                folders.add(project_path(settings["figures_dir"]))
    tables: dict[str, str] = {}
    for folder in folders:
        tables |= {str(file): _key(file) for file in folder.rglob("*.csv")}
    libraries = [version(name) for name in _LIBRARIES]
    everything = json.dumps([package_hash(), libraries, runs, tables], sort_keys=True, default=str)
    return hashlib.sha256(everything.encode()).hexdigest()


def _key(file: Path) -> str:
    return file_fingerprint(file) if file.is_file() else ""


def _last_line(page: str, made_of: str, sections: Sequence[SectionSummary]) -> str:
    """What a page was made of, a hash of it, and what it tells, as a comment."""
    whole = hashlib.sha256(page.encode()).hexdigest()
    said = {"made of": made_of, "page": whole, "told": [asdict(each) for each in sections]}
    words = json.dumps(said).replace("-", "\\u002d")  # two of them would end the comment
    return f"{_LAST}{words} -->\n"


def _there(place: Path, made_of: str) -> list[SectionSummary] | None:
    """What the page there tells; None where it is made of something else, cut short or
    edited, and where there is none.
    """
    try:
        text = place.read_bytes().decode()
        page = text.rpartition(_LAST)[0]
        last = text.removeprefix(page + _LAST)
        said = json.loads(last.removesuffix(" -->\n"))
        told = [SectionSummary(**each) for each in said["told"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    same = said.get("made of") == made_of and last.endswith(" -->\n")
    whole = said.get("page") == hashlib.sha256(page.encode()).hexdigest()
    return told if same and whole else None
