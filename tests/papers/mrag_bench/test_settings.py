"""MRAG-Bench's settings: which examples and passages a prompt shows, in which order, and rotated
options.
"""

from __future__ import annotations

import pytest
from mrag_rows import four_questions

from vrag_kit.benchmarks import load_mrag_texts
from vrag_kit.errors import VragError
from vrag_kit.generation import non_clue, one_in_k
from vrag_kit.judging.multiple_choice import correct_letters
from vrag_kit.papers.mrag_bench import results, settings
from vrag_kit.synthetic.mrag_bench import open_mrag_passages
from vrag_kit.types import Context

FOUR = four_questions()
OTHERS = {name: tuple(f"no{name}-{place}" for place in range(6)) for name in FOUR.queries}
DEEP = settings.ranked_run({name: (f"gt{name}-0", *ids) for name, ids in OTHERS.items()})
"""Six images that are no ground truth, the best one behind a ground-truth one."""


def shown(contexts: list[Context]) -> dict[str, tuple[str, ...]]:
    return {context.query_id: context.doc_ids for context in contexts}


def test_the_main_settings_show_five_examples_in_order_and_one_in_incomplete():
    assert set(shown(settings.no_rag(FOUR)).values()) == {()}
    gold, found = settings.gt_rag(FOUR), settings.retrieved_rag(FOUR)
    assert shown(gold)["0"] == ("gt0-0", "gt0-1", "gt0-2", "gt0-3", "gt0-4")
    assert shown(found)["0"] == ("gt0-0", "no0-0", "no0-1", "no0-2", "no0-3")
    assert shown(gold)["1"] == shown(found)["1"] == ("gt1-0",)
    assert {context.k for context in gold + found} == {5}


def test_what_is_larger_than_was_retrieved_is_cut_for_all_questions_alike(capsys):
    assert settings.retrieved_rag(FOUR, k=6) == settings.retrieved_rag(FOUR, k=5)
    assert capsys.readouterr().out.startswith("k = 6 is cut to 5: ")
    with pytest.raises(VragError, match="0 documents for query '2'"):
        settings.retrieved_rag(FOUR, DEEP.query("query_id != '2'"))


def test_numbers_of_examples_are_nested_and_rest_on_the_same_questions():
    arms = settings.gt_rag_by_count(FOUR, ks=[1, 2, 5], draws=3)
    by = {(arm.query_id, arm.draw, arm.k): arm.doc_ids for arm in arms}
    assert {name for name, *_ in by} == {"0", "2", "3"}  # 1 has a single image
    assert len(by) == len(arms) == 27
    for (query_id, draw, k), doc_ids in by.items():
        assert doc_ids == by[query_id, draw, 5][:k]
        assert set(doc_ids) <= set(FOUR.relevant(query_id))
    assert len({by["0", draw, 5] for draw in range(3)}) > 1


def test_too_few_documents_are_refused():
    with pytest.raises(VragError, match="6 ground"):
        settings.gt_rag_by_count(FOUR, ks=[1, 6], draws=1)
    with pytest.raises(VragError, match=r"query '0': found 6 .* expected 9"):
        results.candidates_from_run(FOUR, DEEP, depth=9)
    with pytest.raises(VragError, match=r"query '0': found 2 .* expected 4"):
        settings.gt_at_each_position(FOUR, DEEP.query("rank <= 3"))


def test_the_one_gold_example_goes_through_all_positions_among_the_same_others():
    places = settings.gt_at_each_position(FOUR, DEEP)
    assert list(places) == [1, 2, 3, 4, 5]
    for place, contexts in places.items():
        doc_ids = list(shown(contexts)["0"])
        assert doc_ids.pop(place - 1) == "gt0-0"
        assert doc_ids == list(OTHERS["0"][:4])


def test_images_of_the_same_class_are_left_out_unless_rows_hold_them():
    pools = {"0": ("gt0-0", "no0-0", "no0-2")}
    apart = results.without_unlabelled_positives(FOUR, pools)
    assert apart.left_out == {"0": {"no0-0", "no0-2"}}
    assert apart.fingerprint != FOUR.fingerprint


def test_among_what_was_retrieved_non_clues_are_the_best_ranked_images_without_a_label():
    world = results.candidates_from_run(FOUR, DEEP, depth=3)
    assert world.candidates("0") == (*FOUR.relevant("0"), *OTHERS["0"][:3])
    drawn = {context.doc_ids[0] for context in non_clue(world, draws=9)}
    assert drawn & set(OTHERS["0"]) == set(OTHERS["0"][:3])
    gold, *others = shown(one_in_k(world, ks=[3], draws=1))["0"]
    assert gold in FOUR.relevant("0")
    assert set(others) < set(OTHERS["0"][:3])


def test_a_rotation_moves_options_and_letter_and_nothing_else():
    rotated = settings.rotate_options(FOUR, 1)
    query = rotated.queries["3"]
    assert query.choices == ("Martagon", "tiger lily", "Turkscap", "Toad")
    assert (correct_letters(query), query.metadata["letter"]) == ("B", "B")
    assert query.answers == FOUR.queries["3"].answers
    assert rotated.fingerprint != FOUR.fingerprint


PASSAGES = (
    'passage,text\nhare,"Hares run, mostly."\nkeys,Keyboards have keys.\nlily,Lilies bloom.\n'
)
TRUTH = "question,passage\n0,hare\n0,lily\n1,keys\n2,hare\n3,lily\n99,lily\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "passages.csv").write_text(PASSAGES)
    (tmp_path / "ground_truth.csv").write_text(TRUTH)
    return tmp_path


def test_without_texts_one_is_told_what_to_write(tmp_path):
    with pytest.raises(VragError, match=r"passages.csv \(passage,text\) and ground_truth.csv"):
        open_mrag_passages(FOUR, "")
    with pytest.raises(VragError, match=r"'field-guide-mrag-bench-small', .* 'four'"):
        open_mrag_passages(FOUR, "field-guide-mrag-bench-small")
    with pytest.raises(VragError, match="passages cannot be read"):
        load_mrag_texts(FOUR, tmp_path)


def test_the_settings_show_the_first_passage_that_answers_and_the_best_found(folder):
    texts = load_mrag_texts(FOUR, folder)
    gold = shown(settings.gt_text(texts))
    assert gold == {"0": ("hare",), "1": ("keys",), "2": ("hare",), "3": ("lily",)}
    run = settings.ranked_run(dict.fromkeys(FOUR.queries, ("lily", "keys", "hare")))
    found = shown(settings.retrieved_text(texts, run, k=2))
    assert found == {name: ("lily", "keys")[: 1 if name == "1" else 2] for name in FOUR.queries}
    both = settings.gt_image_and_text(FOUR, texts)
    assert both[0].doc_ids == (*FOUR.relevant("0"), "hare")
    assert {each.setting for each in both} == {"gt_image_and_text"}


def test_a_question_without_text_stops_the_settings_that_show_it(folder):
    (folder / "ground_truth.csv").write_text(TRUTH.replace("3,lily\n", ""))
    texts = load_mrag_texts(FOUR, folder)
    with pytest.raises(VragError, match=r"1 of 4 queries have no passage .*'3'"):
        settings.gt_text(texts)
    assert len(settings.gt_text(texts.subset(["0", "1", "2"]))) == 3
