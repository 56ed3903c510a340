"""What distractors cost, step by step: paired differences, by hand."""

from __future__ import annotations

from itertools import product

import pandas as pd
import pytest

from vrag_kit.errors import VragError
from vrag_kit.generation.contexts import (
    ALONE,
    BLANK,
    DUPLICATE,
    ELSEWHERE,
    SAME,
)
from vrag_kit.papers.visual_rag.evidence_swap import (
    HARDNESS,
    INTERFERENCE,
    LENGTH,
    distractor_cost,
    distractor_cost_by_k,
)

SCORES = {
    # company: scores of three questions at (k = 3, k = 5), the clue first
    ALONE: [(1, 1), (1, 1), (1, 1)],
    BLANK: [(1, 1), (1, 0), (1, 1)],
    DUPLICATE: [(1, 1), (1, 1), (1, 1)],
    ELSEWHERE: [(0, 0), (1, 0), (1, 1)],
    SAME: [(0, 1), (0, 1), (1, 1)],
}


def judged() -> pd.DataFrame:
    rows = []
    for (kind, scores), (at, k) in product(SCORES.items(), enumerate((3, 5))):
        if kind == ALONE and at:
            continue
        for number, both in enumerate(scores):
            name = f"q{number}"
            row = {"model": "m", "query_id": name, "group": name, "distractors": kind}
            shown = 1 if kind == ALONE else k
            rows.append({**row, "clue_position": "first", "k": shown, "score": float(both[at])})
    return pd.DataFrame(rows)


def test_length_interference_and_hardness_are_paired_differences_by_hand() -> None:
    table = distractor_cost(judged()).set_index(["step", "distractors", "k"])["value"]
    assert table[LENGTH, BLANK, 3] == 0
    assert table[LENGTH, BLANK, 5] == pytest.approx(-1 / 3)
    assert table[LENGTH, DUPLICATE, 5] == 0
    assert table[INTERFERENCE, ELSEWHERE, 3] == pytest.approx(-1 / 3)
    assert table[INTERFERENCE, SAME, 3] == pytest.approx(-2 / 3)
    assert table[INTERFERENCE, SAME, 5] == pytest.approx(1 / 3)
    assert table[HARDNESS, SAME, 3] == pytest.approx(1 / 3 - 2 / 3)
    assert (INTERFERENCE, DUPLICATE, 3) not in table.index
    assert len(table) == 2 * (2 + 2 + 1)


def test_growth_is_the_change_of_the_difference_to_blanks() -> None:
    table = distractor_cost_by_k(judged()).set_index("distractors")
    # same less blank: −2/3 at k = 3, +1/3 at k = 5; elsewhere: −1/3 at both
    assert table.loc[SAME, "value"] == pytest.approx(1.0)
    assert table.loc[ELSEWHERE, "value"] == pytest.approx(0.0)
    assert set(table["ks"]) == {"3 to 5"}
    assert distractor_cost_by_k(judged().query("k < 5")).empty


def test_without_the_clue_alone_there_is_no_length() -> None:
    with pytest.raises(VragError, match="no answers with distractors 'none'"):
        distractor_cost(judged().query("distractors != @ALONE"))


def test_what_no_step_compares_is_refused_with_what_to_ask() -> None:
    with pytest.raises(VragError, match=r"found none, same_species\. Expected 'blank'"):
        distractor_cost(judged().query("distractors in (@ALONE, @SAME)"))
    with pytest.raises(VragError, match=r"no answers beside 'blank'; found .*`with_blank_images`"):
        distractor_cost_by_k(judged().query("distractors != @BLANK"))
