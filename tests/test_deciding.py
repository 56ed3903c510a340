"""From votes to a benchmark: agreement, disputes, the rule 0 < clue rate ≤ 0.25, and a
file that the loader reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from pages import README
from PIL import Image
from sklearn.metrics import cohen_kappa_score

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.building.annotations import (
    AnnotationFile,
    Annotations,
    Vote,
    read_annotation_files,
    read_votes,
)
from vrag_kit.building.benchmark_files import write_benchmark
from vrag_kit.building.decisions import (
    Decision,
    annotator_agreement,
    decide_questions,
    decisions_table,
    filter_vs_annotators,
    find_disputes,
    question_funnel,
    suggested_questions,
)
from vrag_kit.building.questions import read_questions
from vrag_kit.building.species import SpeciesFolder, read_species_folders
from vrag_kit.errors import VragError
from vrag_kit.runner.params import declared_parameters
from vrag_kit.runner.plan import read_plan

ROOT = Path(__file__).parents[1]
Say = Callable[..., None]
Logs = Callable[..., list[Annotations]]
Write = Callable[..., Path]
Decided = Callable[..., Decision]


@pytest.fixture
def goose(tree: Path) -> SpeciesFolder:
    """A species with four images, a.jpg to d.jpg."""
    (folder,) = read_species_folders(tree)
    return folder


@pytest.fixture
def say(tmp_path: Path, goose: SpeciesFolder) -> Say:
    """Let an annotator say which images (by letter) are clues, and how it ended."""

    def write(
        annotator: str,
        question_id: str,
        clues: str = "",
        answer: str = "",
        *,
        shown: str = "abcd",
        end: str = "done",
        species: str = "Branta leucopsis",
        suggestion: str = "",
    ) -> None:
        names = {Path(doc_id).stem: doc_id for doc_id in goose.images}
        vote = {
            "question_id": question_id,
            "species": species,
            "folder": goose.name,
            "question": f"{question_id}?",
            "feature": "feet",
            "status": end,
            "images": {names[letter]: int(letter in clues) for letter in shown},
            "answer": answer,
            "suggestion": suggestion,
        }
        file = AnnotationFile(tmp_path / f"{annotator}.jsonl", annotator)
        file.save(Vote.model_validate(vote))

    return write


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return lambda *names: [read_votes(tmp_path / f"{name}.jsonl") for name in names]


@pytest.fixture
def decided(logs: Logs) -> Decided:
    """What becomes of the question q by these annotators' logs, and perhaps a ruling."""

    def by(*names: str, ruling: bool = False, **how: float) -> Decision:
        judge = logs("judge")[0] if ruling else None
        (decision,) = decide_questions(asked("q"), logs(*names), judge, **how)
        return decision

    return by


@pytest.fixture
def write(tmp_path: Path, tree: Path) -> Write:
    return lambda decisions, folder="mine", **more: write_benchmark(
        tmp_path / folder, decisions, tree, "Geese: wild & <tame>", **more
    )


def asked(*ids: str, **changes: object) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "question_id": ids,
            "species": "Branta leucopsis",
            "question": [f"{question_id}?" for question_id in ids],
            "dropped": "",
            "estimated_clue_rate": 0.1,
            "n_judged": 4,
            "n_unjudged": 0,
        }
    )
    return table.assign(**changes)


def letters(doc_ids: Sequence[str]) -> str:
    return "".join(Path(doc_id).stem for doc_id in doc_ids)


def test_the_ticks_that_the_readme_shows_make_a_benchmark(tmp_path: Path) -> None:
    images = [tmp_path / f"things/mug/IMG_{number}.jpg" for number in range(1, 5)]
    images[0].parent.mkdir(parents=True)
    for number, image in enumerate(images):
        Image.new("RGB", (8, 8), (0, 0, 60 * number)).save(image)
    shown = re.findall(r"```jsonl\n(.*?)```", README, re.DOTALL)
    (log,) = [block for block in shown if "annotations, version" in block]
    (tmp_path / "ada.jsonl").write_text(log, encoding="utf-8")
    (tmp_path / "questions.csv").write_text(
        "species,question,feature,writer\nmug,What color is the bottom of the mug?,bottom,ada\n",
        encoding="utf-8",
    )
    folders = read_species_folders(tmp_path / "things")
    questions = read_questions(tmp_path / "questions.csv", folders)
    logs = read_annotation_files([tmp_path / "ada.jsonl"], questions, folders)
    decisions = decide_questions(
        questions.assign(estimated_clue_rate=np.nan, n_judged=0, n_unjudged=0), logs
    )
    written = write_benchmark(tmp_path / "built", decisions, tmp_path / "things", "Mugs")
    benchmark = load_visual_rag(written, tmp_path / "things")
    (query,) = benchmark.queries.values()
    assert (query.text, query.answers) == ("What color is the bottom of the mug?", ("blue",))
    assert benchmark.relevant(query.query_id) == ("mug/IMG_2.jpg",)
    assert len(benchmark.candidates(query.query_id) or ()) == 4


def test_the_readme_names_every_optional_field_of_a_vote() -> None:
    table = README.partition("| field | default | meaning |")[2].partition("```")[0]
    optional = {name for name, field in Vote.model_fields.items() if not field.is_required()}
    names = [cell for row in table.splitlines() for cell in row.split("|")[1:2]]
    assert set(re.findall(r"`(\w+)`", " ".join(names))) == optional


def test_one_annotator_makes_a_benchmark_that_the_loader_reads(
    say: Say, logs: Logs, tree: Path, write: Write
) -> None:
    say("anna", "What color are the feet", "b", "black | dark <grey>")
    annotations = write(decide_questions(asked("What color are the feet"), logs("anna")))
    benchmark = load_visual_rag(annotations, tree)
    (query,) = benchmark.queries.values()
    assert (query.text, query.answers, query.entity, query.metadata["version"]) == (
        "What color are the feet?",
        ("black", "dark <grey>"),
        "Branta leucopsis",
        "v2",
    )
    assert letters(benchmark.relevant(query.query_id)) == "b"
    assert letters(benchmark.candidates(query.query_id) or ()) == "abcd"
    row = json.loads(annotations.read_text(encoding="utf-8"))
    assert (row["y_rate"], row["y_count"], row["is_changed_v2"]) == (0.25, 1, "unchanged")


def test_each_question_has_one_fate_and_the_first_reason_counts(
    say: Say, logs: Logs, write: Write
) -> None:
    say("anna", "kept", "a", "black")
    say("anna", "common", "ab", "black")
    say("anna", "none")
    say("anna", "skipped", "abc", end="skipped")
    say("anna", "open", "a", end="open")
    say("anna", "filtered", "a", "black")
    table = asked(
        "kept",
        "common",
        "none",
        "skipped",
        "open",
        "filtered",
        "screened",
        "new",
        dropped=[""] * 5 + ["the estimated clue rate 50.0% is above 25%", "asks for eggs", ""],
        estimated_clue_rate=[0.1] * 5 + [0.5, np.nan, np.nan],
        n_judged=[4] * 6 + [0, 0],
    )
    decisions = decide_questions(table, logs("anna"))
    statuses = {each.question_id: each.status for each in decisions}
    assert statuses == {
        "kept": "kept",
        "common": "too_common",
        "none": "no_clue",
        "skipped": "skipped",
        "open": "not_annotated",
        "filtered": "dropped_by_filter",
        "screened": "dropped_earlier",
        "new": "not_annotated",
    }
    shown = decisions_table(decisions).set_index("question_id")
    assert shown.loc["common", "reason"] == "the clue rate 50.0% is above 25%"
    # labels of a question that the filter dropped are not lost
    assert shown.loc["filtered", ["clue_rate", "n_clues", "n_images"]].tolist() == [0.25, 1, 4]
    assert question_funnel(5, 2, decisions)["n"].tolist() == [5, 2, 8, 7, 6, 3, 1]
    assert len(write(decisions).read_text(encoding="utf-8").splitlines()) == 1


def test_kappa_is_that_of_scikit_learn_over_the_images_that_both_finished(
    say: Say, logs: Logs
) -> None:
    ticks = {"anna": ["ab", "c", "", "a"], "ben": ["b", "cd", "", "d"]}
    for name, ticked in ticks.items():
        for number, clues in enumerate(ticked):
            say(name, f"q{number}", clues, "black" if clues else "", species=f"species {number}")
    say("anna", "alone", "a", "black")
    say("ben", "q9", "a", end="skipped")
    row = annotator_agreement(logs("anna", "ben")).iloc[0]
    x, y = ([int(letter in clues) for clues in ticks[name] for letter in "abcd"] for name in ticks)
    assert row.kappa == pytest.approx(cohen_kappa_score(x, y))
    assert (row.n, row.questions, row.both, row.neither) == (16, 4, 2, 10)
    assert (row.only_first, row.only_second) == (2, 2)
    assert row.ci_low < row.kappa < row.ci_high
    assert annotator_agreement(logs("anna")).empty


def test_disputed_images_come_first_with_who_says_what_and_all_answers(
    say: Say, logs: Logs
) -> None:
    say("anna", "images", "ac", "black")
    say("ben", "images", "cd", "Black | grey")
    say("anna", "answers", "b", "black")
    say("ben", "answers", "b", "brown")
    say("anna", "same", "b", "black")
    say("ben", "same", "b", "BLACK ")
    found = find_disputes(logs("anna", "ben"))
    assert {question_id: letters(each.images) for question_id, each in found.items()} == {
        "images": "adc",
        "answers": "b",
    }
    assert list(found["images"].remarks.values()) == [
        "clue for anna; not for ben",
        "clue for ben; not for anna",
        "clue for anna, ben",
    ]
    assert [each.answer for each in found.values()] == ["black | grey", "black | brown"]


def test_a_disputed_question_waits_until_the_adjudicator_has_finished_it(
    say: Say, decided: Decided, goose: SpeciesFolder
) -> None:
    say("anna", "q", "ac", "black")
    say("ben", "q", "c", "grey")
    waiting = decided("anna", "ben")
    assert (waiting.status, waiting.labels) == ("awaiting_adjudication", {})
    say("judge", "q", "c", "dark grey", shown="ac", end="open")
    assert decided("anna", "ben", ruling=True).status == "awaiting_adjudication"
    say("judge", "q", "c", "dark grey", shown="ac")
    ruled = decided("anna", "ben", ruling=True)
    assert (ruled.status, ruled.answers, ruled.annotators) == (
        "kept",
        ("dark grey",),
        ("anna", "ben"),
    )
    assert ruled.labels == {name: int("c.jpg" in name) for name in goose.images}


def test_without_a_dispute_all_answers_that_were_given_are_accepted_and_a_ruling_is_not_needed(
    say: Say, decided: Decided
) -> None:
    say("anna", "q", "a", "black | grey")
    say("ben", "q", "a", "Grey|black")
    decision = decided("anna", "ben")
    assert (decision.status, decision.answers) == ("kept", ("black", "grey"))


def test_an_image_that_one_of_them_was_not_shown_has_no_label(say: Say, decided: Decided) -> None:
    say("anna", "q", "a", "black", shown="abcd")
    say("ben", "q", "a", "black", shown="abc")
    decision = decided("anna", "ben", limit=0.5)
    assert letters(list(decision.labels)) == "abc"
    assert decision.clue_rate == pytest.approx(1 / 3)


def test_a_dispute_that_came_up_after_the_ruling_waits_again_whatever_the_order_of_the_annotators(
    say: Say, decided: Decided
) -> None:
    say("anna", "q", "a", "black")
    say("ben", "q", "b", "black")
    say("judge", "q", "a", "black", shown="ab")
    assert decided("anna", "ben", ruling=True).status == "kept"
    say("carl", "q", "acd", "black")
    for names in (("anna", "ben", "carl"), ("carl", "ben", "anna")):
        decision = decided(*names, ruling=True)
        assert (decision.status, decision.reason, decision.labels) == (
            "awaiting_adjudication",
            "annotators differ on 2 images that are not ruled on",
            {},
        )


def test_a_dispute_about_the_answer_alone_leaves_the_clues(
    say: Say, logs: Logs, decided: Decided
) -> None:
    say("anna", "q", "a", "red")
    say("ben", "q", "a", "dark red")
    found = find_disputes(logs("anna", "ben"))
    # ticked to begin with
    assert letters(found["q"].images) == letters(sorted(found["q"].ticked)) == "a"
    say("judge", "q", "a", "red", shown="a")
    decision = decided("anna", "ben", ruling=True)
    assert (decision.status, decision.answers, decision.clue_rate) == ("kept", ("red",), 0.25)


def test_who_skips_a_question_that_another_finished_differs_from_them(
    say: Say, logs: Logs, decided: Decided
) -> None:
    say("anna", "q", "a", "red")
    say("ben", "q", "abc", end="skipped", shown="abc")
    found = find_disputes(logs("anna", "ben"))
    assert letters(found["q"].images) == "bca"
    assert list(found["q"].remarks.values()) == ["clue for ben; not for anna"] * 2 + [
        "clue for anna, ben"
    ]
    assert decided("anna", "ben").status == "awaiting_adjudication"
    say("judge", "q", "ab", "red", shown="abc")
    assert decided("anna", "ben", ruling=True).reason == "the clue rate 50.0% is above 25%"


def test_a_clue_that_the_other_was_not_shown_is_in_dispute(
    say: Say, logs: Logs, decided: Decided, goose: SpeciesFolder
) -> None:
    say("anna", "q", "d", "red", shown="abcd")
    say("ben", "q", "", shown="abc")
    found = find_disputes(logs("anna", "ben"))
    assert {Path(doc_id).stem: remark for doc_id, remark in found["q"].remarks.items()} == {
        "d": "clue for anna; not seen by ben"
    }
    say("judge", "q", "d", "red", shown="d")
    decision = decided("anna", "ben", ruling=True)
    assert decision.labels == {name: int("d.jpg" in name) for name in goose.images}


def test_votes_on_other_questions_and_on_images_that_are_gone_are_left_out(
    say: Say, tmp_path: Path, tree: Path
) -> None:
    say("anna", "q", "ab", "black", shown="abc")
    say("anna", "reworded", "a", "black")
    next(tree.rglob("b.jpg")).unlink()
    folders = read_species_folders(tree)
    (found,) = read_annotation_files([tmp_path / "anna.jsonl"], asked("q"), folders)
    assert list(found.votes) == ["q"]
    assert list(found.votes["q"].images.values()) == [1, 0]


def test_a_file_of_another_question_set_is_refused(say: Say, tmp_path: Path, tree: Path) -> None:
    say("anna", "other", "a", "black")
    with pytest.raises(VragError, match=r"anna\.jsonl: .* 1 other questions, .*'other\?'"):
        read_annotation_files([tmp_path / "anna.jsonl"], asked("q"), read_species_folders(tree))


def test_two_logs_of_one_name_are_refused(say: Say, tmp_path: Path, tree: Path) -> None:
    say("me", "q", "a", "black")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "me.jsonl").write_bytes((tmp_path / "me.jsonl").read_bytes())
    with pytest.raises(VragError, match=r"other.me\.jsonl: .* second file .*'me'"):
        read_annotation_files(
            [tmp_path / "me.jsonl", tmp_path / "other" / "me.jsonl"],
            asked("q"),
            read_species_folders(tree),
        )


def test_who_has_not_ticked_yet_is_named(say: Say, tmp_path: Path, tree: Path) -> None:
    say("ada", "q", "a", "black")
    words = "ben.jsonl: nobody has ticked as ben yet. Open the notebook with the"
    with pytest.raises(VragError, match=rf"{words} parameter annotator: ben, or take the file off"):
        read_annotation_files(
            [tmp_path / "ada.jsonl", tmp_path / "ben.jsonl"], asked("q"), read_species_folders(tree)
        )


def test_no_benchmark_is_written_where_nothing_is_kept_or_another_one_lies_and_that_stays(
    say: Say, logs: Logs, write: Write, tmp_path: Path
) -> None:
    say("anna", "q", "a", "black")
    before = write(decide_questions(asked("q"), logs("anna"))).read_bytes()
    say("ben", "none")
    with pytest.raises(VragError, match=r"annotations\.jsonl: .* \(1 no clue, 1 not annotated\)"):
        write(decide_questions(asked("none", "new"), logs("ben")))
    with pytest.raises(VragError, match=r"mine: holds a benchmark over .* 'elsewhere'"):
        write_benchmark(
            tmp_path / "mine",
            decide_questions(asked("q"), logs("anna")),
            Path("elsewhere"),
            "other",
        )
    assert (tmp_path / "mine" / "annotations.jsonl").read_bytes() == before


def test_the_filter_is_measured_on_images_that_people_labelled(
    say: Say, logs: Logs, goose: SpeciesFolder
) -> None:
    say("anna", "q", "ab", "black")
    decisions = decide_questions(asked("q"), logs("anna"))
    presence = pd.DataFrame(
        {
            "question_id": ["q"] * 4 + ["other"],
            "doc_id": [*goose.images, "elsewhere/x.jpg"],
            "visible": [1.0, 0.0, 1.0, np.nan, 1.0],
        }
    )
    table = filter_vs_annotators(presence, decisions).set_index("metric")
    assert table.loc["clues found", ["value", "n", "n_failed"]].tolist() == [0.5, 2, 0]
    assert table.loc["false alarms", ["value", "n", "n_failed"]].tolist() == [1.0, 1, 1]


def test_the_parameter_file_is_one_that_the_notebooks_accept(
    say: Say, logs: Logs, write: Write, tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say("anna", "q", "a", "black")
    parameters = write(decide_questions(asked("q"), logs("anna")), "geese").with_name("geese.yaml")
    monkeypatch.chdir(ROOT)
    plan = read_plan(parameters)
    given = {notebook.stem: values for notebook, values in plan.given.items()}
    assert given["02_retriever_comparison"] == {
        "data": {
            "name": "Geese: wild & <tame>",
            "annotations": str(tmp_path / "geese" / "annotations.jsonl"),
            "image_root": str(tree),
        },
        "figures_dir": "runs/figures-geese",
        "trec_dir": "runs/trec-geese",
        "retrievers": ["field-guide-clip-64", "field-guide-clip-32"],
    }
    assert given["00_tour"]["query_index"] == 0
    text = parameters.read_text(encoding="utf-8")
    others = dict(re.findall(r"^# (\d\d_\w+): (.+)$", text, re.MULTILINE))
    every = {file.stem for file in (ROOT / "notebooks" / "visual_rag").glob("[0-9]*.ipynb")}
    assert given.keys() | others.keys() == {*every, "00_tour"}
    left_out = " ".join(sorted(name[:2] for name in others))
    assert left_out == "06 07 08 09 11 12 16 17 18"
    assert others["06_number_of_clues"] == "no question has two clues, and another image"
    assert others["07_easy_negatives"] == "there is one species alone"
    assert others["18_why_distractors_hurt"] == "there are not four images of other species"


def test_it_asks_for_as_many_clues_as_there_are_and_names_articles_where_they_are(
    say: Say, logs: Logs, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say("anna", "q", "ab", "black")
    where = {"articles": tmp_path / "articles", "species": tmp_path / "categories.json"}
    decisions = decide_questions(asked("q"), logs("anna"), limit=0.5)
    parameters = write(decisions, "geese", **where).with_name("geese.yaml")
    monkeypatch.chdir(ROOT)
    given = {notebook.stem[:2]: values for notebook, values in read_plan(parameters).given.items()}
    assert given["06"]["max_clues"] == 2
    assert given["09"]["articles"] == {
        "pages": str(tmp_path / "articles"),
        "species_list": str(tmp_path / "categories.json"),
    }
    assert given["09"]["text_retriever"] == "field-guide-clip-64"
    assert "07" not in given


def test_it_names_the_notebooks_own_models_as_ones_for_the_field_guide_until_somebody_names_theirs(
    say: Say, logs: Logs, write: Write
) -> None:
    say("anna", "q", "a", "black")
    decisions = decide_questions(asked("q"), logs("anna"))
    parameters = write(decisions).with_name("mine.yaml")
    text = parameters.read_text(encoding="utf-8")
    assert "Field Guide" in text
    values = yaml.safe_load(text)
    notebooks = ROOT / "notebooks"
    for name, notebook in (
        ("models", "visual_rag/03_baselines"),
        ("tour_model", "00_tour"),
        ("retrievers", "visual_rag/02_retriever_comparison"),
        ("retriever", "visual_rag/04_top_k_vs_one_in_k"),
    ):
        assert values[name] == declared_parameters(notebooks / f"{notebook}.ipynb")[name]
    mine = {**values, "models": ["gpt-4o@openai"], "hardware": {"device": "cuda"}}
    parameters.write_text(yaml.safe_dump(mine), encoding="utf-8")
    write(decisions)
    again = yaml.safe_load(parameters.read_text(encoding="utf-8"))
    assert again == mine


def test_suggested_questions_are_listed_with_who_and_where(say: Say, logs: Logs) -> None:
    say("anna", "q", "a", "black")
    assert suggested_questions(logs("anna")).empty
    say("anna", "q", suggestion="What color is the tongue?")
    assert suggested_questions(logs("anna")).to_numpy().tolist() == [
        ["anna", "Branta leucopsis", "q?", "What color is the tongue?"]
    ]
