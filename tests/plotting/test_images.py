"""Figures about a question that is asked about a picture show that picture."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from vrag_kit.plotting import answer_gallery, contact_sheet, retrieved_images
from vrag_kit.plotting.style import EVIDENCE
from vrag_kit.retrieval import make_run
from vrag_kit.types import Benchmark


@pytest.fixture
def pictured(guide):
    """The small guide, its first question asked about the last picture of the corpus."""
    query = next(iter(guide.queries.values()))
    picture = list(guide.corpus.values())[-1].image
    return replace(guide, queries={query.query_id: replace(query, image=picture)})


def titles(figure: Figure) -> list[str]:
    return [axis.get_title() for axis in figure.axes if axis.get_title()]


def shows(axis: Axes, benchmark: Benchmark) -> bool:
    """Whether an axis shows the picture of the benchmark's one question."""
    (query,) = benchmark.queries.values()
    assert query.image is not None
    picture = query.image.open()
    picture.thumbnail((256, 256))
    return bool(axis.images) and np.array_equal(axis.images[0].get_array(), np.asarray(picture))


def test_a_contact_sheet_shows_the_query_image_and_frames_clues(pictured):
    (query_id,) = pictured.queries
    figure = contact_sheet(pictured, query_id)
    gold = min(4, len(pictured.relevant(query_id)))
    first, *others = figure.axes
    assert [axis.get_title() for axis in figure.axes[: gold + 2]] == [
        *("the question's\nimage", *["gold"] * gold, "")
    ]
    assert shows(first, pictured)
    shown = [axis for axis in others if axis.images]
    framed = [to_hex(axis.spines["left"].get_edgecolor()) for axis in shown]
    other = len(framed) - gold
    assert framed == [EVIDENCE["gold"].lower()] * gold + [EVIDENCE["other"].lower()] * other


def test_a_gallery_cuts_the_question_not_the_accepted_answers(pictured):
    (query,) = pictured.queries.values()
    accepted = tuple(f"answer{place}" for place in range(12))
    asked = {query.query_id: replace(query, text="word " * 60, answers=accepted)}
    answer = {"query_id": query.query_id, "answer": "none", "model": "m", "doc_ids": ()}
    figure = answer_gallery(replace(pictured, queries=asked), pd.DataFrame([answer]))
    below = " ".join(figure.axes[0].get_xlabel().split())
    assert below.endswith(" | ".join(accepted))
    assert "word … accepted: " in below


def test_runs_are_shown_below_the_query_image(pictured, guide):
    (query_id,) = pictured.queries
    clue = guide.relevant(query_id)[0]
    other = next(doc_id for doc_id, label in guide.qrels[query_id].items() if not label)
    shallow = make_run([(query_id, clue, 1.0)])
    runs = {"deep": make_run([(query_id, clue, 1.0), (query_id, other, 0.5)]), "shallow": shallow}
    runs["nothing"] = make_run([])
    found = ["rank 1 · gold", "rank 2", "rank 1 · gold"]
    figure = retrieved_images(pictured, query_id, runs, k=2)
    assert titles(figure) == ["the question's image", *found]
    assert shows(figure.axes[0], pictured)
    assert titles(retrieved_images(guide, query_id, runs, k=2)) == found
    labels = [axis.get_ylabel() for axis in figure.axes if axis.get_ylabel()]
    assert labels == ["question", "deep", "shallow", "nothing"]
