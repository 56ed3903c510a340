"""Plan of a parameter file: its notebooks in order, each with its parameters.

params/visual_rag/demo.yaml    a parameter file in the folder visual_rag
notebooks/visual_rag/02_….ipynb    the notebook named "visual_rag/02_…"
runs/visual_rag/demo/visual_rag/02_….ipynb    its copy, executed with that file
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.files import display_path, project_of, project_root
from vrag_kit.runner.params import (
    SERVES,
    declared_parameters,
    entries,
    read_parameters,
    split_by_notebook,
    unwritable_folders,
)


@dataclass(frozen=True)
class Task:
    """A notebook to run with the parameters from a parameter file."""

    notebook: Path
    given: dict[str, Any]
    folder: Path  # of the parameter file's copies

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All parameters of the notebook, given or default."""
        return declared_parameters(self.notebook) | self.given

    @property
    def name(self) -> str:
        """The notebook's folder and file name."""
        return notebook_name(self.notebook)

    @property
    def output(self) -> Path:
        """The path of the executed copy."""
        return self.folder / f"{self.name}.ipynb"


@dataclass(frozen=True, slots=True)
class Plan:
    """A parameter file and its notebooks."""

    file: Path
    folder: Path
    """Folder of the executed copies, each in the folder of its notebook."""
    tasks: list[Task]
    """In the order of execution."""


def enter_project(files: Sequence[Path]) -> list[Path]:
    """Change to the project root, and return the files relative to it. Files may be given relative
    to the current folder or to the root, which lets commands work in any folder. Outside a project,
    the root is that of the first file.
    """
    root = project_of(Path.cwd()) or project_of(files[0].absolute()) or Path.cwd()
    places = [(file if file.exists() else root / file).absolute() for file in files]
    os.chdir(root)
    return [Path(display_path(place)) for place in places]


def notebooks_folder() -> Path:
    """Return the project's folder of notebooks."""
    return project_root() / "notebooks"


def notebook_name(notebook: Path) -> str:
    """Return a notebook's folder and file name, as in "visual_rag/03_baselines"."""
    return notebook.relative_to(notebooks_folder()).with_suffix("").as_posix()


def all_notebooks() -> list[Path]:
    """Return the project's numbered notebooks, those at the top level first."""
    found = notebooks_folder().rglob("[0-9]*.ipynb")
    books = [notebook for notebook in found if ".ipynb_checkpoints" not in notebook.parts]
    return sorted(books, key=notebook_name)


def read_plan(parameter_file: Path) -> Plan:
    """Read the plan of a parameter file.

    The key `notebooks:` lists its notebooks (`matching_names`). Without it, a file in
    params/<folder>/ is for notebooks/<folder>/. Raises `VragError`, one line per fault, for a file
    that is neither, for an unknown notebook, for folders (names in `_dir`) that cannot be written,
    for faults in the options of endpoints, since a secret would be written to executed copies, and
    as `read_parameters` and `split_by_notebook` do.
    """
    values = read_parameters(parameter_file)
    wanted = values.pop(SERVES, None)
    file, params = parameter_file.resolve(), (project_root() / "params").resolve()
    place = file.relative_to(params) if file.is_relative_to(params) else Path(file.name)
    if wanted is None and len(place.parts) > 1:
        wanted = [place.parent.as_posix()]
    known = {notebook_name(notebook): notebook for notebook in all_notebooks()}
    if not isinstance(wanted, list) or not wanted:
        raise VragError(
            f"{parameter_file}: {SERVES} is {wanted!r}; expected a list of notebooks or of their"
            " folders, or a file in params/<folder>/."
        )
    names = matching_names(wanted, list(known), f"{parameter_file}: {SERVES}")
    given = split_by_notebook([known[name] for name in names], values, parameter_file)
    folder = project_root() / "runs" / place.with_suffix("")
    tasks = [Task(notebook, parameters, folder) for notebook, parameters in given.items()]
    folders = {("the folder of executed copies", str(folder))}
    for task in tasks:
        folders |= {(name, task.settings[name]) for name in task.settings if name.endswith("_dir")}
    if faults := [*unwritable_folders(sorted(folders)), *_endpoint_faults(values)]:
        raise VragError("\n".join(f"{parameter_file}: {fault}" for fault in faults))
    return Plan(parameter_file, folder, tasks)


def select_notebooks(plans: Sequence[Plan], only: Sequence[str]) -> list[Plan]:
    """Return the plans with only the notebooks that `only` stands for (`matching_names`); all if
    it is empty. "02,04" means "02" and "04".
    """
    parts = [part.strip() for part in ",".join(only).split(",") if part.strip()]
    if not parts:
        return list(plans)
    names = [task.name for task in chain.from_iterable(plan.tasks for plan in plans)]
    chosen = matching_names(parts, names, "--only")
    found = []
    for plan in plans:
        tasks = [task for task in plan.tasks if task.name in chosen]
        found.append(replace(plan, tasks=tasks))
    return found


def matching_names(parts: Sequence[object], names: Collection[str], where: str) -> list[str]:
    """Return the names of notebooks that begin with one of `parts`, or whose file name does:
    "visual_rag", "visual_rag/02", "02", or the number 2, as YAML reads 02. Raises `VragError`,
    beginning with `where`, for a part with which none begins.
    """
    found: list[str] = []
    for part in parts:
        start = f"{part:02d}" if type(part) is int else str(part)
        begin = [
            name for name in names if name.startswith(start) or Path(name).name.startswith(start)
        ]
        if not begin:
            listed = ", ".join(names) or f"none in {notebooks_folder()}"
            near = did_you_mean(start, names)
            raise VragError(f"{where}: no notebook {part!r}; found {listed}.{near}")
        found += begin
    return list(dict.fromkeys(found))


def _endpoint_faults(values: Mapping[str, Any]) -> list[str]:
    """Why endpoints that parameters name cannot be used, by their entries alone."""
    faults = []
    for _, entry in entries(values):
        options = {"model": entry} if isinstance(entry, str) else dict(entry)
        options.pop("rubric", None)
        if "@" in str(options["model"]):
            from vrag_kit.generation.generators import parse_model_entry

            try:
                parse_model_entry(options)
            except VragError as error:
                faults.append(str(error))
    return faults
