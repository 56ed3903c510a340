"""Questions from a template or a language model, and the file that a person edits."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from retrieval_data import refused
from strange_server import StrangeServer, text_in

from vrag_kit.benchmarks.articles import Article
from vrag_kit.benchmarks.datasets.visual_rag import make_query_id
from vrag_kit.benchmarks.knowledge_base import Page
from vrag_kit.building.questions import (
    CANDIDATE_COLUMNS,
    PARTS,
    ParsedQuestion,
    load_or_write_questions,
    read_questions,
    read_questions_json,
    write_questions,
    write_template_questions,
)
from vrag_kit.building.species import SpeciesFolder
from vrag_kit.workspace import Workspace

BROME = "Bromus catharticus"
COLOR = f"What color are the anthers of rescuegrass (scientific name: {BROME})?"


def folder(
    scientific: str = BROME, common: str = "rescuegrass", lineage: str = ""
) -> SpeciesFolder:
    ranks = tuple(lineage.split())
    name = "_".join([*ranks, *scientific.split()])
    return SpeciesFolder(Path(), name, scientific, common, ranks, (f"{name}/a.jpg",))


def test_the_template_asks_about_each_part_of_the_most_specific_rank(tmp_path: Path) -> None:
    lineage = "Animalia Arthropoda Insecta Lepidoptera Noctuidae"
    first, _ = write_template_questions(folder("Noctua pronuba", "Large Underwing", lineage))
    assert first == ParsedQuestion(
        "What is the main color of the hindwings of Large Underwing (scientific name: Noctua"
        " pronuba), which are usually covered by the forewings?",
        feature="main color of the hindwings",
    )
    snake = folder("Vipera berus", "Adder", "Animalia Chordata Reptilia Squamata Viperidae")
    assert not any("throat fan" in each.question for each in write_template_questions(snake))
    for rank, parts in PARTS.items():
        table = write_questions(
            "template", [folder("Genus species", "", rank)], {}, Workspace(answers_dir=tmp_path)
        )
        assert len(table) == len(parts)
        assert set(table["dropped"]) == {""}
        assert table["question"].str.contains("Genus species", regex=False).all()
    (row,) = write_questions(
        "template", [folder("red bicycle", "")], {}, Workspace(answers_dir=tmp_path)
    ).itertuples()
    assert (row.question_id, row.question) == ("", "")
    assert "no parts of red bicycle" in row.dropped


def said(*questions: tuple[str, str]) -> str:
    """What a server is to say: questions and their features, as JSON."""
    items = [{"question": question, "feature": feature} for question, feature in questions]
    return f"say {json.dumps({'questions': items})}"


def at(server: StrangeServer) -> dict[str, object]:
    options = {"decoding": {"temperature": 0}, "timeout": 2.0, "retries": 0}
    return {"model": f"writer@{server.url}", **options}


def test_a_models_words_become_candidates_and_it_is_asked_once(tmp_path: Path) -> None:
    sections = (("", f"{BROME} is a grass."), ("Description", "Its anthers are yellow."))
    pages = {BROME: Page(BROME, "scientific name", Article(BROME, (*sections, ("Uses", "Hay."))))}
    first = said((COLOR, "color of anthers"), ("What color are the", ""), (COLOR, "anthers"))
    shape = said(("What shape is the seed of meadow grass?", "shape of seed"))
    named = [folder(), folder("Poa annua", "meadow grass")]
    with StrangeServer({f"name: {BROME}\n": [first], "name: Poa annua": [shape]}) as server:
        table = write_questions(at(server), named, pages, Workspace(answers_dir=tmp_path))
        assert table["species"].tolist() == [BROME] * 3 + ["Poa annua"]
        assert table["dropped"].tolist() == ["", "no question mark", "duplicate question", ""]
        assert table["question_id"][0] == make_query_id(BROME, COLOR)
        assert set(table["writer"]) == {"writer"}
        asked = [text_in(request) for request in server.requests]
        paragraph = f"Wiki Paragraph: {BROME} is a grass. Its anthers are yellow.\n"
        assert sum(paragraph in text for text in asked) == 1
        pd.testing.assert_frame_equal(
            write_questions(at(server), named, pages, Workspace(answers_dir=tmp_path)), table
        )
        none = write_questions(at(server), [], {}, Workspace(answers_dir=tmp_path))
        assert none.columns.tolist() == CANDIDATE_COLUMNS
        assert len(server.requests) == len(asked)


# The file that a person edits


def test_the_file_is_written_once_and_then_what_a_person_left_in_it_is_read(tmp_path: Path) -> None:
    path, asked = tmp_path / "new" / "questions.csv", [COLOR, "What shape is the seed?"]
    rows = {"species": BROME, "question": asked, "feature": ["color", "shape"], "writer": "Ada"}
    made = pd.DataFrame({**dict.fromkeys(CANDIDATE_COLUMNS, ""), **rows})
    first = load_or_write_questions(path, lambda: made, [folder()])
    edited = path.read_text(encoding="utf-8").replace("What shape is", "Which shape has")
    edited = edited.replace('"color","Ada",""', '"color","Ada","too easy"')
    path.write_text(edited, encoding="utf-8")
    second = load_or_write_questions(path, pytest.fail, [folder()])  # nobody is asked
    assert second["dropped"].tolist() == ["too easy", ""]
    assert second["question_id"][0] == first["question_id"][0]
    assert second["question_id"][1] == make_query_id(BROME, "Which shape has the seed?")
    assert path.read_text(encoding="utf-8") == edited


def test_a_file_that_does_not_exist_or_holds_no_question_to_use_is_refused(tmp_path: Path) -> None:
    path, knife = tmp_path / "q.csv", folder("pocket_knife", common="")
    missing = partial(read_questions, tmp_path / "none.csv", [knife])
    refused(missing, "none.csv: ", "No such file", "`load_or_write_questions`")
    make = partial(write_questions, "template", [knife], {}, tmp_path)
    for _ in range(2):  # without a file, and then with one without a question
        refused(partial(load_or_write_questions, path, make, [knife]), "q.csv: none of its 1")


def test_json_is_read_strictly() -> None:
    fenced = '<think>{</think>\n```json\n{"questions": [{"question": " What\\nis it?"}, 3]}\n```'
    assert read_questions_json(fenced) == [
        ParsedQuestion("What is it?", dropped="no feature"),
        ParsedQuestion("3", dropped="no JSON object"),
    ]
    for words in ('Here: {"questions": []}', '{"questions": "none"}', "1. What color is it?"):
        assert read_questions_json(words) == []


def test_a_failed_call_is_a_row_with_its_reason(tmp_path: Path) -> None:
    plans = {"Silent a": ["status 500 down"], "Chatty b": ["say Unknown."], "Cut e": ["truncated"]}
    with StrangeServer({f"name: {name}": plan for name, plan in plans.items()}) as server:
        table = write_questions(
            at(server), [folder(name, "") for name in plans], {}, Workspace(answers_dir=tmp_path)
        )
    assert table["species"].tolist() == list(plans)
    assert set(table["question"]) == {""}
    reasons = table["dropped"].str.partition(":")[0].tolist()
    assert reasons == ["no answer", "unreadable", "no answer"]
