"""`vrag check` and `vrag forecast`: the report of a dry run, with all that is missing for a run.
Nothing is run or fetched, and no model is called.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_kit.checkpoints import check_device
from vrag_kit.config import hardware_of
from vrag_kit.errors import VragError
from vrag_kit.log import format_duration
from vrag_kit.runner.plan import Plan, read_plan, select_notebooks
from vrag_kit.workspace import enter_project

if TYPE_CHECKING:
    from vrag_kit.runner.dry_run import DryRunReport, ModelCost

_NAMED = 3
"""Maximum number of notebooks named in a finding."""


Only = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "only notebooks whose name contains this, such as visual_rag/02; repeatable, or a list"
            " such as 02,04"
        )
    ),
]
"""The option `--only`: which notebooks of a parameter file to use."""


def check(
    target: Annotated[
        Path,
        typer.Argument(
            help=(
                "a parameter file (.yaml), an annotation file (JSON Lines), or a benchmark's folder"
                " (Visual-RAG, MRAG-Bench, CRAG-MM or a data set of MRAG-Suite)"
            )
        ),
    ],
    image_root: Annotated[
        Path | None,
        typer.Argument(help="the folder of the species folders, for an annotation file"),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="a CSV file for all findings"),
    ] = None,
    only: Only = None,
) -> None:
    """Check a parameter file: count its model calls and list missing inputs; no model is called.
    Or check a benchmark: list invalid rows, and missing, damaged or unusual images.
    """
    if target.suffix in (".yaml", ".yml"):
        if image_root or csv:
            raise VragError(
                f"{target} is a parameter file, which is checked alone: an image folder and"
                " --csv go with annotations."
            )
        (file,) = enter_project([target])
        missing, _ = _print_check(file, only or ())
        raise typer.Exit(int(bool(missing)))
    if only:
        raise VragError(f"{target} is no parameter file: --only goes with one.")
    from vrag_kit.fetching.validate import check_data

    raise typer.Exit(int(check_data(target, image_root, csv=csv)))


def forecast(
    parameters: Annotated[
        list[Path],
        typer.Argument(help="YAML files of parameters, such as params/visual_rag/paper.yaml"),
    ],
) -> None:
    """Count the model calls of parameter files: calls, images, tokens, cost and hours, and what is
    stored already. No model is called. Exits with 1 if a notebook could not be counted, for
    instance without its data.
    """
    uncounted = [_print_check(file)[1] for file in enter_project(parameters)]
    raise typer.Exit(int(any(uncounted)))


def _print_check(file: Path, only: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """Print the expected calls and missing inputs of a parameter file, or of some of its notebooks.
    Returns (what is missing, the notebooks that were not counted to their end with the reasons).
    """
    # read when the hub's library is imported, which is below: a check fetches nothing
    os.environ["HF_HUB_OFFLINE"] = "1"
    from vrag_kit.runner.dry_run import dry_run_notebooks

    (plan,) = select_notebooks([read_plan(file)], only)
    report = dry_run_notebooks(plan)
    found, missing = describe(plan, report)
    print("\n".join([*found, *(f"missing: {line}" for line in missing)]))
    if not missing:
        print("nothing is missing")
    return missing, report.failed


def check_parameters(parameter_file: Path, only: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Return (findings and expected calls, what is missing) as lines to print. They cover the
    notebooks of `only` (`select_notebooks`), or all. Raises `VragError` as `read_plan` does.
    """
    from vrag_kit.runner.dry_run import dry_run_notebooks

    (plan,) = select_notebooks([read_plan(parameter_file)], only)
    return describe(plan, dry_run_notebooks(plan))


def describe(plan: Plan, report: DryRunReport) -> tuple[list[str], list[str]]:
    """Return the lines of `check_parameters` for a dry run of a plan."""
    found = [f"{plan.file}: every name is declared by a notebook, every value has the right type"]
    missing = [*_missing_devices(plan), *report.missing]
    counted = report.models or report.stored or not report.undrawn
    if counted:
        found.append(f"{report.stored:,} answers that the notebooks use are stored already")
    found += [f"{model.name}\n  {model.forecast}" for model in report.models]
    if counted and not report.models and not report.failed:
        found.append("no model is asked anything")
    found += _by_finding((words, name) for name, words in report.undrawn.items())
    if report.failed or any(model.forecast.cost for model in report.models):
        found.append(_total(report))
    if report.any_order:
        found.append(
            "an estimate: not searched yet, and so other documents in their place, is what"
            f" {', '.join(report.any_order)} will find"
        )
    found += _by_finding(report.notes)
    for model in report.models:
        missing += _too_much(model)
    missing += _by_finding((words, name) for name, words in report.failed.items())
    return found, missing


def _missing_devices(plan: Plan) -> list[str]:
    missing: dict[str, None] = {}
    for _, settings in plan.settings():
        try:
            check_device(hardware_of(settings.get("hardware")).device)
        except VragError as error:
            missing[str(error)] = None
    return list(missing)


def _too_much(model: ModelCost) -> list[str]:
    """Whether prompts are too long for a model, or too expensive."""
    cost, lines = model.forecast.cost, []
    if model.forecast.misfits:
        misfits = f"{model.forecast.misfits:,} prompts will not fit; see its forecast"
        lines.append(f"model {model.name!r}: {misfits}")
    if model.max_cost is not None and cost and model.spent + cost > model.max_cost:
        so_far = f", after {model.spent:,.2f} so far" if model.spent else ""
        lines.append(
            f"model {model.name!r}: it will cost about {cost:,.2f} US dollars{so_far}, and its"
            f" max_cost is {model.max_cost:g}"
        )
    return lines


def _total(report: DryRunReport) -> str:
    """The cost and duration of all models together, and what they leave out."""
    forecasts = {model.name: model.forecast for model in report.models}
    short = [f"{each.uncounted} of {name}" for name, each in forecasts.items() if each.uncounted]
    cost = sum(model.forecast.cost or 0 for model in report.models)
    hours = sum(model.forecast.hours for model in report.models)
    so_far = "so far " if report.failed or report.undrawn else ""
    about = "at least" if short else "about"
    line = f"all models together: {so_far}{about} {cost:,.2f} US dollars"
    line += f" and, one after another, {format_duration(3600 * hours)}" if hours else ""
    line += f"; not counted: {', '.join(short)}" if short else ""
    for names, reason in (
        (report.failed, "that cannot be counted yet"),
        (report.undrawn, "whose data the run draws"),
    ):
        numbers = ", ".join(Path(name).name.partition("_")[0] for name in names)
        notebooks = "1 notebook" if len(names) == 1 else f"{len(names)} notebooks"
        line += f", without {notebooks} {reason}: {numbers}" if names else ""
    return line


def _by_finding(findings: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each finding (words, notebook) with its notebooks: their names before it,
    or, of many, their number behind it.
    """
    books: dict[str, list[str]] = defaultdict(list)
    for words, name in findings:
        books[words].append(name)
    lines = []
    for words, names in books.items():
        first = [Path(name).name.partition("_")[0] for name in names[:_NAMED]]
        many = f"{words} ({len(names)} notebooks: {', '.join(first)}, …)"
        lines.append(many if len(names) > _NAMED else f"{', '.join(names)}: {words}")
    return lines
