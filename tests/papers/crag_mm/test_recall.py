"""A split in numbers, what its searches find, and the threshold: against counts by hand."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import small_index
from small_index import Small

from vrag_kit.benchmarks import entity_names
from vrag_kit.benchmarks.datasets.crag_mm_index import read_image_index
from vrag_kit.errors import VragError
from vrag_kit.judging import TruthfulnessRuleJudge
from vrag_kit.papers import crag_mm as paper
from vrag_kit.papers.crag_mm.parameters import open_services
from vrag_kit.papers.crag_mm.recall import WEB_CUTOFFS
from vrag_kit.papers.crag_mm.search import answer_in_page, page_relevance
from vrag_kit.retrieval import best_threshold, make_run, threshold_curve
from vrag_kit.synthetic.crag_mm import open_multi_turn, open_single_turn
from vrag_kit.types import Benchmark, Document, Query


@pytest.fixture(scope="module")
def single() -> Benchmark:
    return open_single_turn("field-guide-crag-mm-small", "public_test")


@pytest.fixture(scope="module")
def multi() -> Benchmark:
    return open_multi_turn("field-guide-crag-mm-small", "public_test")


def test_shares_are_counts_of_the_rows_and_the_papers_are_of_its_tables(
    single: Benchmark, multi: Benchmark
) -> None:
    table = paper.statistics.distribution(single, multi)
    for _, part in table.groupby(["facet", "population"]):
        assert part["share"].sum() == pytest.approx(100)
    rows = table.set_index(["facet", "population", "label"])
    types = [query.metadata["query_category"] for query in single.queries.values()]
    row = rows.loc[("query_category", "single questions", "multi-hop")]
    assert row["n"] == types.count("multi-hop")
    assert row["published"] == pytest.approx(100 * 928 / 6462)  # Table 3
    assert rows.loc[("image_type", "images", "egocentric"), "published"] == pytest.approx(
        100 * 6248 / 7943  # Table 2
    )
    domains = table[(table["facet"] == "domain") & (table["population"] == "conversations")]
    assert domains["published"].sum() == pytest.approx(100)
    numbers = paper.statistics.describe(single, multi).set_index("statistic")
    turns = numbers.loc["turns of conversations"]
    assert (turns["value"], turns["unit"]) == (len(multi.queries), "turns")
    assert (
        paper.statistics.annotation_coverage(single, multi)["single questions"] == "24 of 24"
    ).all()


def test_a_page_tells_what_names_the_entity_and_has_the_answers_new_words() -> None:
    query = Query(
        query_id="q",
        text="In which region does this moth live?",
        answers=("It lives in Norland.",),
        entity="Talia ensis",
    )
    page = Document(
        doc_id="p",
        text="Talia ensis is a red moth.",
        metadata={
            "page_name": "Talia ensis",
            "page_result": "Talia ensis is a red moth. It lives in Norland.",
        },
    )
    assert answer_in_page(query, page, "It lives in Norland.")
    assert not answer_in_page(query, page, "It lives in Sudmoor.")
    other = replace(
        page, metadata={"page_name": "Talia osa", "page_result": "It lives in Norland."}
    )
    pairs = [(query, page), (query, other)]
    benchmark = Benchmark(
        name="b", fingerprint="f", queries={"q": query}, corpus={}, qrels={"q": {}}
    )
    judge = TruthfulnessRuleJudge()
    assert page_relevance(judge, benchmark, "snippets")(pairs) == [False, False]
    assert page_relevance(judge, benchmark, "full pages")(pairs) == [True, False]


def test_a_threshold_keeps_what_lies_above_it_and_the_best_has_the_largest_f1(
    capsys: pytest.CaptureFixture[str],
) -> None:
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
    assert "none of 4 hits of 2 queries" in capsys.readouterr().out


def test_recall_stands_beside_the_printed_labels_and_only_where_they_are_of_the_same(
    single: Benchmark, multi: Benchmark, tmp_path: Path
) -> None:
    services = open_services(single, "field-guide-clip-64", "bm25", tmp_path)
    assert services.web is not None
    asked = paper.recall.web_queries(single, 6)
    assert [len(queries) for queries in asked.values()] == [6, 6]
    judge = TruthfulnessRuleJudge()
    tells = {part: page_relevance(judge, single, part) for part in ("snippets", "full pages")}
    web = paper.recall.web_recall(services.web, asked, tells)
    assert list(web["k"].unique()) == list(WEB_CUTOFFS)
    assert list(paper.recall.web_recall(services.web, asked, tells, 3)["k"].unique()) == [3]
    best = web.groupby(["asked", "setting"])["value"].mean()
    assert best["reference query", "full pages"] >= best["reference query", "snippets"]
    rows = []
    for number, (name, query) in enumerate(single.queries.items()):
        row = {"query_id": name, "group": name, "k": 1, "value": float(number % 2)}
        row |= {"setting": paper.recall.WHOLE, "image_quality": query.metadata["image_quality"]}
        row["image_type"] = "egocentric" if query.metadata["egocentric"] else "non-egocentric"
        rows.append({**row, "score_min": 0.0, "score_max": 1.0, "metric": "hit_rate"})
    images = pd.DataFrame(rows)
    lines = paper.recall.recall_lines(images, web, single.name)
    assert np.isclose(lines["n"].max(), len(single.queries))
    panels = lines.set_index(["panel", "source", "series", "k"])["value"]
    whole = panels["entity hit rate, image search (Figure 3)"]
    assert whole[single.name, paper.recall.WHOLE, 1] == 50
    assert whole[paper.recall.REPORTED, paper.recall.WHOLE, 30] == 51.9
    own = panels["whole image, by image quality"].reset_index()["source"]
    assert own.unique().tolist() == [single.name]
    larger = paper.recall.recall_lines(images, web, single.name, web="large")
    of_pages = larger["panel"].str.startswith("answer hit rate")
    named = set(larger[larger["source"] == f"{single.name}, large web"]["panel"])
    assert named == set(larger[of_pages]["panel"])


def test_a_converted_index_is_searched_by_its_vectors_and_belongs_to_the_split(
    small: Small, tmp_path: Path
) -> None:
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
    services = open_services(benchmark, small.clip, "bm25", small.cache, indexes=str(tmp_path))
    assert services.web is None  # there are no pages
    assert services.images is not None
    run = services.images.search(list(queries.values()), 2)
    expected = small_index.converted_service(small, "image").search(list(queries.values()), 2)
    assert run.equals(expected)


def test_an_impossible_size_of_egocentric_pictures_is_refused() -> None:
    with pytest.raises(VragError, match=r"egocentric_size is \[960\]; expected \[width, height\]"):
        open_single_turn("field-guide-crag-mm-small", egocentric_size=[960])
