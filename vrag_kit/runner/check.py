"""The report of a dry run: expected calls and costs of a parameter file, and all that is missing
for its run. Nothing is run or fetched, and no model is called.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_kit.log import format_duration
from vrag_kit.runner.plan import Plan, read_plan, select_notebooks

if TYPE_CHECKING:
    from vrag_kit.runner.dry_run import DryRunReport, ModelCost


def print_check(file: Path, only: Sequence[str] = ()) -> bool:
    """Print the expected calls and missing inputs of a parameter file; returns whether something is
    missing. Raises `VragError` as `check_parameters`.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"  # read when the hub's library is imported, which is below
    found, missing = check_parameters(file, only)
    print(*found, *(f"missing: {line}" for line in missing), sep="\n")
    if not missing:
        print("nothing is missing")
    return bool(missing)


def check_parameters(parameter_file: Path, only: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Return (findings and expected calls, what is missing) as lines to print. They cover the
    notebooks of `only` (`select_notebooks`), or all. Raises `VragError` as `read_plan` does.
    """
    from vrag_kit.runner.dry_run import dry_run_notebooks

    (plan,) = select_notebooks([read_plan(parameter_file)], only)
    return describe(plan, dry_run_notebooks(plan))


def describe(plan: Plan, report: DryRunReport) -> tuple[list[str], list[str]]:
    """Return the lines of `check_parameters` for a dry run of a plan."""
    found = [f"{plan.file}: {report.stored:,} answers that it uses are stored already"]
    found += [f"{model.name}\n  {model.forecast}" for model in report.models]
    if any(model.forecast.cost for model in report.models):
        found.append(_total(report))
    elif not (report.models or report.failed or report.undrawn):
        found.append("no model is asked anything")
    found += _by_finding((words, name) for name, words in report.undrawn.items())
    if report.any_order:
        found.append(
            "an estimate: not searched yet, and so other documents in their place, is what"
            f" {', '.join(report.any_order)} will find"
        )
    found += _by_finding(report.notes)
    missing = list(report.missing)
    for model in report.models:
        missing += _too_much(model)
    missing += _by_finding((words, name) for name, words in report.failed.items())
    return found, missing


def _too_much(model: ModelCost) -> list[str]:
    """Whether prompts are too long for a model, or too expensive."""
    cost, lines = model.forecast.cost, []
    if model.forecast.misfits:
        lines.append(f"model {model.name!r}: {model.forecast.misfits:,} prompts will not fit")
    if model.max_cost is not None and cost and model.spent + cost > model.max_cost:
        lines.append(
            f"model {model.name!r}: it will cost about {cost:,.2f} US dollars, after"
            f" {model.spent:,.2f} so far; its max_cost is {model.max_cost:g}"
        )
    return lines


def _total(report: DryRunReport) -> str:
    """The cost and duration of all models together."""
    forecasts = [model.forecast for model in report.models]
    uncounted = any(each.uncounted for each in forecasts) or report.failed or report.undrawn
    cost = sum(each.cost or 0 for each in forecasts)
    duration = format_duration(3600 * sum(each.hours for each in forecasts))
    about = "at least" if uncounted else "about"
    return f"all models together: {about} {cost:,.2f} US dollars and, one by one, {duration}"


def _by_finding(findings: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each finding (words, notebook), with the names of its notebooks before it."""
    books: dict[str, list[str]] = defaultdict(list)
    for words, name in findings:
        books[words].append(name)
    return [f"{', '.join(names)}: {words}" for words, names in books.items()]
