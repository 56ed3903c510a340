"""`vrag claims`: both families of metrics of a file of RAGChecker's."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.analysis import (
    ClaimsFile,
    ClaimSheet,
    claim_means,
    ragchecker_groups,
    read_claims_file,
    sheet_rows,
    with_metrics,
    write_claims_file,
)
from vrag_kit.analysis.cells import interval_cells


def print_claims(file: Path, *, as_json: bool, to: Path | None) -> None:
    """Print the metrics of a file, as JSON or as a table of means with intervals, and
    notes about it to stderr; with `to`, write it with RAGChecker's metrics. Raises
    `VragError` as `read_claims_file` does.
    """
    found = read_claims_file(file)
    if as_json:
        print(json.dumps(as_object(found.sheets), indent=1))
    else:
        print(_table(found.sheets))
    for note in _notes(found):
        print(f"note: {note}", file=sys.stderr)
    if to is not None:
        document, left_out = with_metrics(found)
        write_claims_file(to, document)
        if left_out:
            print(
                f"note: {left_out} results have verdicts missing, which RAGChecker does not know:"
                f" left out of {to}",
                file=sys.stderr,
            )


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
        notes.append(f"{unread} verdicts are missing: what they leave unknown is left out")
    return notes
