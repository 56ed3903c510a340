"""Figures are saved whole, the same every time, with the numbers behind them; colours
belong to models.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from vrag_kit.errors import VragError
from vrag_kit.papers import published
from vrag_kit.papers.visual_rag import (
    PAPER_NAMES,
    benchmark_figure,
    distribution,
    gcue_printed,
    printed,
    query_table,
)
from vrag_kit.plotting import (
    accuracy_figure,
    baseline_figure,
    budget_figure,
    building_figure,
    colors_of,
    contact_sheet,
    gcue_figure,
    retriever_figure,
    save_figure,
    side_by_side,
    variants_figure,
)
from vrag_kit.plotting.style import CLUE
from vrag_kit.types import Benchmark


def simple() -> tuple[plt.Figure, pd.DataFrame]:
    figure, axis = plt.subplots()
    axis.plot([1, 2], [3, 4])
    return figure, pd.DataFrame(
        {"n": [5], "k": [1], "retriever": ["r"], "unit": ["percent"], "value": [0.123456789]}
    )


def test_a_figure_is_saved_as_png_svg_and_csv_with_columns_in_the_papers_order(
    tmp_path: Path,
) -> None:
    save_figure(simple()[0], tmp_path / "new", "02_x", simple()[1])
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == [
        "02_x.csv",
        "02_x.png",
        "02_x.svg",
    ]
    assert (tmp_path / "new" / "02_x.csv").read_text(
        encoding="utf-8"
    ) == "unit,retriever,k,value,n\npercent,r,1,0.123457,5\n"
    assert (tmp_path / "new" / "02_x.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_figure(simple()[0], tmp_path / name, "x", simple()[1])
    for suffix in ("png", "svg", "csv"):
        assert (tmp_path / "a" / f"x.{suffix}").read_bytes() == (
            tmp_path / "b" / f"x.{suffix}"
        ).read_bytes()


def test_a_folder_that_cannot_be_written_is_an_error_and_older_figures_stay(tmp_path: Path) -> None:
    (tmp_path / "figures").write_text("a file in the way", encoding="utf-8")
    with pytest.raises(VragError, match=r"cannot be saved.*figures_dir"):
        save_figure(*simple()[:1], tmp_path / "figures", "x", simple()[1])
    assert (tmp_path / "figures").read_text(encoding="utf-8") == "a file in the way"


def test_a_model_has_the_same_color_everywhere_and_models_of_one_panel_never_share_one() -> None:
    assert colors_of(["CLIP", "x"])["CLIP"] == colors_of(["y", "CLIP"])["CLIP"]
    strangers = [f"model {n}" for n in range(6)]
    colors = colors_of(["CLIP", *strangers, "field-guide-vlm-few"])
    assert len(set(colors.values())) == 8
    assert (
        colors["field-guide-vlm-few"] == colors_of(["field-guide-vlm-few"])["field-guide-vlm-few"]
    )
    many = [f"model {n}" for n in range(60)]  # more than there are colours
    assert len(set(colors_of(many).values())) == 60
    assert colors_of(many) == colors_of(many)


def test_the_demos_models_have_other_colors_than_the_papers() -> None:
    demo = colors_of(["field-guide-vlm-few", "field-guide-vlm-many"])
    paper = colors_of(published("visual_rag", table=3)["model"])
    assert not set(demo.values()) & set(paper.values())
    loaded = colors_of(PAPER_NAMES)  # as users load them: the colours of the printed ones
    assert {PAPER_NAMES[name]: color for name, color in loaded.items()} == paper


@pytest.mark.parametrize(
    ("same", "mark"), [(True, "CLIP (paper)"), (False, "CLIP (paper, other data)")]
)
def test_the_retriever_figure_says_whose_data_and_what_the_groups_are(
    guide: Benchmark, same: bool, mark: str
) -> None:
    paper = published("visual_rag", table=2)
    ours = paper.assign(retriever="x", ci_low=paper["value"], ci_high=paper["value"], n=9)
    ours["metric"] = ours["metric"].replace("ndcg", "ndcg_visual_rag")
    museum = replace(guide, name="museum", groups_are="rooms")
    figure = retriever_figure(ours, paper, museum, same_data=same)
    assert (
        figure.get_suptitle()
        == "museum: mean over n = 9 queries, bands are 95 % intervals over rooms"
    )
    assert mark in [text.get_text() for text in figure.legends[0].get_texts()]
    assert guide.groups_are == "species"


def test_figure_2_draws_one_bar_a_category_as_long_as_its_share(guide: Benchmark) -> None:
    shares = distribution(guide)
    figure = benchmark_figure(shares, query_table(guide), "small guide")
    for axis, facet in zip(figure.axes, ("organism", "question"), strict=False):
        widths = [bar.get_width() for bar in axis.patches]
        assert widths == pytest.approx(list(shares[shares["facet"] == facet]["share"]))
    assert sum(bar.get_height() for bar in figure.axes[2].patches) == len(guide.queries)


def test_a_contact_sheet_frames_exactly_the_clues(guide: Benchmark) -> None:
    query_id = next(q for q in guide.queries if len(guide.relevant(q)) >= 3)
    figure = contact_sheet(guide, query_id, clues=3, others=5)
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert titles == ["clue"] * 3 + ["not a clue"] * 5
    assert (
        plt.matplotlib.colors.to_hex(figure.axes[0].spines["left"].get_edgecolor()).upper() == CLUE
    )


PAPER = printed(published("visual_rag", table=3))


def drawn(axis: plt.Axes) -> set[tuple[float, float]]:
    """All points of all lines of an axis."""
    return {
        (round(float(x), 6), round(float(y), 6))
        for line in axis.lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }


def test_the_baseline_figure_shows_every_printed_number_where_it_belongs() -> None:
    axis = baseline_figure({"paper": PAPER}).axes[0]
    values = {y for _, y in drawn(axis)}
    assert set(PAPER.query("setting in ('zero_shot', 'gt_clue', 'non_clue')")["value"]) <= values
    assert axis.get_title() == "paper (n = 374)"
    assert [label.get_text() for label in axis.get_xticklabels()][:2] == ["Phi4-MM", "Qwen2.5VL"]


def test_the_accuracy_figure_shows_top_k_left_and_one_in_k_right() -> None:
    left, right, _ = accuracy_figure({"paper": PAPER}).axes
    gpt = PAPER[PAPER["model"] == "GPT-4o"].set_index(["setting", "k"])["value"]
    assert {(0, gpt["zero_shot", 0]), (1, gpt["top_k", 1]), (7, gpt["top_k", 20])} <= drawn(left)
    assert {(0, gpt["zero_shot", 0]), (1, gpt["gt_clue", 1]), (2, gpt["one_in_k", 3])} <= drawn(
        right
    )


def test_a_mean_over_fewer_queries_is_drawn_hollow_and_the_legend_says_why() -> None:
    fewer = PAPER.assign(n=374 - 10 * ((PAPER["model"] == "GPT-4o") & (PAPER["k"] == 20)))
    axes = accuracy_figure({"whole": PAPER, "fewer": fewer}).axes
    hollow = [
        tuple(line.get_xdata())
        for axis in axes
        for line in axis.lines
        if line.get_marker() == "o"
        and line.get_markerfacecolor() == "white"
        and len(line.get_xdata())
    ]
    assert hollow == [(7,), (7,)]  # k = 20 of both panels below, none above
    assert axes[3].get_title() == "fewer (n = 364 to 374): top-k"
    assert [
        "answers failed" in " ".join(text.get_text() for text in axes[i].get_legend().get_texts())
        for i in (2, 5)
    ] == [False, True]


def test_the_gcue_figure_marks_what_lies_outside_and_hatches_what_is_unbounded() -> None:
    table = gcue_printed(published("visual_rag", table=3)).query("model == 'Qwen2.5VL'")
    ours = table.assign(
        ci_low=[float("-inf")] * 3 + [0.5] * (len(table) - 3),
        ci_high=[float("inf")] * 3 + [2.0] * (len(table) - 3),
    )
    axes = gcue_figure({"paper": table, "ours": ours}).axes
    triangles = [line for line in axes[2].lines if line.get_marker() == "^"]
    assert {tuple(line.get_ydata()) for line in triangles} == {
        (3.0,) * 4
    }  # λ = 1: 2.75 at k = 3 and 2.95 at k = 10 lie inside, the others above
    assert sum(len(axis.patches) for axis in axes[:3]) == 0
    assert [len(axis.patches) for axis in axes[4:7]] == [1, 1, 1]
    assert all(patch.get_hatch() == "///" for axis in axes[4:7] for patch in axis.patches)


def test_the_numbers_behind_a_figure_say_whose_they_are() -> None:
    table = side_by_side({"a": PAPER, "b": PAPER}, ["zero_shot"])
    assert list(table["source"]) == ["a"] * 8 + ["b"] * 8
    assert set(table["setting"]) == {"zero_shot"}


def test_every_model_of_the_paper_has_its_own_colour() -> None:
    assert len(set(colors_of(PAPER["model"]).values())) == 8


def test_the_variants_figure_shows_every_printed_number_of_table_6() -> None:
    paper = printed(published("visual_rag", table=6), n=266).query("setting != 'text_rag'")
    (axis,) = variants_figure(
        {"paper": paper},
        {"m_gt": "m GT", "m_in_k": "m in 10"},
        by="setting",
        x="m",
        xlabel="m",
        levels={"zero_shot": "none", "rag_best": "best"},
    ).axes
    assert set(paper["value"]) <= {y for _, y in drawn(axis)}
    assert {
        (m - 1, v)
        for m, v in paper.query("setting == 'm_gt'")[["m", "value"]].itertuples(index=False)
    } <= drawn(axis)
    assert axis.get_title() == "paper (n = 266)"


def test_the_budget_figure_stacks_the_causes_to_what_is_lost_and_draws_their_intervals() -> None:
    causes = ("no clue retrieved, one would help", "clue misread even alone", "judge in doubt")
    table = pd.DataFrame(
        [
            ("m", k, cause, value, value - 2, value + 3, 9)
            for k, values in {1: (40, 10, 0), 5: (10, 12, 0)}.items()
            for cause, value in zip(causes, values, strict=True)
        ],
        columns=["model", "k", "cause", "value", "ci_low", "ci_high", "n"],
    )
    figure = budget_figure(table)
    (axis,) = figure.axes
    tops = {
        round(bar.get_x() + bar.get_width() / 2): bar.get_y() + bar.get_height()
        for bar in axis.patches
    }  # the last bar of each k is the highest
    assert tops == {0: 50, 1: 22}
    whiskers = [
        tuple(float(y) for _, y in line)
        for part in axis.collections
        for line in part.get_segments()
    ]
    assert whiskers == [(38, 43), (8, 13), (40 + 8, 40 + 13), (10 + 10, 10 + 15)]
    assert axis.get_title() == "m (n = 9)"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(causes[:2])


def test_the_building_figure_has_a_bar_a_step_and_a_point_a_question_seen_by_both() -> None:
    steps = pd.DataFrame(
        [("with a folder", "species", 9), ("written", "questions", 4), ("kept", "questions", 1)],
        columns=["step", "what", "n"],
    )
    decisions = pd.DataFrame(
        [
            ("kept", 0.1, 0.05),
            ("too common", 0.2, 0.3),
            ("not annotated", 0.1, None),
            ("no clue", None, 0.0),
        ],
        columns=["fate", "estimated", "clue_rate"],
    )
    figure = building_figure(steps, decisions, 0.25, "toy")
    bars, points = figure.axes
    assert sorted(patch.get_width() for patch in bars.patches) == [1, 4, 9]
    assert {
        tuple(map(float, point))
        for line in points.lines
        if line.get_linestyle() == "None"
        for point in line.get_xydata()
    } == {(10.0, 5.0), (20.0, 30.0)}
    assert [text.get_text() for text in points.get_legend().get_texts()] == [
        "kept (1)",
        "too common (1)",
    ]
    assert "n = 4 questions written, 2 of them" in figure.get_supxlabel()
