"""Questions of MRAG-Bench over passages of text that somebody wrote, and the settings
that show them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from mrag_rows import four_questions

from vrag_kit.benchmarks import load_mrag_texts
from vrag_kit.errors import VragError
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers import published_gains
from vrag_kit.retrieval import make_run
from vrag_kit.synthetic.mrag_bench import open_mrag_passages

FOUR = four_questions()
PASSAGES = (
    'passage,text\nhare,"Hares run, mostly."\nkeys,Keyboards have keys.\nlily,Lilies bloom.\n'
)
TRUTH = "question,passage\n0,hare\n0,lily\n1,keys\n2,hare\n3,lily\n99,lily\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "passages.csv").write_text(PASSAGES)
    (tmp_path / "ground_truth.csv").write_text(TRUTH)
    return tmp_path


def test_passages_take_the_pictures_place_and_answer_what_the_file_says(folder: Path) -> None:
    texts = load_mrag_texts(FOUR, folder)
    assert texts.corpus["hare"].text == "Hares run, mostly."
    assert [texts.relevant(query_id) for query_id in texts.queries] == [
        ("hare", "lily"),
        ("keys",),
        ("hare",),
        ("lily",),
    ]
    assert texts.queries == FOUR.queries
    assert texts.fingerprint != FOUR.fingerprint
    (folder / "passages.csv").write_text(PASSAGES.replace("mostly", "always"))
    assert load_mrag_texts(FOUR, folder).fingerprint != texts.fingerprint


def test_without_texts_one_is_told_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(VragError, match=r"passages.csv \(passage,text\) and ground_truth.csv"):
        open_mrag_passages(FOUR, "")
    with pytest.raises(
        VragError, match="'field-guide-mrag-bench-small', but the questions are 'four'"
    ):
        open_mrag_passages(FOUR, "field-guide-mrag-bench-small")
    with pytest.raises(VragError, match="passages cannot be read"):
        load_mrag_texts(FOUR, tmp_path)


def test_the_settings_show_the_first_passage_that_answers_and_the_best_found(
    folder: Path,
) -> None:
    texts = load_mrag_texts(FOUR, folder)
    assert [each.doc_ids for each in paper.settings.gt_text(texts)] == [
        ("hare",),
        ("keys",),
        ("hare",),
        ("lily",),
    ]
    order = ("lily", "keys", "hare")
    run = make_run(
        [(q, name, 3.0 - place) for q in FOUR.queries for place, name in enumerate(order)]
    )
    found = {each.query_id: each.doc_ids for each in paper.settings.retrieved_text(texts, run, k=2)}
    assert found == {q: ("lily", "keys")[: 1 if q == "1" else 2] for q in FOUR.queries}
    both = paper.settings.gt_image_and_text(FOUR, texts)
    assert both[0].doc_ids == (*FOUR.relevant("0"), "hare")
    assert {each.setting for each in both} == {"gt_image_and_text"}


def test_a_question_without_text_stops_the_settings_that_show_it(folder: Path) -> None:
    (folder / "ground_truth.csv").write_text(TRUTH.replace("3,lily\n", ""))
    texts = load_mrag_texts(FOUR, folder)
    with pytest.raises(VragError, match=r"1 of 4 queries have no passage .*'3'"):
        paper.settings.gt_text(texts)
    assert len(paper.settings.gt_text(texts.subset(["0", "1", "2"]))) == 3


def test_the_printed_table_gains_by_pictures_and_by_text_as_the_paper_says_in_words() -> None:
    table = published_gains("mrag_bench", 4, ["no_rag"])
    assert len(table) == 2 * 5 * 10  # models, settings, nine scenarios and overall
    overall = table[table["level"] == "overall"].set_index(["model", "setting"])["value"]
    gpt, llava = "GPT-4-Turbo", "LLaVA-NeXT-Interleave-7B"
    assert overall[llava, "gt_rag"] == 9.53
    assert overall[gpt, "retrieved_text"] == -0.6
    # "an 11.90% improvement with image knowledge over text knowledge" (section 4.1)
    assert overall[llava, "gt_rag"] - overall[llava, "gt_text"] == pytest.approx(11.90)
    assert set(table["setting"]) == set(paper.settings.TEXT_OR_IMAGE)
