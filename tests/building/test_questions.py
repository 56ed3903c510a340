"""Species are chosen whose articles say little (appendix C); questions come from a template or a
language model, and a person edits their file; the coarse filter asks about every image.
"""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from retrieval_data import refused
from strange_server import StrangeServer, images_in, text_in
from votes import questions

from vrag_kit.benchmarks.articles import Article, parse_article
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
from vrag_kit.building.species import (
    SpeciesFolder,
    description_share,
    description_text,
    read_species_folders,
    select_species,
)
from vrag_kit.building.visibility import coarse_filter, detect_feature

BROME = "Bromus catharticus"
COLOR = f"What color are the anthers of rescuegrass (scientific name: {BROME})?"


def folder(
    scientific: str = BROME, common: str = "rescuegrass", lineage: str = ""
) -> SpeciesFolder:
    ranks = tuple(lineage.split())
    name = "_".join([*ranks, *scientific.split()])
    return SpeciesFolder(Path(), name, scientific, common, ranks, (f"{name}/a.jpg",))


def test_the_template_asks_about_each_part_of_the_most_specific_rank(at):
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
        table = write_questions("template", [folder("Genus species", "", rank)], {}, at)
        assert len(table) == len(parts)
        assert set(table["dropped"]) == {""}
        assert table["question"].str.contains("Genus species", regex=False).all()
    (row,) = write_questions("template", [folder("red bicycle", "")], {}, at).itertuples()
    assert (row.question_id, row.question) == ("", "")
    assert "no parts of red bicycle" in row.dropped


def said(*questions: tuple[str, str]) -> str:
    """What a server is to say: questions and their features, as JSON."""
    items = [{"question": question, "feature": feature} for question, feature in questions]
    return f"say {json.dumps({'questions': items})}"


def entry(server: StrangeServer) -> dict[str, object]:
    options = {"decoding": {"temperature": 0}, "timeout": 2.0, "retries": 0}
    return {"model": f"writer@{server.url}", **options}


def test_a_models_words_become_candidates_and_it_is_asked_once(at):
    sections = (("", f"{BROME} is a grass."), ("Description", "Its anthers are yellow."))
    pages = {BROME: Page(BROME, "scientific name", Article(BROME, (*sections, ("Uses", "Hay."))))}
    first = said((COLOR, "color of anthers"), ("What color are the", ""), (COLOR, "anthers"))
    shape = said(("What shape is the seed of meadow grass?", "shape of seed"))
    named = [folder(), folder("Poa annua", "meadow grass")]
    with StrangeServer({f"name: {BROME}\n": [first], "name: Poa annua": [shape]}) as server:
        table = write_questions(entry(server), named, pages, at)
        assert table["species"].tolist() == [BROME] * 3 + ["Poa annua"]
        assert table["dropped"].tolist() == ["", "no question mark", "duplicate question", ""]
        assert table["question_id"][0] == make_query_id(BROME, COLOR)
        assert set(table["writer"]) == {"writer"}
        asked = [text_in(request) for request in server.requests]
        paragraph = f"Wiki Paragraph: {BROME} is a grass. Its anthers are yellow.\n"
        assert sum(paragraph in text for text in asked) == 1
        pd.testing.assert_frame_equal(write_questions(entry(server), named, pages, at), table)
        none = write_questions(entry(server), [], {}, at)
        assert none.columns.tolist() == CANDIDATE_COLUMNS
        assert len(server.requests) == len(asked)


# The file that a person edits


def test_the_file_is_written_once_and_then_what_a_person_left_in_it_is_read(tmp_path):
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


def test_a_file_that_does_not_exist_or_holds_no_question_to_use_is_refused(tmp_path):
    path, knife = tmp_path / "q.csv", folder("pocket_knife", common="")
    missing = partial(read_questions, tmp_path / "none.csv", [knife])
    refused(missing, "none.csv: ", "No such file", "`load_or_write_questions`")
    make = partial(write_questions, "template", [knife], {}, tmp_path)
    for _ in range(2):  # without a file, and then with one without a question
        refused(partial(load_or_write_questions, path, make, [knife]), "q.csv: none of its 1")


def test_json_is_read_strictly():
    fenced = '<think>{</think>\n```json\n{"questions": [{"question": " What\\nis it?"}, 3]}\n```'
    assert read_questions_json(fenced) == [
        ParsedQuestion("What is it?", dropped="no feature"),
        ParsedQuestion("3", dropped="no JSON object"),
    ]
    for words in ('Here: {"questions": []}', '{"questions": "none"}', "1. What color is it?"):
        assert read_questions_json(words) == []


def test_a_failed_call_is_a_row_with_its_reason(at):
    plans = {"Silent a": ["status 500 down"], "Chatty b": ["say Unknown."], "Cut e": ["truncated"]}
    with StrangeServer({f"name: {name}": plan for name, plan in plans.items()}) as server:
        table = write_questions(entry(server), [folder(name, "") for name in plans], {}, at)
    assert table["species"].tolist() == list(plans)
    assert set(table["question"]) == {""}
    reasons = table["dropped"].str.partition(":")[0].tolist()
    assert reasons == ["no answer", "unreadable", "no answer"]


WEIGHTS = "vrag_kit/synthetic/weights/field-guide-vlm-few"


@pytest.fixture
def goose(tree):
    (folder,) = read_species_folders(tree, {"Branta leucopsis": "Barnacle Goose"})
    return folder


def test_every_image_is_asked_about_once(goose, at):
    no = "say I see them.\nAnswer: **No**, they are hidden"
    table = questions(goose, "feet", "eggs").assign(dropped=["", "asks for eggs"])
    words = {"Feature: feet": ["say Answer: yes", no, "say perhaps", "status 500 down"]}
    with StrangeServer(words) as server:
        model = {**entry(server), "concurrency": 1}
        found = detect_feature(model, table, [goose], at)
        assert found["doc_id"].tolist() == list(goose.images)
        assert found["visible"].fillna(-1).tolist() == [1.0, 0.0, -1.0, -1.0]
        assert list(found["status"]) == ["ok", "ok", "unreadable", "error"]
        asked = [request for request in server.requests if "Feature: feet" in text_in(request)]
        assert "Barnacle Goose (scientific name: Branta leucopsis)" in text_in(asked[0])
        assert len(images_in(asked[0])) == 1
        assert server.calls("Feature: eggs") == 0  # it was dropped before
        again = detect_feature(model, table, [goose], at)
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
def test_what_a_quarter_of_the_images_show_is_dropped(visible, dropped):
    status = ["timeout" if np.isnan(value) else "ok" for value in visible]
    rows = {"doc_id": [f"d{n}" for n in range(len(visible))], "visible": np.array(visible, float)}
    presence = pd.DataFrame({**rows, "status": status}).assign(question_id="q0", detail="")
    twice = {"question_id": ["q0", "q0"], "dropped": ["asks again for the same feature", ""]}
    table = coarse_filter(pd.DataFrame(twice), presence)
    assert table["dropped"].tolist() == ["asks again for the same feature", dropped]
    assert table["n_judged"][0] == 0  # the row that goes on has the rate
    assert table["n_judged"][1] + table["n_unjudged"][1] == len(visible)


def test_an_unknown_prompt_or_folder_is_refused(goose, tmp_path):
    asked = questions(goose, "feet")
    detect = partial(detect_feature, WEIGHTS, asked, [goose], tmp_path)
    refused(partial(detect, prompt="yes"), "'yes'", "'yes_no', 'question'")
    moved = asked.assign(folder="moved")
    refused(partial(detect_feature, WEIGHTS, moved, [goose], tmp_path), "'moved'", "00001_Animalia")


def page(*sections: tuple[str, str]) -> Page:
    return Page("Genus species", "scientific name", Article("Genus species", sections))


def test_the_share_is_that_of_the_opening_and_the_description_in_the_whole_page():
    lines = ["A grass.", "== Appearance ==\nIt has loose panicles.", "=== Spikelets ===\nAll flat."]
    lines += ["== Uses ==\nIt is sown.", "== References ==\nA flora."]
    grass = parse_article("Bromus", "\n\n".join(lines))
    # opening 8 characters, Appearance 22; the page: these, three more texts (9 + 11 + 8),
    # four headings (10 + 9 + 4 + 10), and 8 breaks between
    whole = 8 + 22 + 9 + 11 + 8 + 10 + 9 + 4 + 10 + 8
    assert description_share(grass) == pytest.approx((8 + 22) / whole)
    assert description_text(grass) == "A grass.\nIt has loose panicles."


@pytest.mark.parametrize(
    ("share", "chosen"), [(0.49, True), (0.5, True), (0.51, False), (1.0, False)]
)
def test_a_species_is_chosen_up_to_the_limit_with_its_reason(share, chosen):
    shown = round(1000 * share)
    # the heading and two breaks are three characters
    more = (("R", "x" * (1000 - shown - 3)),) if share < 1 else ()
    pages = {"Genus species": page(("", "x" * shown), *more)}
    (row,) = select_species([folder("Genus species")], pages).itertuples()
    assert (row.description_share, row.chosen) == (pytest.approx(share), chosen)
    compared = "at most" if chosen else "more than"
    assert row.reason == f"summary and description are {share:.1%} of the article, {compared} 50%"


def test_a_species_without_an_article_is_not_chosen_unless_there_are_no_articles():
    both = [folder("Genus species"), folder("Genus other")]
    table = select_species(both, {"Genus species": page(("", "short"), ("Uses", "long " * 20))})
    assert table["chosen"].tolist() == [True, False]
    assert "no article found" in table["reason"][1]
    assert select_species(both, {})["chosen"].all()
    assert not select_species(both[:1], {"Genus species": page()})["chosen"].any()
