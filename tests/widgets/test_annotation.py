"""Panels for labels of answers and multiple-choice questions: what is clicked is on disk."""

import base64
import io
import re
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from factories import labelled
from mrag_rows import four_questions
from PIL import Image
from retrieval_data import refused

from vrag_kit.benchmarks import ImageFile, load_visual_rag
from vrag_kit.judging import judge_answers, read_human_labels
from vrag_kit.judging.human_labels import LABEL_SCORES
from vrag_kit.papers.mrag_bench.choices import MultipleChoiceJudge
from vrag_kit.papers.mrag_bench.people import load_human_answers
from vrag_kit.papers.mrag_bench.settings import gt_rag, no_rag
from vrag_kit.widgets import choices_page, label_answers, multiple_choice_panel
from vrag_kit.widgets.annotation import AnnotationPanel
from vrag_kit.widgets.multiple_choice import read_choices

HEADER = "query_id,answer,label,annotator\n"
Open = Callable[[], AnnotationPanel]


@pytest.fixture
def benchmark(write_annotations, tree):
    """One question with markup."""
    texts = {"question": "Which <script>alert(1)</script> color?"}
    answers = {"answer": ["red & <i>blue</i>", "green"]}
    return load_visual_rag(write_annotations({**texts, **answers}), tree, name="toy")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "l.csv"


@pytest.fixture
def open_panel(benchmark, path):
    """Opens the panel on four answers, the first two the same."""
    (query_id,) = benchmark.queries
    sample = labelled(4, query_id=query_id, answer=["red", "red", "<b>blue</b>", "green"])
    return lambda: label_answers(benchmark, sample, path, "Ada")


def on_disk(path: Path) -> dict[str, str]:
    labels = read_human_labels(path)
    return dict(zip(labels["answer"], labels["label"], strict=True))


def click(panel: Any, *names: str) -> Any:
    for name in names:
        panel.buttons[name].click()
    return panel


def test_every_click_is_on_disk_at_once(open_panel, path):
    panel = open_panel()
    assert on_disk(path) == {}
    assert panel.progress.value.startswith("1 of 3, 0 labelled")  # equal answers are one
    click(panel, "true")
    assert on_disk(path) == {"red": "true"}
    assert repr(panel) == f"AnnotationPanel: 1 of 3 labelled, in {path}"
    assert "base64" not in str(panel._repr_mimebundle_())  # no image is saved in a notebook
    click(panel, "partial", "false", "true", "skip")
    assert on_disk(path) == {"red": "true", "<b>blue</b>": "partial", "green": "false"}
    assert set(read_human_labels(path)["annotator"]) == {"Ada"}
    assert panel.progress.value.startswith("the end: 3 labelled, 0 not")
    assert panel.buttons["true"].disabled


def test_back_shows_the_label_and_lets_it_be_changed(open_panel, path):
    panel = open_panel()
    assert panel.buttons["back"].disabled
    click(panel, "back", "true", "false", "back", "back")
    marked = [name for name in LABEL_SCORES if panel.buttons[name].button_style == "info"]
    assert marked == ["true"]
    click(panel, "partial")
    assert on_disk(path) == {"red": "partial", "<b>blue</b>": "false"}
    assert panel.progress.value.startswith("3 of 3, 2 labelled, 1 not")


def test_an_opened_file_goes_on_where_a_label_is_missing(open_panel, path):
    path.parent.mkdir()
    path.write_text(HEADER + "elsewhere,red,true,Ada\n", encoding="utf-8")
    click(open_panel(), "true", "skip", "false")
    panel = open_panel()
    assert panel.progress.value.startswith("2 of 3, 2 labelled")  # the one that was skipped
    click(panel, "partial")
    assert read_human_labels(path)[["query_id", "label"]].iloc[0].tolist() == ["elsewhere", "true"]
    assert len(read_human_labels(path)) == 4


def test_a_file_of_somebody_else_is_refused(open_panel, path, benchmark):
    path.parent.mkdir()
    path.write_text(HEADER + "q,red,true,Grace\n", encoding="utf-8")
    refused(open_panel, "l.csv", "'Grace'", "'Ada'")
    (query_id,), new = benchmark.queries, path.with_name("m.csv")
    sample = labelled(1, query_id=query_id)
    refused(partial(label_answers, benchmark, sample, new, ""), "annotator is empty")
    refused(partial(label_answers, benchmark, labelled(1), new, "Ada"), "'q0'", "no query of toy")


def test_clues_are_small_jpegs(open_panel, path, tree):
    (clue,) = tree.rglob("a.jpg")
    Image.new("RGB", (1000, 500), "red").save(clue)
    (data,) = re.findall(r'data:image/jpeg;base64,([^"]+)', open_panel().card.value)
    picture = Image.open(io.BytesIO(base64.b64decode(data)))
    assert (picture.format, picture.size) == ("JPEG", (256, 128))
    clue.write_bytes(b"no picture")
    panel = open_panel()
    assert "no picture: " in panel.card.value
    assert "a.jpg" in panel.card.value
    click(panel, "true")
    assert on_disk(path) == {"red": "true"}


def test_labels_of_another_tab_and_damage_stay(open_panel, path):
    first, second = open_panel(), open_panel()
    click(first, "true")
    click(second, "skip", "false")
    assert on_disk(path) == {"red": "true", "<b>blue</b>": "false"}
    card = first.card.value
    assert "Which &lt;script&gt;" in card
    assert not re.search(r"<script|<b>blue|secret", card)
    path.write_text(HEADER + "q,red\n", encoding="utf-8")
    assert "not saved" in click(first, "true").message.value
    assert path.read_text(encoding="utf-8") == HEADER + "q,red\n"  # damage is not overwritten


HEAD = "query_id,setting,option,option_text,seconds,participant\n"


@pytest.fixture
def four(tmp_path):
    """The four questions with an image that can be opened."""
    Image.new("RGB", (40, 30), "red").save(tmp_path / "red.png")
    picture, four = ImageFile(tmp_path / "red.png"), four_questions()
    queries = {name: replace(query, image=picture) for name, query in four.queries.items()}
    corpus = {name: replace(document, image=picture) for name, document in four.corpus.items()}
    return replace(four, queries=queries, corpus=corpus)


@pytest.fixture
def clock(monkeypatch):
    """The time, in its first place."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_each_click_is_on_disk(four, tmp_path, clock):
    path = tmp_path / "ada.csv"
    panel = multiple_choice_panel(four, no_rag(four) + gt_rag(four), path, "Ada")
    assert panel.progress.value.startswith("1 of 8, 0 answered, 8 not")
    clock[0] += 60  # before it begins no time counts
    click(panel, "begin")
    clock[0] += 4.25
    click(panel, "D")
    assert path.read_text().splitlines()[1] == '"0","no_rag","D","hare","4.2","Ada"'
    clock[0] += 2
    click(panel, "A")
    assert read_choices(path)["seconds"].tolist() == [4.2, 2.0]
    click(panel, *"CBAAAA")
    assert panel.progress.value.startswith("the end: 8 answered, 0 not")
    assert read_choices(path)["setting"].tolist() == ["no_rag"] * 4 + ["gt_rag"] * 4


def test_a_pause_hides_and_stops(four, tmp_path, clock):
    path = tmp_path / "ada.csv"
    panel = multiple_choice_panel(four, gt_rag(four), path, "Ada")
    assert "Which animal" not in panel.card.value
    assert panel.buttons["A"].disabled
    click(panel, "begin")
    text = panel.card.value
    assert "Which animal is this?" in text
    assert ">wood_rabbit</td>" in text
    assert text.count("<img") == 6
    assert not [word for word in ("right", "gt0-0", "asked/0") if word in text]  # no hint
    clock[0] += 3
    click(panel, "begin")  # which says pause now
    assert "Which animal" not in panel.card.value
    clock[0] += 1000
    click(panel, "begin")
    clock[0] += 2
    click(panel, "skip", "back")
    clock[0] += 1
    click(panel, "B")
    assert read_choices(path)["seconds"].item() == 6.0  # all that it was on the screen


def test_choices_of_others_are_refused(four, tmp_path):
    path = tmp_path / "a.csv"
    refused(partial(multiple_choice_panel, four, no_rag(four), path, ""), "participant is empty")
    open_question = replace(four.queries["0"], choices=())
    other = replace(four, queries={**four.queries, "0": open_question})
    refused(partial(multiple_choice_panel, other, no_rag(other), path, "Ada"), "'0' has no options")
    for row, tokens in (("D,hare,7.5,Bo", ("'Bo'", "'Ada'")), ("D,toad,1,Ada", ("(D) 'toad'",))):
        path.write_text(f"{HEAD}0,no_rag,{row}\n")
        refused(partial(multiple_choice_panel, four, no_rag(four), path, "Ada"), *tokens)


def test_choices_are_judged_like_a_models_answers(four, tmp_path, capsys):
    ada, bo = tmp_path / "ada.csv", tmp_path / "bo.csv"
    ada.write_text(HEAD + "0,no_rag,A,wood_rabbit,7.5,Ada\n1,gt_rag,B,N,,Ada\n")
    bo.write_text(HEAD + "0,no_rag,A,hare,1,Bo\n9,no_rag,A,hare,1,Bo\n")
    answers = load_human_answers(four, no_rag(four) + gt_rag(four), [ada, bo])
    output = "2 chose 4 options; 2 of them are to be compared, 2 belong to other questions"
    assert output in capsys.readouterr().out
    judged = judge_answers(MultipleChoiceJudge(), four, answers)
    rows = judged[["model", "query_id", "score"]].values.tolist()
    assert rows == [["Ada", "0", 1.0], ["Ada", "1", 0.0]]
    assert judged["doc_ids"].tolist() == [(), ("gt1-0",)]
    refused(partial(load_human_answers, four, no_rag(four), [ada, ada]), "two files", "'Ada'")
    assert load_human_answers(four, no_rag(four), []).empty


def test_the_page_shows_who_chose_what_and_escapes_it(four, tmp_path):
    evil = tmp_path / "evil.csv"
    evil.write_text(HEAD + "0,gt_rag,B,Eastern cottontail,7.4,<script>\n1,gt_rag,A,M,,<script>\n")
    answers = load_human_answers(four, gt_rag(four), [evil])
    page = choices_page(four, answers, most=1).data
    for words in (">&lt;script&gt;</th>", ">B in 7 s</td>", ">wood_rabbit (right)</td>"):
        assert words in page
    assert "<script>" not in page
    assert page.count("<img") == 6
    assert "Which key" not in page
    assert "nobody has answered yet" in choices_page(four, answers.iloc[:0]).data
