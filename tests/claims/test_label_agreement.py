"""The checker's own error: against true labels, and carried into the metrics' intervals."""

import dataclasses

import factories
import numpy as np
import pandas as pd
import pytest
from claim_sheets import letters, plain, sheet

from vrag_kit.claims import (
    ClaimVerdicts,
    EntailmentLabel,
    add_human_verdicts,
    annotator_agreement,
    claim_means,
    labels_from_verdicts,
    read_annotator_labels,
)
from vrag_kit.claims.human_labels import ClaimPair
from vrag_kit.claims.label_agreement import (
    corrected_claim_means,
    verdict_agreement,
    verdict_confusion_matrix,
    verdict_pairs,
)
from vrag_kit.errors import VragError
from vrag_kit.judging import annotation_sample
from vrag_kit.types import Document, Query
from vrag_kit.widgets import label_claims

TRUE = sheet("it", ["EN", "NC"], ["NE"], "10", "1")


JUDGED = sheet("it", ["EE", "?C"], ["NE"], "11", "0")


def world(n: int, seed: int = 0) -> pd.DataFrame:
    """`n` answers about three claims and two texts, with true labels, and those of a
    checker that takes every second NEUTRAL for ENTAILMENT.
    """
    stream, sheets = np.random.default_rng(seed), []
    for _ in range(n):
        true = ["".join(stream.choice(list("ENNC"), 2)) for _ in range(3)]
        seen = ["".join(_seen(letter, stream) for letter in letters) for letters in true]
        sheets.append([sheet("tt", each, [], "000", "") for each in (seen, true)])
    species = [f"species {number // 2}" for number in range(n)]
    words = [f"answer {number}" for number in range(n)]
    table = factories.answers(answer=words, group=species, setting="top_k", k=2)
    return table.assign(sheet=[s for s, _ in sheets], true_sheet=[t for _, t in sheets])


def _seen(letter: str, stream: np.random.Generator) -> str:
    return "E" if letter == "N" and stream.random() < 0.5 else letter


def test_every_verdict_stands_beside_its_true_label():
    sheets = {"sheet": [JUDGED, None], "true_sheet": [TRUE, TRUE]}
    found = verdict_pairs(pd.DataFrame({"query_id": ["q"] * 2, "group": "g", **sheets}))
    assert found["of"].tolist() == ["claims"] * 6 + ["gold claims"] * 3
    assert found["evidence_kind"].tolist() == ["answer", "image", "text"] * 3
    assert [label[0] for label in found["true_label"]] == [*"EENNNCENE"]
    assert [label[0] for label in found["checker_label"]] == [*"EEEEuCNNE"]  # unparsed
    counts = verdict_confusion_matrix(found)
    assert list(counts.columns) == ["ENTAILMENT", "NEUTRAL", "CONTRADICTION", "unparsed"]
    assert counts.to_numpy().tolist() == [[3, 1, 0, 0], [2, 1, 0, 1], [0, 0, 1, 0]]


def test_with_all_answers_labelled_the_corrected_means_are_the_true_ones():
    table, keys = world(30), ["family", "metric", "modality"]
    corrected = corrected_claim_means(table, table).set_index(keys)
    truth = claim_means(table.assign(sheet=table["true_sheet"])).set_index(keys)
    shares = ("entailed_share", "neutral_share", "contradicted_share", "evidence_utilization")
    names = [("mm_ragchecker", name, "all") for name in shares]
    for key in [*names, ("ragchecker", "hallucination", "all")]:
        assert corrected.loc[key, "value"] == pytest.approx(truth.loc[key, "value"])
        assert corrected.loc[key, "n_labelled"] == 30
    other = table.assign(true_sheet=[dataclasses.replace(TRUE, query_id="other")] * 30)
    with pytest.raises(VragError, match="'q'"):
        corrected_claim_means(other, other)


def sample_of(*sheets: ClaimVerdicts | None) -> pd.DataFrame:
    words = [f"words {n}" for n, _ in enumerate(sheets)]
    return pd.DataFrame({"query_id": "q", "answer": words, "sheet": list(sheets)})


def test_labels_by_hand_make_sheets_that_are_true(tmp_path):
    documents = [Document(doc_id=f"d{n}", text=f"<text> {n}") for n in range(2)]
    query = Query(query_id="q", text="What?", answers=("red", "blue"))
    benchmark, file = factories.benchmark([query], documents), tmp_path / "me.csv"
    texts = sheet("tt", [], [], "", "").items
    text, judged = (dataclasses.replace(each, items=texts) for each in (TRUE, JUDGED))
    panel = label_claims(benchmark, sample_of(text, text, None), file, "me")
    assert len(panel.things) == 2 + 1 + 4 + 2 + 1  # the second answer has its own words
    assert ">red | blue</td>" in panel.card.value
    for place, label in enumerate(letters(TRUE.verdicts.ravel())):
        assert "ENTAILMENT" not in panel.card.value  # the checker's verdict is never shown
        if place == 1:
            assert "&lt;text&gt; 0" in panel.card.value
        panel.on_click({"E": "ENTAILMENT", "N": "NEUTRAL", "C": "CONTRADICTION"}[label])
    labels = read_annotator_labels(file)["me"]
    found = add_human_verdicts(sample_of(judged, text), labels)
    assert plain(found["true_sheet"][0]) == plain(text)
    assert found["true_sheet"][1] is None  # of the second answer one label is missing
    again = label_claims(benchmark, sample_of(text, text), file, "me")
    assert repr(again).startswith("AnnotationPanel: 9 of 10 labelled")


def test_annotators_agree_with_one_another_and_with_the_checker():
    sample = sample_of(JUDGED).assign(group="g")
    truth = labels_from_verdicts(sample.assign(true=[TRUE]), sheets="true")
    other = dict(list(truth.items())[:4])  # not all are labelled by both
    wrong = next(iter(other))
    other[wrong] = next(each for each in EntailmentLabel if each is not other[wrong])
    found = annotator_agreement(sample, {"ann": truth, "bob": other})
    rows = found.set_index(["first", "second", "evidence_kind", "metric"])
    assert rows.loc[("ann", "bob", "all", "accuracy"), ["value", "n"]].tolist() == [3 / 4, 4]
    pairs = verdict_pairs(sample.assign(true_sheet=[TRUE]))
    expected = verdict_agreement(pairs).set_index(["evidence_kind", "metric"])
    for kind in ("image", "text", "answer", "all"):
        mine = rows.loc[("ann", "checker", kind, "kappa")]
        assert mine["value"] == pytest.approx(expected.loc[(kind, "kappa"), "value"], nan_ok=True)
        assert mine["n"] == expected.loc[(kind, "kappa"), "n"]
    nobody = annotator_agreement(sample, {"ann": truth, "bob": {}})
    assert nobody.loc[nobody["second"] == "bob", "n"].tolist() == [0, 0]


def test_two_annotators_are_read_from_two_files_or_one(tmp_path):
    head, files = "query_id,claim,item,label,annotator\n", [tmp_path / "a.csv", tmp_path / "b.csv"]
    files[0].write_text(f"{head}q,claim 0,d0,NEUTRAL,ann\n")
    files[1].write_text(f"{head}q,claim 0,d0,ENTAILMENT,bob\n")
    pair = ClaimPair("q", "claim 0", "d0")
    expected = {"ann": {pair: EntailmentLabel.NEUTRAL}, "bob": {pair: EntailmentLabel.ENTAILMENT}}
    assert read_annotator_labels(*files) == expected
    with pytest.raises(VragError, match=r"a\.csv line 2: 'ann'"):
        read_annotator_labels(*files, files[0])


@pytest.mark.slow
def test_the_checkers_error_is_carried_into_the_interval():
    """Half of the neutral verdicts are taken for entailed."""
    table = world(300)

    def entailed(means: pd.DataFrame) -> pd.Series:
        return means[means["metric"] == "entailed_share"].iloc[0]

    checker = entailed(claim_means(table))
    true = entailed(claim_means(table.assign(sheet=table["true_sheet"])))["value"]
    corrected = entailed(corrected_claim_means(table, annotation_sample(table, 100)))
    assert checker["ci_low"] > true  # sure of itself, and wrong
    assert corrected["ci_low"] <= true <= corrected["ci_high"]
    assert (corrected["n"], corrected["n_labelled"]) == (300, 100)
