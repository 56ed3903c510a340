"""`vrag claims` on RAGChecker's input: claims are taken out and checked, what a file has
already stays, nothing is asked twice, and what is missing is named by query and field.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from claim_sheets import letters, plain, row
from PIL import Image
from strange_server import StrangeServer, images_in, text_in
from test_claims_checked import Colors, Painter
from typer.testing import CliRunner

from vrag_kit.claims import (
    RuleChecker,
    RuleExtractor,
    complete_ragchecker_json,
    read_ragchecker_json,
)
from vrag_kit.claims.ragchecker_json import add_ragchecker_metrics
from vrag_kit.errors import VragError
from vrag_kit.runner.cli import app

PLANS = {
    "Write one fact a line": ["say It is red."],
    "Judge claims": ["say 1: ENTAILMENT"],
}


def raw(**more: object) -> dict[str, Any]:
    """A result of RAGChecker's input."""
    return {
        "query_id": "1",
        "query": "Of what color is it?",
        "gt_answer": "red",
        "response": "red and blue",
        "retrieved_context": [
            {"doc_id": "a", "text": "it is red"},
            {"doc_id": "b", "text": "it is blue"},
            {"doc_id": "c", "text": "it flies"},
        ],
        "my own": 1,
    } | more


def write(folder: Path, *results: object) -> Path:
    file = folder / "raw.json"
    file.write_text(json.dumps({"results": results, "told by": "me"}), encoding="utf-8")
    return file


def made(file: Path, painter: Painter | None = None) -> Any:
    return complete_ragchecker_json(file, RuleExtractor(Colors()), RuleChecker(Colors(), painter))


def test_a_file_of_input_gets_claims_labels_and_metrics(tmp_path: Path) -> None:
    result = raw()
    found = made(write(tmp_path, result))
    (sheet,) = found.sheets
    assert (found.n_completed, found.failures) == (1, ())
    assert (sheet.claims, sheet.gold_claims) == (("It is red.", "It is blue."), ("It is red.",))
    # the claim red, then the claim blue: against the right answer; against a, b and c
    assert (letters(sheet.accepted), letters(sheet.recalled)) == ("EC", "E")
    assert [*map(letters, sheet.on_claims), *map(letters, sheet.on_gold)] == ["ECN", "CEN", "ECN"]
    document, left_out = add_ragchecker_metrics(found)
    assert left_out == 0
    (tmp_path / "out.json").write_text(json.dumps(document), encoding="utf-8")
    (again,) = read_ragchecker_json(tmp_path / "out.json").sheets
    assert plain(again) == plain(sheet)
    (told,) = document["results"]
    assert {name: told[name] for name in result} == result
    assert document["told by"] == "me"
    assert told["metrics"]["precision"] == 1 / 2
    assert told["metrics"]["faithfulness"] == 1


def test_what_a_file_has_already_stays(tmp_path: Path) -> None:
    claims = [["It", "is", "green."]]
    half = raw(response_claims=claims, answer2response=["Neutral"])
    found = made(write(tmp_path, half))
    (sheet,) = found.sheets
    assert sheet.claims == ("It is green.",)
    assert letters(sheet.accepted) == "N"  # rules would say that red contradicts it
    assert sheet.on_claims.tolist() == [row("CCN")]
    (told,) = found.document["results"]
    assert (told["response_claims"], told["answer2response"]) == (claims, ["Neutral"])
    whole = made(write(tmp_path, *found.document["results"]))
    assert (whole.n_completed, *map(plain, whole.sheets)) == (0, plain(sheet))


def test_pictures_are_looked_at_and_nothing_retrieved_is_nothing_to_check(tmp_path: Path) -> None:
    Image.new("RGB", (2, 2)).save(tmp_path / "p.png")
    shown = [{"doc_id": "p_blue", "modality": "image", "image": "p.png"}]
    bare = raw(query_id="2", retrieved_context=None, response=" ")
    painter = Painter()
    found = made(write(tmp_path, raw(retrieved_context=shown), bare), painter)
    first, second = found.sheets
    assert first.on_claims.tolist() == [row("C"), row("E")]
    assert [item.modality for item in first.items] == ["image"]
    assert {str(each.item.image.where) for each in painter.asked} == {str(tmp_path / "p.png")}
    assert (second.claims, second.items, letters(second.recalled)) == ((), (), "N")


def sent(tmp_path: Path, image: str) -> list[object]:
    """The pictures that a checker on this machine gets of a file that names this one; the
    file lies in a folder that is a link, as `data` often is.
    """
    Image.new("RGB", (2, 2)).save(tmp_path / "private.png")
    (tmp_path / "disk").mkdir()
    (tmp_path / "files").symlink_to("disk")
    folder = tmp_path / "files"
    Image.new("RGB", (2, 2)).save(folder / "shown.png")
    (folder / "link.png").symlink_to(tmp_path / "private.png")
    (folder / "way").symlink_to(tmp_path)
    (folder / "again.png").symlink_to("shown.png")
    os.mkfifo(folder / "pipe.png")
    shown = [{"doc_id": "p", "modality": "image", "image": image}]
    file = write(folder, raw(retrieved_context=shown))
    with StrangeServer(PLANS) as server:
        try:
            vrag(file, "--extractor", f"one@{server.url}", "--answers-dir", tmp_path / "answers")
        finally:
            pictures = list(chain.from_iterable(map(images_in, server.requests)))
            assert pictures or not server.requests  # nothing is asked in vain
    return pictures


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("../private.png", "points outside"),
        ("link.png", "is a link that points outside"),
        ("way/private.png", "is a link that points outside"),
        ("pipe.png", "there is no picture"),
        ("way", "is a link that points outside"),
    ],
)
def test_no_picture_outside_the_files_folder_is_read_or_sent(
    tmp_path: Path, image: str, words: str
) -> None:
    """More are in `bad_inputs.csv`."""
    with pytest.raises(
        VragError, match=r"raw\.json, query '1', retrieved_context, number 1: "
    ) as no:
        sent(tmp_path, image)
    assert words in str(no.value)


@pytest.mark.slow
@pytest.mark.parametrize("image", ["shown.png", "./shown.png", "again.png"])
def test_a_picture_in_the_files_folder_is_sent(tmp_path: Path, image: str) -> None:
    assert sent(tmp_path, image)


def test_a_folder_and_a_pipe_are_no_claims_file_and_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for place in (tmp_path, tmp_path / "pipe.json", Path("/dev/zero")):
        with pytest.raises(VragError, match="is no plain file; expected RAGChecker's JSON"):
            vrag(place)


def test_without_a_model_it_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(VragError, match="claims FILE --extractor gpt-4o-mini@openai"):
        vrag(write(tmp_path, raw()))


@pytest.fixture
def server() -> Iterator[StrangeServer]:
    with StrangeServer(PLANS) as running:
        yield running


def vrag(*words: object) -> Any:
    return CliRunner().invoke(app, ["claims", *map(str, words)], catch_exceptions=False)


def test_the_command_asks_a_model_once_and_can_say_beforehand_what(
    server: StrangeServer, tmp_path: Path
) -> None:
    file = write(tmp_path, raw())
    named = ["--extractor", f"one@{server.url}", "--answers-dir", tmp_path / "answers"]
    foreseen = vrag(file, *named, "--forecast").stdout
    assert "forecast:" in foreseen
    assert not _asked(server)
    out = tmp_path / "out.json"
    told = vrag(file, *named, "--json", "--to", out)
    rows = json.loads(told.stdout)["rows"]
    assert "extracted and checked" in told.stderr
    (found,) = [each for each in rows if each["metric"] == "precision"]
    assert found["value"] == 1
    # two texts to take apart; one claim against four, one gold claim against four
    assert len(_asked(server)) == 2 + 4 + 4 - 3  # the two claims are the same in three places
    again = json.loads(vrag(file, *named, "--json").stdout)
    assert again["rows"] == rows
    assert json.loads(vrag(out, "--json").stdout)["rows"] == rows
    assert len(_asked(server)) == 7
    assert "no model is asked anything" in vrag(file, *named, "--forecast").stdout


def _asked(server: StrangeServer) -> list[object]:
    return [each for each in server.requests if "word: ready" not in text_in(each)]
