"""The language of the synthetic CRAG-MM: entities with facts that agree everywhere, questions
whose answers follow from the facts that are shown, conversations that depend on what was
said before.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.judging import TruthfulnessRuleJudge
from vrag_kit.synthetic.crag_mm.conversations import (
    TYPE_SHARES,
    Turn,
    make_conversation,
    make_single_turn,
)
from vrag_kit.synthetic.crag_mm.entities import (
    ATTRIBUTES,
    GENERAL,
    SENTENCES,
    WEB_FACTS,
    Entity,
    EntityWorld,
    NameGenerator,
    WebPage,
    general_page,
    pages_about,
    with_article,
)
from vrag_kit.types import Query


@dataclass(frozen=True, slots=True)
class Scene:
    """An entity with an image, others, questions about it, and pages about all."""

    pictured: Entity
    look_alikes: tuple[Entity, ...]
    others: list[Entity]
    turns: tuple[Turn, ...]
    pages: list[WebPage]


def make_scene(name: str, length: int) -> Scene:
    """The scene of that name, always the same; of one turn or a conversation of several."""
    world = EntityWorld(name, NameGenerator(name))
    pictured = world.new_entity()
    others = [world.new_entity() for _ in range(8)]
    look_alikes = tuple(filter(None, [world.new_confusable(pictured) for _ in range(2)]))
    category = list(TYPE_SHARES)[len(name) % len(TYPE_SHARES)]
    turns = (make_single_turn(pictured, look_alikes, name, category),)
    if length > 1:
        turns = make_conversation(pictured, look_alikes, name, length)
    pages = [general_page(world, about) for about in GENERAL[::18]]
    for number, entity in enumerate((pictured, *look_alikes, *others)):
        pages += pages_about(entity, number % 4, name)
    return Scene(pictured, look_alikes, others, turns, pages)


SCENES = [make_scene(f"test/{number}", 1 + number % 6) for number in range(60)]
TURNS = [turn for scene in SCENES for turn in scene.turns]


@settings(max_examples=20, deadline=None)
@given(st.integers())
def test_in_a_world_names_and_looks_are_distinct_and_years_make_sense(number: int) -> None:
    world = EntityWorld(f"world/{number}", NameGenerator(f"world/{number}"))
    entities = [world.new_entity() for _ in range(30)]
    entities += [each for of in entities[:10] if (each := world.new_confusable(of))]
    assert len({each.name for each in entities}) == len(entities)
    assert len({each.facts["look"] for each in entities}) == len(entities)
    for each in entities:
        assert set(each.facts) == {*ATTRIBUTES, *WEB_FACTS}
        assert 30 <= each.numeric_fact("year") - each.numeric_fact("born") <= 50
        assert each.numeric_fact("width") <= each.numeric_fact("length")
        assert each.facts["capital"] == world.capitals[each.facts["region"]]


def test_the_rule_judge_tells_answers_from_abstentions_and_from_what_is_true_of_another() -> None:
    judge = TruthfulnessRuleJudge()
    verdicts: Counter[tuple[str, float | None]] = Counter()
    for scene in SCENES:
        for turn in scene.turns:
            name = turn.subject.name
            metadata = {"reference_query": turn.search_query}
            answers = (turn.reply.sentence,)
            query = Query(query_id="q", text=turn.question, answers=answers, metadata=metadata)
            said = {"right": f"{name}: {turn.reply.value}.", "none": f"{name}: I don't know."}
            values = [turn.ask.expected_answer(other).value for other in scene.others]
            wrong = next((value for value in values if value != turn.reply.value), None)
            if wrong and turn.ask.category != "simple-recognition":
                said["another's"] = f"{name}: {wrong}."
            for kind, answer in said.items():
                verdicts[kind, judge.verdict(query, answer).score] += 1
    assert set(verdicts) == {("right", 1.0), ("none", 0.0), ("another's", -1.0)}


def test_every_type_occurs_and_the_short_answer_stands_in_the_sentence() -> None:
    assert make_scene("test/1", 2).turns == SCENES[1].turns != SCENES[7].turns
    assert {turn.ask.category for turn in TURNS} == set(TYPE_SHARES)
    assert 0.2 < sum(turn.needs_history for turn in TURNS) / len(TURNS) < 0.5
    for scene in SCENES:
        asked = [(turn.search_query, turn.ask.form) for turn in scene.turns]
        assert len(set(asked)) == len(asked)
    for turn in TURNS:
        assert turn.reply.value in ("yes", "no") or turn.reply.value in turn.reply.sentence
        alone = turn.subject is turn.pictured or turn.subject.name in turn.question
        assert turn.needs_history or alone


def test_pages_tell_once_what_is_true_and_snippets_are_their_beginnings() -> None:
    later = []
    for scene in SCENES:
        entities = {each.name: each for each in (scene.pictured, *scene.look_alikes, *scene.others)}
        for page in scene.pages:
            assert page.result.startswith(page.snippet)
            later.append(page.result != page.snippet)
            told = page.result.split(". ")
            assert len(set(told)) == len(told)
            if entity := entities.get(page.name):
                look = with_article(entity.facts["look"])
                facts = {**entity.facts, "name": entity.name, "look": look}
                sentences = {form.format(**facts) for form in SENTENCES.values()}
                assert set(re.findall(r"[A-Z][^.]*\.", page.result)) <= sentences
    assert 0.3 < sum(later) / len(later) < 0.9  # some facts stand outside the snippets
