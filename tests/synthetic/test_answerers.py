"""The shipped answerers look: their answers come out of pixels, and out of their training data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import WEIGHTS
from worded import worded

from vrag_kit.analysis import paired_differences, per_query
from vrag_kit.analysis.estimates import estimate
from vrag_kit.benchmarks import ImageFile, load_visual_rag
from vrag_kit.generation import (
    LocalGenerator,
    ask_models,
    gt_clue,
    load_generator,
    non_clue,
    zero_shot,
)
from vrag_kit.generation.prompts import parse_tagged
from vrag_kit.judging import RuleJudge, judge_answers
from vrag_kit.judging.scale import SHARES
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.synthetic.visual_rag.pages import EDITIONS, SpeciesPlan, annotation_rows
from vrag_kit.synthetic.visual_rag.questions import Question, askable_traits, make_question
from vrag_kit.synthetic.world.organisms import KINDS, hidden_parts
from vrag_kit.synthetic.world.photographs import draw_photograph, numbered_species, plan_clue_photo
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.types import Benchmark, Context, Prompt, Query
from vrag_kit.workspace import Workspace

ANSWERERS = [str(WEIGHTS / f"field-guide-vlm-{name}") for name in ("few", "many")]


@pytest.fixture(scope="module")
def full_guide(
    full_pages: list[SpeciesPlan], tmp_path_factory: pytest.TempPathFactory
) -> Benchmark:
    """Species of the full edition, of which `shown` draws what is looked at: in the small one every
    second species was told, which leaves little for a clue to add.
    """
    folder = tmp_path_factory.mktemp("full")
    for page in full_pages:
        (folder / "images" / page.folder).mkdir(parents=True)
        for name in page.files:
            (folder / "images" / page.folder / name).touch()
    rows = [json.dumps(row) for page in full_pages for row in annotation_rows(page)]
    (folder / "annotations.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return load_visual_rag(folder / "annotations.jsonl", folder / "images", name="Field Guide")


@pytest.fixture(scope="module")
def contexts(full_guide: Benchmark, full_pages: list[SpeciesPlan]) -> list[Context]:
    """Every question without an image, with a clue, and with an image that is none; the
    photographs that are shown are drawn, as the guide draws them.
    """
    chosen = gt_clue(full_guide, draws=1) + non_clue(full_guide, draws=1)
    shown = {doc_id for context in chosen for doc_id in context.doc_ids}
    for page in full_pages:
        for photo, name in zip(page.photos, page.files, strict=True):
            image = full_guide.corpus[f"{page.folder}/{name}"].image
            if f"{page.folder}/{name}" in shown and image is not None:
                picture = draw_photograph(page.species, photo.view, EDITIONS["full"].size)
                picture.save(image.where, quality=88, subsampling=0)
    return zero_shot(full_guide) + chosen


@pytest.fixture(scope="module")
def judged(
    full_guide: Benchmark, contexts: list[Context], tmp_path_factory: pytest.TempPathFactory
) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("answers")
    at = Workspace(answers_dir=folder, batch_size=32)
    decoding = {"temperature": 0, "max_new_tokens": 16}
    answers = ask_models(ANSWERERS, full_guide, contexts, at, prompts=PROMPTS, decoding=decoding)
    return judge_answers(RuleJudge(), full_guide, answers)


@pytest.fixture(scope="module", params=ANSWERERS, ids=["few", "many"])
def answerer(request: pytest.FixtureRequest) -> LocalGenerator:
    return load_generator(request.param, decoding={"temperature": 0, "max_new_tokens": 16})


def asked(model: LocalGenerator, prompts: list[Prompt], of: list[Question]) -> np.ndarray:
    """The scores of the answers to prompts, as if they had been these questions."""
    replies = [
        reply.raw
        for n in range(0, len(prompts), 30)
        for reply in model.generate(prompts[n : n + 30])
    ]
    return np.array([score(question, raw) for question, raw in zip(of, replies, strict=True)])


def score(question: Question, raw: str | None) -> float:
    query = Query(query_id="q", text=question.text, answers=question.answers)
    return RuleJudge().verdict(query, parse_tagged(raw or "")["answer"]).score or 0.0


@pytest.mark.slow
def test_a_clue_helps_and_a_useless_image_silences(
    judged: pd.DataFrame, full_guide: Benchmark
) -> None:
    claims = paired_differences(
        per_query(judged), arm="setting", by=["model"], baseline="zero_shot"
    ).set_index(["setting", "model"])
    helped, silenced = claims.loc["gt_clue", "ci_low"] > 0, claims.loc["non_clue", "ci_high"] < 0
    assert (helped & silenced).any(), claims
    assert (judged["status"] == "ok").all()
    abstained = judged.groupby(["model", "setting"])["abstained"].mean().unstack()
    assert (abstained["non_clue"] > 0.5).all()
    assert (abstained["gt_clue"] < abstained["non_clue"] - 0.3).all()
    assert (abstained["zero_shot"] < 0.1).all()


@pytest.mark.slow
def test_answers_follow_the_pixels_when_the_clue_is_exchanged_for_another_species(
    answerer: LocalGenerator, tmp_path: Path
) -> None:
    names, shown, prompts = [], [], []
    for i in range(45):
        rng = stream("exchange", i)
        kind = str(rng.choice(list(KINDS)))
        named, seen = (numbered_species(f"exchange/{i}", kind, n) for n in (0, 1))
        part = hidden_parts(named)[int(rng.integers(2))]
        both = [a for a in askable_traits(named, part) if a in askable_traits(seen, part)]
        asks = str(rng.choice(both))
        mine, other = (make_question(each, part, asks) for each in (named, seen))
        if mine.answers[0] == other.answers[0]:
            continue
        photo = plan_clue_photo(seen, part, f"exchange/{i}/photo")
        draw_photograph(seen, photo.view, 160).save(tmp_path / f"{i}.jpg", quality=90)
        names.append(mine)
        shown.append(other)
        prompts.append(worded("clue_image", mine.text, [ImageFile(tmp_path / f"{i}.jpg")]))
    gained = asked(answerer, prompts, shown) - asked(answerer, prompts, names)
    groups = [str(i) for i in range(len(prompts))]
    assert estimate(gained, groups, scale=SHARES.differences).ci_low > 0.2


def test_all_weights_of_the_demo_are_small_and_have_cards() -> None:
    assert sum(file.stat().st_size for file in WEIGHTS.rglob("*") if file.is_file()) < 50e6
    assert all((folder / "README.md").is_file() for folder in WEIGHTS.iterdir() if folder.is_dir())
