"""Claim metrics of the paper: what its figures and tables count, and claims in the modes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claim_sheets import sheet
from statsmodels.stats.multitest import multipletests

from vrag_kit.claims import ClaimVerdicts
from vrag_kit.generation.evidence_modes import MODES
from vrag_kit.papers import mrag_suite as paper
from vrag_kit.papers import published
from vrag_kit.synthetic.mrag_suite import fixed_means


def test_the_definitions_have_the_published_names():
    names = set(paper.claims.EQUATIONS.index.get_level_values("name"))
    assert set(published("mrag_suite", 4)["metric"]) <= names
    # the paper defines none of these
    assert set(paper.claims.PUBLISHED) - names == {"recall", "precision", "f1"}


def test_intervals_are_counted_that_contain_the_true_mean():
    rows = [("checker", 40, 31, 49), ("corrected", 55, 35, 75), ("true", 60, 55, 65)]
    rows.append(("corrected", 100, np.nan, np.nan))  # not counted, nor drawn
    means = pd.DataFrame(rows, columns=["label_source", "value", "ci_low", "ci_high"])
    means = means.assign(dataset="WebQA", model="small", setting="gt_only", n=20)
    means["measure"] = "hallucination (RAGChecker)"
    assert paper.figures.count_contained(means, "true") == "checker 0 of 1, corrected 1 of 1"
    figure = paper.figures.claim_plot(means, rows="dataset", color="label_source")
    drawn = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert sorted(drawn) == [40, 55, 60]


DO, GPD, GO = MODES
NOTHING = fixed_means(None)


def answered(rows: list[tuple[str, str, ClaimVerdicts]]) -> pd.DataFrame:
    """Rows of (query, mode, sheet), each query a group of its own."""
    table = pd.DataFrame(rows, columns=["query_id", "setting", "sheet"])
    table["doc_ids"] = [tuple(item.doc_id for item in each.items) for each in table["sheet"]]
    return table.assign(dataset="WebQA", model="m", group=table["query_id"], stratum="all")


def of_claims(*claims: str) -> ClaimVerdicts:
    return sheet("i" * len(claims[0]), list(claims), ["E" * len(claims[0])], "0" * len(claims), "1")


def twelve_questions() -> list[tuple[str, str, ClaimVerdicts]]:
    """Answers that lose some of their claims' support with distractors, and all without gold."""
    stream, rows = np.random.default_rng(0), []
    for n in range(12):
        mixed = of_claims("EN", "".join(stream.choice(list("ENC"), 2)))
        sheets = {GO: of_claims("E", "E"), GPD: mixed, DO: of_claims("NN", "NN")}
        rows += [(f"q{n}", mode, each) for mode, each in sheets.items()]
    return rows


def test_a_mode_is_compared_with_gold_alone_on_the_questions_of_both():
    rows = twelve_questions()
    rows[-1] = ("q11", DO, sheet("ii", [], ["NN"], "", "0"))  # q11 claims nothing
    found = paper.claims.mode_contrasts(answered(rows), NOTHING).set_index(["setting", "metric"])
    lost = found.loc[DO, "faithfulness"]
    assert (lost["value"], lost["n"], lost["n_failed"]) == (-100, 11, 1)
    used = found.loc[DO, "evidence utilization"]
    assert (used["value"], used["n"]) == (-100, 12)
    by_hand = [row[2].on_claims for row in rows if row[1] == GPD]
    entailed = [np.mean([1 in c for c in claims]) for claims in by_hand]
    assert found.loc[(GPD, "faithfulness"), "value"] == pytest.approx(100 * (np.mean(entailed) - 1))
    holm = multipletests(found["p"], method="holm")[1]
    assert found["p_holm"].tolist() == pytest.approx(holm.tolist())  # one family: all rows


@pytest.mark.slow
def test_a_change_that_no_answer_can_make_is_no_hypothesis():
    table = answered(twelve_questions())
    fixed = pd.DataFrame({"setting": MODES, "value": 1.0})  # of_claims tells all gold
    fixed = fixed.assign(dataset="WebQA", family="mm_ragchecker", modality="all")
    fixed["metric"] = "claim_recall"
    before = paper.claims.mode_contrasts(table, NOTHING).set_index(["setting", "metric"])
    found = paper.claims.mode_contrasts(table, fixed).set_index(["setting", "metric"])
    is_recall = found.index.get_level_values("metric") == "claim recall"
    assert found["by_construction"].tolist() == is_recall.tolist()
    assert found.loc[is_recall, ["p", "p_holm"]].isna().all(axis=None)
    assert found.loc[is_recall, ["value", "ci_low", "ci_high"]].eq(0).all(axis=None)
    others = found[~is_recall]
    assert others["p"].tolist() == before.loc[others.index, "p"].tolist()
    holm = multipletests(others["p"], method="holm")[1]  # as if the fixed ones were not there
    assert others["p_holm"].tolist() == pytest.approx(holm.tolist())
    assert (others["p_holm"] < before.loc[others.index, "p_holm"]).any()
    wrong = fixed.assign(value=np.where(fixed["setting"] == GO, 0.0, 1.0))  # not what was found
    assert not paper.claims.mode_contrasts(table, wrong)["by_construction"].any()


def test_every_mode_has_its_own_matrix_of_verdicts():
    right, wrong = of_claims("E"), of_claims("N")
    pairs = answered([("a", GO, right), ("a", DO, right)]).assign(true_sheet=[right, wrong])
    counts = paper.claims.confusion_counts(pairs).query("evidence_kind == 'image'")
    assert list(counts["setting"].unique()) == list(MODES)
    counts = counts[counts["n"] > 0]
    seen = counts[["setting", "true_label", "checker_label", "n"]].to_numpy().tolist()
    assert seen == [
        [DO, "ENTAILMENT", "ENTAILMENT", 1],  # of the gold claim
        [DO, "NEUTRAL", "ENTAILMENT", 1],
        [GO, "ENTAILMENT", "ENTAILMENT", 2],
    ]
