"""Every published number is the one that was read off the papers and checked against them.

`tests/data/transcribed_tables.csv.gz` holds the rows as they were transcribed, before all papers
had one schema; `tests/data/frozen_tables.csv` a hash of each table, written again by
`python tests/test_frozen_tables.py` after a number was corrected.
"""

from __future__ import annotations

import csv
import hashlib

import pandas as pd
from conftest import ROOT

from vrag_kit.papers import published

DATA = ROOT / "tests" / "data"
FROZEN = DATA / "frozen_tables.csv"
RENAMED = {  # a printed name → ours
    ("crag_mm", "full_image_query"): "whole image",
    ("crag_mm", "manual_crop_query"): "marked region",
    ("crag_mm", "full_pages"): "full pages",
    ("mrag_suite", "Chart-RAG"): "Chart-MRAG",
    ("mrag_suite", "ChartMRAG-Bench"): "Chart-MRAG",
    ("mrag_suite", "VisRAG-Arxiv"): "VisRAG-ArXiv",
    ("mrag_suite", "delta_ambiguous_minus_clear"): "difference",
    ("mrag_suite", "img"): "image",
    ("mrag_suite", "txt"): "text",
    ("mrag_suite", "single"): "all",
    ("visual_rag", "m_in_10"): "m_in_k",
    ("visual_rag", "ndcg"): "ndcg_visual_rag",
    ("visual_rag", "rouge1_recall"): "rouge",
}
OF_TABLE = {
    ("figure03_curves", "recall"): "hit_rate",
    ("figure03_caption", "recall"): "hit_rate",
    ("figure07", "recall"): "hit_rate",
    ("figure07", "normal"): "non-egocentric",
    ("table06", "recall"): "hit@5",
}
STATISTICS = {  # of MRAG-Bench's Table 2
    "total_questions": "questions",
    "total_scenarios": "scenarios",
    "unique_number_of_questions": "different questions",
    "unique_number_of_answers": "different answers",
    "total_number_of_images": "pictures",
    "unique_number_of_images": "different pictures",
    "average_image_width": "width of a picture, mean",
    "average_image_height": "height of a picture, mean",
    "maximum_question_length": "words of a question, most",
    "average_question_length": "words of a question, mean",
    "maximum_answer_length": "words of an answer, most",
    "average_answer_length": "words of an answer, mean",
    "average_choice_number": "options of a question, mean",
}
TEXT_SETTINGS = {"retrieved_rag": "retrieved_text", "gt_rag": "gt_text"}


def test_no_published_number_has_changed_since_it_was_checked() -> None:
    frozen = pd.read_csv(FROZEN, dtype=str)
    assert frozen.to_dict("records") == table_hashes().to_dict("records")


def test_every_transcribed_row_stands_in_the_common_schema_in_its_place() -> None:
    transcribed = pd.read_csv(DATA / "transcribed_tables.csv.gz")
    for (paper, table), old in transcribed.groupby(["paper", "table"], sort=False):
        with (ROOT / f"vrag_kit/papers/{paper}/tables/{table}.csv").open(newline="") as file:
            new = list(csv.reader(file))[1:]
        assert len(old) == len(new)
        for cells, row in zip(old["cells"], new, strict=True):
            assert as_ours(paper, table, cells.split("|")) <= set(row), (paper, table, cells)


def as_ours(paper: str, table: str, cells: list[str]) -> set[str]:
    """The cells of a transcribed row under our names."""
    names = [OF_TABLE.get((table, cell), RENAMED.get((paper, cell), cell)) for cell in cells]
    if table == "table04" and "image_text" in names:
        return {"gt_image_and_text" if name == "gt_rag" else name for name in names}
    if paper == "mrag_bench" and table == "table04" and "text" in names:
        return {TEXT_SETTINGS.get(name, name) for name in names}
    if (paper, table) == ("mrag_bench", "table02"):
        return {STATISTICS.get(name, name) for name in names}
    return set(names)


def table_hashes() -> pd.DataFrame:
    """One row a table: paper, table, sha256 of its rows as CSV."""
    rows = []
    for file in sorted((ROOT / "vrag_kit" / "papers").glob("*/tables/*.csv")):
        paper = file.parents[1].name
        table = published(paper, file.stem).to_csv(index=False, lineterminator="\n")
        rows.append((paper, file.stem, hashlib.sha256(table.encode()).hexdigest()))
    return pd.DataFrame(rows, columns=["paper", "table", "sha256"])


if __name__ == "__main__":
    table_hashes().to_csv(FROZEN, index=False)
