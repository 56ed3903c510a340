"""The shipped answerers look: their answers come out of pixels, and out of their training data."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import WEIGHTS
from worded import worded

from vrag_kit.analysis.estimates import estimate
from vrag_kit.benchmarks import ImageFile
from vrag_kit.generation import load_generator
from vrag_kit.generation.prompts import parse_tagged
from vrag_kit.judging import RuleJudge
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.scale import SHARES
from vrag_kit.synthetic.visual_rag.questions import Question, askable_traits, make_question
from vrag_kit.synthetic.world import photographs as photo
from vrag_kit.synthetic.world.organisms import KINDS, hidden_parts
from vrag_kit.synthetic.world.traits import Species, stream
from vrag_kit.types import Query

ANSWERERS = ["field-guide-vlm-few", "field-guide-vlm-many"]


def score(question: Question, answer: str) -> float:
    query = Query(query_id="q", text=question.text, answers=question.answers)
    return RuleJudge().verdict(query, answer).score or 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERERS)
def test_answers_follow_the_pixels_of_another_species_and_a_useless_image_silences(name, tmp_path):
    answerer = load_generator(name, decoding={"temperature": 0, "max_new_tokens": 16})

    def answer(question: Question, shown: Species, view: photo.View) -> str:
        photo.draw_photograph(shown, view, 160).save(tmp_path / "shown.jpg", quality=90)
        prompt = worded("clue_image", question.text, [ImageFile(tmp_path / "shown.jpg")])
        (reply,) = answerer.generate([prompt])
        return parse_tagged(reply.raw or "")["answer"]

    gained, silent = [], []
    for i in range(45):
        rng = stream("exchange", i)
        kind = str(rng.choice(list(KINDS)))
        named, seen = (photo.numbered_species(f"exchange/{i}", kind, n) for n in (0, 1))
        part = hidden_parts(named)[int(rng.integers(2))]
        both = [a for a in askable_traits(named, part) if a in askable_traits(seen, part)]
        asks = str(rng.choice(both))
        mine, other = (make_question(each, part, asks) for each in (named, seen))
        if mine.answers[0] != other.answers[0]:
            said = answer(mine, seen, photo.plan_clue_photo(seen, part, f"exchange/{i}/photo").view)
            gained.append(score(other, said) - score(mine, said))
            plain = photo.plan_plain_photo(named, frozenset(named.hidden), f"exchange/{i}/plain")
            silent.append(is_abstention(answer(mine, named, plain.view)))
    groups = [str(i) for i in range(len(gained))]
    assert estimate(np.array(gained), groups, scale=SHARES.differences).ci_low > 0.2
    assert np.mean(silent) > 0.5


def test_all_weights_of_the_demo_are_small_and_have_cards():
    assert sum(file.stat().st_size for file in WEIGHTS.rglob("*") if file.is_file()) < 50e6
    assert all((folder / "README.md").is_file() for folder in WEIGHTS.iterdir() if folder.is_dir())
