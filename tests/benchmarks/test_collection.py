"""Data sets of any layout open together, in one schema, by what a parameter file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chart_rows import write_charts
from mrag_rows import four_questions
from page_rows import png, write_pages

from vrag_kit.benchmarks import load_collection
from vrag_kit.errors import VragError

Entries = dict[str, dict[str, str]]
QUESTIONS = four_questions()


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entries:
    """Four small data sets, in four layouts, below a project's root."""
    for folder in ("notebooks", "params"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    write_pages(tmp_path / "data" / "docs")
    write_charts(tmp_path / "data" / "charts")
    row = {
        "Q": '"Why?"',
        "A": ['"Because."'],
        "split": "val",
        "topic": "t",
        "img_posFacts": [],
        "img_negFacts": [],
        "txt_posFacts": [{"fact": "Because.", "snippet_id": "s1"}],
        "txt_negFacts": [],
    }
    Path("data/webqa.json").write_text(json.dumps({"a1": row}), encoding="utf-8")
    species = Path("data/images/1_Bombus_pratorum")
    species.mkdir(parents=True)
    (species / "a.png").write_bytes(png((9, 9, 9)))
    asked = {"question": "?", "answer": ["red"], "sn": "Bombus pratorum"}
    asked["images"] = {"1_Bombus_pratorum/a.png": 1}
    Path("data/visual.jsonl").write_text(json.dumps(asked), encoding="utf-8")
    return {
        "Doc": {"layout": "pages", "rows": "data/docs", "domain": "Scans"},
        "Chart": {
            "layout": "charts",
            "rows": "data/charts/rows",
            "texts": "data/charts/text_corpus.jsonl",
        },
        "Web": {"layout": "webqa", "annotations": "data/webqa.json", "questions": "text"},
        "Visual": {
            "layout": "visual-rag",
            "annotations": "data/visual.jsonl",
            "image_root": "data/images",
        },
    }


def test_every_query_of_every_layout_tells_the_same_things(entries: Entries) -> None:
    suite = load_collection(entries)
    assert {name: benchmark.name for name, benchmark in suite.items()} == {
        name: name for name in entries
    }
    kinds = {"domain": str, "required_modality": str, "reference": str, "gold_claims": tuple}
    for benchmark in suite.values():
        for query in benchmark.queries.values():
            for key, kind in kinds.items():
                assert isinstance(query.metadata[key], kind), (benchmark.name, key)
            assert query.metadata["hops"] is None or query.metadata["hops"] >= 1
            assert query.metadata["required_modality"] in ("image", "text", "both")
            assert query.group
    told = {name: next(iter(each.queries.values())).metadata for name, each in suite.items()}
    assert [told[name]["domain"] for name in suite] == ["Scans", "", "", ""]
    assert [told[name]["required_modality"] for name in suite] == ["image", "both", "text", "image"]
    assert told["Visual"]["hops"] is None
    assert told["Chart"]["gold_claims"]


def test_open_answers_show_no_options_and_the_right_ones_text_stays(
    entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_mistake_in_an_entry_is_answered_with_what_to_write() -> None:
    """The other cases are in bad_inputs.csv."""
    cases: list[tuple[Any, list[str]]] = [
        ({"rows": "x"}, ["layout ''", "webqa, charts, pages"]),
        ({"layout": "pages", "rows": "data/a/b"}, ["data/a/b"]),
        ({"layout": "mrag-bench", "rows": "x", "answers": "free"}, ["'free'", "options"]),
    ]
    for entry, words in cases:
        with pytest.raises(VragError) as caught:
            load_collection({"Mine": entry})
        assert all(word in str(caught.value) for word in words), str(caught.value)
