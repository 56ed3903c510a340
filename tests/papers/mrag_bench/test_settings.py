"""MRAG-Bench's settings: which examples and passages a prompt shows, in which order, and rotated
options.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from mrag_rows import four_questions

from vrag_kit.benchmarks import load_mrag_texts
from vrag_kit.errors import VragError
from vrag_kit.generation import non_clue, one_in_k
from vrag_kit.judging.multiple_choice import correct_letters
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.retrieval import make_run
from vrag_kit.synthetic.mrag_bench import open_mrag_passages
from vrag_kit.types import Context

FOUR = four_questions()


def shown(contexts: list[Context]) -> dict[str, tuple[str, ...]]:
    return {context.query_id: context.doc_ids for context in contexts}


def deep_run() -> pd.DataFrame:
    """Six pictures that are no ground truth, the best one behind a ground-truth one."""
    rows = []
    for query_id in FOUR.queries:
        rows.append((query_id, f"gt{query_id}-0", 9.0))
        rows += [(query_id, f"no{query_id}-{place}", 6.0 - place) for place in range(6)]
    return make_run(rows)


def test_the_main_settings_show_five_examples_in_order_and_one_in_incomplete() -> None:
    assert set(shown(paper.settings.no_rag(FOUR)).values()) == {()}
    truth = shown(paper.settings.gt_rag(FOUR))
    assert truth["0"] == ("gt0-0", "gt0-1", "gt0-2", "gt0-3", "gt0-4")
    assert truth["1"] == ("gt1-0",)
    found = shown(paper.settings.retrieved_rag(FOUR))
    assert found["0"] == ("gt0-0", "no0-0", "no0-1", "no0-2", "no0-3")
    assert found["1"] == ("gt1-0",)
    assert {
        context.k for context in paper.settings.gt_rag(FOUR) + paper.settings.retrieved_rag(FOUR)
    } == {5}


def test_what_is_larger_than_was_retrieved_is_cut_for_all_questions_alike(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert paper.settings.retrieved_rag(FOUR, k=6) == paper.settings.retrieved_rag(FOUR, k=5)
    assert capsys.readouterr().out.startswith("k = 6 is cut to 5: ")
    run = deep_run().query("query_id != '2'")
    with pytest.raises(VragError, match="0 documents for query '2'"):
        paper.settings.retrieved_rag(FOUR, run)


def test_numbers_of_examples_are_nested_and_rest_on_the_same_questions() -> None:
    arms = paper.settings.gt_rag_by_count(FOUR, ks=[1, 2, 5], draws=3)
    assert {arm.query_id for arm in arms} == {"0", "2", "3"}  # 1 has a single picture
    by = {(arm.query_id, arm.draw, arm.k): arm.doc_ids for arm in arms}
    assert len(by) == len(arms) == 27
    for (query_id, draw, k), doc_ids in by.items():
        assert doc_ids == by[query_id, draw, 5][:k]
        assert set(doc_ids) <= set(FOUR.relevant(query_id))
    assert len({by["0", draw, 5] for draw in range(3)}) > 1


def test_too_few_documents_are_refused() -> None:
    with pytest.raises(VragError, match="6 ground"):
        paper.settings.gt_rag_by_count(FOUR, ks=[1, 6], draws=1)
    with pytest.raises(VragError, match=r"query '0': found 6 .* expected 9"):
        paper.results.candidates_from_run(FOUR, deep_run(), depth=9)
    with pytest.raises(VragError, match=r"query '0': found 2 .* expected 4"):
        paper.settings.gt_at_each_position(FOUR, deep_run().query("rank <= 3"))


def test_the_one_true_example_goes_through_all_places_among_the_same_others() -> None:
    places = paper.settings.gt_at_each_position(FOUR, deep_run())
    assert list(places) == [1, 2, 3, 4, 5]
    for place, contexts in places.items():
        doc_ids = shown(contexts)["0"]
        assert doc_ids[place - 1] == "gt0-0"
        others = [each for each in doc_ids if each != "gt0-0"]
        assert others == ["no0-0", "no0-1", "no0-2", "no0-3"]


def test_pictures_of_the_same_class_are_left_out_unless_rows_hold_them() -> None:
    pools = {"0": ("gt0-0", "no0-0", "no0-2")}
    apart = paper.results.without_unlabelled_positives(FOUR, pools)
    assert apart.left_out == {"0": {"no0-0", "no0-2"}}
    assert apart.fingerprint != FOUR.fingerprint


def test_among_what_was_retrieved_non_clues_are_the_best_ranked_pictures_without_a_label() -> None:
    world = paper.results.candidates_from_run(FOUR, deep_run(), depth=3)
    assert world.candidates("0") == (*FOUR.relevant("0"), "no0-0", "no0-1", "no0-2")
    drawn = {context.doc_ids[0] for context in non_clue(world, draws=9)}
    assert {each for each in drawn if each.startswith("no0")} == {"no0-0", "no0-1", "no0-2"}
    (context,) = [each for each in one_in_k(world, ks=[3], draws=1) if each.query_id == "0"]
    assert context.doc_ids[0] in FOUR.relevant("0")
    assert set(context.doc_ids[1:]) < {"no0-0", "no0-1", "no0-2"}


def test_a_rotation_moves_options_and_letter_and_nothing_else() -> None:
    turned = paper.settings.rotate_options(FOUR, 1).queries["3"]
    assert turned.choices == ("Martagon", "tiger lily", "Turkscap", "Toad")
    assert (correct_letters(turned), turned.metadata["letter"]) == ("B", "B")
    assert turned.answers == FOUR.queries["3"].answers
    assert paper.settings.rotate_options(FOUR, 1).fingerprint != FOUR.fingerprint


PASSAGES = (
    'passage,text\nhare,"Hares run, mostly."\nkeys,Keyboards have keys.\nlily,Lilies bloom.\n'
)
TRUTH = "question,passage\n0,hare\n0,lily\n1,keys\n2,hare\n3,lily\n99,lily\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "passages.csv").write_text(PASSAGES)
    (tmp_path / "ground_truth.csv").write_text(TRUTH)
    return tmp_path


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
