"""What the format of options gives away, and how much of a score it could explain."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from mrag_rows import answered, four_questions

from vrag_kit.judging.multiple_choice import correct_letters
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers.mrag_bench.option_leakage import (
    odd_format_option,
    option_format_baseline,
    option_format_variants,
    with_cue_strata,
)

FOUR = four_questions()


@pytest.mark.parametrize(
    ("options", "letter"),
    [
        ("wood_rabbit|Eastern cottontail|Marsh rabbit|Hare", "A"),  # the only underscore
        ("Hare|marsh rabbit|wood_rabbit|Cottontail", "C"),  # … before the only lower case
        ("Tench|Carp|goldfish|Koi", "C"),  # no underscore, one in lower case
        ("great_auk|king_penguin|puffin|Razorbill", ""),  # two underscores, three lower
        ("great_Auk|king_Penguin|puffin|Razorbill", "C"),  # two underscores, one lower
        ("EastAsia|SouthEastAsia|Africa|Europe", ""),
        ("tench|carp|goldfish|koi", ""),  # all in lower case: none is odd
    ],
)
def test_the_option_with_the_odd_format(options, letter):
    assert odd_format_option(options.split("|")) == letter


def test_the_baseline_guesses_by_format_and_else_at_random():
    table = option_format_baseline(FOUR).set_index("query_id")
    # 0: wood_rabbit is right; 1, 2: nothing is odd; 3: the only one in lower case is right
    assert table["option"].to_dict() == {"0": "A", "1": "", "2": "", "3": "A"}
    assert table["score"].tolist() == [1, 0.25, 0.25, 1]
    turned = option_format_baseline(paper.settings.rotate_options(FOUR, 2)).set_index("query_id")
    assert turned["option"].to_dict() == {"0": "C", "1": "", "2": "", "3": "C"}


def test_normalised_options_have_one_format_and_keep_their_answer():
    alike = option_format_variants(FOUR)["normalised"]
    assert alike.queries["0"].choices[:2] == ("wood rabbit", "eastern cottontail")
    assert alike.queries["2"].choices == ("east asia", "south east asia", "africa", "europe")
    assert alike.queries["1"].choices == ("M", "N", "H", "B")
    assert all(correct_letters(query) == "A" for query in alike.queries.values())
    assert not option_format_baseline(alike)["guessed"].any()
    assert alike.fingerprint != FOUR.fingerprint


def test_questions_whose_options_become_equal_are_left_out_of_the_normalised_arm():
    twice = replace(FOUR.queries["3"], choices=("Toad", "toad"), answers=("toad",))
    arms = option_format_variants(replace(FOUR, queries={**FOUR.queries, "3": twice}))
    assert list(arms["original"].queries) == ["0", "1", "2", "3"]
    assert list(arms["normalised"].queries) == ["0", "1", "2"]


def test_planted_cues_are_as_frequent_as_in_40_inspected_questions_and_can_be_followed():
    choices = ("red fox", "sea star", "tree frog", "barn owl")
    one = replace(FOUR.queries["0"], choices=choices, answers=choices[:1])
    queries = {f"q{n}": replace(one, query_id=f"q{n}", group=f"q{n}") for n in range(40)}
    forty = replace(FOUR, queries=queries, qrels={name: {} for name in queries})
    arms = option_format_variants(forty)
    assert list(arms) == ["original", "normalised", "planted"]
    copy = arms["planted"]
    assert copy.fingerprint != forty.fingerprint
    assert {query.choices[1] for query in copy.queries.values()} == {"Sea star", "sea_star"}
    table = option_format_baseline(copy).set_index("query_id")
    # 24 of 40 on the correct option and 2 on an incorrect one; on 14 it guesses among four
    assert (table["guessed"].sum(), table["correct"].sum()) == (26, 24)
    assert table["score"].mean() == pytest.approx((24 + 14 / 4) / 40)
    follows = {name: table.loc[name, "option"] or "B" for name in queries}
    judged = [answered(copy, follows, "planted"), answered(forty, dict.fromkeys(queries, "B"), "o")]
    strata = with_cue_strata(pd.concat(judged), arms)
    means = strata.query("setting == 'planted'").groupby("stratum")["score"].mean()
    where = ["cue on an incorrect option", "no cue", "cue on the correct option"]
    assert means[where].tolist() == [0, 0, 1]
    named = strata.groupby("setting")["named"].mean()
    assert named.to_dict() == {"planted": pytest.approx(24 / 40), "o": 0}
