"""A verdict against the paper only on the paper's data and as many queries, from the
interval of the difference alone; failures bound what they could change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import factories
import numpy as np
import pandas as pd
import pytest

from vrag_kit.analysis import mean_scores, to_percent
from vrag_kit.benchmarks import load_inat_corpus, load_visual_rag
from vrag_kit.errors import VragError
from vrag_kit.papers import published
from vrag_kit.papers.visual_rag.published import data_source, reported
from vrag_kit.papers.visual_rag.replication import (
    PAPER_RETRIEVERS,
    compare_retrieval_to_paper,
    compare_to_paper,
)
from vrag_kit.types import Query

NAME, PAPER = "Qwen-Qwen2.5-VL-7B-Instruct", reported(3)


def judged(setting: str, k: int, score: float, draws: int = 1, n: int = 374) -> pd.DataFrame:
    """n queries with the same score in each draw, by the paper's judge."""
    about = {"setting": setting, "k": k, "model": NAME, "group": "g", "judge": "o4-mini"}
    tables = [factories.judged(score=[score] * n, draw=draw, **about) for draw in range(draws)]
    return pd.concat(tables, ignore_index=True)


PAPERS = factories.benchmark(
    [Query(query_id=name, text="?", group=name) for name in "ab"],
    name="visual-rag",
    blob="103cb49bcc545cc7235fc62e5cd8a4e7333fd665",
)
"""The paper's data, as far as a comparison reads them."""


def test_the_papers_data_are_an_edition_by_its_bytes(guide):
    found = data_source(PAPERS)
    assert (found["data_version"], found["verdict"]) == ("Visual-RAG v1, second upload", "")
    assert data_source(PAPERS.with_documents([])) == found  # what is shown beside moves no question
    for changed in (replace(PAPERS, blob="0" * 40), PAPERS.subset(["b"])):
        assert data_source(changed)["verdict"] == "not tested: not the paper's data"
    assert data_source(guide)["verdict"] == "not tested: synthetic data"  # it was drawn


def test_the_annotations_are_known_by_gits_hash_of_their_bytes(tmp_path):
    file = tmp_path / "v1_anno.jsonl"
    (tmp_path / "owl").mkdir()
    (tmp_path / "owl" / "a.jpg").write_bytes(b"")
    row = {"question": "?", "answer": ["red"], "sn": "Strix aluco", "images": {"owl/a.jpg": 1}}
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    content = file.read_bytes()
    slow = hashlib.sha1(b"blob " + str(len(content)).encode() + b"\0" + content)
    assert load_visual_rag(file, tmp_path).blob == slow.hexdigest()


def test_a_drawn_edition_is_synthetic_whatever_its_name(tmp_path):
    (tmp_path / "edition.json").write_text("{}", encoding="utf-8")
    where = {"where": f"{tmp_path / 'annotations.jsonl'} line 1"}
    first = replace(PAPERS.queries["a"], metadata=where)
    found = data_source(replace(PAPERS, queries={**PAPERS.queries, "a": first}))
    assert (found["data_version"], found["verdict"]) == ("", "not tested: synthetic data")


# Qwen2.5VL: the STDs of Tables 13 and 15, seven cells of five runs; t of 7 · 4 degrees of freedom
STDS = [2.2134, 1.303, 0.831, 0.724, 1.531, 1.688, 1.588]
HALF = 2.0484 * np.sqrt(np.mean(np.square(STDS)) * 0.4)  # five runs on either side


def compared(table: pd.DataFrame, margin: float = 3.0) -> dict[Hashable, Any]:
    """The one row of a comparison on the paper's data."""
    results = to_percent(mean_scores(table))
    (row,) = compare_to_paper(results, PAPER, PAPERS, table, margin=margin).to_dict("records")
    return row


@pytest.mark.parametrize(
    ("difference", "margin", "verdict"),
    [  # HALF is 1.929 points
        (1.0, 3.0, "equivalent"),  # [-0.93, 2.93]
        (1.1, 3.0, "inconclusive"),  # [-0.83, 3.03]
        (-2.0, 3.0, "different"),  # [-3.93, -0.07]
        (2.0, 4.0, "equivalent"),  # it excludes 0, and is within the margin
    ],
)
def test_a_verdict_follows_from_the_interval_of_the_difference_and_the_margin(
    difference, margin, verdict
):
    # Under GT clue the paper prints 41.79: the interval is the difference ± 1.929.
    table = judged("gt_clue", 1, (41.79 + difference) / 100, draws=5)
    row = compared(table, margin=margin)
    assert pytest.approx(1.929, abs=0.001) == HALF
    ends = (row["ci_low"], row["ci_high"])
    assert ends == pytest.approx((difference - HALF, difference + HALF), abs=0.006)
    assert row["verdict"] == verdict


def test_verdicts_need_the_papers_data_and_judge(guide):
    table = judged("zero_shot", 0, 0.5)
    results = to_percent(mean_scores(table)).query("metric == 'accuracy'")
    for world, by, mark in ((guide, "o4-mini", ", other data"), (PAPERS, "rule", "")):
        both = compare_to_paper(results, PAPER, world, table.assign(judge=by))
        assert "verdict" not in both
        assert both.loc[("zero-shot (no image)", 0), f"Qwen2.5VL (reported{mark})"] == "38.90"


@pytest.mark.parametrize(("queries", "verdict"), [(266, "different"), (374, "not comparable")])
def test_the_best_top_k_is_compared_whatever_its_k_on_as_many_queries(queries, verdict):
    """Table 6 is about 266 queries."""
    table = judged("top_k", 15, 0.6, n=queries).assign(m=0)
    best = to_percent(mean_scores(table, by=["model", "setting", "k", "m"]))
    best = best.query("metric == 'accuracy'").assign(setting="rag_best")
    six = reported(6).query("setting != 'text_rag'")
    (row,) = compare_to_paper(best, six, PAPERS, table).to_dict("records")
    assert (row["k"], row["value"], row["paper"]) == (15, pytest.approx(60.0), 51.88)
    assert row["verdict"] == verdict


def test_table_2_is_compared_on_the_papers_data_alone(guide):
    two = published("visual_rag", table=2)
    names = {theirs: ours for ours, theirs in PAPER_RETRIEVERS.items()}
    ours = two.assign(retriever=two["retriever"].map(names))
    found = compare_retrieval_to_paper(ours, PAPERS)
    assert len(found) == 60
    assert found["difference"].abs().max() == 0
    assert set(found["verdict"]) == {"equivalent"}
    far = ours.assign(value=ours["value"] + 100 * 12 / 374)  # twelve queries, 3.2 points
    hits = compare_retrieval_to_paper(far.query("metric == 'hit'"), PAPERS)
    assert set(hits["verdict"]) == {"different"}
    more = ours.assign(value=ours["value"] + 0.5).query("metric == 'hit_count'")
    images = compare_retrieval_to_paper(more, PAPERS).set_index("k")  # 3 points of precision are
    assert set(images.loc[[1, 5, 10], "verdict"]) == {"different"}  # 0.3 images at 10
    assert set(images.loc[[20, 30], "verdict"]) == {"equivalent"}  # and 0.6 at 20
    beside = compare_retrieval_to_paper(ours.assign(ci_low=0.0, ci_high=1.0), guide)
    assert "verdict" not in beside
    assert ("CLIP (reported, other data)", "recall") in beside.index


def test_what_failed_answers_could_change_widens_the_interval():
    whole = judged("zero_shot", 0, 0.5)
    torn = whole.assign(score=whole["score"].mask(whole.index < 37))  # 9.89 % of the answers
    before, after = compared(whole), compared(torn)
    assert after["value"] == before["value"]
    # if the missing were all wrong, the mean would be 50 · (1 − 0.0989) = 45.05; if right, 54.95
    wider = (before["ci_low"] - after["ci_low"], after["ci_high"] - before["ci_high"])
    assert wider == pytest.approx([100 * 0.5 * 37 / 374] * 2, abs=0.01)


def test_the_second_corpus_is_matched_by_scientific_name_and_has_no_labels(
    tree, write_annotations, tmp_path
):
    rows = write_annotations({}, {"question": "And the other?", "sn": "Aus bus"})
    benchmark = load_visual_rag(rows, tree)
    species = "07777_Animalia_Chordata_Aves_Anseriformes_Anatidae_Branta_leucopsis"
    folder = tmp_path / "inat24" / species
    folder.mkdir(parents=True)
    for name in ("x.jpg", "y.jpg", "notes.txt"):
        (folder / name).write_bytes(b"")
    other = load_inat_corpus(benchmark, tmp_path / "inat24", name="iNat24")
    assert [query.entity for query in other.queries.values()] == ["Branta leucopsis"]
    (query_id,) = other.queries
    names = [doc_id.split("/")[1] for doc_id in other.candidates(query_id) or ()]
    assert names == ["x.jpg", "y.jpg"]
    assert other.relevant(query_id) == ()
    assert other.fingerprint != benchmark.fingerprint
    (tmp_path / "wrong" / "some").mkdir(parents=True)
    with pytest.raises(VragError, match="none of its 1 folders has images of a species"):
        load_inat_corpus(benchmark, tmp_path / "wrong", name="x")
    with pytest.raises(VragError, match="no such image folder"):
        load_inat_corpus(benchmark, tmp_path / "nowhere", name="x")
