"""The shipped answerers look: their answers come out of pixels, and out of their training data."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from conftest import WEIGHTS
from worded import worded

from vrag_kit.analysis import paired_differences, per_query
from vrag_kit.analysis.estimates import estimate
from vrag_kit.benchmarks import ImageFile, load_visual_rag
from vrag_kit.generation import (
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
from vrag_kit.synthetic.rows import write_json_lines
from vrag_kit.synthetic.visual_rag.pages import (
    EDITIONS,
    annotation_rows,
    plan_species,
    species_slots,
)
from vrag_kit.synthetic.visual_rag.questions import Question, askable_traits, make_question
from vrag_kit.synthetic.world.organisms import KINDS, hidden_parts
from vrag_kit.synthetic.world.photographs import (
    draw_photograph,
    encode_jpeg,
    numbered_species,
    plan_clue_photo,
)
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.types import Query
from vrag_kit.workspace import Workspace

ANSWERERS = ["field-guide-vlm-few", "field-guide-vlm-many"]
DECODING = {"temperature": 0, "max_new_tokens": 16}


@pytest.mark.slow
def test_a_clue_helps_and_a_useless_image_silences(tmp_path: Path) -> None:
    """On 18 species of the full edition, three of each kind, of which the answerers were told of
    one: in the small one they were told of every second. Only photographs that are shown are drawn.
    """
    edition = EDITIONS["full"]
    pages = [plan_species(edition, slot) for slot in species_slots(edition)[12:30]]
    views = {}
    for page in pages:
        (tmp_path / "images" / page.folder).mkdir(parents=True)
        for name, photo in zip(page.files, page.photos, strict=True):
            (tmp_path / "images" / page.folder / name).touch()
            views[f"{page.folder}/{name}"] = page.species, photo.view
    rows = chain.from_iterable(annotation_rows(page) for page in pages)
    write_json_lines(tmp_path / "annotations.jsonl", rows)
    guide = load_visual_rag(tmp_path / "annotations.jsonl", tmp_path / "images", name="Field Guide")
    shown = gt_clue(guide, draws=1) + non_clue(guide, draws=1)
    for doc_id in chain.from_iterable(context.doc_ids for context in shown):
        picture = draw_photograph(*views[doc_id], edition.size)
        (tmp_path / "images" / doc_id).write_bytes(encode_jpeg(picture))
    at = Workspace(answers_dir=tmp_path, batch_size=32)
    contexts = zero_shot(guide) + shown
    answers = ask_models(ANSWERERS, guide, contexts, at, prompts=PROMPTS, decoding=DECODING)
    judged = judge_answers(RuleJudge(), guide, answers)
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


def score(question: Question, answer: str) -> float:
    query = Query(query_id="q", text=question.text, answers=question.answers)
    return RuleJudge().verdict(query, answer).score or 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERERS)
def test_answers_follow_the_pixels_when_the_clue_is_exchanged_for_another_species(
    name: str, tmp_path: Path
) -> None:
    answerer = load_generator(name, decoding=DECODING)
    gained = []
    for i in range(45):
        rng = stream("exchange", i)
        kind = str(rng.choice(list(KINDS)))
        named, seen = (numbered_species(f"exchange/{i}", kind, n) for n in (0, 1))
        part = hidden_parts(named)[int(rng.integers(2))]
        both = [a for a in askable_traits(named, part) if a in askable_traits(seen, part)]
        asks = str(rng.choice(both))
        mine, other = (make_question(each, part, asks) for each in (named, seen))
        photo = plan_clue_photo(seen, part, f"exchange/{i}/photo")
        draw_photograph(seen, photo.view, 160).save(tmp_path / f"{i}.jpg", quality=90)
        if mine.answers[0] != other.answers[0]:
            prompt = worded("clue_image", mine.text, [ImageFile(tmp_path / f"{i}.jpg")])
            (reply,) = answerer.generate([prompt])
            answer = parse_tagged(reply.raw or "")["answer"]
            gained.append(score(other, answer) - score(mine, answer))
    groups = [str(i) for i in range(len(gained))]
    assert estimate(np.array(gained), groups, scale=SHARES.differences).ci_low > 0.2


def test_all_weights_of_the_demo_are_small_and_have_cards() -> None:
    assert sum(file.stat().st_size for file in WEIGHTS.rglob("*") if file.is_file()) < 50e6
    assert all((folder / "README.md").is_file() for folder in WEIGHTS.iterdir() if folder.is_dir())
