"""Differences by part of the questions: one line a part, one scale for all panels, and
marks that say where answers failed.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection

from vrag_kit.plotting import old_forest, old_points

LINES = ["level", "scenario"]


def differences() -> pd.DataFrame:
    rows = []
    for setting, size in (("gt_rag", 10.0), ("mismatched_rag", -2.0)):
        for level, scenario in (("overall", "overall"), ("aspect", "others"), ("part", "others")):
            rows.append(
                {
                    "model": "m",
                    "setting": setting,
                    "level": level,
                    "scenario": scenario,
                    "value": size,
                    "ci_low": size - 30,
                    "ci_high": size + 4,
                    "n": 9,
                    "n_failed": int(level == "part"),
                }
            )
    return pd.DataFrame(rows)


def test_parts_of_one_name_have_lines_of_their_own_and_panels_one_scale() -> None:
    panels = {"gt_rag": "GT", "mismatched_rag": "mismatched"}
    first, second = old_forest(differences(), panels, lines=LINES).axes
    assert [text.get_text() for text in first.get_yticklabels()] == ["overall", "others", "others"]
    assert first.get_xlim() == second.get_xlim() == (-1.06 * 32, 1.06 * 32)
    assert first.get_title() == "GT\n(n = 9)"


def test_a_mark_is_hollow_where_answers_failed() -> None:
    (axis,) = old_forest(differences(), {"gt_rag": "GT"}, lines=LINES).axes
    drawn = {line.get_markerfacecolor(): line.get_ydata() for line in axis.lines}
    np.testing.assert_allclose(drawn["white"], [2.0])


def test_few_questions_are_faint_and_the_caption_explains_what_is_drawn_alone() -> None:
    many = differences().query("setting == 'gt_rag'").assign(n=15, n_failed=0)
    few = many.assign(n=[14, 15, 15], n_failed=[0, 1, 0])
    captions = []
    for table, alphas in ((many, [1.0] * 3), (few, [0.4, 1.0, 1.0])):
        figure = old_forest(table, {"gt_rag": "GT"}, lines=LINES)
        captions.append(figure.get_supxlabel())
        marks = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
        drawn = {float(y): line.get_alpha() for line in marks for y in line.get_ydata()}
        assert [drawn[y] for y in (0.0, 1.0, 2.0)] == alphas
    plain = "Bars: 95 % intervals, not corrected for their number."
    assert captions == [plain, f"{plain} Hollow: some answers failed. Faint: n below 15."]


def test_differences_on_other_data_are_ticks_on_the_lines_that_there_are() -> None:
    others = differences().assign(value=[7.0, 8.0, 9.0] * 2)
    others.loc[2, "scenario"] = "elsewhere"
    (axis,) = old_forest(
        differences(), {"gt_rag": "GT"}, lines=LINES, others=others, others_are="theirs"
    ).axes
    ticks = next(each for each in axis.collections if isinstance(each, LineCollection))
    assert sorted({float(x) for path in ticks.get_segments() for x in path[:, 0]}) == [7.0, 8.0]


def test_means_without_a_number_stand_above_their_names_with_chance_across() -> None:
    rows = {"model": "m", "n": 9, "ci_low": 10.0, "ci_high": 40.0, "n_failed": 0}
    table = pd.DataFrame({"letter": ["A", "B", "none"], "value": [20.0, 30.0, 50.0]})
    (axis,) = old_points(
        {"chosen": table.assign(**rows)},
        {"A": "A", "B": "B"},
        by="letter",
        xlabel="letter",
        ylabel="percent",
        lines={"chance": 25.0},
    ).axes
    assert "Dotted: chance (25)." in axis.figure.get_suptitle()
    assert [text.get_text() for text in axis.get_xticklabels()] == ["A", "B"]
    drawn = [float(line.get_ydata()[0]) for line in axis.lines if len(line.get_ydata())]
    assert sorted(drawn) == [20.0, 25.0, 30.0]
