"""From votes to a benchmark: agreement, disputes, the rule 0 < clue rate ≤ 0.25, and the files with
which the notebooks run on it.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from conftest import ROOT
from PIL import Image
from readme_pages import README
from retrieval_data import refused
from sklearn.metrics import cohen_kappa_score
from votes import Votes, asked

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.building.annotations import read_annotation_files
from vrag_kit.building.benchmark_files import write_benchmark
from vrag_kit.building.decisions import (
    Decision,
    annotator_agreement,
    decide_questions,
    decisions_table,
    filter_vs_annotators,
    find_disputes,
    question_funnel,
)
from vrag_kit.building.questions import read_questions
from vrag_kit.building.species import read_species_folders
from vrag_kit.runner.plan import read_plan

Decided = Callable[..., Decision]


@pytest.fixture
def votes(tmp_path, tree):
    return Votes(tmp_path, *read_species_folders(tree))


@pytest.fixture
def decided(votes):
    """What becomes of the question q by these annotators' votes, and perhaps a ruling."""

    def by(*names: str, ruling: bool = False, **how: float) -> Decision:
        judge = votes.read("judge")[0] if ruling else None
        (decision,) = decide_questions(asked("q"), votes.read(*names), judge, **how)
        return decision

    return by


def letters(doc_ids: Sequence[str]) -> str:
    return "".join(Path(doc_id).stem for doc_id in doc_ids)


def test_each_question_has_one_fate_and_the_first_reason_counts(votes):
    votes("anna", "kept", "a", "black")
    votes("anna", "too_common", "ab", "black")
    votes("anna", "no_clue")
    votes("anna", "skipped", "abc", status="skipped")
    votes("anna", "not_annotated", "a", status="open")
    votes("anna", "dropped_by_filter", "a", "black")
    fates = ["kept", "too_common", "no_clue", "skipped", "not_annotated"]
    fates += ["dropped_by_filter", "dropped_earlier"]
    dropped = [""] * 5 + ["the estimated clue rate 50.0% is above 25%", "asks for eggs"]
    rates = {"estimated_clue_rate": [0.1] * 5 + [0.5, np.nan], "n_judged": [4] * 6 + [0]}
    decisions = decide_questions(asked(*fates, dropped=dropped, **rates), votes.read("anna"))
    assert [each.status for each in decisions] == fates
    shown = decisions_table(decisions).set_index("question_id")
    assert shown.loc["too_common", "reason"] == "the clue rate 50.0% is above 25%"
    # labels of a question that the filter dropped are not lost
    kept = shown.loc["dropped_by_filter", ["clue_rate", "n_clues", "n_images"]]
    assert kept.tolist() == [0.25, 1, 4]
    assert question_funnel(5, 2, decisions)["n"].tolist() == [5, 2, 7, 6, 5, 3, 1]


def test_kappa_is_that_of_scikit_learn_over_the_images_that_both_finished(votes):
    ticks = {"anna": ["ab", "c", "", "a"], "ben": ["b", "cd", "", "d"]}
    for name, ticked in ticks.items():
        for number, clues in enumerate(ticked):
            votes(name, f"q{number}", clues, "black" if clues else "", species=f"species {number}")
    votes("anna", "alone", "a", "black")
    votes("ben", "q9", "a", status="skipped")
    row = annotator_agreement(votes.read("anna", "ben")).iloc[0]
    places = list(product(range(4), "abcd"))
    x, y = ([letter in clues[number] for number, letter in places] for clues in ticks.values())
    assert row.kappa == pytest.approx(cohen_kappa_score(x, y))
    assert (row.n, row.questions, row.both, row.neither) == (16, 4, 2, 10)
    assert (row.only_first, row.only_second) == (2, 2)
    assert row.ci_low < row.kappa < row.ci_high
    assert annotator_agreement(votes.read("anna")).empty


def test_disputed_images_come_first_with_who_says_what_and_all_answers(votes):
    votes("anna", "images", "ac", "black")
    votes("ben", "images", "cd", "Black | grey")
    votes("anna", "answers", "b", "black")
    votes("ben", "answers", "b", "brown")
    votes("anna", "same", "b", "black")
    votes("ben", "same", "b", "BLACK ")
    found = find_disputes(votes.read("anna", "ben"))
    assert list(found) == ["images", "answers"]
    assert [letters(each.images) for each in found.values()] == ["adc", "b"]
    assert letters(sorted(found["answers"].ticked)) == "b"  # ticked to begin with
    assert [each.answer for each in found.values()] == ["black | grey", "black | brown"]


def test_a_disputed_question_waits_for_the_adjudicator(votes, decided):
    votes("anna", "q", "ac", "black")
    votes("ben", "q", "c", "grey")
    waiting = decided("anna", "ben")
    assert (waiting.status, waiting.labels) == ("awaiting_adjudication", {})
    votes("judge", "q", "c", "dark grey", shown="ac", status="open")
    assert decided("anna", "ben", ruling=True).status == "awaiting_adjudication"
    votes("judge", "q", "c", "dark grey", shown="ac")
    ruled = decided("anna", "ben", ruling=True)
    assert (ruled.status, ruled.answers, ruled.clue_rate) == ("kept", ("dark grey",), 0.25)
    assert ruled.annotators == ("anna", "ben")
    votes("carl", "q", "acd", "black")  # a dispute after the ruling waits again
    for names in (("anna", "ben", "carl"), ("carl", "ben", "anna")):
        decision = decided(*names, ruling=True)
        assert (decision.status, decision.labels) == ("awaiting_adjudication", {})
        assert decision.reason == "annotators differ on 1 images that are not ruled on"


def test_without_a_dispute_all_answers_are_accepted(votes, decided):
    votes("anna", "q", "a", "black | grey")
    votes("ben", "q", "a", "Grey|black", shown="abc")
    decision = decided("anna", "ben", limit=0.5)
    assert (decision.status, decision.answers) == ("kept", ("black", "grey"))
    # an image that one of them was not shown has no label
    assert letters(list(decision.labels)) == "abc"
    assert decision.clue_rate == pytest.approx(1 / 3)


def test_votes_on_what_is_gone_are_left_out(votes, tmp_path, tree):
    votes("anna", "q", "ab", "black", shown="abc")
    votes("anna", "reworded", "a", "black")
    next(tree.rglob("b.jpg")).unlink()
    log, folders = tmp_path / "anna.jsonl", read_species_folders(tree)
    (found,) = read_annotation_files([log], asked("q"), folders)
    assert list(found.votes) == ["q"]
    assert list(found.votes["q"].images.values()) == [1, 0]


def test_files_of_other_questions_are_refused(votes, tmp_path, tree):
    votes("me", "other", "a", "black")
    log, second = tmp_path / "me.jsonl", tmp_path / "second" / "me.jsonl"
    second.parent.mkdir()
    second.write_bytes(log.read_bytes())
    folders = read_species_folders(tree)
    read = partial(read_annotation_files, [log], asked("q"), folders)
    refused(read, "me.jsonl: ", "1 other questions", "'other?'")
    twice = partial(read_annotation_files, [log, second], asked("other"), folders)
    refused(twice, "second/me.jsonl: ", "second file", "'me'")
    new = partial(read_annotation_files, [log, tmp_path / "ben.jsonl"], asked("other"), folders)
    refused(new, "ben.jsonl: ")


def test_the_filter_is_measured_on_images_that_people_labelled(votes):
    votes("anna", "q", "ab", "black")
    decisions = decide_questions(asked("q"), votes.read("anna"))
    doc_ids = [*votes.folder.images, "elsewhere/x.jpg"]
    visible = {"doc_id": doc_ids, "visible": [1.0, 0.0, 1.0, np.nan, 1.0]}
    presence = pd.DataFrame({"question_id": ["q"] * 4 + ["other"], **visible})
    table = filter_vs_annotators(presence, decisions).set_index("metric")
    assert table.loc["clues found", ["value", "n", "n_failed"]].tolist() == [0.5, 2, 0]
    assert table.loc["false alarms", ["value", "n", "n_failed"]].tolist() == [1.0, 1, 1]


def decisions(tmp_path: Path, tree: Path, clues: str = "a", limit: float = 0.25) -> list[Decision]:
    """One question, kept."""
    votes = Votes(tmp_path, *read_species_folders(tree))
    votes("anna", "q", clues, "black")
    return decide_questions(asked("q"), votes.read("anna"), limit=limit)


def test_the_ticks_that_the_readme_shows_make_a_benchmark(tmp_path):
    things = tmp_path / "things"
    (things / "mug").mkdir(parents=True)
    for number in range(1, 5):
        Image.new("RGB", (8, 8), (0, 0, 60 * number)).save(things / "mug" / f"IMG_{number}.jpg")
    blocks = re.findall(r"```jsonl\n(.*?)```", README, re.DOTALL)
    (log,) = [block for block in blocks if "annotations, version" in block]
    (tmp_path / "ada.jsonl").write_text(log, encoding="utf-8")
    lines = "mug,What color is the bottom of the mug?,bottom,ada\n"
    (tmp_path / "questions.csv").write_text(f"species,question,feature,writer\n{lines}")
    folders = read_species_folders(things)
    questions = read_questions(tmp_path / "questions.csv", folders)
    logs = read_annotation_files([tmp_path / "ada.jsonl"], questions, folders)
    unfiltered = questions.assign(estimated_clue_rate=np.nan, n_judged=0, n_unjudged=0)
    decided = decide_questions(unfiltered, logs)
    benchmark = load_visual_rag(write_benchmark(tmp_path / "b", decided, things, "Mugs"), things)
    (query,) = benchmark.queries.values()
    assert (query.text, query.answers) == ("What color is the bottom of the mug?", ("blue",))
    assert benchmark.relevant(query.query_id) == ("mug/IMG_2.jpg",)
    assert len(benchmark.candidates(query.query_id) or ()) == 4


def test_a_notebook_has_data_or_a_reason(tmp_path, tree, monkeypatch):
    kept, title = decisions(tmp_path, tree), "Geese: wild & <tame>"
    annotations = write_benchmark(tmp_path / "geese", kept, tree, title)
    parameters = annotations.with_name("geese.yaml")
    monkeypatch.chdir(ROOT)
    given = {task.notebook.stem: task.given for task in read_plan(parameters).tasks}
    data = {"name": title, "annotations": str(annotations), "image_root": str(tree)}
    assert given["02_retriever_comparison"]["data"] == data
    text = parameters.read_text(encoding="utf-8")
    others = dict(re.findall(r"^# (\d\d_\w+): (.+)$", text, re.MULTILINE))
    every = {file.stem for file in (ROOT / "notebooks" / "visual_rag").glob("[0-9]*.ipynb")}
    assert given.keys() | others.keys() == {*every, "00_tour"}
    left_out = " ".join(sorted(name[:2] for name in others))
    assert left_out == "06 07 08 09 11 12 16 17 18"
    assert others["06_number_of_clues"] == "no question has two clues, and another image"
    assert others["07_easy_negatives"] == "there is one species alone"


def test_nothing_is_written_over_another_benchmark(tmp_path, tree):
    kept = decisions(tmp_path, tree)
    before = write_benchmark(tmp_path / "mine", kept, tree, "Geese").read_bytes()
    votes = Votes(tmp_path, *read_species_folders(tree))
    votes("ben", "none")
    none = decide_questions(asked("none", "new"), votes.read("ben"))
    nothing = partial(write_benchmark, tmp_path / "mine", none, tree, "Geese")
    refused(nothing, "annotations.jsonl", "1 no clue", "1 not annotated")
    other = partial(write_benchmark, tmp_path / "mine", kept, Path("elsewhere"), "other")
    refused(other, "mine", "'elsewhere'")
    assert (tmp_path / "mine" / "annotations.jsonl").read_bytes() == before


def test_named_models_stay_when_the_file_is_written_again(tmp_path, tree):
    write = partial(write_benchmark, tmp_path / "mine", decisions(tmp_path, tree), tree, "Geese")
    parameters = write().with_name("mine.yaml")
    values = yaml.safe_load(parameters.read_text(encoding="utf-8"))
    mine = {**values, "models": ["gpt-4o@openai"], "hardware": {"device": "cuda"}}
    parameters.write_text(yaml.safe_dump(mine), encoding="utf-8")
    write()
    assert yaml.safe_load(parameters.read_text(encoding="utf-8")) == mine
