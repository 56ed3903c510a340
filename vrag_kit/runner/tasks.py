"""Notebooks that a run is asked for: what each is given, what it leaves, and whether that is
still what a run would leave now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from vrag_kit.runner.execution import tally_of
from vrag_kit.runner.finished import figures_of, ingredients, is_finished
from vrag_kit.runner.parameters import declared
from vrag_kit.runner.plan import Plan, name_of
from vrag_kit.runner.shares import all_here
from vrag_kit.tally import all_failed, lost_verdicts


@dataclass(frozen=True)
class Task:
    """A notebook to run with what a parameter file gives it."""

    notebook: Path
    given: dict[str, Any]
    folder: Path  # of the parameter file's copies

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All its parameters."""
        return {**declared(self.notebook), **self.given}

    @property
    def name(self) -> str:
        """Folder and file name of the notebook."""
        return name_of(self.notebook)

    @property
    def output(self) -> Path:
        """Its executed copy."""
        return self.folder / f"{self.name}.ipynb"

    @property
    def note(self) -> Path:
        """What the run was made of."""
        return self.output.with_suffix(".json")

    def ingredients(self) -> dict[str, Any]:
        """What a run would be made of now."""
        return ingredients(self.notebook, self.given, self.settings)

    def is_finished(self) -> bool:
        """Whether it need not run (`finished.is_finished`)."""
        return is_finished(self.notebook, self.given, self.settings, self.output)

    def came_of(self) -> str:
        """What a run wrote, of which models it has no answer, and which verdicts failed."""
        count = len(figures_of(self.notebook, self.settings))
        tally = tally_of(self.output)
        lost, unjudged = all_failed(tally).items(), lost_verdicts(tally).items()
        said = [f"; EVERY ANSWER OF {model!r} FAILED, {how}" for model, how in lost]
        said += [f"; VERDICTS OF {judge!r} FAILED, {how}" for judge, how in unjudged]
        return f"{count} files in {self.settings.get('figures_dir', '')}{''.join(said)}"


@dataclass(frozen=True, slots=True)
class Work:
    """What is to run of a plan."""

    plan: Plan
    tasks: tuple[Task, ...]

    def fits(self, others: Sequence[Work]) -> bool:
        """Whether it may run beside others: no notebook is in both, for it would write the
        same files, and all models run on this machine, where their room is known.
        """
        theirs = list(chain.from_iterable(other.tasks for other in others))
        books = {task.notebook for task in theirs}
        here = all(all_here(task.settings) for task in (*self.tasks, *theirs))
        return here and not any(task.notebook in books for task in self.tasks)


def work_of(plan: Plan) -> Work:
    """The notebooks of a plan."""
    return Work(plan, tuple(Task(book, own, plan.folder) for book, own in plan.given.items()))
