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
from claim_sheets import row, sheet, sheets
from hypothesis import given

from vrag_kit.claims import ClaimVerdicts, EntailmentLabel, claim_means, metric_rows
from vrag_kit.claims.means import METRIC

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
        return stream.choice(list("ENC"), shape, p=[share, 0.9 - share, 0.1])

    found = []
    for _ in range(n):
        share = 0.109 if alike else stream.choice([0.02, 0.25])
        own = sheet("iiittt", ["N" * 6] * 3, ["N" * 6] * 3, "000", "000")
        found.append(
            dataclasses.replace(
                own,
                accepted=row("".join(labels(3, share=0.5))),
                recalled=row("".join(labels(3, share=0.5))),
                on_claims=tuple(row("".join(each)) for each in labels(3, 6, share=share)),
                on_gold=tuple(row("".join(each)) for each in labels(3, 6, share=share)),
            )
        )
    return found


def some_lost(whole: ClaimVerdicts, stream: np.random.Generator) -> ClaimVerdicts:
    """The sheet, of whose verdicts a tenth is lost, whatever they say."""

    def few(labels: tuple[EntailmentLabel | None, ...]) -> tuple[EntailmentLabel | None, ...]:
        return tuple(None if stream.random() < 0.1 else label for label in labels)

    return dataclasses.replace(
        whole,
        accepted=few(whole.accepted),
        recalled=few(whole.recalled),
        on_claims=tuple(map(few, whole.on_claims)),
        on_gold=tuple(map(few, whole.on_gold)),
    )


def read_as(of: ClaimVerdicts, labels: Sequence[EntailmentLabel]) -> ClaimVerdicts:
    """The sheet with its missing verdicts read as these, in their order."""
    left = iter(labels)

    def full(known: tuple[EntailmentLabel | None, ...]) -> tuple[EntailmentLabel, ...]:
        return tuple(next(left) if label is None else label for label in known)

    return dataclasses.replace(
        of,
        accepted=full(of.accepted),
        recalled=full(of.recalled),
        on_claims=tuple(map(full, of.on_claims)),
        on_gold=tuple(map(full, of.on_gold)),
    )


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
    if of.unread > 3:
        return
    low, high = (values_of([of.fill_missing(each)]).loc[0] for each in ENDS)
    for labels in product(EntailmentLabel, repeat=of.unread):
        true = values_of([read_as(of, labels)]).loc[0].dropna()
        for name in (name for name in true.index if name[1] in BOUNDED):
            ends = sorted((low[name], high[name]))
            assert ends[0] - 1e-9 <= true[name] <= ends[1] + 1e-9, name


def test_bounds_stand_beside_the_mean_and_count_every_answer() -> None:
    known = sheet("i", ["E", "N"], ["E"], "11", "1")
    unparsed = sheet("i", ["?", "?"], ["E"], "11", "1")
    table = pd.DataFrame({"query_id": ["a", "b"], "group": ["a", "b"], "sheet": [known, unparsed]})
    means = claim_means(table, by=[]).set_index(METRIC)
    columns = ["value", "n", "n_undefined", "n_unparsed", "if_neutral", "if_entailed"]
    found = means.loc[("mm_ragchecker", "entailed_share", "all"), columns]
    assert found.tolist() == [1 / 2, 1, 1, 2, 1 / 4, 3 / 4]
    found = means.loc[("mm_ragchecker", "claim_recall", "all"), columns]
    assert found.tolist() == [1, 2, 0, 0, 1, 1]
