"""`vrag claims`: both families of metrics of a file of RAGChecker's."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from vrag_kit.analysis import (
    ClaimsFile,
    ClaimSheet,
    check_claims_file,
    claim_means,
    ragchecker_groups,
    read_claims_file,
    sheet_rows,
    unchecked,
    with_metrics,
    write_claims_file,
)
from vrag_kit.analysis.cells import interval_cells
from vrag_kit.analysis.claims_means import BOUNDS
from vrag_kit.forecast import forecasting
from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.store_copies import copy_store
from vrag_kit.judging import ClaimChecker, ClaimExtractor, load_checker, load_extractor
from vrag_kit.runner.foresight import would_ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Who takes answers apart and checks their claims, where a file lacks that."""

    extractor: str
    """A model, as parameters name it; "" for nobody."""
    checker: str = ""
    """Likewise; "" for the extractor's model."""
    answers_dir: Path
    """Where their words are kept, so that nothing is asked twice."""
    device: str = "cpu"

    def open(self, answers_dir: Path) -> tuple[ClaimExtractor, ClaimChecker]:
        """Both, with the folder in which words are kept."""
        run_with = {"device": self.device}
        extractor = load_extractor(self.extractor, answers_dir, run_with=run_with)
        named = self.checker or self.extractor
        return extractor, load_checker(named, answers_dir, run_with=run_with)


def print_claims(file: Path, readers: Readers, *, as_json: bool, to: Path | None) -> None:
    """Print the metrics of a file, as JSON or as a table of means with intervals, and
    notes about it to stderr; with `to`, write it with RAGChecker's metrics. What a file
    lacks the `readers` get first. Raises `VragError` as `check_claims_file` and
    `read_claims_file` do.
    """
    found = _whole(file, readers)
    if as_json:
        print(json.dumps(as_object(found.sheets), indent=1))
    else:
        print(_table(found.sheets))
    notes = _notes(found)
    if to is not None:
        document, left_out = with_metrics(found)
        write_claims_file(to, document)
        if left_out:
            notes.append(
                f"{left_out} results have verdicts missing, which RAGChecker does not know: left"
                f" out of {to}"
            )
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def print_forecast(file: Path, readers: Readers) -> None:
    """Print what the readers would be asked; nobody is asked, and nothing is kept. How
    many claims an answer makes is a guess by its words.
    """
    with TemporaryDirectory() as scratch, forecasting(Path(scratch)) as forecast:
        copy = Path(scratch) / "answers.sqlite"
        if (readers.answers_dir / copy.name).is_file():
            copy_store(readers.answers_dir / copy.name, copy)
        with redirect_stdout(io.StringIO()):
            if unchecked(file):
                check_claims_file(file, *readers.open(Path(scratch)))
        with AnswerStore(copy) as store:
            models = would_ask(forecast, [store])
    for asked in models:
        print(f"{asked.name}\n  {asked.forecast}")
    if not models:
        print("no model is asked anything")


def _whole(file: Path, readers: Readers) -> ClaimsFile:
    """The file with all claims and labels; progress goes to stderr."""
    if not unchecked(file) or not readers.extractor:
        return read_claims_file(file)
    with redirect_stdout(sys.stderr):
        made = check_claims_file(file, *readers.open(readers.answers_dir))
        print(f"claims of {made.asked:,} results extracted and checked")
    if made.lost:
        print(
            f"note: the claims of {len(made.lost)} results could not be had: left out, such as"
            f" {made.lost[0]}",
            file=sys.stderr,
        )
    return made.file


def as_object(sheets: Sequence[ClaimSheet]) -> dict[str, object]:
    """{"answers": n, "ragchecker": three groups in percent, "rows": one for each answer
    and metric: query_id, family, metric, modality, value, which is None without one}.
    """
    rows: list[dict[str, object]] = []
    for sheet in sheets:
        for family, metric, modality, value, _ in sheet_rows(sheet, empty="zero"):
            names = {"query_id": sheet.query_id, "family": family, "metric": metric}
            known = None if math.isnan(value) else value
            rows.append({**names, "modality": modality, "value": known})
    return {"answers": len(sheets), "ragchecker": ragchecker_groups(sheets), "rows": rows}


def _table(sheets: Sequence[ClaimSheet]) -> str:
    """Means with intervals over queries."""
    if not sheets:
        return "no results"
    queries = [sheet.query_id for sheet in sheets]
    checked = pd.DataFrame({"query_id": queries, "group": queries, "sheet": list(sheets)})
    means = claim_means(checked, by=[], empty="zero")
    means["mean [95 %]"] = interval_cells(means, decimals=3)
    shown = ["family", "metric", "modality", "mean [95 %]", "n", "n_unknown"]
    if any(sheet.unread for sheet in sheets):
        means = means.round(dict.fromkeys(BOUNDS, 3))
        shown += BOUNDS
    head = f"{len(sheets):,} answers with {means['n_claims'].iloc[0]:.1f} claims each in the mean"
    return f"{head}\n{means[shown].to_string(index=False)}"


def _notes(found: ClaimsFile) -> list[str]:
    """What is odd about a file without being wrong."""
    bare = [sheet.query_id for sheet in found.sheets if not sheet.items]
    odd: list[tuple[str, str]] = []
    for sheet in found.sheets:
        ids = [item.doc_id for item in sheet.items if len(item.doc_id.split()) != 1]
        odd += [(sheet.query_id, doc_id) for doc_id in ids]
    unread = sum(sheet.unread for sheet in found.sheets)
    notes = []
    if bare:
        notes.append(f"{len(bare)} answers were shown no evidence, such as to query {bare[0]!r}")
    if odd:
        query_id, doc_id = odd[0]
        notes.append(
            f"{len(odd)} items have a doc_id with white space or none, such as {doc_id!r} of query"
            f" {query_id!r}: TREC files cannot hold it"
        )
    if unread:
        notes.append(f"{unread} verdicts are missing: claims and items that need them are left out")
    return notes
