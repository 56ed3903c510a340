"""Questions written by a template or a language model: what it is asked, how its words
are read, and the file that a person edits.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strange_server import StrangeServer, text_in
from tiny_models import built

from vrag_kit.benchmarks import read_species
from vrag_kit.benchmarks.articles import Article, read_articles
from vrag_kit.benchmarks.datasets.visual_rag import make_query_id
from vrag_kit.benchmarks.knowledge_base import Page, match_pages
from vrag_kit.building.questions import (
    CANDIDATE_COLUMNS,
    PAPER,
    PARTS,
    ParsedQuestion,
    load_or_write_questions,
    question_prompt,
    read_questions,
    read_questions_json,
    save_questions,
    write_questions,
    write_template_questions,
)
from vrag_kit.building.species import SpeciesFolder, read_species_folders
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore
from vrag_kit.generation.remote.providers import ENDPOINTS
from vrag_kit.synthetic.visual_rag.questions import make_question
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.traits import generate_species_traits, stream

GRASS = "rescuegrass (scientific name: Bromus catharticus)"
COLOR = f"What color are the anthers of {GRASS}?"


def folder(
    scientific: str = "Bromus catharticus",
    common: str = "rescuegrass",
    lineage: tuple[str, ...] = (),
) -> SpeciesFolder:
    name = "_".join([*lineage, *scientific.split()])
    return SpeciesFolder(
        root=Path(),
        name=name,
        scientific=scientific,
        common=common,
        lineage=lineage,
        images=(f"{name}/a.jpg",),
    )


def page(description: str, scientific: str = "Bromus catharticus") -> Page:
    return Page(
        scientific,
        "scientific name",
        Article(
            scientific,
            (("", f"{scientific} is a grass."), ("Description", description), ("Uses", "Forage.")),
        ),
    )


def row(**values: str) -> dict[str, str]:
    """A row of the questions' table: these values, and nothing in the other columns."""
    return {**dict.fromkeys(CANDIDATE_COLUMNS, ""), **values}


def candidates(*questions: tuple[str, str], species: str = "Bromus catharticus") -> pd.DataFrame:
    """The questions and their features, as rows that go on."""
    return pd.DataFrame(
        [
            row(
                question_id=make_query_id(species, question),
                species=species,
                common="rescuegrass",
                folder="f",
                question=question,
                feature=feature,
                writer="me",
            )
            for question, feature in questions
        ],
        columns=CANDIDATE_COLUMNS,
    )


def test_the_template_writer_asks_once_about_each_part_of_the_most_specific_rank() -> None:
    moth = folder(
        "Noctua pronuba",
        "Large Yellow Underwing",
        ("Animalia", "Arthropoda", "Insecta", "Lepidoptera", "Noctuidae"),
    )
    assert write_template_questions(moth) == [
        ParsedQuestion(
            "What is the main color of the hindwings of Large Yellow Underwing (scientific name:"
            " Noctua pronuba), which are usually covered by the forewings?",
            feature="main color of the hindwings",
        ),
        ParsedQuestion(
            "What pattern do the undersides of the wings of Large Yellow Underwing (scientific"
            " name: Noctua pronuba) show, which show only when the wings are closed over the back?",
            feature="pattern of the undersides of the wings",
        ),
    ]
    mushroom = folder(
        "Amanita muscaria",
        "",
        ("Fungi", "Basidiomycota", "Agaricomycetes", "Agaricales", "Amanitaceae"),
    )
    assert (
        "What pattern does the flesh of Amanita muscaria show, which shows only when the cap is cut"
        " open?" in [each.question for each in write_template_questions(mushroom)]
    )
    snake = folder(
        "Vipera berus", "Adder", ("Animalia", "Chordata", "Reptilia", "Squamata", "Viperidae")
    )
    assert not any("throat fan" in each.question for each in write_template_questions(snake))


@pytest.mark.parametrize(
    "lineage",
    [
        "Animalia_Chordata_Aves_Passeriformes_Corvidae",
        "Animalia_Arthropoda_Insecta_Lepidoptera_Nymphalidae",
        "Animalia_Arthropoda_Insecta_Odonata_Aeshnidae",
        "Animalia_Chordata_Actinopterygii_Perciformes_Labridae",
        "Animalia_Chordata_Reptilia_Squamata_Dactyloidae",
        "Animalia_Chordata_Reptilia_Testudines_Emydidae",
        "Animalia_Chordata_Amphibia_Anura_Hylidae",
        "Animalia_Chordata_Mammalia_Rodentia_Sciuridae",
        "Animalia_Arthropoda_Arachnida_Araneae_Salticidae",
        "Animalia_Mollusca_Gastropoda_Stylommatophora_Helicidae",
        "Animalia_Cnidaria_Anthozoa_Actiniaria_Actiniidae",
        "Plantae_Tracheophyta_Magnoliopsida_Fabales_Fabaceae",
        "Plantae_Tracheophyta_Liliopsida_Poales_Poaceae",
        "Plantae_Tracheophyta_Polypodiopsida_Polypodiales_Pteridaceae",
        "Plantae_Bryophyta_Bryopsida_Pottiales_Pottiaceae",
        "Fungi_Basidiomycota_Agaricomycetes_Agaricales_Amanitaceae",
        "Fungi_Ascomycota_Lecanoromycetes_Teloschistales_Teloschistaceae",
    ],
)
def test_the_template_writer_names_the_species_for_every_real_lineage(
    lineage: str, tmp_path: Path
) -> None:
    table = write_questions(
        "template", [folder("Genus species", "Some Name", tuple(lineage.split("_")))], {}, tmp_path
    )
    assert 1 <= len(table) <= 3
    assert set(table["dropped"]) == {""}
    assert (
        table["question"]
        .str.contains("Some Name (scientific name: Genus species)", regex=False)
        .all()
    )


@pytest.mark.parametrize("rank", PARTS)
def test_every_rank_of_the_table_gives_questions_that_go_on(rank: str, tmp_path: Path) -> None:
    table = write_questions("template", [folder("Genus species", "", (rank,))], {}, tmp_path)
    assert len(table) == len(PARTS[rank])
    assert set(table["dropped"]) == {""}


@pytest.mark.parametrize("kind", KINDS)
def test_the_template_asks_about_the_field_guides_organisms_in_the_words_its_models_know(
    kind: str,
) -> None:
    species = generate_species_traits(
        kind,
        KINDS[kind].noun,
        tuple(part.name for part in KINDS[kind].hidden),
        stream("template", kind),
    )
    first, second = KINDS[kind].hidden
    species = replace(
        species,
        hidden={
            **species.hidden,
            first.name: replace(species.hidden[first.name], pattern="spotted"),
        },
    )
    found = write_template_questions(
        folder(species.scientific_name, species.common_name, KINDS[kind].lineage)
    )
    assert [each.question for each in found] == [
        make_question(species, first, "color").text,
        make_question(species, second, "pattern").text,
    ]


def test_a_folder_that_the_template_writer_does_not_know_has_a_row_that_says_so(
    tmp_path: Path,
) -> None:
    (row,) = write_questions("template", [folder("red bicycle", "")], {}, tmp_path).itertuples()
    assert (row.question_id, row.question) == ("", "")
    assert "no parts of red bicycle" in row.dropped


def test_the_field_guides_species_get_two_questions_each(
    guide_folder: Path, tmp_path: Path
) -> None:
    names = read_species(guide_folder / "categories.json")
    _, articles = read_articles(guide_folder / "articles")
    table = write_questions(
        "template",
        read_species_folders(guide_folder / "images", names),
        match_pages(names, articles),
        tmp_path,
    )
    assert table.columns.tolist() == CANDIDATE_COLUMNS
    assert table.groupby("species").size().tolist() == [2] * 12
    assert table["question_id"].is_unique
    assert set(table["dropped"]) == {""}


def test_a_model_is_told_the_papers_instructions_the_names_and_the_paragraph() -> None:
    ((message,),) = [question_prompt(folder(), "It has loose\npanicles. {braces} stay.")]
    (text,) = message.parts
    assert isinstance(text, str)
    assert "(Feature:" not in text
    assert text.startswith("\n\n".join([*PAPER["instructions"][:3], ""]))
    examples = [block.rpartition("Question:\n")[2] for block in text.split("\n\n")[5:10]]
    assert [len(read_questions_json(example)) for example in examples] == [2, 1, 2, 1, 2]
    assert read_questions_json(examples[3]) == [
        ParsedQuestion(
            "What shape are the seed capsules of Campanaria cava?",
            "they ripen long after the flowers that most photos show",
            "shape of the seed capsules",
        )
    ]
    bare = question_prompt(folder(common=""), "")[0].parts[0]
    assert bare.endswith(
        "Scientific name: Bromus catharticus\nWiki Paragraph: (none was found)\nQuestion:"
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (
            '{"questions": [{"question": "What color is it?", "feature": "color"}]}',
            [ParsedQuestion("What color is it?", "", "color")],
        ),
        (
            '<think>{"questions"</think>\n```json\n{"questions": [{"question": " What\\ncolor is'
            ' it?", "explanation": "rare", "feature": "color"}]}\n```',
            [ParsedQuestion("What color is it?", "rare", "color")],
        ),
        (
            '{"questions": [{"question": "Its color", "feature": "color"},'
            ' {"question": "What color is it?"}, "What color is it?"]}',
            [
                ParsedQuestion("Its color", "", "color", "no question mark"),
                ParsedQuestion("What color is it?", dropped="no feature"),
                ParsedQuestion("What color is it?", dropped="no JSON object"),
            ],
        ),
        ('Here they are: {"questions": []}', []),
        ('{"questions": "none"}', []),
        ("1. What color is it? (Feature: color)", []),
        ('{"questions": [{"question": "What co', []),
    ],
)
def test_json_is_read_strictly(words: str, found: list[ParsedQuestion]) -> None:
    assert read_questions_json(words) == found


def test_a_model_is_asked_for_json_and_its_questions_go_on(tmp_path: Path) -> None:
    item = {"question": "What color is the seed of Good d?", "feature": "color of seed"}
    said = json.dumps({"questions": [item, {**item, "feature": ""}]})
    plans = {"Good d": [f"say {said}"], "Prose e": ["say 1. What color? (Feature: color)"]}
    named = [folder(name, "") for name in plans]
    with told_by_name(plans) as server:
        table = write_questions(at(server), named, {}, tmp_path)
    assert table["question"].tolist() == [item["question"], item["question"], ""]
    assert table["dropped"].tolist() == [
        "",
        "no feature",
        "unreadable: no question in '1. What color? (Feature: color)'",
    ]


@pytest.mark.parametrize("writer", ["o1@openai", "o1-2024-12-17@openai"])
def test_the_papers_writer_has_room_to_think_and_a_price_and_is_sent_no_sampling_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    said = (
        '{"questions": [{"question": "What color is the seed of a b?", "feature": "seed color"}]}'
    )
    with StrangeServer({"Scientific name: a b": [f"say {said}"]}) as server:
        monkeypatch.setitem(ENDPOINTS["openai"], "base_url", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        table = write_questions(writer, [folder("a b", "")], {}, tmp_path)
        sent = dict(server.requests[-1])
    assert table["dropped"].tolist() == [""]
    assert len(sent.pop("messages")) == 1
    assert sent == {
        "model": writer.partition("@")[0],
        "reasoning_effort": "medium",
        "max_completion_tokens": 1024 + 25_000,  # what its maker advises to keep for thinking
    }
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        spent = store.total_cost(table["writer"][0])
    # 100 tokens of prompt at 15 dollars a million, 10 of answer at 60
    assert spent == pytest.approx((100 * 15 + 10 * 60) / 1e6)


def said(*questions: tuple[str, str]) -> str:
    """What a server is to say: questions and their features, as JSON."""
    items = [{"question": question, "feature": feature} for question, feature in questions]
    return f"say {json.dumps({'questions': items})}"


def told_by_name(plans: dict[str, list[str]]) -> StrangeServer:
    """A server that says this of each species, by scientific name."""
    return StrangeServer({f"Scientific name: {name}": plan for name, plan in plans.items()})


def at(server: StrangeServer, **options: object) -> dict[str, object]:
    return {
        "model": f"writer@{server.url}",
        "decoding": {"temperature": 0},
        "timeout": 2.0,
        "retries": 0,
        **options,
    }


def test_a_models_words_become_candidates_and_it_is_asked_once(tmp_path: Path) -> None:
    named = [folder(), folder("Poa annua", "meadow grass")]
    pages = {"Bromus catharticus": page("Its anthers are yellow.")}
    shape = "What shape is the seed of meadow grass (scientific name: Poa annua)?"
    plans = {
        "Scientific name: Bromus catharticus\nCommon": [
            said((COLOR, "color of anthers"), ("What color are the", ""), (COLOR, "anthers"))
        ],
        "Scientific name: Poa annua": [said((shape, "shape of seed"))],
    }
    with StrangeServer(plans) as server:
        table = write_questions(at(server), named, pages, tmp_path)
        assert table["species"].tolist() == ["Bromus catharticus"] * 3 + ["Poa annua"]
        assert table["dropped"].tolist() == ["", "no question mark", "duplicate question", ""]
        assert table["question_id"][0] == make_query_id("Bromus catharticus", table["question"][0])
        assert set(table["writer"]) == {"writer"}
        asked = [text_in(request) for request in server.requests]
        told = "Wiki Paragraph: Bromus catharticus is a grass. Its anthers are yellow.\n"
        assert sum(told in text for text in asked) == 1
        pd.testing.assert_frame_equal(write_questions(at(server), named, pages, tmp_path), table)
        assert len(server.requests) == len(asked)
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        assert "2 answers, 0 failures" in repr(store)


def test_a_failed_call_and_words_without_a_question_are_rows_with_their_reason(
    tmp_path: Path,
) -> None:
    named = [folder(name, "") for name in ("Silent a", "Chatty b", "Refusing c", "Good d", "Cut e")]
    good, silent = (f"What color is the seed of {name}?" for name in ("Good d", "Silent a"))
    plans = {
        "Silent a": [
            "status 500 down",
            said((silent, "color of seed")),
        ],
        "Chatty b": ["say I do not know that species."],
        "Refusing c": ["refusal"],
        "Good d": [said((good, "color of seed"))],
        "Cut e": ["truncated"],
    }
    with told_by_name(plans) as server:
        table = write_questions(at(server), named, {}, tmp_path)
        assert table["species"].tolist() == [each.scientific for each in named]
        assert table["question"].tolist() == ["", "", "", "What color is the seed of Good d?", ""]
        assert table["dropped"][0].startswith("no answer: error: HTTP 500: down")
        assert table["dropped"][1] == "unreadable: no question in 'I do not know that species.'"
        assert table["dropped"][2].startswith("no answer: refused: I cannot help with that.")
        assert table["dropped"][3] == ""
        assert table["dropped"][4].startswith("no answer: truncated: cut off at")
        again = write_questions(at(server), named, {}, tmp_path, hardware={"retry_failures": True})
        assert again["dropped"][0] == ""


def test_any_local_model_can_write_and_one_that_babbles_writes_no_question_that_goes_on(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    model = shutil.copytree(built("qwen2_5_vl", tmp_path_factory), tmp_path / "tiny")
    config = json.loads((model / "config.json").read_text())
    config["text_config"]["max_position_embeddings"] = 8192
    (model / "config.json").write_text(json.dumps(config))
    table = write_questions(
        {"model": str(model), "decoding": {"temperature": 0}, "max_new_tokens": 4},
        [folder()],
        {},
        tmp_path,
    )
    assert len(table) >= 1
    assert "" not in set(table["dropped"])


def test_no_species_need_no_writer(tmp_path: Path) -> None:
    with StrangeServer() as server:
        assert write_questions(at(server), [], {}, tmp_path).columns.tolist() == CANDIDATE_COLUMNS
        assert server.requests == []


# The file that a person edits


def rows(*changes: dict[str, str]) -> list[dict[str, str]]:
    good = row(
        species="Bromus catharticus", question=COLOR, feature="color of anthers", writer="Ada"
    )
    return [{**good, **change} for change in changes]


def write(path: Path, *changes: dict[str, str]) -> Path:
    pd.DataFrame(rows(*changes), columns=CANDIDATE_COLUMNS).to_csv(path, index=False)
    return path


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n")).map(
    str.strip
)


@given(
    st.lists(
        st.tuples(TEXT.filter(bool), TEXT, TEXT.filter(bool), TEXT),
        unique_by=lambda row: row[0],
        max_size=4,
    )
)
@settings(max_examples=40, deadline=None)
def test_questions_of_any_words_are_read_back_as_they_were_saved(
    tmp_path_factory: pytest.TempPathFactory, words: list[tuple[str, str, str, str]]
) -> None:
    path, one = tmp_path_factory.mktemp("questions") / "q.csv", folder()
    saved = pd.DataFrame(
        [
            (
                make_query_id(one.scientific, question),
                one.scientific,
                one.common,
                one.name,
                question,
                explanation,
                feature,
                "template",
                dropped,
            )
            for question, explanation, feature, dropped in words
        ],
        columns=CANDIDATE_COLUMNS,
        dtype=object,
    )
    save_questions(path, saved)
    pd.testing.assert_frame_equal(read_questions(path, [one]), saved)


def test_the_file_is_written_once_and_then_what_a_person_left_in_it_is_read(tmp_path: Path) -> None:
    path, one, made = tmp_path / "new" / "questions.csv", folder(), []

    def make() -> pd.DataFrame:
        made.append(1)
        return candidates(
            (COLOR, "color of anthers"), (f"What shape is the seed of {GRASS}?", "shape of seed")
        )

    first = load_or_write_questions(path, make, [one])
    edited = path.read_text(encoding="utf-8").replace(
        "What shape is the seed", "Which shape has the seed"
    )
    edited = edited.replace('"color of anthers","me",""', '"color of anthers","me","too easy"')
    path.write_text(edited, encoding="utf-8")
    second = load_or_write_questions(path, make, [one])
    assert len(made) == 1
    assert second["dropped"].tolist() == ["too easy", ""]
    assert second["question_id"][0] == first["question_id"][0]
    assert (
        second["question_id"][1]
        == make_query_id(one.scientific, f"Which shape has the seed of {GRASS}?")
        != first["question_id"][1]
    )
    assert path.read_text(encoding="utf-8") == edited


def test_a_file_of_which_no_question_can_be_used_is_named_with_the_reason(tmp_path: Path) -> None:
    path, one = tmp_path / "q.csv", folder("pocket_knife", common="")
    for _ in range(2):  # without a file, and then with one without a question
        with pytest.raises(VragError, match=rf"q\.csv: none .* no parts of {one.scientific}"):
            load_or_write_questions(
                path, lambda: write_questions("template", [one], {}, tmp_path), [one]
            )
    path.write_text(
        "species,question,feature,writer,dropped\n"
        f"{one.scientific},Is it sharp?,edge,me,too easy\n",
        encoding="utf-8",
    )
    with pytest.raises(VragError, match=r"q\.csv: none of its 1 .*\(too easy\).* \(columns"):
        load_or_write_questions(path, lambda: 1 / 0, [one])


def test_a_species_whose_writer_failed_is_written_anew_and_what_a_person_left_stays(
    tmp_path: Path,
) -> None:
    path, one = tmp_path / "q.csv", folder()
    other = folder("Aira caryophyllea", common="")
    good = candidates((COLOR, "color of anthers"))
    empty = row(species=other.scientific, folder=other.name, writer="model")
    failed = pd.DataFrame([{**empty, "dropped": "no answer: timeout"}])
    question = "What color is it, Aira caryophyllea?"
    later = pd.DataFrame([{**empty, "question": question, "feature": "color"}])
    load_or_write_questions(path, lambda: pd.concat([good, failed]), [one, other])
    path.write_text(
        path.read_text(encoding="utf-8").replace("color of anthers", "color of the anthers"),
        encoding="utf-8",
    )
    again = load_or_write_questions(path, lambda: pd.concat([good, later]), [one, other])
    assert again[["feature", "dropped"]].to_numpy().tolist() == [
        ["color of the anthers", ""],
        ["color", ""],
    ]
    pd.testing.assert_frame_equal(
        load_or_write_questions(path, lambda: 1 / 0, [one, other]), again
    )  # nothing failed: nobody is asked


def test_a_persons_own_row_needs_only_species_question_feature_and_name(tmp_path: Path) -> None:
    (row,) = read_questions(write(tmp_path / "q.csv", {}), [folder()]).itertuples(index=False)
    assert tuple(row) == (
        make_query_id("Bromus catharticus", COLOR),
        "Bromus catharticus",
        "rescuegrass",
        "Bromus_catharticus",
        COLOR,
        "",
        "color of anthers",
        "Ada",
        "",
    )


@pytest.mark.parametrize("named", ["Bromus catharticus", "Bromus_catharticus"])
def test_a_file_of_ones_own_needs_four_columns_and_nothing_else(tmp_path: Path, named: str) -> None:
    four = tmp_path / "questions.csv"
    four.write_text(
        f"species, question, feature, writer\n{named}, {COLOR}, color of anthers, Ada\n",
        encoding="utf-8",
    )

    def make() -> pd.DataFrame:
        raise AssertionError("the file is there: nothing is written")

    whole = read_questions(write(tmp_path / "q.csv", {}), [folder()])
    pd.testing.assert_frame_equal(load_or_write_questions(four, make, [folder()]), whole)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
        lambda text: text.replace(",", ";").encode(),
        lambda text: (text + ",,,,,,,,\n\n").encode(),
        lambda text: (
            pd.read_csv(StringIO(text))[CANDIDATE_COLUMNS[::-1]].to_csv(index=False).encode()
        ),
    ],
)
def test_a_file_that_a_spreadsheet_saved_is_read(
    tmp_path: Path, spoil: Callable[[str], bytes]
) -> None:
    path = write(tmp_path / "q.csv", {"dropped": "no photo"}, {})
    path.write_bytes(spoil(path.read_text(encoding="utf-8")))
    assert read_questions(path, [folder()])["dropped"].tolist() == ["no photo", ""]


def test_a_dropped_row_may_be_unfinished_or_stand_there_twice(tmp_path: Path) -> None:
    path = write(
        tmp_path / "q.csv",
        {"question": "", "feature": "", "dropped": "no answer"},
        {"dropped": "twice"},
        {},
    )
    assert read_questions(path, [folder()])["question_id"].tolist() == [
        "",
        *[make_query_id("Bromus catharticus", COLOR)] * 2,
    ]


def test_a_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(VragError, match=r"none\.csv: .*No such file.*`load_or_write_questions`"):
        read_questions(tmp_path / "none.csv", [folder()])
