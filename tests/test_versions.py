"""What changed from one annotation file to the next is found query by query and image
by image, and the newer file's own account of it is checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vrag_kit.errors import VragError
from vrag_kit.fetching import changes_summary, image_changes, label_changes

Row = dict[str, object]
Compare = Callable[[list[Row], list[Row]], pd.DataFrame]


def row(
    question: str = "What color are the feet?",
    clues: str = "a",
    images: str = "abcd",
    *,
    species: str = "Branta leucopsis",
    answers: tuple[str, ...] = ("black",),
    says: str | None = None,
    count: int | None = None,
    rate: float | None = None,
) -> Row:
    """A row; its images are letters, and `clues` are those that show it.

    With `says` it is one of v2.
    """
    v2 = {
        "y_count": len(clues) if count is None else count,
        "y_rate": len(clues) / len(images) if rate is None else rate,
        "is_changed_v2": says,
    }
    return {
        "images": {f"{species}/{name}.jpg": int(name in clues) for name in images},
        "answer": list(answers),
        "question": question,
        "sn": species,
        **(v2 if says else {}),
    }


def write(folder: Path, v1: list[Row], v2: list[Row]) -> tuple[Path, Path]:
    for name, rows in (("v1.jsonl", v1), ("v2.jsonl", v2)):
        (folder / name).write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
    return folder / "v1.jsonl", folder / "v2.jsonl"


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    return lambda v1, v2: label_changes(*write(tmp_path, v1, v2))


@pytest.mark.parametrize(
    ("now", "change", "counts"),
    [
        (row(), "same", (0, 0, 0, 0)),
        (row(clues="ab"), "clues", (1, 0, 0, 0)),
        (row(clues="bc"), "clues", (2, 1, 0, 0)),
        (row(images="abcdef", clues="af"), "images", (0, 0, 2, 0)),
        (row(images="ab"), "images", (0, 0, 0, 2)),
        (row(answers=("black", "dark")), "answers", (0, 0, 0, 0)),
        (row("Which color have the feet?"), "question", (0, 0, 0, 0)),
        (
            row("Which color have the feet?", clues="cd", images="acde", answers=("grey",)),
            "question, answers, clues, images",
            (2, 1, 1, 1),
        ),  # c, d: 0 → 1; a: 1 → 0; e new; b gone
    ],
)
def test_each_kind_of_change_is_counted(
    compare: Compare, now: Row, change: str, counts: tuple[int, ...]
) -> None:
    (found,) = compare([row()], [now]).itertuples()
    assert (
        found.change,
        (found.clues_added, found.clues_removed, found.images_added, found.images_removed),
    ) == (change, counts)
    assert (found.question_v1, found.question_v2, found.answers_v1, found.answers_v2) == (
        row()["question"],
        now["question"],
        ("black",),
        tuple(now["answer"]),
    )
    assert (found.clues_v1, found.clues_v2, found.line_v1, found.line_v2) == (
        1,
        sum(now["images"].values()),
        1,
        1,
    )


def test_queries_in_one_version_only_keep_their_texts(compare: Compare) -> None:
    table = compare(
        [row(), row(species="Anas acuta")], [row(species="Larus canus", clues="abc"), row()]
    )
    assert list(table["change"]) == ["only in v2", "same", "only in v1"]
    new, _, gone = table.itertuples()
    assert (new.line_v1 is pd.NA, new.line_v2, new.clues_v2, new.question_v1, new.answers_v1) == (
        True,
        1,
        3,
        "",
        (),
    )
    assert (gone.line_v1, gone.line_v2 is pd.NA, gone.species, gone.question_v2) == (
        2,
        True,
        "Anas acuta",
        "",
    )


def test_repeated_questions_go_with_the_row_that_has_their_labels(compare: Compare) -> None:
    table = compare(
        [row(clues="a"), row(clues="bc"), row(clues="d")], [row(clues="bc"), row(clues="ad")]
    )
    assert list(
        zip(table["line_v1"].fillna(0), table["line_v2"].fillna(0), table["change"], strict=True)
    ) == [(2, 1, "same"), (1, 2, "clues"), (3, 0, "only in v1")]


def test_of_several_questions_of_a_species_the_most_alike_go_together(compare: Compare) -> None:
    v1 = [
        row("What color is the bill?", clues="b"),
        row("HOLD", clues="", answers=()),
        row("What color are the feet?", clues="a"),
    ]
    table = compare(
        v1,
        [
            row("Which color do the feet have?", clues="a"),
            row("Which color has the bill?", clues="b"),
        ],
    )
    assert list(
        zip(table["line_v1"], table["line_v2"].fillna(0), table["change"], strict=True)
    ) == [(3, 1, "question"), (1, 2, "question"), (2, 0, "only in v1")]


def test_other_images_or_another_species_make_another_question(compare: Compare) -> None:
    assert list(compare([row("One?")], [row("Two?", images="dxyz", clues="x")])["change"]) == [
        "only in v2",
        "only in v1",
    ]
    assert list(compare([row("One?")], [row("One?", species="Anas acuta")])["change"]) == [
        "only in v2",
        "only in v1",
    ]


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (row(says="unchanged"), []),
        (row(says="updated_image_label", clues="ab"), []),
        (row(says="updated_qa", answers=("grey",), clues="ab"), []),
        (row(says="updated_qa", species="Anas acuta"), []),
        (row(says="updated_qa"), ["is_changed_v2 is updated_qa, found same"]),
        (row(says="unchanged", clues="ab"), ["is_changed_v2 is unchanged, found clues"]),
        (
            row(says="updated_image_label", answers=("grey",), clues="ab"),
            ["is_changed_v2 is updated_image_label, found answers, clues"],
        ),
        (
            row(says="unchanged", species="Anas acuta"),
            ["is_changed_v2 is unchanged, found only in v2"],
        ),
        (
            row(says="no"),
            ["is_changed_v2 is 'no', expected unchanged, updated_image_label, updated_qa"],
        ),
        (row(says="unchanged", count=True), ["y_count is True, but 1 of 4 images are clues"]),
        (row(says="unchanged", rate=float("nan")), ["y_rate is nan, but 1 of 4 images are 0.25"]),
        (row(says="unchanged", count=2), ["y_count is 2, but 1 of 4 images are clues"]),
        (row(says="unchanged", rate=0.2), ["y_rate is 0.2, but 1 of 4 images are 0.25"]),
        (row(says="unchanged", images="abc", rate=0.333), []),
    ],
)
def test_what_a_row_says_of_itself_is_held_against_what_is_found(
    compare: Compare, now: Row, words: list[str]
) -> None:
    table = compare([row(images="abc") if now["y_rate"] == 0.333 else row()], [now])
    assert [text for text in table["disagrees"] if text] == words
    assert (
        f"in {len(words)}." in changes_summary(table)
        if words
        else "agrees" in changes_summary(table)
    )


def test_the_summary_counts_as_a_hand_does(compare: Compare) -> None:
    v1 = [
        row(),
        row("Two?", clues="ab"),
        row("Three?"),
        row("HOLD", species="Anas acuta"),
        row("Four?", species="Larus canus"),
    ]
    v2 = [
        row(),
        row("Two?", clues="bcd"),
        row("Three?", answers=("x",), images="abcde"),
        row("4?", species="Larus canus"),
    ]
    assert (
        changes_summary(compare(v1, v2)).splitlines()[0]
        == "5 queries in v1, 4 in v2: 1 only in v1, 0 only in v2, 1 the same; another question in"
        " 1, other answers in 1, other clues in 1 (+2 −1), other images in 1 (+1 −0)."
    )


def test_rows_with_faults_are_compared_and_rows_without_shape_are_counted_apart(
    tmp_path: Path,
) -> None:
    v1, v2 = write(tmp_path, [row(clues="", answers=())], [row()])
    assert list(label_changes(v1, v2)["change"]) == ["answers, clues"]
    for bad, word in (
        ({"question": "Q?"}, "'sn' is missing, expected a str"),
        ({**row(), "images": [1]}, "'images' is a list, expected a dict"),
        ({**row(), "images": {"a/b.jpg": "1"}}, "label '1'"),
    ):
        for v1, v2, lines in (
            ([row(), bad], [row()], (2, None)),
            ([row()], [row(), bad], (None, 2)),
        ):
            table = label_changes(*write(tmp_path, v1, v2))
            assert list(table["change"]) == ["same", "bad row"]
            last = table.iloc[1]
            assert (
                last["line_v1"] is pd.NA,
                last["line_v2"] is pd.NA,
                last["clues_added"],
                word in last["disagrees"],
            ) == (lines[0] is None, lines[1] is None, 0, True)
            assert (
                changes_summary(table)
                .splitlines()[0]
                .startswith("1 queries in v1, 1 in v2: 0 only in v1, 0 only in v2, 1 the same")
            )
            assert changes_summary(table).splitlines()[1:] == [
                "What rows say of themselves (is_changed_v2, y_count, y_rate) agrees with this.",
                "1 bad rows are in neither count, and compared with nothing.",
            ]
    assert list(label_changes(*write(tmp_path, [{"no": 1}], [{"no": 1}]))["change"]) == [
        "bad row",
        "bad row",
    ]
    with pytest.raises(VragError, match="no queries found"):
        label_changes(*write(tmp_path, [], [row()]))


rows = st.lists(
    st.builds(
        row,
        st.sampled_from(["One?", "Two?", "HOLD"]),
        st.text("abcde", max_size=3),
        st.text("abcde", min_size=1).map(lambda text: "".join(dict.fromkeys(text))),
        species=st.sampled_from(["S s", "T t"]),
        answers=st.sampled_from([("x",), ("y", "x")]),
    ),
    min_size=1,
    max_size=6,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(v1=rows, v2=rows)
def test_v1_with_the_changes_applied_is_v2(tmp_path: Path, v1: list[Row], v2: list[Row]) -> None:
    paths = write(tmp_path, v1, v2)
    changes, images = label_changes(*paths), image_changes(*paths)
    assert sorted(changes["line_v1"].dropna()) == [*range(1, len(v1) + 1)]
    assert sorted(changes["line_v2"].dropna()) == [*range(1, len(v2) + 1)]
    for found in changes.dropna(subset=["line_v1", "line_v2"]).itertuples():
        before, after = v1[found.line_v1 - 1], v2[found.line_v2 - 1]
        labels = dict(before["images"])
        for image in images[images["line_v2"] == found.line_v2].itertuples():
            assert labels.pop(image.image, None) == (None if image.v1 is pd.NA else image.v1)
            if image.v2 is not pd.NA:
                labels[image.image] = image.v2
        assert (found.species, found.question_v2, list(found.answers_v2), labels) == (
            after["sn"],
            after["question"],
            after["answer"],
            after["images"],
        )
        flips = images[images["line_v2"] == found.line_v2]
        assert found.clues_added == ((flips["v1"] == 0) & (flips["v2"] == 1)).sum()
        assert found.clues_removed == ((flips["v1"] == 1) & (flips["v2"] == 0)).sum()
        assert (found.images_added, found.images_removed) == (
            flips["v1"].isna().sum(),
            flips["v2"].isna().sum(),
        )
        assert (found.change == "same") == (before == after)
