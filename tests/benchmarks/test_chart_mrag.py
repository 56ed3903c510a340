"""Chart-MRAG's keypoints are its labels and its gold claims; its pictures lie in rows and
are told apart by the charts that the keypoints name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chart_rows import BLUE, KEYPOINTS, RED, ROWS, chart_row, write_charts

from vrag_kit.benchmarks import load_chart_mrag
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark


def load(folder: Path, **options: Any) -> Benchmark:
    texts = folder / "text_corpus.jsonl"
    return load_chart_mrag(folder / "rows", texts, cache_dir=folder / "cache", **options)


def picture(benchmark: Benchmark, chart: str) -> bytes:
    image = benchmark.corpus[chart].image
    assert image is not None
    return image.data()


def test_keypoints_are_labels_and_gold_claims(tmp_path: Path) -> None:
    """What else is read, tests/goldens hold."""
    write_charts(tmp_path)
    benchmark = load(tmp_path)
    query = benchmark.queries["Inter_Document_Text-Chart_00003"]
    assert query.metadata["gold_claims"] == ("May had 12.", "June had 3.", "Birds came later.")
    assert (query.metadata["hops"], query.metadata["required_modality"]) == (2, "both")
    gold = ("chart_00001_02", "chart_00002_01", "paragraph_00002_01_01")
    assert benchmark.qrels[query.query_id] == dict.fromkeys(gold, 1)


def test_a_chart_has_the_picture_of_the_row_that_names_it_alone(tmp_path: Path) -> None:
    swapped = chart_row("Inter_Document_Text-Chart_00003", KEYPOINTS, BLUE, RED)
    write_charts(tmp_path, [swapped, *ROWS[1:]])
    benchmark = load(tmp_path)
    assert picture(benchmark, "chart_00001_02") == RED
    assert picture(benchmark, "chart_00002_01") == BLUE


def test_a_row_may_hold_one_image_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_charts(tmp_path, [ROWS[0], ROWS[2]], one_picture=True)
    assert list(load(tmp_path).queries) == ["Single-Point_Text-only_00001"]
    assert "left out 1 of 2 questions" in capsys.readouterr().out
    more = chart_row("Single-Point_Chart-only_00009", {"chart_00002_01": "June had 3."}, BLUE)
    write_charts(tmp_path, [*ROWS, more], one_picture=True)
    benchmark = load(tmp_path)
    assert len(benchmark.queries) == 4
    assert picture(benchmark, "chart_00002_01") == BLUE


def test_missing_evidence_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = chart_row("Single-Point_Text-only_00004", {})
    lost = chart_row("Single-Point_Text-only_00005", {"paragraph_00009_01_01": "?"})
    write_charts(tmp_path, [*ROWS, bare, lost])
    benchmark = load(tmp_path)
    assert len(benchmark.queries) == 4
    assert benchmark.qrels[bare["id"]] == {}
    said = capsys.readouterr().out
    assert "left out 1 of 5 questions" in said
    assert "00005): paragraph_00009_01_01" in said
    write_charts(tmp_path, [lost])
    with pytest.raises(VragError, match=r"evidence of all 1 questions is missing.*text_corpus"):
        load(tmp_path)


def test_what_the_bars_say_may_stand_beside(tmp_path: Path) -> None:
    write_charts(tmp_path)
    bars = tmp_path / "bars.jsonl"
    bars.write_text(json.dumps({"doc_id": "chart_00001_02", "text": "12 in May."}))
    benchmark = load(tmp_path, chart_texts=bars)
    assert benchmark.corpus["chart_00001_02"].text == "12 in May."
    assert benchmark.fingerprint != load(tmp_path).fingerprint
    bars.write_text(json.dumps({"doc_id": "chart_00009_01", "text": "12 in May."}))
    with pytest.raises(VragError, match=r"none of chart-mrag.* Give the sidecar of this data set"):
        load(tmp_path, chart_texts=bars)


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    rows, _ = write_charts(tmp_path)
    arrow = rows / "data-00000-of-00001.arrow"
    arrow.write_bytes(arrow.read_bytes()[:-600])
    with pytest.raises(VragError, match=r"arrow: cannot be read"):
        load(tmp_path)
    arrow.unlink()
    with pytest.raises(VragError, match=r"data-00000-of-00001\.arrow"):
        load(tmp_path)
