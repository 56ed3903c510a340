"""The panel for labels of answers: what is clicked is on disk."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from factories import labelled
from PIL import Image
from retrieval_data import refused

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.judging import read_human_labels
from vrag_kit.judging.human_labels import LABEL_SCORES
from vrag_kit.types import Benchmark
from vrag_kit.widgets import label_answers
from vrag_kit.widgets.annotation import AnnotationPanel

HEADER = "query_id,answer,label,annotator\n"
Open = Callable[[], AnnotationPanel]


@pytest.fixture
def benchmark(write_annotations: Callable[..., Path], tree: Path) -> Benchmark:
    """One question with markup."""
    texts = {"question": "Which <script>alert(1)</script> color?"}
    answers = {"answer": ["red & <i>blue</i>", "green"]}
    return load_visual_rag(write_annotations({**texts, **answers}), tree, name="toy")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "l.csv"


@pytest.fixture
def open_panel(benchmark: Benchmark, path: Path) -> Open:
    """Opens the panel on four answers, the first two the same."""
    (query_id,) = benchmark.queries
    sample = labelled(4, query_id=query_id, answer=["red", "red", "<b>blue</b>", "green"])
    return lambda: label_answers(benchmark, sample, path, "Ada")


def on_disk(path: Path) -> dict[str, str]:
    labels = read_human_labels(path)
    return dict(zip(labels["answer"], labels["label"], strict=True))


def click(panel: AnnotationPanel, *names: str) -> AnnotationPanel:
    for name in names:
        panel.buttons[name].click()
    return panel


def test_every_click_is_on_disk_at_once(open_panel: Open, path: Path) -> None:
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


def test_back_shows_the_label_and_lets_it_be_changed(open_panel: Open, path: Path) -> None:
    panel = open_panel()
    assert panel.buttons["back"].disabled
    click(panel, "back", "true", "false", "back", "back")
    marked = [name for name in LABEL_SCORES if panel.buttons[name].button_style == "info"]
    assert marked == ["true"]
    click(panel, "partial")
    assert on_disk(path) == {"red": "partial", "<b>blue</b>": "false"}
    assert panel.progress.value.startswith("3 of 3, 2 labelled, 1 not")


def test_an_opened_file_goes_on_where_a_label_is_missing(open_panel: Open, path: Path) -> None:
    path.parent.mkdir()
    path.write_text(HEADER + "elsewhere,red,true,Ada\n", encoding="utf-8")
    click(open_panel(), "true", "skip", "false")
    panel = open_panel()
    assert panel.progress.value.startswith("2 of 3, 2 labelled")  # the one that was skipped
    click(panel, "partial")
    assert read_human_labels(path)[["query_id", "label"]].iloc[0].tolist() == ["elsewhere", "true"]
    assert len(read_human_labels(path)) == 4


def test_a_file_of_somebody_else_is_refused(
    open_panel: Open, path: Path, benchmark: Benchmark
) -> None:
    path.parent.mkdir()
    path.write_text(HEADER + "q,red,true,Grace\n", encoding="utf-8")
    refused(open_panel, "l.csv", "'Grace'", "'Ada'")
    (query_id,), new = benchmark.queries, path.with_name("m.csv")
    sample = labelled(1, query_id=query_id)
    refused(partial(label_answers, benchmark, sample, new, ""), "annotator is empty")
    refused(partial(label_answers, benchmark, labelled(1), new, "Ada"), "'q0'", "no query of toy")


def test_clues_are_small_jpegs(open_panel: Open, path: Path, tree: Path) -> None:
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


def test_labels_of_another_tab_and_damage_stay(open_panel: Open, path: Path) -> None:
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
