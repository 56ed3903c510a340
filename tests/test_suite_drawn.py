"""The drawn MRAG-Suite: eight data sets in their own layouts, whose documents show what
the drawing says they show.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vrag_kit.errors import VragError
from vrag_kit.fieldguide.suite import (
    TruthChecker,
    World,
    draw_suite,
    made_ambiguous,
    open_suite,
    open_world,
    relation,
)
from vrag_kit.fieldguide.suite.ambiguity import LACKS, detect_by_rule
from vrag_kit.fieldguide.suite.printed import PAGE_SETS
from vrag_kit.judging.claims import Checking, Relation, relation_of, statement
from vrag_kit.papers.mrag_suite import DATASETS, domain_of
from vrag_kit.runner import cli
from vrag_kit.types import Benchmark

SMALL = "suite-drawn-small"
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def suite() -> dict[str, Benchmark]:
    return open_suite(SMALL)


@pytest.fixture(scope="module")
def world() -> World:
    return open_world(SMALL)


def test_the_suite_has_the_papers_eight_data_sets_in_one_schema(suite):
    assert list(suite) == list(DATASETS)
    for name, benchmark in suite.items():
        for query in benchmark.queries.values():
            assert query.metadata["domain"] == domain_of(name)
            assert query.metadata["needs"] in ("image", "text", "both")
            assert benchmark.relevant(query.query_id)
            assert not query.choices or query.answers[0] in query.choices


def test_webqa_asks_for_pictures_for_snippets_and_for_both(suite):
    needs = [query.metadata["needs"] for query in suite["WebQA"].queries.values()]
    assert {each: needs.count(each) for each in set(needs)} == {"image": 20, "text": 20, "both": 20}


def test_charts_have_keypoints_and_every_sort_of_question(suite):
    queries = suite["Chart-MRAG"].queries.values()
    needs = {(query.metadata["hops"], query.metadata["needs"]) for query in queries}
    assert needs == {(1, "image"), (1, "text"), (2, "text"), (2, "both"), (2, "image")}
    for query in queries:
        assert " ".join(query.metadata["gold_claims"]) == query.answers[0]


def test_slides_can_need_two_pages_and_have_ids_with_white_space(suite):
    slides = suite["VisRAG-Slide"]
    hops = [query.metadata["hops"] for query in slides.queries.values()]
    assert hops.count(2) == len(hops) // 3
    assert all("%20" in doc_id for doc_id in slides.corpus)


@pytest.mark.parametrize("name", PAGE_SETS)
def test_a_page_question_is_answered_by_the_words_of_its_pages(suite, name):
    benchmark = suite[name]
    for query in benchmark.queries.values():
        pages = [benchmark.corpus[doc_id] for doc_id in benchmark.relevant(query.query_id)]
        words = " ".join(page.text for page in pages)
        assert all(part in words for part in query.answers[0].split(" and "))


def test_what_a_document_shows_agrees_with_its_label(suite, world):
    """A document with a positive label entails a claim of the answer; of the negative
    pictures of WebQA none does.
    """
    for name in ("WebQA", "Visual-RAG", *PAGE_SETS):
        benchmark = suite[name]
        for query in benchmark.queries.values():
            claims = _claims(world, query)
            for doc_id, label in benchmark.qrels[query.query_id].items():
                found = {relation(each, world.shown[doc_id]) for each in claims}
                if label:
                    assert Relation.ENTAILMENT in found
                elif benchmark.corpus[doc_id].image is not None:
                    assert found == {Relation.NEUTRAL}


def _claims(world, query):
    return world.language.facts(query.answers[0], query.text)


def test_rules_read_the_texts_as_the_drawing_means_them(suite, world):
    """Every text of the suite says of every claim about its species what the truth says."""
    for name in ("WebQA", "Chart-MRAG", *PAGE_SETS):
        benchmark = suite[name]
        for query in benchmark.queries.values():
            claims = [each.sentence for each in _claims(world, query)]
            for doc_id in benchmark.qrels[query.query_id]:
                item = benchmark.corpus[doc_id]
                if name == "WebQA" and item.image is not None:
                    continue  # its words are a caption, and the picture shows more
                told = [world.language.relation(claim, item.text) for claim in claims]
                true = TruthChecker(world.language, world.shown).check(
                    [Checking(query_id=query.query_id, claims=tuple(claims), item=item)]
                )
                assert told == [relation_of(each) for each in true[0]]


def test_a_picture_that_was_not_drawn_has_no_truth(suite, world):
    other = next(iter(suite["MRAG-Bench"].corpus.values()))
    checking = Checking(query_id="q", claims=("x",), item=other)
    with pytest.raises(VragError, match="is none of the drawn suite"):
        TruthChecker(world.language, world.shown).check([checking])


def test_truth_counts_what_the_answerer_saw(suite, world):
    """The picture shows what its caption does not tell; an accepted answer is words."""
    webqa = suite["WebQA"]
    query = next(each for each in webqa.queries.values() if each.metadata["needs"] == "image")
    item = webqa.corpus[webqa.relevant(query.query_id)[0]]
    (claim,) = world.language.claims(query.text, query.answers[0])
    shown = [item, replace(item, image=None), statement("a", query.text, query.answers[0])]
    checkings = [Checking(query_id="q", claims=(claim,), item=each) for each in shown]
    found = TruthChecker(world.language, world.shown).check(checkings)
    labels = [relation_of(judgment) for (judgment,) in found]
    assert labels == [Relation.ENTAILMENT, Relation.NEUTRAL, Relation.ENTAILMENT]


def test_the_same_edition_gives_the_same_bytes(suite, guide_folder, tmp_path):
    drawn = ROOT / "data" / SMALL
    again = draw_suite("small", tmp_path / "again", guide_folder)
    files = sorted(path.relative_to(drawn) for path in drawn.rglob("*.*") if path.name != ".lock")
    assert files
    for file in files:
        assert (again / file).read_bytes() == (drawn / file).read_bytes(), file


def test_a_folder_with_other_data_is_left_alone(guide_folder, tmp_path):
    (tmp_path / "webqa").mkdir()
    with pytest.raises(VragError, match="holds 'webqa', which was not drawn by this kit"):
        draw_suite("small", tmp_path, guide_folder)
    with pytest.raises(VragError, match="unknown edition 'tiny'"):
        draw_suite("tiny", tmp_path, guide_folder)
    with pytest.raises(VragError, match="not the complete full Field Guide"):
        draw_suite("full", tmp_path, guide_folder)


def test_vrag_draws_it_by_name_and_knows_what_a_mistyped_one_may_mean(suite, capsys):
    folder = ROOT / "data" / SMALL
    cli.draw(SMALL, folder)
    guide = folder.with_name("field-guide-small")
    told = f"{SMALL} is in {folder}, with photographs that are in {guide}\n"
    assert capsys.readouterr().out == told
    with pytest.raises(VragError, match=r"'worn-drawn', .*Did you mean 'suite-drawn'"):
        cli.draw("suite-drwan", folder)


def test_unknown_names_are_answered_with_what_may_be_meant():
    with pytest.raises(VragError, match="Did you mean 'suite-drawn'"):
        open_suite("suite-drwan")
    with pytest.raises(VragError, match=r"no data set 'VisRAG-Docs'.*mean 'VisRAG-Doc'"):
        open_suite(SMALL, ["VisRAG-Docs"])


def test_half_of_the_questions_can_be_made_ambiguous_and_the_rule_finds_which(suite):
    for benchmark in suite.values():
        changed, lacks = made_ambiguous(benchmark, share=0.5, seed=1)
        open_ones = [each for each in benchmark.queries.values() if each.image is None]
        assert sum(map(bool, lacks.values())) == round(0.5 * len(open_ones))
        assert set(lacks.values()) <= {"", *LACKS}
        for query_id, query in changed.queries.items():
            assert (query.text == benchmark.queries[query_id].text) == (not lacks[query_id])
            assert detect_by_rule(query).ambiguous == bool(lacks[query_id])
        assert made_ambiguous(benchmark, share=0.5, seed=1)[1] == lacks
