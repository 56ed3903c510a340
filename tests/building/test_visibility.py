"""The coarse filter asks about every image, counts what is unknown, and drops what is common."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from retrieval_data import refused
from strange_server import StrangeServer, images_in, text_in
from votes import questions

from vrag_kit.building.species import SpeciesFolder, read_species_folders
from vrag_kit.building.visibility import coarse_filter, detect_feature
from vrag_kit.workspace import Workspace

WEIGHTS = "vrag_kit/synthetic/weights/field-guide-vlm-few"


@pytest.fixture
def goose(tree: Path) -> SpeciesFolder:
    (folder,) = read_species_folders(tree, {"Branta leucopsis": "Barnacle Goose"})
    return folder


def test_every_image_is_asked_about_once(goose: SpeciesFolder, tmp_path: Path) -> None:
    no = "say I see them.\nAnswer: **No**, they are hidden"
    table = questions(goose, "feet", "eggs").assign(dropped=["", "asks for eggs"])
    words = {"Feature: feet": ["say Answer: yes", no, "say perhaps", "status 500 down"]}
    with StrangeServer(words) as server:
        model = {"model": f"filter@{server.url}", "timeout": 2.0, "retries": 0, "concurrency": 1}
        found = detect_feature(model, table, [goose], Workspace(answers_dir=tmp_path))
        assert found["doc_id"].tolist() == list(goose.images)
        assert found["visible"].fillna(-1).tolist() == [1.0, 0.0, -1.0, -1.0]
        assert list(found["status"]) == ["ok", "ok", "unreadable", "error"]
        asked = [request for request in server.requests if "Feature: feet" in text_in(request)]
        assert "Barnacle Goose (scientific name: Branta leucopsis)" in text_in(asked[0])
        assert len(images_in(asked[0])) == 1
        assert server.calls("Feature: eggs") == 0  # it was dropped before
        again = detect_feature(model, table, [goose], Workspace(answers_dir=tmp_path))
        assert server.calls("Feature: feet") == len(asked)  # all is stored, failures too
    pd.testing.assert_frame_equal(again, found)
    kept, before = coarse_filter(table, found, limit=0.5).itertuples()
    assert (kept.estimated_clue_rate, kept.n_judged, kept.n_unjudged) == (0.5, 2, 2)
    assert kept.dropped == ""  # half is not above half
    assert before.dropped == "asks for eggs"


@pytest.mark.parametrize(
    ("visible", "dropped"),
    [
        ([0, 0, 0, 0], ""),  # people may see what the model did not
        ([1, 1, 0, 0, 0, 0, 0], "the estimated clue rate 28.6% is above 25%"),
        ([1, 0, 0, np.nan, 0], ""),  # 1 of 4 judged ones
        ([1, 0, 0, np.nan], ""),  # a third of the judged, but not surely above a quarter of all
        ([1, 1, 0, np.nan], "the estimated clue rate 66.7% is above 25%"),  # whatever the last is
        ([np.nan, np.nan], "no image could be judged: timeout"),
    ],
)
def test_what_a_quarter_of_the_images_show_is_dropped(visible: list[float], dropped: str) -> None:
    status = ["timeout" if np.isnan(value) else "ok" for value in visible]
    rows = {"doc_id": [f"d{n}" for n in range(len(visible))], "visible": np.array(visible, float)}
    presence = pd.DataFrame({**rows, "status": status}).assign(question_id="q0", detail="")
    twice = {"question_id": ["q0", "q0"], "dropped": ["asks again for the same feature", ""]}
    table = coarse_filter(pd.DataFrame(twice), presence)
    assert table["dropped"].tolist() == ["asks again for the same feature", dropped]
    assert table["n_judged"][0] == 0  # the row that goes on has the rate
    assert table["n_judged"][1] + table["n_unjudged"][1] == len(visible)


def test_an_unknown_prompt_or_folder_is_refused(goose: SpeciesFolder, tmp_path: Path) -> None:
    asked = questions(goose, "feet")
    detect = partial(detect_feature, WEIGHTS, asked, [goose], tmp_path)
    refused(partial(detect, prompt="yes"), "'yes'", "'yes_no', 'question'")
    moved = asked.assign(folder="moved")
    refused(partial(detect_feature, WEIGHTS, moved, [goose], tmp_path), "'moved'", "00001_Animalia")
