"""What the answerer of conversations is taught with, and how its vocabulary splits it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from vrag_kit.fieldguide.training.talk_contexts import Stage, as_text
from vrag_kit.fieldguide.training.talk_lessons import Album, Lesson, School
from vrag_kit.fieldguide.training.talk_tokens import DESIGNS, WORDS, build_talk_processor
from vrag_kit.fieldguide.training.worn_stock import EACH, individual
from vrag_kit.fieldguide.worn.conversations import Depends
from vrag_kit.fieldguide.worn.entities import look_words
from vrag_kit.fieldguide.worn.taught import Shown, rewriting
from vrag_kit.generation.rewriting import REWRITTEN, UNSURE, read_rewriting
from vrag_kit.types import Message

SCHOOL = School("test", Album("worn", 2400))
WORDED = Stage()
WHOLE = Stage(whole=1.0, talk=1.0)
ANEW = Stage(rewritten=1.0)


def lessons(stage: Stage, count: int) -> list[Lesson]:
    return [SCHOOL.lesson(f"{number}", stage) for number in range(count)]


def value(answer: str) -> str:
    """What a chain ends with."""
    return answer.rstrip(".").rpartition(": ")[2]


def test_a_fact_that_is_to_be_said_stands_in_the_prompt_and_one_that_is_not_is_declined() -> None:
    told = 0
    for lesson in lessons(WORDED, 150):
        before = lesson.prompts[0].rpartition("Query:")[0]
        for answer in lesson.answers:
            if ": " not in answer or value(answer) in ("I don't know", "yes", "no"):
                continue
            told += 1
            assert value(answer) in before
    assert told > 40


def test_the_picture_shows_the_look_that_is_said() -> None:
    seen = 0
    for lesson in lessons(Stage(blind=1.0, talk=0.0), 60):
        species = individual("worn", lesson.picture // EACH)
        said = re.split(r":|, I don't", lesson.answers[0])[0]
        if said != lesson.answers[0]:
            said = said.removeprefix("An ").removeprefix("A ")
            assert said == look_words(species.kind, species.outside)
            seen += 1
    assert seen > 40


def test_turns_below_one_context_are_the_conversation_in_order() -> None:
    for lesson in lessons(WHOLE, 20):
        assert len(lesson.prompts) == len(lesson.answers) > 1
        assert lesson.prompts[0].count("<image>") == 1
        for prompt in lesson.prompts[1:]:
            assert prompt.startswith("<|user|>Query: ")


def test_a_question_said_anew_is_read_by_the_kit() -> None:
    for lesson in lessons(ANEW, 100):
        found = read_rewriting(lesson.answers[0])
        assert found["outcome"] in (REWRITTEN, UNSURE)
        if found["outcome"] == REWRITTEN:
            name = json.loads(lesson.answers[0].partition(": ")[2])["entity_name"]
            assert name in str(found["question"]) or "that" in str(found["question"])


def test_without_the_turns_before_it_a_question_about_an_answer_is_said_to_be_unsure() -> None:
    counts = {Depends.ANSWER: 0, Depends.NOTHING: 0}
    for number in range(12):
        for turn in SCHOOL.scene(f"{number}").turns:
            if turn.depends in counts:
                counts[turn.depends] += 1
                found = read_rewriting(rewriting(turn, Shown()))
                alone = turn.depends is Depends.NOTHING
                assert found["outcome"] == (REWRITTEN if alone else UNSURE)
    assert min(counts.values()) > 3


def test_in_a_crowded_scene_many_names_share_a_word() -> None:
    scene = SCHOOL.scene("crowded", few=4)
    everyone = (scene.pictured, *scene.look_alikes, *scene.others)
    names = [each.name.split() for each in everyone]
    assert len(set(map(tuple, names))) == len(names) > 8
    assert len({genus for genus, _ in names}) <= 4
    assert len({epithet for _, epithet in names}) < len(names)


def test_the_same_name_gives_the_same_lesson() -> None:
    assert lessons(WORDED, 5) == lessons(WORDED, 5)


@pytest.fixture(scope="module")
def processor(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder: Path = tmp_path_factory.mktemp("talker")
    texts: list[str] = []
    for lesson in (*lessons(WORDED, 200), *lessons(ANEW, 60)):
        texts += [*lesson.prompts, *[f" {answer}" for answer in lesson.answers]]
    return build_talk_processor(texts, folder)


def test_each_word_is_one_token_and_answers_read_back_as_they_were(processor: object) -> None:
    tokens = processor.tokenizer  # type: ignore[attr-defined]  # transformers has no types here
    for words in WORDS.values():
        for word in words:
            assert len(tokens(f" {word}")["input_ids"]) == 1
    for design in DESIGNS:
        assert len(tokens(design)["input_ids"]) == 1
    for lesson in (*lessons(WORDED, 60), *lessons(ANEW, 20)):
        for answer in lesson.answers:
            assert tokens.decode(tokens(f" {answer}")["input_ids"]).strip() == answer
        long = sum(map(len, lesson.prompts))
        assert len(tokens("".join(lesson.prompts))["input_ids"]) < 30 + long / 5


def test_prompts_are_worded_as_the_chat_template_words_them(processor: object) -> None:
    turns = [
        Message(role="system", parts=("Be brief.",)),
        Message(role="user", parts=("Query: one?",)),
        Message(role="assistant", parts=("A red moth, plain: I don't know.",)),
        Message(role="user", parts=("Query: two?",)),
    ]
    spoken = [
        {"role": each.role, "content": [{"type": "text", "text": part} for part in each.parts]}
        for each in turns
    ]
    worded = processor.apply_chat_template(  # type: ignore[attr-defined]  # no types here either
        spoken, add_generation_prompt=True, tokenize=False
    )
    assert as_text(tuple(turns)) == worded
