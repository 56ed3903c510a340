"""Evidence modes of a suite: who can be asked, each data set's own metric, and effects."""

from __future__ import annotations

from dataclasses import replace

import factories
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from vrag_kit.analysis import mean_scores
from vrag_kit.benchmarks import ImageFile, with_gold_evidence
from vrag_kit.papers import mrag_suite as mrag
from vrag_kit.synthetic.mrag_suite import open_judges
from vrag_kit.types import Benchmark, Document, Query
from vrag_kit.workspace import Workspace

SAID = {  # setting → what is said to three questions, again and again; each answer is "9"
    "zero_shot": ("7", "7", "9"),
    "distractors_only": ("7", "7", "7"),
    "gt_plus_distractors": ("9", "7", "7"),
    "gt_only": ("9", "9", "7"),
}
SHOWN = {
    "zero_shot": (),
    "distractors_only": ("d1", "d2"),
    "gt_plus_distractors": ("g1", "d1"),
    "gt_only": ("g1",),
}


def small(name: str) -> Benchmark:
    """Twelve questions, each of a group of its own, answered by p0."""
    about = {"text": "How many?", "answers": ("9",)}
    queries = [Query(query_id=f"q{n}", group=f"g{n}", **about) for n in range(12)]
    picture = Document(doc_id="p0", image=ImageFile("p0.png"))
    gold = {query.query_id: {"p0": 1} for query in queries}
    return factories.benchmark(queries, [picture], gold, name=name, fingerprint=name)


DATASETS = {"VisRAG-Plot": small("plots"), "Own": small("own")}


@pytest.fixture
def judged():
    parts = []
    for setting, said in SAID.items():
        ids = [f"{setting}{n}" for n in range(12)]
        part = factories.answers(answer=[*said] * 4, setting=setting, answer_id=ids)
        part["group"] = part["query_id"].str.replace("q", "g")
        parts.append(part.assign(doc_ids=[SHOWN[setting]] * 12))
    answers = pd.concat(parts, ignore_index=True)
    every = pd.concat([answers.assign(dataset=name) for name in DATASETS], ignore_index=True)
    judges = open_judges("rule", DATASETS, Workspace(answers_dir="unused"))
    return mrag.modes.judge_suite(DATASETS, every, judges)


def test_questions_without_gold_or_with_gold_that_is_missing_are_left_out_and_named():
    bare = small("bare").subset(["q0", "q1", "q2"])
    bare = replace(bare, qrels={"q0": {"p0": 0}, "q1": {"p7": 2}, "q2": {"p0": 1}})
    kept, left_out = with_gold_evidence({"bare": bare})
    assert list(kept["bare"].queries) == ["q2"]
    no_label, not_there = "no document is labelled as gold", "a gold document is not in the corpus"
    rows = [["bare", "q0", no_label, ""], ["bare", "q1", not_there, "p7"]]
    assert left_out.to_numpy().tolist() == rows


def test_each_data_set_has_its_own_metric_or_the_judges(judged):
    names = mrag.modes.mode_names(judged)
    assert names["VisRAG-Plot"] == "VisRAG-Plot, relaxed accuracy"
    assert names["Own"] == "Own, rule-based score"


def test_a_question_that_two_modes_show_alike_is_in_no_difference_of_them(judged):
    """q0's gold evidence fills all places, in another order: no distractor is shown."""
    full = {"gt_plus_distractors": ("g1", "g2"), "gt_only": ("g2", "g1")}
    is_first = judged["query_id"] == "q0"
    judged["doc_ids"] = judged["setting"].map(full).where(is_first).fillna(judged["doc_ids"])
    effects = mrag.modes.mode_effects(judged.assign(stratum="all questions"))
    assert effects.groupby("setting")["n"].agg(set).to_dict() == {
        "gt_only": {12},
        "gt_plus_distractors": {11},
        "distractors_only": {12},
    }


def test_strata_stand_apart_before_they_are_pooled(judged, tmp_path):
    """By hand: the species of every third question was told; alone it is right before it is shown
    anything.
    """
    (tmp_path / "told.csv").write_text("subject\ng2\ng5\ng8\ng11\n")
    apart = mrag.modes.training_strata(judged, DATASETS, [{"model": str(tmp_path), "name": "m"}])
    means = mean_scores(apart, by=["dataset", "stratum", "setting"])
    means = means.query("metric == 'accuracy' and dataset == 'VisRAG-Plot'")
    found = means.pivot(index="stratum", columns="setting", values="value")
    third = pytest.approx(1 / 3)
    strata = ["in training data", "not in training data", "all questions"]
    assert found.loc[strata, "zero_shot"].tolist() == [1, 0, third]
    assert found.loc[strata, "gt_only"].tolist() == [0, 1, pytest.approx(2 / 3)]
    effects = mrag.modes.mode_effects(apart)
    gold = effects.query("setting == 'gt_only' and dataset == 'VisRAG-Plot'").set_index("stratum")
    assert gold.loc[strata, "value"].tolist() == [-100, 100, pytest.approx(100 / 3)]
    pooled = effects["stratum"] == "all questions"
    for _, family in effects.groupby(["setting", pooled]):
        holm = multipletests(family["p"], method="holm")[1]
        assert family["p_holm"].tolist() == pytest.approx(holm.tolist())
    assert set(mrag.modes.strata_or_pooled(means)["stratum"]) == set(strata[:2])


def test_gold_evidence_alone_is_at_most_so_many_of_each_modality():
    texts = {f"t{n}": Document(doc_id=f"t{n}", text="red") for n in range(3)}
    corpus = {**texts, "i": Document(doc_id="i", image=ImageFile("p.png"))}
    gold = {"t2": 1, "t0": 1, "i": 1, "t1": 0}
    qrels = {"q0": gold, "q1": {"t1": 0}, "q2": {}}
    benchmark = replace(small("mine").subset(list(qrels)), corpus=corpus, qrels=qrels)
    evidence = mrag.hybrid.SuiteEvidence({}, {"image": 1, "text": 1})
    (context,) = evidence.gold(benchmark)
    assert (context.query_id, context.setting) == ("q0", "gt_only")
    assert context.doc_ids[0] == "i"
    assert len(context.doc_ids) == 2
