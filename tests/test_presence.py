"""The coarse filter asks about every image, counts what could not be told, and drops
what is too common.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from strange_server import StrangeServer, images_in, text_in

from vrag_kit.building.species import SpeciesFolder, read_species_folders
from vrag_kit.building.visibility import coarse_filter, detect_feature
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark

WEIGHTS = "vrag_kit/synthetic/weights/field-guide-vlm-few"


def questions(folder: SpeciesFolder, *features: str) -> pd.DataFrame:
    rows = [
        (f"q{n}", folder.scientific, folder.name, f"What color are the {feature}?", feature, "")
        for n, feature in enumerate(features)
    ]
    return pd.DataFrame(
        rows, columns=["question_id", "species", "folder", "question", "feature", "dropped"]
    )


def model_at(server: StrangeServer) -> dict[str, object]:
    return {"model": f"filter@{server.url}", "timeout": 2.0, "retries": 0, "concurrency": 1}


def test_every_image_is_asked_about_once_and_what_is_no_yes_or_no_stays_unknown(
    tree: Path, tmp_path: Path
) -> None:
    (goose,) = read_species_folders(tree, {"Branta leucopsis": "Barnacle Goose"})
    with StrangeServer(
        {
            "Feature: feet": [
                "say Answer: yes",
                "say I see them.\nAnswer: **No**, they are hidden",
                "say perhaps",
                "status 500 down",
            ]
        }
    ) as server:
        table = detect_feature(model_at(server), questions(goose, "feet"), [goose], tmp_path)
        assert table["doc_id"].tolist() == list(goose.images)
        assert table["visible"].to_list()[:2] == [1.0, 0.0]
        assert table["visible"].isna().tolist() == [False, False, True, True]
        assert list(table["status"]) == ["ok", "ok", "unreadable", "error"]
        asked = next(request for request in server.requests if "Feature: feet" in text_in(request))
        assert "Barnacle Goose (scientific name: Branta leucopsis)" in text_in(asked)
        assert len(images_in(asked)) == 1
        before = len(server.requests)
        pd.testing.assert_frame_equal(
            detect_feature(model_at(server), questions(goose, "feet"), [goose], tmp_path), table
        )
        assert len(server.requests) == before  # all of it was stored, failures too

    filtered = coarse_filter(questions(goose, "feet"), table, limit=0.5).iloc[0]
    assert (
        filtered.estimated_clue_rate,
        filtered.n_judged,
        filtered.n_unjudged,
        filtered.dropped,
    ) == (
        0.5,
        2,
        2,
        "",
    )  # one of two: half, which is not above half


def test_a_question_that_was_dropped_before_is_not_asked(tree: Path, tmp_path: Path) -> None:
    (goose,) = read_species_folders(tree)
    table = questions(goose, "feet", "eggs").assign(dropped=["", "asks for eggs"])
    with StrangeServer({"Feature": ["say Answer: no"]}) as server:
        presence = detect_feature(model_at(server), table, [goose], tmp_path)
        assert server.calls("Feature: eggs") == 0
    filtered = coarse_filter(table, presence)
    assert filtered["dropped"].tolist() == [
        "",
        "asks for eggs",
    ]  # a rate of 0 stays: people may see what the model did not
    assert filtered["estimated_clue_rate"].fillna(-1).tolist() == [0.0, -1.0]


@pytest.mark.parametrize(
    ("visible", "dropped"),
    [
        ([1, 0, 0, 0], ""),  # 25 % is still rare
        ([1, 1, 0, 0, 0, 0, 0], "the estimated clue rate 28.6% is above 25%"),
        ([1, 0, 0, np.nan, 0], ""),  # 1 of 4 judged ones
        (
            [1, 0, 0, np.nan],
            "",
        ),  # a third of those that were judged, but not surely more than a quarter of all
        (
            [1, 1, 0, np.nan],
            "the estimated clue rate 66.7% is above 25%",
        ),  # whatever the last one shows
        ([np.nan, np.nan], "no image could be judged: timeout"),
    ],
)
def test_what_more_than_a_quarter_of_the_judged_images_show_is_dropped(
    visible: list[float], dropped: str
) -> None:
    presence = pd.DataFrame(
        {
            "question_id": "q0",
            "doc_id": [f"d{n}" for n in range(len(visible))],
            "visible": np.array(visible, float),
            "status": ["timeout" if np.isnan(value) else "ok" for value in visible],
            "detail": "",
        }
    )
    table = coarse_filter(pd.DataFrame({"question_id": ["q0"], "dropped": [""]}), presence)
    assert table["dropped"].tolist() == [dropped]
    assert table["n_judged"].item() + table["n_unjudged"].item() == len(visible)


@pytest.mark.slow
def test_a_model_that_was_taught_to_decline_finds_nearly_all_clues_when_it_is_asked_the_question(
    guide: Benchmark, guide_folder: Path, tmp_path: Path
) -> None:
    folders = {folder.name: folder for folder in read_species_folders(guide_folder / "images")}
    asked = list(guide.queries.values())[:2]
    table = pd.DataFrame(
        [
            (query.query_id, query.entity, query.metadata["folder"], query.text, "", "")
            for query in asked
        ],
        columns=["question_id", "species", "folder", "question", "feature", "dropped"],
    )
    presence = detect_feature(
        WEIGHTS,
        table,
        list(folders.values()),
        tmp_path,
        prompt="question",
        hardware={"batch_size": 32},
    )
    clue = np.array(
        [
            guide.qrels[query_id][doc_id]
            for query_id, doc_id in zip(presence["question_id"], presence["doc_id"], strict=True)
        ],
        bool,
    )
    assert presence.loc[clue, "visible"].mean() > 0.8
    assert presence.loc[~clue, "visible"].mean() < 0.3


def test_an_image_that_cannot_be_opened_is_named_and_counted(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    next(tree.rglob("c.jpg")).write_text("hello", encoding="utf-8")
    (goose,) = read_species_folders(tree)
    with StrangeServer({"Feature: feet": ["say Answer: yes"]}) as server:
        table = detect_feature(model_at(server), questions(goose, "feet"), [goose], tmp_path)
        assert server.calls("Feature: feet") == 3
    assert table["visible"].isna().tolist() == [False, False, True, False]
    assert table["status"][2] == "damaged"
    assert "not a readable picture" in table["detail"][2]
    assert "c.jpg: not a readable picture" in capsys.readouterr().out
    assert coarse_filter(questions(goose, "feet"), table)[
        ["n_judged", "n_unjudged"]
    ].to_numpy().tolist() == [[3, 1]]


def test_without_a_model_every_question_goes_on(tree: Path, tmp_path: Path) -> None:
    (goose,) = read_species_folders(tree)
    table = coarse_filter(
        questions(goose, "feet"),
        detect_feature("", questions(goose, "feet"), [goose], tmp_path),
    )
    assert table[["dropped", "n_judged", "n_unjudged"]].to_numpy().tolist() == [["", 0, 0]]
    assert table["estimated_clue_rate"].isna().all()


def test_a_question_that_stands_there_twice_gives_its_rate_to_the_row_that_goes_on() -> None:
    twice = pd.DataFrame(
        {"question_id": ["q0", "q0"], "dropped": ["asks again for the same feature", ""]}
    )
    table = coarse_filter(
        twice,
        pd.DataFrame(
            {
                "question_id": "q0",
                "doc_id": ["a", "b"],
                "visible": [0.0, 1.0],
                "status": "ok",
                "detail": "",
            }
        ),
    )
    assert table["n_judged"].tolist() == [0, 2]
    assert table["dropped"].tolist() == [
        "asks again for the same feature",
        "the estimated clue rate 50.0% is above 25%",
    ]


def test_a_mistyped_wording_and_an_unknown_folder_are_told(tree: Path, tmp_path: Path) -> None:
    (goose,) = read_species_folders(tree)
    with pytest.raises(VragError, match=r"prompt 'yes'.* expected one of 'yes_no', 'question'"):
        detect_feature(WEIGHTS, questions(goose, "feet"), [goose], tmp_path, prompt="yes")
    with pytest.raises(VragError, match=r"folder 'moved'; expected .* 00001_Animalia"):
        detect_feature(WEIGHTS, questions(goose, "feet").assign(folder="moved"), [goose], tmp_path)
