"""What MRAG-Bench consists of, beside Table 2 and Figure 2, and the copy whose options
are spelt apart.
"""

from __future__ import annotations

import pandas as pd
import pytest
from mrag_rows import four_questions

from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.papers.mrag_bench.option_leakage import with_normalised_options, with_planted_cue
from vrag_kit.types import Benchmark


def test_a_benchmark_in_numbers_agrees_with_counting(drawn: Benchmark) -> None:
    table = paper.statistics.describe(drawn).set_index("statistic")
    assert table.loc["questions", ["value", "published"]].tolist() == [63, 1353]
    words = [len(query.text.split()) for query in drawn.queries.values()]
    assert table.loc["words of a question, mean", "value"] == pytest.approx(sum(words) / 63)
    widths = [document.image.open().width for document in drawn.corpus.values()]
    mean = table.loc["width of a picture, mean", "value"]
    assert mean == pytest.approx(sum(widths) / len(widths))
    assert table.loc["options of a question, mean", ["value", "published"]].tolist() == [4, 4]
    assert table["value"].notna().all()
    assert pd.isna(table.loc["ground-truth pictures, different ones", "published"])


def test_shares_stand_beside_figure_2_and_an_absent_scenario_has_none() -> None:
    table = paper.statistics.distribution(four_questions()).set_index("scenario")
    assert table["n"].to_dict() == {
        name: int(name in ("angle", "partial", "incomplete", "others")) for name in QUESTIONS
    }
    assert table.loc["angle", ["share", "published"]].tolist() == [25, 23.8]
    assert table["published"].sum() == pytest.approx(100, abs=0.2)


def test_the_spelling_of_a_copy_speaks_as_often_as_in_40_questions_that_were_read(
    drawn: Benchmark,
) -> None:
    words = [name for name, q in drawn.queries.items() if len(q.choices[0]) > 1]
    copy = with_planted_cue(drawn.subset(words[:40]), seed=3)
    table = paper.option_leakage.option_format_baseline(copy)
    # 24 of 40 rightly and 2 wrongly; on 14 it draws among four
    assert (table["guessed"].sum(), table["correct"].sum()) == (26, 24)
    assert table["expected"].mean() == pytest.approx((24 + 14 / 4) / 40)
    assert paper.option_leakage.option_format_baseline(drawn)["guessed"].sum() == 0
    plain = paper.option_leakage.option_format_by_scenario(table, weights=None).set_index(
        "scenario"
    )
    assert plain.loc["overall", "value"] == pytest.approx(68.75)
    mixed = paper.option_leakage.option_format_by_scenario(
        table, weights=pd.Series(QUESTIONS).rename_axis("scenario")
    ).set_index("scenario")
    parts = plain.drop("overall")["value"]
    weights = pd.Series(QUESTIONS)[parts.index]
    assert mixed.loc["overall", "value"] == pytest.approx((parts * weights).sum() / weights.sum())


def test_a_copy_asks_the_same_and_spelt_alike_it_is_the_original_again(drawn: Benchmark) -> None:
    copy = with_planted_cue(drawn)
    assert copy.fingerprint != drawn.fingerprint
    alike, again = with_normalised_options(drawn), with_normalised_options(copy)
    for query_id, query in copy.queries.items():
        assert query.metadata["letter"] == drawn.queries[query_id].metadata["letter"]
        assert again.queries[query_id].choices == alike.queries[query_id].choices


def test_a_label_is_spelt_as_imagenets_and_a_name_as_people_write_it() -> None:
    copies = [with_planted_cue(four_questions(), seed=seed) for seed in range(8)]
    seen = {copy.queries["0"].choices for copy in copies}
    assert ("wood_rabbit", "Eastern cottontail", "Marsh rabbit", "Hare") in seen
    assert {copy.queries["1"].choices for copy in copies} == {("M", "N", "H", "B")}


def test_the_figure_has_a_colour_for_each_spelling_and_the_table_a_column(
    drawn: Benchmark,
) -> None:
    arms = paper.option_leakage.option_format_variants(drawn)
    guessed = {
        name: paper.option_leakage.option_format_by_scenario(
            paper.option_leakage.option_format_baseline(arm), weights=None
        )
        for name, arm in arms.items()
    }
    figure = paper.figures.option_format_figure(guessed)
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == [
        *("original options", "planted format cue"),
    ]
    rows = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert rows[:2] == ["all questions (n = 63 questions)", "angle (n = 7)"]
    table = paper.option_leakage.option_format_table(guessed)
    assert list(table.columns)[:-1] == list(arms)
    assert table.index[0] == "overall"
    spelt = paper.option_leakage.option_format_baseline(arms["planted"])
    told = f"({spelt['correct'].sum()} of {spelt['guessed'].sum()})"
    assert table.loc["overall", "planted"].endswith(told)
