"""A paper that no engine room knows comes in by a folder of its own, `toy_paper`: query
images, choices, conversations, and a scale from −1 to 1, from loader to figure.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import tiny_retrievers
from conftest import ROOT
from model_stub import ModelStub
from PIL import Image, ImageDraw
from strange_server import StrangeServer, images_in, text_in
from toy_paper.loader import load_talks
from toy_paper.scorer import ChoiceJudge, read_letter

from vrag_kit.analysis import mean_scores, to_percent
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models, read_prompts, top_k, zero_shot
from vrag_kit.judging import judge_answers
from vrag_kit.plotting import point_plot
from vrag_kit.retrieval import search_all
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace

TOY = ROOT / "tests" / "toy_paper"
PROMPTS = replace(read_prompts(TOY / "prompts.yaml"), read=read_letter)
SHAPES = {"disc": "red", "square": "blue", "ring": "green", "bar": "black"}
CORNERS = ("none", "four")


def draw(shape: str, color: str, background: str, path: Path) -> str:
    picture = Image.new("RGB", (48, 48), background)
    pen = ImageDraw.Draw(picture)
    if shape in ("disc", "ring"):
        pen.ellipse((8, 8, 40, 40), outline=color, width=6, fill=color if shape == "disc" else None)
    else:
        pen.rectangle((8, 8, 40, 40) if shape == "square" else (8, 20, 40, 28), fill=color)
    path.parent.mkdir(exist_ok=True)
    picture.save(path)
    return f"{path.parent.name}/{path.name}"


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Two talks a shape, a page a shape, in the toy paper's own layout."""
    folder = tmp_path_factory.mktemp("talks")
    pages, told = [], []
    for shape, color in SHAPES.items():
        picture = draw(shape, color, "white", folder / "pages" / f"{shape}.png")
        pages.append(f"page-{shape}\t{picture}\tThe {shape} is always {color}.")
        corners = CORNERS[shape in ("square", "bar")]
        for number, background in enumerate(("white", "lightgray")):
            talk = f"{shape}{number}"
            photo = draw(shape, color, background, folder / "photos" / f"{talk}.png")
            first = {"ask": "What color is it?", "options": list(SHAPES.values()), "right": color}
            second = {"ask": "How many corners?", "options": list(CORNERS), "right": corners}
            turns = [{**turn, "pages": [f"page-{shape}"]} for turn in (first, second)]
            told.append({"talk": talk, "shape": shape, "photo": photo, "turns": turns})
    (folder / "pages.tsv").write_text("\n".join(pages), encoding="utf-8")
    (folder / "talks.json").write_text(json.dumps(told), encoding="utf-8")
    return load_talks(folder)


@pytest.fixture(scope="module")
def run(talks: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """What a tiny CLIP finds with the photographs."""
    folder = tmp_path_factory.mktemp("clip")
    model = tiny_retrievers.clip(folder / "clip")
    entry = {"model": str(model), "query": "image"}
    return next(
        iter(
            search_all(talks, [entry], at=Workspace(cache_dir=folder / "embeddings"), k=3).values()
        )
    )


def test_a_conversation_shows_photo_pages_choices_and_the_models_own_answers(
    talks: Benchmark, run: pd.DataFrame, tmp_path: Path
) -> None:
    contexts = top_k(talks, run, ks=[2])
    # the later turn holds both questions: the first plan that fits counts
    plans = {"How many corners?": ["say A"], "What color is it?": ["say B. surely"]}
    with StrangeServer(plans) as server:
        model = {"model": f"talker@{server.url}", "decoding": {"temperature": 0}}
        table = ask_models(
            [model], talks, contexts, Workspace(answers_dir=tmp_path), prompts=PROMPTS
        )
        bodies = [body for body in server.requests if images_in(body)]
        again = ask_models(
            [model], talks, contexts, Workspace(answers_dir=tmp_path), prompts=PROMPTS
        )
        assert server.calls("shape") == len(contexts) == 16  # and none of them twice
    pd.testing.assert_frame_equal(again, table)
    assert table["answer"].tolist() == ["B", "A"] * 8
    assert table["group"].tolist() == [shape for shape in SHAPES for _ in range(4)]
    assert sum("So far" not in text_in(body) for body in bodies) == 8
    body = next(each for each in bodies if "corners" in text_in(each) and "disc" in text_in(each))
    assert text_in(body).replace("\n\n", "\n") == (
        "You look at a painted shape. Answer with the letter of one choice, or say that you do not"
        " know.\nPhoto: \nFrom the book:\nPage 1:  The disc is always red.\nPage 2:  The bar is"
        " always black.\nSo far:\n- What color is it? You said: B\n"
        "Question: How many corners?\nA. none\nB. four\n"
    )
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    disc, page, other = (image.getpixel((24, 24)) for image in images_in(body))
    assert disc == page == (255, 0, 0)  # the photograph, its page, and another one
    assert other == (0, 0, 0)


def test_a_conversation_needs_its_first_turn(talks: Benchmark, tmp_path: Path) -> None:
    later = [context for context in zero_shot(talks) if context.query_id.endswith("-1")]
    with StrangeServer({"": ["say A"]}) as server:
        model = {"model": f"talker@{server.url}", "decoding": {"temperature": 0}}
        with pytest.raises(VragError, match=r"conversation 'disc0'.*1 .query 'disc0-1'"):
            ask_models([model], talks, later, Workspace(answers_dir=tmp_path), prompts=PROMPTS)


def test_scores_below_zero_stay_below_zero_up_to_the_figure(
    talks: Benchmark, tmp_path: Path
) -> None:
    # the later turn holds both questions: the first that fits counts
    model = ModelStub({"How many corners?": "A", "What color is it?": "E?"})
    table = ask_models(
        [model], talks, zero_shot(talks), Workspace(answers_dir=tmp_path), prompts=PROMPTS
    )
    judged = judge_answers(ChoiceJudge(), talks, table)
    # there are four colours, so that E declines (0); no corners are right for disc and ring
    # (1) and wrong for square and bar (−1): half of that is each shape's mean
    means = mean_scores(judged, by=["group"]).query("metric == 'accuracy'")
    shares = means.set_index("group")["value"].to_dict()
    assert shares == {"disc": 0.5, "square": -0.5, "ring": 0.5, "bar": -0.5}
    drawn = to_percent(means[means["value"] < 0].assign(model="m"))
    (axis,) = point_plot(drawn, x="group", ylabel="Score", limits=(None, None)).axes
    points = [line.get_ydata().tolist() for line in axis.lines if line.get_marker() == "o"]
    assert points == [[-50.0, -50.0]]
    assert axis.get_ylim()[0] < -50
