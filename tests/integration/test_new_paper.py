"""A paper that no engine room knows comes in by a folder of its own, `toy_paper`: query
images, choices, conversations, and a scale from −1 to 1, from loader to figure.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from conftest import ROOT
from PIL import Image, ImageDraw
from strange_server import StrangeServer, images_in, text_in
from toy_paper.loader import load_talks
from toy_paper.scorer import ChoiceJudge, read_letter

from vrag_kit.generation import ask_models, read_prompts, top_k
from vrag_kit.judging import judge_answers
from vrag_kit.retrieval import make_run

TOY = ROOT / "tests" / "toy_paper"
PROMPTS = replace(read_prompts(TOY / "prompts.yaml"), read=read_letter)
SHAPES = {"disc": "red", "bar": "black"}
COLORS, CORNERS = ("red", "blue", "green", "black"), ("none", "four")


def draw(shape: str, background: str, path: Path) -> str:
    picture = Image.new("RGB", (48, 48), background)
    pen = ImageDraw.Draw(picture)
    form = pen.ellipse if shape == "disc" else pen.rectangle
    form((8, 8, 40, 40) if shape == "disc" else (8, 20, 40, 28), fill=SHAPES[shape])
    path.parent.mkdir(exist_ok=True)
    picture.save(path)
    return f"{path.parent.name}/{path.name}"


@pytest.fixture(scope="module")
def talks(tmp_path_factory):
    """A talk and a page a shape, in the toy paper's own layout."""
    folder = tmp_path_factory.mktemp("talks")
    pages, told = [], []
    for (shape, color), corners in zip(SHAPES.items(), CORNERS, strict=True):
        picture = draw(shape, "white", folder / "pages" / f"{shape}.png")
        pages.append(f"page-{shape}\t{picture}\tThe {shape} is always {color}.")
        photo = draw(shape, "lightgray", folder / "photos" / f"{shape}.png")
        first = {"ask": "What color is it?", "options": COLORS, "right": color}
        second = {"ask": "How many corners?", "options": CORNERS, "right": corners}
        turns = [{**turn, "pages": [f"page-{shape}"]} for turn in (first, second)]
        told.append({"talk": f"{shape}0", "shape": shape, "photo": photo, "turns": turns})
    (folder / "pages.tsv").write_text("\n".join(pages), encoding="utf-8")
    (folder / "talks.json").write_text(json.dumps(told), encoding="utf-8")
    return load_talks(folder)


def test_a_conversation_shows_pages_choices_and_answers(talks, at):
    found = (("page-disc", 2.0), ("page-bar", 1.0))
    contexts = top_k(talks, make_run((q, *hit) for q in talks.queries for hit in found), ks=[2])
    # the later turn holds both questions: the first plan that fits counts
    plans = {"How many corners?": ["say A"], "What color is it?": ["say B. surely"]}
    with StrangeServer(plans) as server:
        model = {"model": f"talker@{server.url}", "decoding": {"temperature": 0}}
        table = ask_models([model], talks, contexts, at, prompts=PROMPTS)
        pd.testing.assert_frame_equal(
            ask_models([model], talks, contexts, at, prompts=PROMPTS), table
        )
        assert server.calls("shape") == len(contexts) == 4  # and none of them twice
        bodies = [body for body in server.requests if images_in(body)]
    assert table["answer"].tolist() == ["B", "A"] * 2
    # blue is the color of neither, and the bar has corners
    assert judge_answers(ChoiceJudge(), talks, table)["score"].tolist() == [-1, 1, -1, -1]
    assert table["group"].tolist() == ["disc", "disc", "bar", "bar"]
    assert sum("So far" not in text_in(body) for body in bodies) == 2
    later = [each for each in bodies if "corners" in text_in(each)]  # in any order
    body = max(later, key=lambda each: images_in(each)[0].getpixel((24, 24)))  # of the red disc
    assert text_in(body).replace("\n\n", "\n") == (
        "You look at a painted shape. Answer with the letter of one choice, or say that you do not"
        " know.\nPhoto: \nFrom the book:\nPage 1:  The disc is always red.\nPage 2:  The bar is"
        " always black.\nSo far:\n- What color is it? You said: B\n"
        "Question: How many corners?\nA. none\nB. four\n"
    )
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    photo, disc, bar = (image.getpixel((24, 24)) for image in images_in(body))
    assert (photo, disc, bar) == ((255, 0, 0), (255, 0, 0), (0, 0, 0))
