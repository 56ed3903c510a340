"""Data sets of any layout open together, in one schema, by what a parameter file says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from chart_rows import write_charts
from mrag_rows import four_questions
from page_rows import write_pages

from vrag_kit.benchmarks import load_collection

Entries = dict[str, dict[str, str]]
QUESTIONS = four_questions()


@pytest.fixture
def entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_annotations: Callable[..., Path]
) -> Entries:
    """Four small data sets, in four layouts, below a project's root."""
    for folder in ("notebooks", "params"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    write_pages(tmp_path / "data" / "docs")
    write_charts(tmp_path / "data" / "charts")
    row = {"Q": '"Why?"', "A": ['"So."'], "split": "val", "img_posFacts": [], "img_negFacts": []}
    row |= {"txt_posFacts": [{"fact": "So it is."}], "txt_negFacts": []}
    Path("data/webqa.json").write_text(json.dumps({"a1": row}), encoding="utf-8")
    write_annotations({}).rename("data/visual.jsonl")
    charts = {"rows": "data/charts/rows", "texts": "data/charts/text_corpus.jsonl"}
    visual = {"annotations": "data/visual.jsonl", "image_root": "images"}
    return {
        "Doc": {"layout": "pages", "rows": "data/docs", "domain": "Scans"},
        "Chart": {"layout": "charts", **charts},
        "Web": {"layout": "webqa", "annotations": "data/webqa.json", "questions": "text"},
        "Visual": {"layout": "visual-rag", **visual},
    }


def test_every_query_of_every_layout_tells_the_same_things(entries: Entries) -> None:
    suite = load_collection(entries)
    assert [benchmark.name for benchmark in suite.values()] == list(suite) == list(entries)
    for benchmark in suite.values():
        for query in benchmark.queries.values():
            assert isinstance(query.metadata["reference"], str)
            assert isinstance(query.metadata["gold_claims"], tuple)
            assert query.group
    told = {name: next(iter(each.queries.values())).metadata for name, each in suite.items()}
    assert [told[name]["domain"] for name in suite] == ["Scans", "", "", ""]
    assert [told[name]["required_modality"] for name in suite] == ["image", "both", "text", "image"]
    assert told["Visual"]["hops"] is None
    assert told["Chart"]["gold_claims"]


def test_open_answers_show_no_options(entries: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the paper asks MRAG-Bench; another fingerprint, as another thing is asked."""
    monkeypatch.setattr(
        "vrag_kit.benchmarks.datasets.collection.load_mrag_bench", lambda *_, **__: QUESTIONS
    )
    entry = {"layout": "mrag-bench", "rows": "data/docs"}
    found = load_collection({"closed": entry, "open": {**entry, "answers": "open"}})
    closed, asked = found["closed"], found["open"]
    assert any(query.choices for query in closed.queries.values())
    assert not any(query.choices for query in asked.queries.values())
    assert [each.answers for each in asked.queries.values()] == [
        each.answers for each in QUESTIONS.queries.values()
    ]
    assert asked.fingerprint != closed.fingerprint
