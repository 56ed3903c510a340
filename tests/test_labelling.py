"""Which answers are drawn for labelling, how labels are kept, and the panel: what is
clicked is on disk.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import stats

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.errors import VragError
from vrag_kit.judging import annotation_sample, join_labels, read_human_labels, select_labels
from vrag_kit.judging.human_labels import LABEL_SCORES, label_of_score, write_human_labels
from vrag_kit.types import Benchmark
from vrag_kit.widgets import label_answers, labels_table
from vrag_kit.widgets.annotation import AnnotationPanel

HEADER = "query_id,answer,label,annotator\n"


def judged(n: int = 40, **changes: object) -> pd.DataFrame:
    """A table of `n` judged answers: ten queries, each with several draws."""
    table = pd.DataFrame(
        {
            "model": "m",
            "setting": "gt_clue",
            "k": 1,
            "draw": [i // 10 for i in range(n)],
            "sample": 0,
            "query_id": [f"q{i % 10}" for i in range(n)],
            "answer": [f"answer {i % 3}" for i in range(n)],
            "status": "ok",
            "score": [float(i % 2) for i in range(n)],
            "verdict": "Score: secret",
        }
    )
    return table.assign(**changes)


def drawn(table: pd.DataFrame, n: int, seed: int = 0) -> list[tuple[str, int]]:
    return list(
        annotation_sample(table, n, seed=seed)[["query_id", "draw"]].itertuples(
            index=False, name=None
        )
    )


def test_a_larger_sample_begins_with_the_smaller_one_and_seeds_differ() -> None:
    assert drawn(judged(), 20)[:5] == drawn(judged(), 5)
    assert len(set(drawn(judged(), 40))) == 40
    assert drawn(judged(), 20) != drawn(judged(), 20, seed=1)


def test_what_is_drawn_depends_neither_on_the_words_nor_on_the_order() -> None:
    assert drawn(judged(answer="other", score=0.5), 12) == drawn(judged(), 12)
    assert drawn(judged()[::-1], 12) == drawn(judged(), 12)


@pytest.mark.slow
def test_every_answer_is_as_likely_to_be_drawn_as_any_other() -> None:
    times = pd.Series(
        [name for seed in range(100) for name in drawn(judged(20), 5, seed)]
    ).value_counts()
    assert len(times) == 20  # 25 times each are expected
    assert stats.chisquare(times).pvalue > 0.001


def test_as_many_are_drawn_of_each_arm_and_each_says_how_many_it_stands_for() -> None:
    arms = [judged(10, setting="zero_shot", k=0), judged(40), judged(3, setting="non_clue")]
    sample = annotation_sample(pd.concat(arms), 5)
    assert sample["setting"].value_counts().to_dict() == {
        "zero_shot": 5,
        "gt_clue": 5,
        "non_clue": 3,  # all that there are
    }
    sizes = sample.groupby("setting")["arm_size"].unique().map(list).to_dict()
    assert sizes == {"zero_shot": [10], "gt_clue": [40], "non_clue": [3]}
    assert set(sample["setting"][:3]) == set(sizes)  # whoever stops early has labelled of each
    by_draw = annotation_sample(judged(40), 2, of_each=["draw"])
    assert by_draw["draw"].value_counts().to_dict() == {0: 2, 1: 2, 2: 2, 3: 2}


def test_without_arms_answers_are_drawn_from_all_and_within_an_arm_in_the_same_order() -> None:
    table = pd.concat([judged(40), judged(10, setting="zero_shot", k=0)])
    simple = annotation_sample(table, 12, of_each=[])
    assert len(simple) == 12
    each = annotation_sample(table, 50)
    for setting, part in simple.groupby("setting"):
        same = each[each["setting"] == setting].head(len(part))
        assert part["query_id"].tolist() == same["query_id"].tolist()


def test_only_answers_that_did_not_fail_are_drawn() -> None:
    table = judged(status=["ok", "timeout"] * 20)
    assert set(annotation_sample(table, 20)["status"]) == {"ok"}
    with pytest.raises(VragError, match="21 answers to label are asked for; expected 1 to 20"):
        annotation_sample(table, 21)


def test_two_answers_of_one_name_are_refused() -> None:
    with pytest.raises(VragError, match="two answers are both 'm/gt_clue/1/0/0/q"):
        annotation_sample(pd.concat([judged(10)] * 2), 5)


def test_answers_under_several_numbers_of_clues_are_different_answers() -> None:
    table = pd.concat([judged(10).assign(m=m, setting="m_in_k") for m in (1, 3)])
    assert len(annotation_sample(table, 20)) == 20
    counted = judged(10).assign(m=pd.array([None] * 10, "Int64"))  # clues are not counted
    assert drawn(counted, 5) == drawn(judged(10), 5)


@pytest.mark.parametrize(
    ("score", "label"), [(1.0, "true"), (0.75, "partial"), (0.01, "partial"), (0.0, "false")]
)
def test_a_score_between_0_and_1_is_partial(score: float, label: str) -> None:
    assert label_of_score(score) == label


def test_a_label_goes_to_every_drawn_answer_that_says_the_same_and_the_rest_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sample = judged(4).assign(
        query_id="q",
        group="species",
        answer=["red", "red", "blue", "green"],
        score=[1.0, 0.5, 0.0, float("nan")],
        arm_size=90,
    )
    labels = pd.DataFrame(
        [
            ("q", "red", "true", "me"),
            ("q", "green", "false", "me"),
            ("q", "gone", "true", "me"),
            ("other", "red", "true", "me"),
        ],
        columns=["query_id", "answer", "label", "annotator"],
    )
    pairs = join_labels(sample, labels)
    assert (
        capsys.readouterr().out
        == "labels: 3 of 4 sampled answers have one; 2 of 4 labels belong to none of them\n"
    )
    assert pairs[
        ["answer", "human_label", "judge_label", "annotator", "weight"]
    ].to_numpy().tolist() == [
        ["red", "true", "true", "me", 45.0],
        ["red", "true", "partial", "me", 45.0],
    ]  # the two stand for all 90 of their arm
    with pytest.raises(VragError, match="'arm_size'"):
        join_labels(sample.drop(columns="arm_size"), labels)


def test_labels_of_other_answers_are_left_out_and_that_there_are_none_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    columns = ["query_id", "answer", "label", "annotator"]
    said = [("q0", "answer 0", "true", "me"), ("q1", "of another model", "false", "me")]
    labels = pd.DataFrame([*said, ("other", "answer 0", "true", "you")], columns=columns)
    mine = select_labels(labels, judged())
    assert mine.to_numpy().tolist() == [["q0", "answer 0", "true", "me"]]
    assert capsys.readouterr().out == "1 of 3 labels are of these answers, by me\n"
    none = select_labels(labels, judged().assign(answer="else"))
    assert list(none.columns) == columns
    assert none.empty
    assert "0 of 3 labels are of these answers; label some" in capsys.readouterr().out
    assert select_labels(labels[:0], judged()).empty


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
            st.text(st.characters(exclude_categories=["Cs"])),
            st.sampled_from(list(LABEL_SCORES)),
        ),
        unique_by=lambda row: row[:2],
        max_size=5,
    )
)
@settings(max_examples=40, deadline=None)
def test_labels_of_any_words_are_read_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("labels") / "l.csv"
    labels = pd.DataFrame(
        [(*row, "me") for row in rows],
        columns=["query_id", "answer", "label", "annotator"],
        dtype=object,
    )
    write_human_labels(path, labels)
    pd.testing.assert_frame_equal(read_human_labels(path), labels)


def test_a_file_that_a_spreadsheet_saved_is_read(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_bytes(
        b"\xef\xbb\xbf" + HEADER.replace("\n", "\r\n").encode() + b'q,"NA",true,me\r\n\r\n'
    )
    assert read_human_labels(tmp_path / "l.csv").to_numpy().tolist() == [["q", "NA", "true", "me"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("query,answer,label\n", r"line 1: .*'query', .*'query_id'"),
        ("", r"line 1: .*'query_id'"),
        (
            HEADER + "q,red,true,me\nq,blue,right,me\n",
            r"line 3: found label .right.; expected one of true, partial, false",
        ),
        (HEADER + "q,red,true\n", r"line 2: found 3 values, expected 4"),
        (HEADER + "q,red, and blue,true,me\n", r"line 2: found 5 values, expected 4"),
        (HEADER + ",red,true,me\n", r"line 2: the query_id is empty"),
        (HEADER + "q,red,true,\n", r"line 2: the annotator is empty"),
        (
            HEADER + "q,red,true,me\nq,blue,true,me\nq,red,false,you\n",
            r"line 4: this answer to 'q' has a label already, in line 2",
        ),
        (HEADER + 'q,"red"x,true,me\n', r"line 2: not CSV"),
        (HEADER.encode() + b"q,caf\xe9,true,me\n", r"line 2: .*byte 0xe9"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    (tmp_path / "l.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(VragError, match=rf"l\.csv:? {message}"):
        read_human_labels(tmp_path / "l.csv")


def test_a_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(
        VragError,
        match=(
            r"none\.csv: labels cannot be read \(No such file or directory\)\. Write some with"
            r" `label_answers`"
        ),
    ):
        read_human_labels(tmp_path / "none.csv")


@pytest.fixture
def benchmark(write_annotations: Callable[..., Path], tree: Path) -> Benchmark:
    """One question that would be a script, if it were let."""
    return load_visual_rag(
        write_annotations(
            {
                "question": "Which <script>alert(1)</script> color?",
                "answer": ["red & <i>blue</i>", "green"],
            }
        ),
        tree,
        name="toy",
    )


@pytest.fixture
def sample(benchmark: Benchmark) -> pd.DataFrame:
    """Four answers to it, the first two the same."""
    (query_id,) = benchmark.queries
    return judged(4).assign(query_id=query_id, answer=["red", "red", "<b>blue</b>", "green"])


def on_disk(path: Path) -> dict[str, str]:
    labels = read_human_labels(path)
    return dict(zip(labels["answer"], labels["label"], strict=True))


def click(panel: AnnotationPanel, *names: str) -> None:
    for name in names:
        panel.buttons[name].click()


def test_every_click_is_on_disk_at_once(
    benchmark: Benchmark, sample: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "new" / "mine.csv"
    panel = label_answers(benchmark, sample, path, "Ada")
    assert on_disk(path) == {}
    assert panel.progress.value.startswith(
        "1 of 3, 0 labelled"
    )  # equal answers are one thing to label
    click(panel, "true")
    assert on_disk(path) == {"red": "true"}
    click(panel, "partial", "false")
    assert on_disk(path) == {"red": "true", "<b>blue</b>": "partial", "green": "false"}
    assert set(read_human_labels(path)["annotator"]) == {"Ada"}
    assert panel.progress.value.startswith("the end: 3 labelled, 0 not")


def test_at_the_end_nothing_more_is_labelled(
    benchmark: Benchmark, sample: pd.DataFrame, tmp_path: Path
) -> None:
    panel = label_answers(benchmark, sample, tmp_path / "l.csv", "Ada")
    click(panel, "true", "true", "true", "false", "skip")
    assert on_disk(tmp_path / "l.csv") == {"red": "true", "<b>blue</b>": "true", "green": "true"}
    assert panel.buttons["true"].disabled


def test_back_shows_what_was_said_and_lets_it_be_changed(
    benchmark: Benchmark, sample: pd.DataFrame, tmp_path: Path
) -> None:
    panel = label_answers(benchmark, sample, tmp_path / "l.csv", "Ada")
    assert panel.buttons["back"].disabled
    click(panel, "back", "true", "false", "back", "back")
    assert [
        (panel.buttons[name].button_style, panel.buttons[name].icon) for name in LABEL_SCORES
    ] == [
        ("info", "check"),
        ("", ""),
        ("", ""),
    ]
    click(panel, "partial")
    assert on_disk(tmp_path / "l.csv") == {"red": "partial", "<b>blue</b>": "false"}
    assert panel.progress.value.startswith(
        "3 of 3, 2 labelled, 1 not"
    )  # on to the next without a label


def test_a_notebook_file_keeps_a_line_about_the_panel_and_no_pictures(
    benchmark: Benchmark, sample: pd.DataFrame, tmp_path: Path
) -> None:
    panel = label_answers(benchmark, sample, tmp_path / "l.csv", "Ada")
    click(panel, "true")
    assert repr(panel) == f"AnnotationPanel: 1 of 3 labelled, in {tmp_path / 'l.csv'}"
    assert "base64" not in str(panel._repr_mimebundle_())


def test_an_opened_file_is_gone_on_with_where_a_label_is_missing(
    benchmark: Benchmark, sample: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "l.csv"
    path.write_text(HEADER + "elsewhere,red,true,Ada\n", encoding="utf-8")
    click(label_answers(benchmark, sample, path, "Ada"), "true", "skip", "false")
    panel = label_answers(benchmark, sample, path, "Ada")
    assert panel.progress.value.startswith("2 of 3, 2 labelled")  # the one that was skipped
    click(panel, "partial")
    assert read_human_labels(path)[["query_id", "label"]].iloc[0].tolist() == ["elsewhere", "true"]
    assert len(read_human_labels(path)) == 4


def test_labels_that_another_tab_wrote_meanwhile_are_kept(
    benchmark: Benchmark, sample: pd.DataFrame, tmp_path: Path
) -> None:
    first, second = (label_answers(benchmark, sample, tmp_path / "l.csv", "Ada") for _ in range(2))
    click(first, "true")
    click(second, "skip", "false")
    assert on_disk(tmp_path / "l.csv") == {"red": "true", "<b>blue</b>": "false"}


def test_a_file_of_somebody_else_is_refused(
    benchmark: Benchmark, sample: pd.DataFrame, tmp_path: Path
) -> None:
    (tmp_path / "l.csv").write_text(HEADER + "q,red,true,Grace\n", encoding="utf-8")
    with pytest.raises(
        VragError, match=r"l\.csv: found labels of 'Grace', expected only those of 'Ada'"
    ):
        label_answers(benchmark, sample, tmp_path / "l.csv", "Ada")
    with pytest.raises(VragError, match="the annotator is empty"):
        label_answers(benchmark, sample, tmp_path / "m.csv", "")


def test_a_sample_of_other_data_is_refused(benchmark: Benchmark, tmp_path: Path) -> None:
    with pytest.raises(VragError, match="holds an answer to 'q0', which is no query of toy"):
        label_answers(benchmark, judged(1), tmp_path / "l.csv", "Ada")


def test_a_label_that_cannot_be_saved_is_told_and_asked_for_again(
    benchmark: Benchmark, sample: pd.DataFrame, tmp_path: Path
) -> None:
    (tmp_path / "folder").write_text("a file in the way", encoding="utf-8")
    panel = label_answers(benchmark, sample, tmp_path / "folder" / "l.csv", "Ada")
    click(panel, "true")
    assert "not saved" in panel.message.value
    assert panel.progress.value.startswith("1 of 3, 0 labelled")
    (tmp_path / "folder").unlink()
    click(panel, "true")
    assert panel.message.value == ""
    assert on_disk(tmp_path / "folder" / "l.csv") == {"red": "true"}


def test_a_file_that_was_damaged_meanwhile_is_not_overwritten(
    benchmark: Benchmark, sample: pd.DataFrame, tmp_path: Path
) -> None:
    panel = label_answers(benchmark, sample, tmp_path / "l.csv", "Ada")
    (tmp_path / "l.csv").write_text(HEADER + "q,red\n", encoding="utf-8")
    click(panel, "true")
    assert "line 2: found 2 values" in panel.message.value
    assert (tmp_path / "l.csv").read_text(encoding="utf-8") == HEADER + "q,red\n"


def test_the_card_is_escaped_and_does_not_tell_what_the_judge_said(
    benchmark: Benchmark, sample: pd.DataFrame, tmp_path: Path
) -> None:
    panel = label_answers(benchmark, sample, tmp_path / "l.csv", "Ada")
    click(panel, "skip")
    shown = panel.card.value
    assert "Which &lt;script&gt;alert(1)&lt;/script&gt; color?" in shown
    assert "red &amp; &lt;i&gt;blue&lt;/i&gt; | green" in shown
    assert "&lt;b&gt;blue&lt;/b&gt;" in shown
    assert not re.search(r"<script|<b>blue|<i>blue|secret", shown)


def pictures(card: str) -> list[Image.Image]:
    return [
        Image.open(io.BytesIO(base64.b64decode(data)))
        for data in re.findall(r'data:image/jpeg;base64,([^"]+)', card)
    ]


def test_clues_are_shown_as_small_jpegs_and_a_damaged_one_is_named(
    benchmark: Benchmark, sample: pd.DataFrame, tmp_path: Path, tree: Path
) -> None:
    (clue,) = (path for path in tree.rglob("a.jpg"))
    Image.new("RGB", (1000, 500), "red").save(clue)
    assert [
        (p.format, p.size)
        for p in pictures(label_answers(benchmark, sample, tmp_path / "l.csv", "Ada").card.value)
    ] == [("JPEG", (256, 128))]
    clue.write_bytes(b"no picture")
    panel = label_answers(benchmark, sample, tmp_path / "l.csv", "Ada")
    assert "no picture: " in panel.card.value
    assert "a.jpg" in panel.card.value
    click(panel, "true")
    assert on_disk(tmp_path / "l.csv") == {"red": "true"}


def test_the_table_of_labels_is_escaped_and_shows_labels_of_other_data(
    benchmark: Benchmark,
) -> None:
    (query_id,) = benchmark.queries
    html = labels_table(
        benchmark,
        pd.DataFrame(
            [(query_id, "<b>red</b>", "true", "A & B"), ("gone", "x", "false", "me")],
            columns=["query_id", "answer", "label", "annotator"],
        ),
    ).to_html()
    for text in (">&lt;b&gt;red&lt;/b&gt;</td>", ">true</td>", ">A &amp; B</td>"):
        assert text in html
    assert "gone, which toy does not have" in html
    assert "<script" not in html
