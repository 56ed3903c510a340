"""A split in numbers, what its searches find, and the threshold: against counts by hand."""

from __future__ import annotations

import shutil
from dataclasses import replace

import factories
import pytest
import small_index

from vrag_kit.benchmarks import entity_names
from vrag_kit.benchmarks.datasets.crag_mm_index import read_image_index
from vrag_kit.errors import VragError
from vrag_kit.judging import TruthfulnessRuleJudge
from vrag_kit.papers.crag_mm.parameters import open_services
from vrag_kit.papers.crag_mm.recall import answer_in_page, page_relevance
from vrag_kit.retrieval import best_threshold, make_run, threshold_curve
from vrag_kit.synthetic.crag_mm import open_single_turn
from vrag_kit.types import Benchmark, Document, Query


def test_a_page_tells_what_names_the_entity_and_has_the_answers_new_words():
    query = Query(
        query_id="q",
        text="In which region does this moth live?",
        answers=("It lives in Norland.",),
        entity="Talia ensis",
    )
    told = {"page_name": "Talia ensis", "page_result": "It is a moth. It lives in Norland."}
    page = Document(doc_id="p", text="Talia ensis is a red moth.", metadata=told)
    assert answer_in_page(query, page, "It lives in Norland.")
    assert not answer_in_page(query, page, "It lives in Sudmoor.")
    other = replace(page, metadata={**told, "page_name": "Talia osa"})
    pairs = [(query, page), (query, other)]
    judge, benchmark = TruthfulnessRuleJudge(), factories.benchmark([query])
    assert page_relevance(judge, benchmark, "snippets")(pairs) == [False, False]
    assert page_relevance(judge, benchmark, "full pages")(pairs) == [True, False]


def test_a_threshold_keeps_what_lies_above_it_and_the_best_has_the_largest_f1():
    queries = [Query(query_id=name, text="", entity=f"Talia {name}") for name in "ab"]
    corpus = {
        name: Document(doc_id=name, metadata={"entities": [{"entity_name": f"Talia {name}"}]})
        for name in "abc"
    }
    run = make_run([("a", "a", 0.9), ("a", "c", 0.5), ("b", "b", 0.6), ("b", "c", 0.55)])
    curve = threshold_curve(run, queries, corpus, entity_names).set_index("threshold")
    numbers = ["mean_hits", "precision", "recall"]
    assert list(curve.loc[0.50, numbers]) == [1.5, pytest.approx(2 / 3), 1]
    assert list(curve.loc[0.56, [*numbers, "f1"]]) == [1, 1, 1, 1]
    assert list(curve.loc[0.80, numbers]) == [0.5, 1, 0.5]
    assert best_threshold(curve.reset_index()) == 0.55
    elks = [replace(each, entity="Elk") for each in queries]
    assert threshold_curve(run, elks, corpus, entity_names).empty


def test_a_converted_index_is_searched_by_its_vectors_and_belongs_to_the_split(small, tmp_path):
    folder = tmp_path / "image-index-validation"
    shutil.copytree(small_index.converted(small, "image"), folder)
    queries = {query.query_id: query for query in small.queries()}
    benchmark = Benchmark(
        name="crag-mm-single-turn-validation",
        fingerprint="f",
        queries=queries,
        corpus=read_image_index(folder),
        qrels={name: {} for name in queries},
    )
    search = {"image_service": small.clip, "web_service": "bm25"}
    services = open_services(benchmark, search, small.at, indexes=str(tmp_path))
    assert services.web is None  # there are no pages
    assert services.images is not None
    run = services.images.search(list(queries.values()), 2)
    expected = small_index.converted_service(small, "image").search(list(queries.values()), 2)
    assert run.equals(expected)


def test_an_impossible_size_of_egocentric_pictures_is_refused():
    with pytest.raises(VragError, match=r"egocentric_size is \[960\]; expected \[width, height\]"):
        open_single_turn("field-guide-crag-mm-small", egocentric_size=[960])
