"""What verdicts that could not be read do to the metrics of claims: lost at random they
leave every mean where it was, and what they could have been lies between the bounds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import pytest
from claim_sheets import sheet, sheets
from hypothesis import given

from vrag_kit.claims import ClaimVerdicts, EntailmentLabel, claim_means
from vrag_kit.claims.means import METRIC, metric_rows

BOUNDED = {"precision", "recall", "f1", "claim_recall", "context_precision", "faithfulness"}
BOUNDED |= {"hallucination", "entailed_share", "neutral_share", "answer_claim_recall"}
BOUNDED |= {"evidence_utilization"}
ENDS = (EntailmentLabel.NEUTRAL, EntailmentLabel.ENTAILMENT)
ONE_VALUE = "cross_modal_agreement"
"""Leans to answers with more entailed claims where answers differ in these."""


def drawn(n: int, seed: int, *, alike: bool) -> list[ClaimVerdicts]:
    """`n` answers of three claims and three gold claims over three images and three
    texts; each claim is entailed by some item in one half of all. Unless they are
    `alike`, answers differ in how often.
    """
    stream = np.random.default_rng(seed)

    def labels(*shape: int, share: float = 0.109) -> np.ndarray:
        return stream.choice([1.0, 0.0, -1.0], shape, p=[share, 0.9 - share, 0.1])

    found = []
    for _ in range(n):
        share = 0.109 if alike else stream.choice([0.02, 0.25])
        own = sheet("iiittt", ["N" * 6] * 3, ["N" * 6] * 3, "000", "000")
        verdicts = np.column_stack([labels(6, share=0.5), labels(6, 6, share=share)])
        found.append(dataclasses.replace(own, verdicts=verdicts))
    return found


def some_lost(whole: ClaimVerdicts, stream: np.random.Generator) -> ClaimVerdicts:
    """The sheet, of whose verdicts a tenth is lost, whatever they say."""
    lost = stream.random(whole.verdicts.shape) < 0.1
    return dataclasses.replace(whole, verdicts=np.where(lost, np.nan, whole.verdicts))


def read_as(of: ClaimVerdicts, scores: Sequence[float]) -> ClaimVerdicts:
    """The sheet with its missing verdicts read as these, in their order."""
    verdicts = of.verdicts.copy()
    verdicts[np.isnan(verdicts)] = scores
    return dataclasses.replace(of, verdicts=verdicts)


def values_of(known: list[ClaimVerdicts]) -> pd.DataFrame:
    """A row a sheet, a column a metric."""
    rows = [{row[:3]: row[3] for row in metric_rows(each)} for each in known]
    return pd.DataFrame(rows)


@pytest.mark.slow
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_verdicts_lost_at_random_leave_every_mean_where_it_was(seed: int, alike: bool) -> None:
    whole = drawn(1000, seed, alike=alike)
    stream = np.random.default_rng([seed, 1])
    before = values_of(whole)
    lost = values_of([some_lost(each, stream) for each in whole])
    truth, mean, n = before.mean(), lost.mean(), lost.count()
    doubt = 4 * before.std() / np.sqrt(n)
    for name in truth.index:
        if name[1] == ONE_VALUE and not alike:
            continue
        assert n[name] > 8, name
        assert abs(mean[name] - truth[name]) <= doubt[name], name
    if alike:
        name = ("mm_ragchecker", "entailed_share", "all")
        assert truth[name] == pytest.approx(0.5, abs=0.04)
        assert n[name] > 850  # of most answers some claim is left


@pytest.mark.slow
@given(sheets())
def test_what_is_missing_could_lie_nowhere_but_between_the_bounds(of: ClaimVerdicts) -> None:
    if of.n_missing > 3:
        return
    low, high = (values_of([of.fill_missing(each)]).loc[0] for each in ENDS)
    for labels in product((1, 0, -1), repeat=of.n_missing):
        true = values_of([read_as(of, labels)]).loc[0].dropna()
        for name in (name for name in true.index if name[1] in BOUNDED):
            ends = sorted((low[name], high[name]))
            assert ends[0] - 1e-9 <= true[name] <= ends[1] + 1e-9, name


def test_bounds_stand_beside_the_mean_and_count_every_answer() -> None:
    known = sheet("i", ["E", "N"], ["E"], "11", "1")
    unparsed = sheet("i", ["?", "?"], ["E"], "11", "1")
    table = pd.DataFrame({"query_id": ["a", "b"], "sheet": [known, unparsed]})
    table = table.assign(group=table["query_id"], model="m")
    means = claim_means(table, by=["model"]).set_index(METRIC)
    columns = ["value", "n", "n_undefined", "n_unparsed", "if_neutral", "if_entailed"]
    found = means.loc[("mm_ragchecker", "entailed_share", "all"), columns]
    assert found.tolist() == [1 / 2, 1, 1, 2, 1 / 4, 3 / 4]
    found = means.loc[("mm_ragchecker", "claim_recall", "all"), columns]
    assert found.tolist() == [1, 2, 0, 0, 1, 1]
