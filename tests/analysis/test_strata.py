"""What a model knew stands apart from what it was shown: recorded with its weights, or
told from its answers without an image, never by the answers that are reported.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import WEIGHTS

from vrag_kit.analysis import (
    assign_stratum,
    expand_strata,
    mean_scores,
    settings_table,
    trained_groups,
)
from vrag_kit.analysis.strata import ALL, KNOWN, LEFT_OUT, NO_VERDICT, UNKNOWN
from vrag_kit.errors import VragError

FEW = WEIGHTS / "field-guide-vlm-few"


def judged(scores: dict[str, list[list[float]]]) -> pd.DataFrame:
    """Scores by setting, query and sample; each query is a species, s0, s1, …."""
    rows = [
        ("m", setting, 0 if setting == "zero_shot" else 1, 0, sample, f"q{n}", f"s{n}", score)
        for setting, queries in scores.items()
        for n, samples in enumerate(queries)
        for sample, score in enumerate(samples)
    ]
    columns = ["model", "setting", "k", "draw", "sample", "query_id", "group", "score"]
    return pd.DataFrame(rows, columns=columns).assign(abstained=0.0, status="ok")


OPPOSITE = {
    "zero_shot": [[1.0]] * 8 + [[0.0]] * 8,
    "gt_clue": [[0.0]] * 4 + [[1.0]] * 12,
}


def test_guessing_is_not_taken_for_knowledge():
    guesses = (np.random.default_rng(0).random((4000, 4)) < 0.3).astype(float)
    found = expand_strata(judged({"zero_shot": guesses.tolist()}), {})
    means = mean_scores(found, by=["stratum"]).query("metric == 'accuracy'").set_index("stratum")
    # whoever guesses is right in 30 % of the answers that did not choose, in every stratum
    assert means.loc[KNOWN, "value"] == pytest.approx(0.3, abs=0.04)
    assert means.loc[UNKNOWN, "value"] == pytest.approx(0.3, abs=0.02)
    assert means.loc[[KNOWN, UNKNOWN], "n"].sum() == means.loc[ALL, "n"] == 4000


def test_a_single_answer_chooses_and_is_left_out_and_the_table_says_so():
    found = expand_strata(judged(OPPOSITE), {})
    results = mean_scores(found, by=["stratum", "model", "setting", "k"])
    table = settings_table(results.query("metric == 'accuracy'"))
    assert {row[:2] for row in table.index} == {
        (KNOWN + LEFT_OUT, "clue (1 image)"),
        (UNKNOWN + LEFT_OUT, "clue (1 image)"),
        (ALL, "zero-shot (no image)"),
        (ALL, "clue (1 image)"),
    }
    assert table.index[0][0] == KNOWN + LEFT_OUT


def test_questions_without_a_verdict_are_a_stratum_of_their_own():
    table = judged({"zero_shot": [[np.nan], [1.0]], "gt_clue": [[1.0], [1.0], [0.0]]})
    found = expand_strata(table, {}).query("setting == 'gt_clue'").set_index("query_id")["stratum"]
    assert found["q0"].tolist() == found["q2"].tolist() == [NO_VERDICT, ALL]


@pytest.mark.parametrize("asked", [1, 4])
@pytest.mark.parametrize("told", [{}, {"m": ["s1", "s9"]}])
def test_assigned_strata_are_the_expanded_ones(asked, told):
    scores = {setting: [each * asked for each in of] for setting, of in OPPOSITE.items()}
    table = judged(scores).sample(frac=1, random_state=0)
    placed = assign_stratum(table, told)
    assert placed["query_id"].tolist() == table["query_id"].tolist()
    keys = ["setting", "query_id", "sample", "stratum"]
    found = placed[placed["stratum"] != ""][keys].sort_values(keys).reset_index(drop=True)
    strata = expand_strata(table, told).query("stratum != @ALL")
    pd.testing.assert_frame_equal(found, strata[keys].sort_values(keys).reset_index(drop=True))
    none = assign_stratum(table.query("setting != 'zero_shot'"), {})
    assert set(none["stratum"]) == {""}


def test_without_answers_to_tell_what_a_model_knows_the_way_out_is_named():
    table = judged({"gt_clue": [[1.0]]})
    with pytest.raises(VragError, match=r"m has .*zero_shot\(benchmark\)"):
        expand_strata(table, {})


MODELS = ["field-guide-vlm-few", {"model": str(FEW), "name": "mine"}, "gpt-4o@openai"]


def test_renamed_folders_are_known_by_names_in_questions(guide):
    species = sorted(set(guide.groups.values()))
    renamed = {name: f"thing {number}" for number, name in enumerate(species)}
    queries = {
        query_id: replace(query, group=renamed[query.group])
        for query_id, query in guide.queries.items()
    }
    right = trained_groups(MODELS, guide)["mine"]
    found = trained_groups(MODELS, replace(guide, queries=queries))["mine"]
    assert found == {renamed[name] for name in right}
