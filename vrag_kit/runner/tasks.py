"""Tasks of a run: notebooks with their parameters and outputs, and whether these are up to date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from vrag_kit.log import failed_calls
from vrag_kit.runner.job import status_file
from vrag_kit.runner.params import declared_parameters
from vrag_kit.runner.plan import Plan, notebook_name
from vrag_kit.runner.shares import all_local
from vrag_kit.runner.stamp import figure_hashes, is_finished, run_fingerprint


@dataclass(frozen=True)
class Task:
    """A notebook to run with the parameters from a parameter file."""

    notebook: Path
    given: dict[str, Any]
    folder: Path  # of the parameter file's copies

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All parameters of the notebook, given or default."""
        return {**declared_parameters(self.notebook), **self.given}

    @property
    def name(self) -> str:
        """The notebook's folder and file name."""
        return notebook_name(self.notebook)

    @property
    def output(self) -> Path:
        """The path of the executed copy."""
        return self.folder / f"{self.name}.ipynb"

    @property
    def note(self) -> Path:
        """The path of the file with the run's fingerprint."""
        return self.output.with_suffix(".json")

    def stamp(self) -> dict[str, Any]:
        """Return the fingerprint that a run would have now."""
        return run_fingerprint(self.notebook, self.given, self.settings)

    def is_finished(self) -> bool:
        """Return whether the notebook need not run (`stamp.is_finished`)."""
        return is_finished(self.notebook, self.given, self.settings, self.output)

    def summary(self) -> str:
        """Describe what a run wrote, the models without answers, and the failed verdicts."""
        count = len(figure_hashes(self.notebook, self.settings))
        tally = status_file(self.output)
        lost, unjudged = (failed_calls(tally, kind).items() for kind in ("model", "judge"))
        said = [f"; EVERY ANSWER OF {model!r} FAILED, {how}" for model, how in lost]
        said += [f"; VERDICTS OF {judge!r} FAILED, {how}" for judge, how in unjudged]
        return f"{count} files in {self.settings.get('figures_dir', '')}{''.join(said)}"


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The tasks of a plan."""

    plan: Plan
    tasks: tuple[Task, ...]

    def can_run_beside(self, others: Sequence[PlannedRun]) -> bool:
        """Return whether these tasks may run at the same time as others. No notebook may be in
        both, as it writes the same files; all models must be local.
        """
        theirs = list(chain.from_iterable(other.tasks for other in others))
        books = {task.notebook for task in theirs}
        here = all(all_local(task.settings) for task in (*self.tasks, *theirs))
        return here and not any(task.notebook in books for task in self.tasks)


def planned_run(plan: Plan) -> PlannedRun:
    """Create the tasks of a plan."""
    return PlannedRun(plan, tuple(Task(book, own, plan.folder) for book, own in plan.given.items()))
