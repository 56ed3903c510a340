"""`vrag claims`: RAGChecker's JSON goes in and comes out unchanged but for what is added,
and what is wrong in it is named by query and matrix.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from claim_sheets import plain, sheets
from hypothesis import given
from pages import README
from test_claim_metrics import W1, W2, W3, W4, W5
from typer.testing import CliRunner

from vrag_kit.claims import (
    ClaimVerdicts,
    evidence_metrics,
    ragchecker_metrics,
    read_ragchecker_json,
)
from vrag_kit.runner.cli import app

WORDS = {1.0: "Entailment", 0.0: "Neutral", -1.0: "Contradiction"}


def result(of: ClaimVerdicts, query_id: str) -> dict[str, Any]:
    """A sheet as RAGChecker writes it, and what a file may hold beside."""

    def labels(rows: Any) -> list[Any]:
        return [labels(x) if isinstance(x, list) else WORDS.get(x) for x in rows]

    return {
        "query_id": query_id,
        "query": "What?",
        "gt_answer": "So.",
        "response": "So — und so.",
        "retrieved_context": [
            {"doc_id": item.doc_id, "text": "words"}
            | ({"modality": "image"} if item.modality == "image" else {})
            for item in of.items
        ],
        "response_claims": [["claim", "is", str(n)] for n, _ in enumerate(of.claims)],
        "gt_answer_claims": [["gold", "is", str(n)] for n, _ in enumerate(of.gold_claims)],
        "answer2response": labels(of.accepted.tolist()),
        "response2answer": labels(of.recalled.tolist()),
        "retrieved2response": labels(of.on_claims.tolist()),
        "retrieved2answer": labels(of.on_gold.tolist()),
        "metrics": {},
        "my own": {"kept": True},
    }


CASES = {"w1": W1, "w2": W2, "w3": W3, "w4": W4, "w5": W5}


@pytest.fixture
def document() -> dict[str, Any]:
    results = [result(of, query_id) for query_id, of in CASES.items()]
    return {"results": results, "overall_metrics": {}, "told by": "me"}


def write(document: object, folder: Path) -> Path:
    file = folder / "checked.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def vrag(*words: object) -> Any:
    return CliRunner().invoke(app, ["claims", *map(str, words)], catch_exceptions=False)


def test_json_has_every_answer_and_both_families(document: dict[str, Any], tmp_path: Path) -> None:
    told = json.loads(vrag(write(document, tmp_path), "--json").stdout)
    assert list(told) == ["answers", "ragchecker", "rows"]
    assert told["answers"] == 5
    rows = {
        (row["query_id"], row["family"], row["metric"], row["modality"]): row["value"]
        for row in told["rows"]
    }
    assert len(rows) == len(told["rows"]) == 5 * (11 + 16)
    for query_id, of in CASES.items():
        for metric, value in ragchecker_metrics(of, empty="zero").items():
            assert rows[query_id, "ragchecker", metric, "all"] == _or_none(value)
        for (metric, modality), found in evidence_metrics(of).items():
            assert rows[query_id, "mm_ragchecker", metric, modality] == _or_none(found.value)
    groups = told["ragchecker"]
    assert groups["overall_metrics"]["precision"] == 33.3  # (2/3 + 0 + 1/2 + 0 + 1/2) / 5
    assert groups["generator_metrics"]["faithfulness"] == 25.0  # of four: w5's is unknown
    assert [len(group) for group in groups.values()] == [3, 2, 6]


def _or_none(value: float) -> float | None:
    return value if value == value else None


def test_a_file_comes_out_unchanged_but_for_what_is_added(
    document: dict[str, Any], tmp_path: Path
) -> None:
    del document["results"][4]  # w5, whose verdicts are not all there
    out = tmp_path / "out.json"
    assert vrag(write(document, tmp_path), "--to", out).exit_code == 0
    written = json.loads(out.read_text(encoding="utf-8"))
    for each in written["results"]:
        assert each["metrics"].keys() == ragchecker_metrics(W1).keys()
        each["metrics"] = {}
    for group in ("overall_metrics", "retriever_metrics", "generator_metrics"):
        assert all(0 <= value <= 100 for value in written.pop(group).values())
    del document["overall_metrics"]
    assert written == document
    again = json.loads(vrag(out, "--json").stdout)
    assert again == json.loads(vrag(write(document, tmp_path), "--json").stdout)


def test_results_with_missing_verdicts_are_left_out_of_writing_and_counted(
    document: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    told = vrag(write(document, tmp_path), "--to", out)
    assert "note: 1 results have verdicts missing" in told.stderr
    written = json.loads(out.read_text(encoding="utf-8"))
    assert [each["query_id"] for each in written["results"]] == ["w1", "w2", "w3", "w4"]


def test_nothing_retrieved_needs_no_matrices(tmp_path: Path) -> None:
    without = result(W3, "q") | {"retrieved_context": None}
    without |= {"retrieved2response": None, "retrieved2answer": None}
    (found,) = read_ragchecker_json(write({"results": [without]}, tmp_path)).sheets
    assert ragchecker_metrics(found, empty="zero") == ragchecker_metrics(W3, empty="zero")


@pytest.mark.slow
@given(of=sheets())
def test_every_sheet_is_read_as_it_was_written(
    of: ClaimVerdicts, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = write({"results": [result(of, "q")]}, tmp_path_factory.getbasetemp())
    (found,) = read_ragchecker_json(file).sheets
    named = dataclasses.replace(found, claims=of.claims, gold_claims=of.gold_claims)
    assert plain(named)[1:] == plain(of)[1:]


def test_the_readmes_checked_result_can_be_measured(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
    told = vrag(write(json.loads(shown), tmp_path), "--json")
    assert told.exit_code == 0, told.output
    # one of two claims is right, and the right answer's only one is told
    assert '"precision": 50.0' in told.stdout
    assert '"recall": 100.0' in told.stdout
