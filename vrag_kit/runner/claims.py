"""`vrag claims`: RAGChecker's and MM-RAGChecker's metrics of a RAGChecker file."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from vrag_kit.analysis.report_tables import ci_cells
from vrag_kit.claims.checkers import load_checker, load_extractor
from vrag_kit.claims.means import BOUNDS, claim_means, metric_rows
from vrag_kit.claims.ragchecker_json import (
    add_ragchecker_metrics,
    complete_ragchecker_json,
    count_unchecked,
    ragchecker_means,
    read_ragchecker_json,
)
from vrag_kit.claims.verdicts import ClaimChecker, ClaimExtractor, ClaimVerdicts
from vrag_kit.dry_run import dry_run
from vrag_kit.files import write_file
from vrag_kit.generation.store import AnswerStore, copy_store
from vrag_kit.runner.dry_run import model_costs
from vrag_kit.workspace import Workspace

LoadModels = Callable[[Path], tuple[ClaimExtractor, ClaimChecker]]
"""Loads the models that extract and check claims; their answers are stored in a folder."""


def load_models(
    answers_dir: Path, *, extractor: str, checker: str, device: str
) -> tuple[ClaimExtractor, ClaimChecker]:
    """Load the models that extract and check claims, as parameters name them; "" as `checker` means
    the extractor's model. Their answers are stored in `answers_dir`.
    """
    at = Workspace(answers_dir=answers_dir, device=device)
    return load_extractor(extractor, at), load_checker(checker or extractor, at)


def print_claims(
    file: Path, load: LoadModels | None, answers_dir: Path, *, as_json: bool, to: Path | None
) -> None:
    """Print the metrics of a file, as JSON or as a table of means with intervals; notes go to
    stderr. With `to`, also write the file with RAGChecker's metrics. The models of `load` first add
    missing claims and labels. Raises `VragError` as `complete_ragchecker_json` and
    `read_ragchecker_json` do.
    """
    if load is None or not count_unchecked(file):
        found = read_ragchecker_json(file)
    else:
        with redirect_stdout(sys.stderr):
            found = complete_ragchecker_json(file, *load(answers_dir))
    if found.failures:
        example = found.failures[0]
        _note(f"the claims of {len(found.failures)} results are left out, such as {example}")
    print(json.dumps(claims_json(found.sheets), indent=1) if as_json else _table(found.sheets))
    if unread := sum(sheet.n_missing for sheet in found.sheets):
        _note(f"{unread} verdicts are missing: claims and items that need them are left out")
    if to is not None:
        document, left_out = add_ragchecker_metrics(found)
        write_file(to, json.dumps(document, ensure_ascii=False, indent=2) + "\n")
        if left_out:
            _note(f"{left_out} results have verdicts missing: left out of {to}")


def count_calls(file: Path, load: LoadModels | None, answers_dir: Path) -> None:
    """Print the calls that the models of `load` would receive; none is called, and nothing is
    stored. The number of claims of an answer is estimated from its words.
    """
    with TemporaryDirectory() as scratch, dry_run(Path(scratch)) as recorded:
        copy = Path(scratch) / "answers.sqlite"
        if (answers_dir / copy.name).is_file():
            copy_store(answers_dir / copy.name, copy)
        if load is not None and count_unchecked(file):
            with redirect_stdout(io.StringIO()):
                complete_ragchecker_json(file, *load(Path(scratch)))
        with AnswerStore(copy) as store:
            models = model_costs(recorded, [store])
    print(*(f"{model.name}\n  {model.forecast}" for model in models), sep="\n")
    if not models:
        print("no model is asked anything")


def claims_json(sheets: Sequence[ClaimVerdicts]) -> dict[str, object]:
    """Return {"answers": n, "ragchecker": three groups in percent, "rows": one per answer and
    metric}. A row has query_id, family, metric, modality and value, which is None if there is none.
    """
    rows: list[dict[str, object]] = []
    for sheet in sheets:
        for family, metric, modality, value, _ in metric_rows(sheet, empty="zero"):
            names = {"query_id": sheet.query_id, "family": family, "metric": metric}
            known = None if math.isnan(value) else value
            rows.append({**names, "modality": modality, "value": known})
    return {"answers": len(sheets), "ragchecker": ragchecker_means(sheets), "rows": rows}


def _table(sheets: Sequence[ClaimVerdicts]) -> str:
    """Means with intervals over queries."""
    if not sheets:
        return "no results"
    queries = [sheet.query_id for sheet in sheets]
    checked = pd.DataFrame({"query_id": queries, "group": queries, "sheet": list(sheets)})
    means = claim_means(checked.assign(file=""), by=["file"], empty="zero").round(
        dict.fromkeys(BOUNDS, 3)
    )
    means["mean [95 %]"] = ci_cells(means, decimals=3)
    columns = ["family", "metric", "modality", "mean [95 %]", "n", "n_unparsed", *BOUNDS]
    head = f"{len(sheets):,} answers with {means['n_claims'].iloc[0]:.1f} claims each in the mean"
    return f"{head}\n{means[columns].to_string(index=False)}"


def _note(words: str) -> None:
    print(f"note: {words}", file=sys.stderr)
