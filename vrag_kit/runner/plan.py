"""Plan of a parameter file: its notebooks in order, each with its parameters.

params/visual_rag/demo.yaml    a parameter file in the folder visual_rag
notebooks/visual_rag/02_….ipynb    the notebook named "visual_rag/02_…"
runs/visual_rag/demo/visual_rag/02_….ipynb    its copy, executed with that file
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError, nearest
from vrag_kit.runner.cluster import CLUSTER, parse_cluster
from vrag_kit.runner.params import SERVES, read_parameters, split_by_notebook
from vrag_kit.workspace import project_root


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A parameter file and its notebooks."""

    file: Path
    given: Mapping[Path, dict[str, Any]]
    """Notebook → its parameters from the file, in the order of execution."""
    folder: Path
    """Folder of the executed copies, each in the folder of its notebook."""
    cluster: str
    """The cluster that executes them (`parse_cluster`); "" for this machine."""


def notebooks_folder() -> Path:
    """Return the project's folder of notebooks."""
    return project_root() / "notebooks"


def notebook_name(notebook: Path) -> str:
    """Return a notebook's folder and file name, as in "visual_rag/03_baselines"."""
    return notebook.relative_to(notebooks_folder()).with_suffix("").as_posix()


def all_notebooks() -> list[Path]:
    """Return the project's numbered notebooks, those at the top level first."""
    found = [
        notebook
        for notebook in notebooks_folder().rglob("[0-9]*.ipynb")
        if ".ipynb_checkpoints" not in notebook.parts
    ]
    return sorted(found, key=notebook_name)


def read_plan(parameter_file: Path, *, data: bool = True) -> Plan:
    """Read the plan of a parameter file.

    The key `notebooks:` lists its notebooks by name, by a unique prefix or part of the name, or by
    folder. Without it, a file in params/<folder>/ is for notebooks/<folder>/; `cluster:` names the
    cluster. Raises `VragError`, one line per fault, for a file that is neither, for an unknown
    notebook, and for parameters that no notebook could run with (see `read_parameters` and
    `split_by_notebook`), including mistyped names of synthetic data. With `data` false, such names
    alone are no fault, which avoids a slow import for finished runs.
    """
    values = read_parameters(parameter_file)
    wanted = values.pop(SERVES, None)
    told = values.pop(CLUSTER, None)
    cluster = parse_cluster(told, f"{parameter_file}: {CLUSTER}") if told else ""
    params = project_root() / "params"
    below = parameter_file.absolute().resolve()
    inside = below.is_relative_to(params.resolve())
    place = below.relative_to(params.resolve()) if inside else Path(below.name)
    if wanted is None and len(place.parts) > 1:
        wanted = [place.parent.as_posix()]
    given: Mapping[Path, dict[str, Any]] = {}
    faults = []
    try:
        notebooks = _notebooks(wanted, values, parameter_file)
        others = [book for book in all_notebooks() if book not in notebooks]
        given = split_by_notebook(notebooks, values, parameter_file, others)
    except VragError as error:
        faults.append(str(error))
    if data or faults:
        faults = _wrong_names(values, parameter_file) + faults
    if faults:
        raise VragError("\n".join(faults))
    return Plan(
        file=parameter_file,
        given=given,
        folder=project_root() / "runs" / place.with_suffix(""),
        cluster=cluster,
    )


def select_notebooks(plans: Sequence[Plan], only: Sequence[str]) -> list[Plan]:
    """Return the plans with only the notebooks whose name contains one of `only`; all if it is
    empty. "02,04" means "02" and "04". Raises `VragError` for a part that no name contains.
    """
    parts = [part.strip() for part in ",".join(only).split(",") if part.strip()]
    if not parts:
        return list(plans)
    names: list[str] = []
    for plan in plans:
        names += map(notebook_name, plan.given)
    for part in parts:
        if not any(part in name for name in names):
            raise VragError(f"no notebook {part!r}; found {', '.join(names)}.")
    found = []
    for plan in plans:
        wanted = [book for book in plan.given if any(part in notebook_name(book) for part in parts)]
        found.append(replace(plan, given={book: plan.given[book] for book in wanted}))
    return found


def unknown_data_names(plan: Plan) -> list[str]:
    """Return the faults of data names that cannot exist, before a notebook runs into them. Missing
    parts of a built benchmark only affect the notebooks that need them.
    """
    values: dict[str, Any] = {}
    for given in plan.given.values():
        values |= given
    return _wrong_names(values, plan.file)


def _wrong_names(values: Mapping[str, Any], where: Path) -> list[str]:
    from vrag_kit.runner.data_parameters import check_data_parameter  # heavy: it can draw

    faults = []
    for parameter, value in values.items():
        if isinstance(value, str | Mapping) and value != "":
            try:
                check_data_parameter(parameter, value)
            except VragError as error:
                faults.append(f"{where}: {error}")
    return faults


def _notebooks(wanted: object, others: Mapping[str, Any], where: Path) -> list[Path]:
    """The notebooks that names, or names of folders, stand for; `others` are the file's
    other lines.
    """
    known = {notebook_name(notebook): notebook for notebook in all_notebooks()}
    if not known:
        raise VragError(
            f"{where}: there are no notebooks here to give parameters to. Run this in the"
            " project's folder, which holds `notebooks` and `params`."
        )
    folders = sorted({name.rpartition("/")[0] for name in known} - {""})
    if not isinstance(wanted, list) or not wanted:
        raise VragError(f"{where}: {_no_list(wanted, others, folders or list(known))}")
    chosen: dict[Path, None] = {}
    faults = []
    for entry in wanted:
        try:
            chosen.update(dict.fromkeys(known[name] for name in _named(entry, known, folders)))
        except VragError as error:
            faults.append(f"{where}: {SERVES} names {entry!r}, which is {error}")
    if faults:
        raise VragError("\n".join(faults))
    return list(chosen)


def _no_list(wanted: object, others: Mapping[str, Any], folders: Sequence[str]) -> str:
    """What to write where no list says which notebooks a file is for."""
    if isinstance(wanted, str | int) and wanted != "":
        return f"{SERVES} is {wanted!r}, and no list. Write it as `{SERVES}: [{wanted}]`."
    near = nearest(SERVES, others)
    hint = f" Did you mean `{SERVES}` by {near!r}?" if near else ""
    return (
        f"which notebooks it is for, it does not say.{hint} Give it a line like"
        f" `{SERVES}: [{', '.join(folders)}]`, with names of notebooks or of their folders; or put"
        " it into params/<folder>/, for those in notebooks/<folder>/."
    )


def _named(entry: object, known: Iterable[str], folders: Sequence[str]) -> list[str]:
    """The names that an entry stands for: of one notebook, or of all in a folder. A number
    is that of a notebook's name, which YAML reads without its nought.
    """
    part = f"{entry:02d}" if type(entry) is int else str(entry)
    if inside := [name for name in known if name == part or name.startswith(f"{part}/")]:
        return inside
    begins = [name for name in known if name.rpartition("/")[2].startswith(part)]
    found = begins or [name for name in known if part in name]
    if len(found) == 1:
        return found
    if found:
        raise VragError(f"a part of several names; say which:{_lines(found)}")
    near = nearest(part, [*known, *folders])
    if near:
        raise VragError(
            f"neither a notebook nor a folder in {notebooks_folder()}. Did you mean {near!r}?"
        )
    raise VragError(
        f"neither a notebook nor a folder in {notebooks_folder()}. There are:"
        f"{_lines([*folders, *known])}"
    )


def _lines(names: Iterable[str]) -> str:
    return "".join(f"\n  {name}" for name in names)
